// Package scripts runs Lua 5.1 scripts as Redis 7.0 does, over an interface to commands.
//
// Package compiled has the scripts. Run runs one: it takes a Lua state from a pool, sets KEYS and ARGV, calls commands through a Caller and returns the reply as a Value.
// The package knows neither sessions nor keys.
package scripts
