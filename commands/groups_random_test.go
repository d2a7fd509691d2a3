package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// sameGroupReply compares a reply of a command on groups with that of Redis. Times of deliveries may differ a
// little. In RESP2 the two kinds of null differ, and maps are arrays.
func sameGroupReply(ours, theirs engine.Reply, proto int) bool {
	const slack = 4000 // ms
	if proto == 2 && ours.Kind == engine.KindMap {
		ours.Kind = engine.KindArray
	}
	if proto == 3 && ours.Kind == engine.KindNullArray {
		ours.Kind = engine.KindNull
	}
	if ours.Kind != theirs.Kind || ours.Str != theirs.Str || len(ours.Elems) != len(theirs.Elems) {
		return false
	}
	near := func(a, b int64) bool { return max(a-b, b-a) <= slack }
	if ours.Int != theirs.Int && !(ours.Int > 1e12 && near(ours.Int, theirs.Int)) {
		return false
	}
	for i := range ours.Elems {
		a, b := ours.Elems[i], theirs.Elems[i]
		if i > 0 && strings.HasPrefix(ours.Elems[i-1].Str, "radix-tree") {
			continue
		}
		if a.Kind == engine.KindInteger && b.Kind == engine.KindInteger {
			idle := i > 0 && ours.Elems[i-1].Str == "idle"
			idle = idle || i == 2 && len(ours.Elems) == 4 && ours.Elems[0].Kind == engine.KindBulk && ours.Elems[1].Kind == engine.KindBulk // XPENDING
			if idle && near(a.Int, b.Int) {
				continue
			}
		}
		if !sameGroupReply(a, b, proto) {
			return false
		}
	}
	return true
}

// TestRandomGroupsOnRedis plays the same random commands on consumer groups, many of them malformed, to
// mayfly and a real redis-server whose streams have the same entries.
func TestRandomGroupsOnRedis(t *testing.T) {
	for n := range drill.Pick(0, 2, 200) {
		proto := 2 + n%2
		t.Run(fmt.Sprintf("%d-RESP%d", n, proto), func(t *testing.T) { playGroups(t, proto) })
	}
}

