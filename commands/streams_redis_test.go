package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/streams"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// logDeaths gives a container a log of deaths.
func (w *harness) logDeaths(container string) {
	w.t.Helper()
	var tx keyspace.Tx
	w.engine.Keyspace().BeginAll(&tx)
	err := tx.SetLog(tx.Container(container), keyspace.LogSettings{Seconds: 1e6, MaxLen: 1e6, Bodies: true})
	drill.Check(w.t, err, w.engine.Keyspace().Wait(tx.Close()))
}

// logged returns the entries of a container's log behind an id.
func (w *harness) logged(container string, after streamid.ID) (list []deathlog.Entry) {
	var tx keyspace.Tx
	w.engine.Keyspace().BeginSweep(&tx)
	defer tx.Close()
	from, _ := after.Next()
	tx.Deaths(tx.Container(container)).Range(from, streamid.Max, false, func(e deathlog.Entry) bool {
		list = append(list, e)
		return true
	})
	return list
}

// die lets n items of a container with a TTL of 10 s die at once.
func (w *harness) die(container string, n int) {
	w.t.Helper()
	for i := range n {
		switch i % 4 {
		case 0:
			w.expect("OK", "DOC.PUT", container, fmt.Sprint("doc", i), `{"ttl":5}`)
		case 1:
			w.expect("OK", "DOC.PUT", container, fmt.Sprint("doc", i), `{"n":1}`)
		case 2:
			w.expect("OK", "SELECT", container)
			w.expect("OK", "SET", fmt.Sprint("key", i), "\x00v", "PX", "2500")
		case 3:
			w.expect("OK", "SELECT", container)
			w.expect("OK", "SET", fmt.Sprint("key", i), "")
		}
	}
	w.clock.Advance(10 * time.Second)
	for length := w.logLength(container) + int64(n); w.logLength(container) < length; {
		w.engine.Keyspace().PurgeOnce() // for a limited time
	}
}

// logLength returns the number of entries in a container's log.
func (w *harness) logLength(container string) int64 {
	var tx keyspace.Tx
	w.engine.Keyspace().BeginSweep(&tx)
	defer tx.Close()
	state, _ := tx.Deaths(tx.Container(container)).State()
	return state.Length
}

// streamKey is the stream of the container c.
const streamKey = "__keyevent@c__:expired"

// TestStreamsOnRedis fills a log of deaths, and a stream of a real redis-server with the same ids and fields.
// Then it sends the same random commands to both, and compares every reply in RESP2 and RESP3.
func TestStreamsOnRedis(t *testing.T) {
	r := newRivals(t, func(proto int, args []string, ours, theirs engine.Reply) bool {
		if args[0] == "XINFO" {
			ours, theirs = withoutTree(ours), withoutTree(theirs)
		}
		return rendered(proto, ours) == rendered(proto, theirs)
	})
	r.expect("OK", "CONTAINER.SET", "c", "TTL", "10")
	r.logDeaths("c")
	for proto := 2; proto <= 3; proto++ { // of the sessions 2 and 3
		r.hello(proto, proto)
		r.send(proto, "SET", "plain", "v")
	}
	random := drill.Rand(t)
	var last streamid.ID
	var ids []string
	var emptied, errorCount int
	die := func(n int) {
		r.die("c", n)
		for _, e := range r.logged("c", last) {
			last = e.ID
			ids = append(ids, e.ID.String())
			args := []string{"XADD", streamKey, e.ID.String()}
			for _, field := range streams.EntryReply(&e).Elems[1].Elems {
				args = append(args, field.Str)
			}
			if reply := r.redis(3).do(t, args...); reply.Kind != engine.KindBulk {
				t.Fatalf("%q: %s", args, notation(reply))
			}
		}
	}
	die(40)
	commands := drill.Pick(0, 800, 100_000)
	for i := range commands {
		if i%50 == 49 {
			die(1 + random.IntN(9))
		}
		args := randomStreamCommand(random, streamKey, ids)
		reply := r.send(2+random.IntN(2), args...)
		if reply.Kind == engine.KindError {
			errorCount++
		}
		if args[0] == "XLEN" && args[1] == streamKey && reply.Int == 0 {
			emptied++
		}
	}
	if errorCount > commands/2 || emptied > commands/50 {
		t.Errorf("%d errors and %d empty streams in %d commands say little", errorCount, emptied, commands)
	}
}

