package commands

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
	"mayfly/test/drill"
)

// TestRandomCommandsOnRedis sends the same random commands to mayfly and a real redis-server, and
// compares every reply. Expirations are in the past or far away, so both see the same living keys.
func TestRandomCommandsOnRedis(t *testing.T) {
	r, random := newRivals(t, sameReply), drill.Rand(t)
	for range drill.Pick(0, 1000, 100_000) {
		r.send(1, randomCommand(random)...)
		r.look(1, append([]string{"MGET"}, randomKeys...)...)
		for _, key := range randomKeys {
			r.look(1, "PEXPIRETIME", key)
		}
	}
}

var randomKeys = []string{"a", "b", "c", "", "e"}

// randomCommand returns a random command that is mostly well-formed.
func randomCommand(random *rand.Rand) []string {
	one := func(words ...string) string { return words[random.IntN(len(words))] }
	key := func() string { return one(randomKeys...) }
	integer := func() string {
		return one("0", "1", "-1", "7", "42", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
			"", "abc", "1.5", "+1", "01", "-0", " 1", "4611686018427387904", "-4611686018427387904")
	}
	float := func() string {
		return one(integer(), "0.1", "-0.1", "1e3", "3.0e-5", "1e-17", "123456789.123456789", "-1e20", "0x1p-3", "inf",
			"1e4000", "-1e4000", ".5", "5.", "1e", "nan")
	}
	value := func() string { return one(integer(), float(), "text", "\x00\xff\r\n", strings.Repeat("long", 50)) }
	end := func() string { // legal and future ones in most cases
		return one("1000", "20000000", "900000", "33177117420", "33177117420123", integer(), "-5")
	}
	relative := func() string {
		return one("1000", "2000", "300000000", "-1000", "9223372036854775", "9223372036854776", integer())
	}
	options := func(words ...string) []string {
		var chosen []string
		for random.IntN(2) == 0 && len(chosen) < 5 {
			word := one(words...)
			chosen = append(chosen, one(word, word, strings.ToLower(word)))
			switch word {
			case "EX", "PX", "EXAT", "PXAT":
				if random.IntN(10) > 0 {
					chosen = append(chosen, safeEnd(word, end()))
				}
			}
		}
		return chosen
	}
	with := func(args ...string) []string { return args }
	switch random.IntN(22) {
	case 0, 1:
		return append(with("SET", key(), value()), options("NX", "XX", "GET", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "FOO", "PERSIST")...)
	case 2:
		return append(with("GETEX", key()), options("EX", "PX", "EXAT", "PXAT", "PERSIST", "KEEPTTL")...)
	case 3:
		return with(one("GET", "STRLEN", "TYPE", "EXISTS", "GETDEL", "DEL"), key())
	case 4:
		return with("MSET", key(), value(), key(), value())
	case 5:
		return with("MSETNX", key(), value(), key(), value())
	case 6:
		return with("MGET", key(), key(), key())
	case 7:
		return with(one("INCR", "DECR"), key())
	case 8, 9:
		return with(one("INCRBY", "DECRBY"), key(), integer())
	case 10, 11:
		return with("INCRBYFLOAT", key(), float())
	case 12:
		return with(one("APPEND", "GETSET", "SETNX"), key(), value())
	case 13:
		return with("SETEX", key(), safeEnd("EX", end()), value())
	case 14:
		return with("PSETEX", key(), safeEnd("PX", end()), value())
	case 15:
		return append(with("EXPIRE", key(), safeEnd("EX", relative())), options("NX", "XX", "GT", "LT", "FOO")...)
	case 16:
		return append(with("PEXPIRE", key(), safeEnd("PX", relative())), options("NX", "XX", "GT", "LT")...)
	case 17:
		return append(with(one("EXPIREAT", "PEXPIREAT"), key(), end()), options("NX", "XX", "GT", "LT")...)
	case 18:
		return with(one("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), key())
	case 19:
		return with("PERSIST", key())
	case 20:
		return with("KEYS", one("*", "**", "?", "[a-c]", "[^a]", "", `\a`, "[c-a", "*a*"))
	}
	return with(one("DEL", "UNLINK", "EXISTS", "DBSIZE", "FLUSHDB", "foo", "GET", "SET"), key(), key())
}

// safeEnd reports whether a time to live is not short. A short one may expire between the two servers.
func safeEnd(unit, end string) string {
	if n, ok := redisfmt.ParseInt(end); ok && n > 0 && n < 1000 && (unit == "EX" || unit == "PX") {
		return "100000"
	}
	if unit == "PX" && end == "1000" {
		return "1000000"
	}
	return end
}

// sameReply compares replies, but for the order of keys and the time between.
func sameReply(_ int, args []string, ours, theirs engine.Reply) bool {
	const slack = 5000 // ms, or as many seconds: ends are much farther apart
	switch args[0] {
	case "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME":
		if ours.Kind == engine.KindInteger && theirs.Kind == engine.KindInteger && ours.Int > 0 && theirs.Int > 0 {
			return max(ours.Int-theirs.Int, theirs.Int-ours.Int) <= slack
		}
	case "KEYS":
		for _, r := range []engine.Reply{ours, theirs} {
			slices.SortFunc(r.Elems, func(a, b engine.Reply) int { return strings.Compare(a.Str, b.Str) })
		}
	}
	return notation(ours) == notation(theirs)
}
