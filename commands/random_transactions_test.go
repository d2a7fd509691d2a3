package commands

import (
	"math/rand/v2"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestRandomTransactionsOnRedis sends the same random commands of two clients to mayfly and a real
// redis-server. There are transactions, watches, moves of keys and parts of strings, over four databases.
// After each command all replies and the contents of the databases are equal.
func TestRandomTransactionsOnRedis(t *testing.T) {
	r, random := newRivals(t, sameReply), drill.Rand(t)
	aborted, executed := 0, 0
	commands := drill.Pick(0, 800, 100_000)
	for n := range commands {
		args := randomTransactionCommand(random)
		switch reply := r.send(1+random.IntN(2), args...); {
		case args[0] != "EXEC":
		case reply.Kind == engine.KindNull, reply.Kind == engine.KindNullArray:
			aborted++
		case reply.Kind == engine.KindArray:
			executed++
		}
		if n%5 > 0 {
			continue
		}
		for _, look := range [][]string{
			{"SELECT", "0"}, append([]string{"MGET"}, randomKeys...), {"DBSIZE"}, {"SELECT", "1"}, append([]string{"MGET"}, randomKeys...),
			{"SELECT", "2"}, append([]string{"MGET"}, randomKeys...), {"PEXPIRETIME", "a"}, {"SELECT", "3"}, {"MGET", "a", "b"}, {"DBSIZE"},
		} {
			r.look(9, look...)
		}
	}
	if aborted < commands/500 || executed < commands/50 {
		t.Errorf("%d transactions were executed and %d aborted by a watch: that tests little", executed, aborted)
	}
}

// randomTransactionCommand returns a random command that is mostly well-formed.
func randomTransactionCommand(random *rand.Rand) []string {
	one := func(words ...string) string { return words[random.IntN(len(words))] }
	key := func() string { return one(randomKeys...) }
	db := func() string { return one("0", "0", "1", "1", "2", "3", "16", "-1", "x", "4294967296") }
	position := func() string {
		return one("0", "1", "2", "5", "-1", "-2", "-5", "100", "-100", "9223372036854775807", "-9223372036854775808", "x", "")
	}
	with := func(args ...string) []string { return args }
	switch random.IntN(24) {
	case 0, 1, 2:
		return with("MULTI")
	case 3, 4, 5:
		return with("EXEC")
	case 6, 7, 8:
		return with("WATCH", key(), key())
	case 9:
		return with(one("DISCARD", "UNWATCH", "EXEC", "MULTI", "WATCH"), one("a", "b"))[:1+random.IntN(6)/5]
	case 10:
		return with("SELECT", one("0", "0", "0", "1", "2", "3", "16"))
	case 11:
		return append(with("COPY", key(), key()), [][]string{nil, {"REPLACE"}, {"DB", db()}, {"DB", db(), "REPLACE"}, {"FOO"}, {"DB"}}[random.IntN(6)]...)
	case 12:
		return with("MOVE", key(), db())
	case 13, 14:
		return with(one("RENAME", "RENAMENX"), key(), key())
	case 15:
		return with("SWAPDB", db(), db())
	case 16:
		return with(one("GETRANGE", "SUBSTR"), key(), position(), position())
	case 17:
		return with("SETRANGE", key(), one("0", "1", "7", position()), one("", "x", "longer"))
	case 18:
		return append(with("LCS", key(), key()), [][]string{nil, {"LEN"}, {"IDX"}, {"IDX", "WITHMATCHLEN", "MINMATCHLEN", position()}, {"IDX", "LEN"}}[random.IntN(5)]...)
	case 19:
		return with("SET", key(), one("1", "text", "some longer text", "ABCBDAB", "BDCABA"))
	case 20:
		return with("PEXPIREAT", key(), one("33177117420123", "33177117420123", "1"))
	case 21:
		return with(one("TOUCH", "DEL", "GET"), key())
	}
	return with(one("INCR", "GETDEL", "PERSIST", "FLUSHDB", "nosuch", "STRLEN", "TYPE"), key())
}
