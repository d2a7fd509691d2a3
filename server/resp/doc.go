// Package resp turns bytes into commands and replies into bytes: the wire protocol of Redis, RESP2 and RESP3.
//
// A [Guard] holds what one connection has read. A [Parser] takes whole, bounded commands from it as
// arguments. [AppendReply] renders a reply; [Stream] sends a large one in pieces.
//
// redcon is the codec behind the package. Its ReadNextCommand splits commands that the guard has
// checked, and its Append functions write the replies. Fuzzing holds the guard to the same result.
// redcon's server is not used, because one packet of 30 bytes ends it (hazards_test.go of package
// server). No other package imports redcon.
//
// Arguments are views of the guard's buffer, valid until the guard reads again. Nothing here is safe
// for concurrent use.
package resp