func playGroups(t *testing.T, proto int) {
	random := drill.Rand(t)
	var r *rivals
	r = newRivals(t, func(_ int, args []string, ours, theirs engine.Reply) bool {
		if strings.HasPrefix(ours.Str, "ERR no log") { // the error of XGROUP CREATE names what makes one
			if theirs.Str == "OK" { // MKSTREAM
				r.redis(1).do(t, "DEL", args[2])
				return true
			}
			return strings.HasPrefix(theirs.Str, "ERR The XGROUP subcommand requires the key to exist.")
		}
		return sameGroupReply(ours, theirs, proto)
	})
	one := func(words ...string) string { return words[random.IntN(len(words))] }
	names := []string{"a", "b"}
	entries := map[string][]string{} // ids by stream
	for _, name := range names {
		r.do(1, "CONTAINER.CREATE", name, "TTL", "-1")
		r.logDeaths(name)
		r.redis(1).do(t, "XGROUP", "CREATE", "__keyevent@"+name+"__:expired", "x", "$", "MKSTREAM")
		r.redis(1).do(t, "XGROUP", "DESTROY", "__keyevent@"+name+"__:expired", "x")
	}
	r.send(1, "SET", "plain", "v")
	r.hello(1, proto)
	key := func() string {
		if random.IntN(25) == 0 {
			return one("plain", "nothing", "__keyevent@none__:expired", "")
		}
		return "__keyevent@" + one(names...) + "__:expired"
	}
	number := func() string {
		return one("0", "1", "2", "5", "10", "-1", "x", "", "9223372036854775807", "9223372036854775808", "-3")
	}
	usually := func(words ...string) string {
		if random.IntN(12) == 0 {
			return one("", "x", "-1", "1-1-1", "(1", "-", "+", "$", ">", "9223372036854775807", "18446744073709551615-18446744073709551615", "18446744073709551616")
		}
		return one(words...)
	}
	id := func() string {
		all := entries["__keyevent@"+one(names...)+"__:expired"]
		if len(all) == 0 || random.IntN(6) == 0 {
			return usually("0", "0-0", "1", fmt.Sprint(time.Now().UnixMilli()))
		}
		id := all[random.IntN(len(all))]
		ms, _, _ := strings.Cut(id, "-")
		return usually(id, id, id, ms, ms+"-7")
	}
	group := func() string { return one("g", "h", "g", "h", "g", "h", "g\x00z", "nogroup", "") }
	consumer := func() string { return one("c", "d", "e", "e\x00f", "") }
	idle := func() string { return usually("0", "0", "500000", "-5") }
	maybe := func(n int, words ...string) []string {
		if random.IntN(n) == 0 {
			return words
		}
		return nil
	}
	join := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	with := func(words ...string) []string { return words }
	ids := func() (list []string) {
		for range 1 + random.IntN(3) {
			list = append(list, id())
		}
		return list
	}
	command := func() []string {
		switch random.IntN(22) {
		case 0, 1:
			return join(with("XGROUP", "CREATE", key(), group(), usually("$", "0", "0", id())), maybe(6, "MKSTREAM"), maybe(5, "ENTRIESREAD", number()), maybe(20, "ENTRIESREAD"), maybe(20, "foo"))
		case 2:
			return join(with("XGROUP", "SETID", key(), group(), usually("$", "0", id(), "-", "+")), maybe(5, "ENTRIESREAD", number()), maybe(20, "MKSTREAM"))
		case 3:
			return with("XGROUP", one("CREATECONSUMER", "createconsumer", "DELCONSUMER"), key(), group(), consumer())
		case 4:
			if random.IntN(3) > 0 {
				return with("XGROUP", one("FOO", "CREATE", "HELPX", "SETID", "DELCONSUMER"), key(), group())
			}
			return with("XGROUP", "DESTROY", key(), group())
		case 5, 6, 7, 8, 9:
			args := join(with("XREADGROUP"), with("GROUP", group(), consumer()), maybe(2, "COUNT", number()), maybe(6, "NOACK"), maybe(10, "BLOCK", one("1", "-1", "x", "1")), maybe(30, "foo"), with("STREAMS"))
			if random.IntN(40) == 0 {
				args = args[:len(args)-1]
			}
			which := one(">", ">", ">", ">", "0", "0", "1", "$", id())
			if random.IntN(4) == 0 {
				return append(args, key(), key(), which, one(">", "0", id()))
			}
			return append(args, key(), which)
		case 10, 11:
			return join(with("XACK", key(), group()), ids())
		case 12, 13:
			if random.IntN(3) == 0 {
				return join(with("XPENDING", key(), group()), maybe(10, number()))
			}
			start, end := usually("-", "(1", "0", id(), "("+id()), usually("+", "+", "(5", id(), "("+id())
			return join(with("XPENDING", key(), group()), maybe(4, "IDLE", idle()), with(start, end, number()), maybe(3, consumer()), maybe(30, "foo"))
		case 14, 15, 16:
			return join(with("XCLAIM", key(), group(), consumer(), idle()), ids(), maybe(4, "IDLE", usually("1000000", "0", "-5")), maybe(8, "TIME", usually("1", "99999999999999")),
				maybe(5, "RETRYCOUNT", number()), maybe(2, "FORCE"), maybe(3, "JUSTID"), maybe(8, "LASTID", id()), maybe(30, "foo"))
		case 17, 18:
			return join(with("XAUTOCLAIM", key(), group(), consumer(), idle(), usually("0", "0", "-", "(1", id())), maybe(3, "COUNT", number()), maybe(3, "JUSTID"), maybe(30, "foo"))
		case 19:
			return with("XINFO", one("GROUPS", "groups", "CONSUMERS"), key())
		}
		if random.IntN(2) == 0 {
			return with("XINFO", "CONSUMERS", key(), group())
		}
		return join(with("XINFO", "STREAM", key(), "FULL"), maybe(2, "COUNT", number()))
	}
	for n := range 400 {
		i := random.IntN(2)
		stream := "__keyevent@" + names[i] + "__:expired"
		all := entries[stream]
		switch random.IntN(7) {
		case 0, 1:
			e := r.dieOne(names[i], fmt.Sprint(n))
			entries[stream] = append(all, e[0])
			r.redis(1).do(t, append([]string{"XADD", stream}, e...)...)
			r.history = append(r.history, "add "+stream+" "+e[0])
		case 2:
			if len(all) > 0 && random.IntN(3) == 0 {
				r.send(1, "XDEL", stream, all[random.IntN(len(all))])
			} else if random.IntN(4) == 0 {
				r.send(1, "XTRIM", stream, "MAXLEN", fmt.Sprint(random.IntN(len(all)+2)))
			}
		}
		r.send(1, command()...)
		r.look(1, "XINFO", "GROUPS", stream)
		for _, g := range []string{"g", "h"} {
			r.look(1, "XPENDING", stream, g, "-", "+", "1000")
			r.look(1, "XINFO", "CONSUMERS", stream, g)
		}
		if n%40 == 0 {
			r.check()
		}
	}
}

// dieOne lets a plain key die that a container logs, and returns the id of the entry with its fields.
func (w *harness) dieOne(container, key string) (words []string) {
	w.t.Helper()
	const session = 99
	w.do(session, "SELECT", container)
	w.do(session, "SET", key, "v", "PX", "1")
	w.clock.Advance(2 * time.Millisecond)
	w.do(session, "DEL", key)
	list := w.do(session, "XREVRANGE", "__keyevent@"+container+"__:expired", "+", "-", "COUNT", "1").Elems
	if len(list) == 0 {
		w.t.Fatalf("the death of %s is not logged", key)
	}
	words = append(words, list[0].Elems[0].Str)
	for _, field := range list[0].Elems[1].Elems {
		words = append(words, strings.Clone(field.Str))
	}
	return words
}
