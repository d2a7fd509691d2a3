// Package turns shares the processors among long computations of many clients. A [Queue] grants a number of turns at
// a time, in the order in which they are requested. A client computes only with a turn, and has one request at most.
// So clients with long commands alternate, and a client with many waits for those with one.
package turns
