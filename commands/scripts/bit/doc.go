// Package bit is Lua's library bit as Redis has it: bitwise operations on numbers taken modulo 2^32.
package bit
