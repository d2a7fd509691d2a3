// Package libtest compares Lua libraries written in Go with those of a real Redis.
package libtest
