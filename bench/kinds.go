package main

import "strconv"

// kind is a kind of server: how to start it and how to say the same to each. Documents are in sets. In
// mayfly a set is a container, in Redis it is no more than the beginning of the keys.
type kind struct {
	name    string
	port    int      // added to the first port
	options []string // of the command line

	newSet func(set string, ttl int) []any // makes a set whose documents have a ttl by default, -1 for none

	put  func(b []byte, set string, i int, body string, ttl int) []byte // appends a write; the ttl, 0 for none, is in the body or the set's default as well
	get  func(b []byte, set string, i int) []byte                       // appends a read
	ends func(b []byte, set string, i int) []byte                       // appends the question when a document dies

	expiryInfo string                // the section of INFO that tells of the dead
	removed    func(info string) int // how many of them have been removed
}

var mayflyKind = kind{
	name:    "mayfly",
	port:    0,
	options: []string{"--log-format", "json"},
	newSet:  func(set string, ttl int) []any { return []any{"CONTAINER.SET", set, "TTL", ttl} },
	put: func(b []byte, set string, i int, body string, _ int) []byte {
		return appendCommand(b, "DOC.PUT", set, id(set, i), body)
	},
	get:        func(b []byte, set string, i int) []byte { return appendCommand(b, "DOC.GET", set, id(set, i)) },
	ends:       func(b []byte, set string, i int) []byte { return appendCommand(b, "DOC.PEXPIRETIME", set, id(set, i)) },
	expiryInfo: "expiry",
	removed: func(info string) int {
		return number(info, "expiry_removed_lazily") + number(info, "expiry_removed_actively")
	},
}

// redisKind is configured to be as durable as mayfly is by default.
var redisKind = kind{
	name:    "Redis",
	port:    1,
	options: []string{"--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--aof-use-rdb-preamble", "yes"},
	newSet:  func(string, int) []any { return []any{"PING"} },
	put: func(b []byte, set string, i int, body string, ttl int) []byte {
		if ttl > 0 {
			return appendCommand(b, "SET", id(set, i), body, "EX", strconv.Itoa(ttl))
		}
		return appendCommand(b, "SET", id(set, i), body)
	},
	get:        func(b []byte, set string, i int) []byte { return appendCommand(b, "GET", id(set, i)) },
	ends:       func(b []byte, set string, i int) []byte { return appendCommand(b, "PEXPIRETIME", id(set, i)) },
	expiryInfo: "stats",
	removed:    func(info string) int { return number(info, "expired_keys") },
}
