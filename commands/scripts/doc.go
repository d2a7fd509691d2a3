// Package scripts runs Lua scripts as Redis 7.0 does, over an interface to commands.
//
// A Cache has compiled scripts. Run runs one: it takes a machine of package lua from a pool, sets KEYS and
// ARGV, calls commands through a Caller and returns the reply as a Value. Redis' libraries are here: redis,
// cjson, cmsgpack, struct and bit. The package knows neither sessions nor keys.
package scripts
