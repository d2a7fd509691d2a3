// Package pattern matches the patterns of Lua 5.1, as lstrlib.c does.
//
// A search that backtracks for long can be interrupted: it counts its steps.
package pattern
