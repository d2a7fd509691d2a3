// Package lualib reads arguments and writes numbers for Lua libraries written in Go exactly as Lua 5.1 does in C.
//
// gopher-lua words its argument errors in its own way, and writes and reads numbers as Go does. Scripts compare these
// texts, so the libraries of Redis go through this package instead. It holds no state; every function runs on the
// goroutine of the script.
package lualib
