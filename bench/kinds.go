package main

import "strconv"

// kind is a kind of server, with the commands that do the same in each. A set of documents is a container
// in mayfly and a prefix of keys in Redis.
type kind struct {
	name    string
	port    int      // added to the first port
	options []string // of the command line

	newSet func(set string, ttl int) []any // creates a set with a default ttl, -1 for none

	put  func(b []byte, set string, i int, body string, ttl int) []byte // appends a write; the ttl, 0 for none, is also in the body or the default of the set
	get  func(b []byte, set string, i int) []byte                       // appends a read
	ends func(b []byte, set string, i int) []byte                       // appends the query for a document's end

	expiryInfo string                // section of INFO about expiry
	removed    func(info string) int // number of dead items removed, from that section
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

// redisKind is as durable as mayfly is by default.
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
