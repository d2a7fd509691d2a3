package commands

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// cache is what a client of CLIENT TRACKING keeps: replies to commands, by the command.
type cache struct {
	replies map[string]string
	told    int // messages
	nulls   int // of them
}

// hear drops what a message names: [id] of reads by key, [id, container, container/id] of documents, or null.
func (c *cache) hear(t *testing.T, m engine.Reply) {
	t.Helper()
	if len(m.Elems) != 2 || m.Elems[0].Str != "invalidate" {
		t.Fatalf("not understood: %+v", m)
	}
	c.told++
	names := m.Elems[1].Elems
	if names == nil {
		c.nulls++
		clear(c.replies)
		return
	}
	for command := range c.replies {
		words := strings.Fields(command)
		byKey := !strings.HasPrefix(words[0], "DOC.")
		switch {
		case byKey && words[1] == names[0].Str, len(names) == 3 && !byKey && words[1]+"/"+words[2] == names[2].Str:
			delete(c.replies, command)
		}
	}
}

// TestCacheIsNeverStale plays random histories of reads, writes, deaths, changes of containers and passing
// time beside a client that caches. Whatever it keeps after its messages is what a read returns.
func TestCacheIsNeverStale(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 3, 6, 300, func(t *testing.T, seed uint64) {
		t.Parallel()
		playCache(t, rand.New(rand.NewPCG(seed, 0)), drill.Pick(600, 1500, 4000))
	})
}

func playCache(t *testing.T, random *rand.Rand, steps int) {
	w := newSteppedHarness(t)
	const reader, writer, judge = 1, 2, 3
	w.do(judge, "HELLO", "3")
	w.do(reader, "HELLO", "3")
	w.do(reader, "CLIENT", "TRACKING", "ON")
	c := cache{replies: map[string]string{}}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	id := func() string { return pick("a", "b", "c", "d", "e", "f") }
	for _, name := range []string{"x", "y"} {
		w.do(writer, "CONTAINER.CREATE", name, "TTL", "5")
	}
	write := func() []string {
		switch random.IntN(18) {
		case 10, 11:
			return []string{"HSET", "hash", id(), pick("1", "2")}
		case 12, 13:
			return []string{"HPEXPIRE", "hash", fmt.Sprint(1 + random.IntN(3000)), "FIELDS", "1", id()}
		case 14:
			return []string{pick("SADD", "SREM"), "set", id()}
		case 15:
			return []string{"EXPIREMEMBER", pick("set", "zset"), id(), fmt.Sprint(1 + random.IntN(3000)), "ms"}
		case 16:
			return []string{"ZADD", "zset", pick("1", "2", "3"), id()}
		case 17:
			return strings.Fields(pick("RPUSH list x", "LPOP list", "LMOVE list list LEFT RIGHT", "PEXPIRE hash 2000", "HDEL hash a b"))
		case 0, 1:
			return []string{"SET", id(), fmt.Sprint(random.IntN(100)), "PX", fmt.Sprint(1 + random.IntN(3000))}
		case 2:
			return []string{"APPEND", id(), "x"}
		case 3:
			return []string{"DEL", id(), id()}
		case 4:
			return []string{"PEXPIRE", id(), fmt.Sprint(random.IntN(4000))}
		case 5:
			return []string{"DOC.PUT", pick("x", "y"), id(), `{"n":` + fmt.Sprint(random.IntN(100)) + `}`, "TTL", pick("null", "1", "3", "-1")}
		case 6:
			return []string{"DOC.DEL", pick("x", "y"), id(), id()}
		case 7:
			return []string{"DOC.TOUCH", pick("x", "y"), id()}
		case 8:
			return []string{"DOC.MERGE", pick("x", "y"), id(), `{"m":1}`}
		case 9:
			return []string{"DOC.SETTTL", pick("x", "y"), id(), pick("null", "2", "-1")}
		}
		return []string{"RENAME", id(), id()}
	}
	change := func() []string {
		name := pick("0", "1", "x", "y")
		switch random.IntN(8) {
		case 0, 1, 2:
			return []string{"CONTAINER.SET", name, "TTL", pick("off", "-1", "1", "2", "5", "60")}
		case 3:
			return []string{"CONTAINER.UNDO", name}
		case 4:
			return []string{"CONTAINER.SET", name, "HOLD", pick("OFF", "OFF", "OFF", "case")}
		case 5:
			return []string{"SWAPDB", pick("0", "1"), "1"}
		case 6:
			return []string{pick("FLUSHDB", "FLUSHALL", "PING", "PING")}
		}
		return []string{"CONTAINER.DROP", pick("x", "y")}
	}
	read := func() []string {
		switch random.IntN(3) {
		case 0:
			return []string{pick("GET", "STRLEN"), id()}
		case 1:
			return strings.Fields(pick("HGETALL hash", "HGET hash a", "HLEN hash", "EXISTS hash", "SMEMBERS set", "SCARD set", "ZRANGE zset 0 -1 WITHSCORES", "ZCARD zset", "ZRANK zset b", "LRANGE list 0 -1", "TYPE zset"))
		}
		return []string{pick("DOC.GET", "DOC.EXISTS"), pick("x", "y"), id()}
	}
	for range steps {
		switch n := random.IntN(20); {
		case n < 9:
			command := read()
			c.replies[strings.Join(command, " ")] = notation(w.do(reader, command...))
		case n < 14:
			w.do(writer, write()...)
		case n < 15:
			w.do(pickSession(random, reader, writer), "MULTI")
			s := w.sessions[reader]
			if !s.Multi.Open {
				s = w.sessions[writer]
			}
			for range 1 + random.IntN(3) {
				command := write()
				if random.IntN(3) == 0 {
					command = read()
				}
				w.do(int(s.ID), command...)
			}
			w.do(int(s.ID), "EXEC")
		case n < 16:
			w.do(writer, change()...)
			w.do(writer, "CONTAINER.CREATE", pick("x", "y"), "TTL", pick("-1", "2"))
		default:
			w.do(writer, "CLOCK", "ADVANCE", pick("0.001", "0.01", "0.1", "0.5", "1"))
		}
		for _, m := range w.received(reader) {
			c.hear(t, m)
		}
		for command, kept := range c.replies {
			if strings.HasPrefix(kept, "(error)") { // of a container that there is not: no client keeps that
				continue
			}
			if now := notation(w.do(judge, strings.Fields(command)...)); now != kept && !strings.HasPrefix(now, "(error)") {
				t.Fatalf("%s: the client keeps %s, it is %s", command, kept, now)
			}
		}
	}
	if c.told < steps/50 || c.nulls == 0 {
		t.Errorf("%d messages, %d of them null", c.told, c.nulls)
	}
	w.do(reader, "CLIENT", "TRACKING", "OFF")
}

