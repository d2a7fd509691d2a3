// Package waiting keeps the lines of clients that wait in a command with BLOCK: for entries of logs, or for
// collections under keys. It knows who is to be woken, and in which order.
package waiting
