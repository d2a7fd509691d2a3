// Package clock reads the time, for the life of items and for measuring.
//
// It is the only package that reads the time. [System] never runs backwards and never stops, even if the
// machine's clock is set back. Tests move a [Manual] clock. [Monotonic] measures durations, and [Deadline] is
// for sockets. A [LogLimiter] allows a log line now and then.
//
// All other packages take the time as an argument: milliseconds since the epoch, positive.
package clock
