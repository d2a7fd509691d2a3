// Package lua runs scripts in Lua 5.1 within bounds of time and memory.
//
// A chunk is parsed to a tree, and each expression and statement of that is compiled to a closure of Go.
// Values are plain values of Go. A machine counts steps at each call and each turn of a loop, and bytes
// before it allocates them. When it has counted as many as a script may have, it walks what the script can
// reach: garbage does not count. What an expression needs while another one runs is in registers, so that the
// walk sees it.
//
// The interpreter is our own, since gopher-lua offers no place to count. There t[67000000] = 1 is one
// instruction that allocates 5.9 GB and takes 43 s, and 1.2 million keys that were set and deleted keep 98
// MB. SetContext tells of an instruction but not of its operands, and a walk over exported members does not
// see such keys: bounds would need the private members of its tables.
package lua