// rendered returns a reply as the bytes of a protocol, but for the type of strings.
func rendered(proto int, r engine.Reply) string {
	count, elems := len(r.Elems), ""
	for _, e := range r.Elems {
		elems += rendered(proto, e)
	}
	mark := map[engine.Kind]string{engine.KindArray: "*", engine.KindMap: "*", engine.KindSet: "*", engine.KindPush: ">"}[r.Kind]
	if proto == 3 {
		mark = map[engine.Kind]string{engine.KindArray: "*", engine.KindMap: "%", engine.KindSet: "~", engine.KindPush: ">"}[r.Kind]
	}
	switch r.Kind {
	case engine.KindNullArray, engine.KindNull:
		switch {
		case proto == 3:
			return "_\r\n"
		case r.Kind == engine.KindNullArray:
			return "*-1\r\n"
		}
		return "$-1\r\n"
	case engine.KindInteger:
		return fmt.Sprintf(":%d\r\n", r.Int)
	case engine.KindError:
		return "-" + r.Str + "\r\n"
	case engine.KindStatus:
		return "+" + r.Str + "\r\n"
	case engine.KindBulk:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(r.Str), r.Str)
	}
	if mark == "%" {
		count /= 2
	}
	return fmt.Sprintf("%s%d\r\n%s", mark, count, elems)
}

// COMMAND GETKEYS finds the names of streams as Redis does, in malformed calls too.
func TestKeysOfStreamsOnRedis(t *testing.T) {
	redis, w := startRealRedis(t).dial(t), newHarness(t)
	for _, call := range []string{
		"XREAD STREAMS a b 0 0", "xread count 1 streams a 0", "XREAD COUNT STREAMS STREAMS a b", "XREAD COUNT 1 FOO STREAMS a b c", "XREAD STREAMS a b c d e",
		"XREAD COUNT 1 STREAMS", "XREAD foo bar baz", "XREAD STREAMS x", "XRANGE k - +", "XLEN k", "XDEL k 1 2", "XTRIM k MAXLEN 0", "XADD k * a b", "XSETID k 1",
		"XINFO STREAM k", "XINFO HELP", "SPUBLISH c m",
	} {
		for _, command := range []string{"GETKEYS", "GETKEYSANDFLAGS"} {
			args := append([]string{"COMMAND", command}, strings.Fields(call)...)
			if got, want := notation(w.do(1, args...)), notation(redis.do(t, args...)); got != want {
				t.Errorf("%s: got %s, Redis replies %s", args, got, want)
			}
		}
	}
}

// withoutTree drops what XINFO STREAM tells of Redis' radix tree.
func withoutTree(r engine.Reply) engine.Reply {
	if len(r.Elems) > 6 {
		r.Elems = slices.Concat(r.Elems[:2], r.Elems[6:])
	}
	return r
}