func pickSession(random *rand.Rand, a, b int) int {
	if random.IntN(2) == 0 {
		return a
	}
	return b
}

// TestTrackingRace: clients read, write, cache and stop caching at the same time. In the end each has heard
// of every key that it has read and that has changed since, and no note is left of keys that are told.
func TestTrackingRace(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const clients, keys = 4, 20
	rounds := drill.Pick(200, 500, 5000)
	caches := make([]cache, clients)
	var group sync.WaitGroup
	for n := range clients {
		s := w.session(n + 1)
		w.engine.Execute(s, []string{"HELLO", "3"})
		w.engine.Execute(s, []string{"CLIENT", "TRACKING", "ON"})
		caches[n].replies = map[string]string{}
	}
	other := w.session(clients + 1)
	for n := range clients {
		s := w.session(n + 1)
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			box, c := s.Receiver.(*inbox), &caches[n]
			for range rounds {
				key := fmt.Sprint("k", random.IntN(keys))
				switch random.IntN(4) {
				case 0:
					w.engine.Execute(s, []string{"INCR", key})
				case 1:
					w.engine.Execute(s, []string{"DEL", key})
				default:
					// A message that comes before the reply may be about the read: it counts after it.
					reply := w.engine.Execute(s, []string{"GET", key}).Reply
					c.replies["GET "+key] = notation(reply)
				}
				if random.IntN(8) == 0 {
					box.take(func(m engine.Reply) { c.hear(t, m) })
				}
			}
		})
	}
	group.Go(func() {
		for range rounds {
			w.engine.Execute(other, []string{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k"})
			w.engine.Execute(other, []string{"GET", "k1"})
			w.engine.Execute(other, []string{"CLIENT", "TRACKING", "OFF"})
		}
	})
	group.Wait()
	for n := range clients {
		for _, m := range w.received(n + 1) {
			caches[n].hear(t, m)
		}
		for command, kept := range caches[n].replies {
			if now := notation(w.do(clients+1, strings.Fields(command)...)); now != kept {
				t.Errorf("client %d keeps %s of %s, it is %s", n+1, kept, command, now)
			}
		}
	}
	for k := range keys {
		w.do(clients+1, "SET", fmt.Sprint("k", k), "1")
	}
	if noted, items := w.engine.Keyspace().Noted(); noted != 0 || items != 0 {
		t.Errorf("%d keys and %d items are noted after all have changed", noted, items)
	}
}
