// Package clock reads the time, for the life of items and for measuring.
//
// It is the only package that reads the time. [System] never runs backwards and never stops, even if
// the machine's clock is set back. [Manual] is for tests, which move it. [Monotonic] measures durations,
// and [Deadline] makes the deadlines of sockets.
//
// Everything else takes the time as an argument: milliseconds since the epoch, positive.
package clock