// randomStreamCommand returns a random command on streams that is mostly well-formed.
func randomStreamCommand(random *rand.Rand, key string, ids []string) []string {
	one := func(words ...string) string { return words[random.IntN(len(words))] }
	any := func() string {
		return one("", "0", "-", "+", "$", ">", "(", "((1", "(-", "(+", "*", "1-", "-1", "1-1-1", "a-1", "1-a", "5-*", "+5-0", " 5", "05-1", "5- 1", "1--1", "5-18446744073709551615",
			"18446744073709551615", "18446744073709551616", "18446744073709551615-18446744073709551615", "(18446744073709551615-18446744073709551615", "(18446744073709551615",
			"0-0", "(0-0", "(0", "0-1", "5\x00x", "-\x00", "$\x00", strings.Repeat("0", 126)+"5", strings.Repeat("0", 127)+"5", "("+strings.Repeat("0", 127)+"5", "("+strings.Repeat("0", 126)+"5")
	}
	entry := func() string {
		id := one(ids...)
		if len(ids) > 10 && random.IntN(2) == 0 {
			id = one(ids[len(ids)-10:]...)
		}
		ms, _, _ := strings.Cut(id, "-")
		return one(id, id, id, "("+id, "("+id, ms, "("+ms)
	}
	bound := func() string {
		if random.IntN(12) == 0 {
			return any()
		}
		return one(entry(), entry(), entry(), "-", "+", "0")
	}
	exact := func() string {
		if random.IntN(12) == 0 {
			return any()
		}
		return one(one(ids...), one(ids...), ids[len(ids)-1], one(ids[max(0, len(ids)-12):]...), "0", "$")
	}
	behind := func() string { return strings.Replace(exact(), "+", "$", 1) } // + is of Redis 7.4
	number := func() string {
		return one("0", "1", "2", "3", "10", "-1", "1", "2", "5", "abc", "", "01", "9223372036854775807", "9223372036854775808", "-5", "1.5")
	}
	name := func() string {
		return one(key, key, key, key, key, key, "absent", "plain", "__keyevent@none__:expired", "__keyevent@0__:expired")
	}
	word := func(s string) string { return one(s, s, s, strings.ToLower(s)) }
	with := func(args ...string) []string { return args }
	chance := func(n int) bool { return random.IntN(n) == 0 }
	switch random.IntN(12) {
	case 0, 1, 2:
		args := with(word("XRANGE"), name(), bound(), bound())
		if chance(2) {
			args[0] = word("XREVRANGE")
		}
		for chance(3) {
			args = append(args, word(one("COUNT", "COUNT", "COUNT", "COUNTS")))
			if !chance(20) {
				args = append(args, number())
			}
		}
		return args
	case 3, 4, 5, 6:
		args := with(word("XREAD"))
		for chance(2) {
			switch random.IntN(9) {
			case 0, 1, 2, 3:
				args = append(args, word("COUNT"), number())
			case 4, 5, 6:
				args = append(args, word("BLOCK"), one("1", "1", "-1", "x", "1.5", "9223372036854775808"))
			case 7:
				args = append(args, word("GROUP"), "g", "c")
			case 8:
				args = append(args, one("NOACK", "FOO", "COUNT", ""))
			}
		}
		if !chance(20) {
			args = append(args, word("STREAMS"))
		}
		n := 1 + random.IntN(2)
		if chance(40) {
			n = 0
		}
		for range n {
			args = append(args, name())
		}
		for range n {
			args = append(args, behind())
		}
		if chance(30) {
			args = append(args, behind())
		}
		return args
	case 7:
		return with("XLEN", name())
	case 8:
		args := with("XDEL", name())
		for range 1 + random.IntN(3) {
			args = append(args, exact())
		}
		if chance(4) {
			return args
		}
		return args[:3]
	case 9:
		args := with("XTRIM", name())
		for chance(2) {
			switch random.IntN(4) {
			case 0, 1:
				args = append(args, word("MAXLEN"))
				if chance(3) {
					args = append(args, "=")
				}
				if args = append(args, one("30", "20", "50", number())); chance(2) {
					args[len(args)-1] = "30"
				}
			case 2:
				args = append(args, word("MINID"))
				if chance(3) {
					args = append(args, "=")
				}
				args = append(args, one(exact(), ids[len(ids)*2/3]))
			case 3:
				args = append(args, one("LIMIT", "LIMIT", "~", "FOO"), number())
			}
		}
		if slices.Contains(args, "~") { // Redis trims by the nodes of its tree
			return with("XTRIM", name(), "MAXLEN", "~", "1000000", "LIMIT", number())
		}
		return args
	case 10:
		args := with("XINFO", word("STREAM"), name())
		if chance(3) {
			args = append(args, word(one("FULL", "FULL", "FOO")))
			if chance(2) {
				args = append(args, word(one("COUNT", "COUNT", "FOO")), number())
			}
			if chance(9) {
				args = append(args, number())
			}
		}
		return args
	}
	return with(one("TYPE", "EXISTS", "SET", "GET", "DEL"), one("absent", "other", "nothing"))
}
