package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// TestTrackedKeysAreBounded: what a read has noted beyond the limit is told, and forgotten, before the next
// read.
func TestTrackedKeysAreBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "HELLO", "3")
	w.do(1, "CLIENT", "TRACKING", "ON")
	w.engine.Keyspace().SetMostNoted(10)
	for i := range 100 {
		w.do(1, "GET", fmt.Sprint("k", i))
		if keys, _ := w.engine.Keyspace().Noted(); keys > 11 {
			t.Fatalf("%d keys are noted", keys)
		}
	}
	told := map[string]bool{}
	for _, m := range w.received(1) {
		told[m.Elems[1].Elems[0].Str] = true
	}
	if keys, items := w.engine.Keyspace().Noted(); int(keys) != 100-len(told) || items != keys || len(told) != 89 {
		t.Errorf("%d keys are noted, %d items, %d were told", keys, items, len(told))
	}
	used := w.engine.Keyspace().Used()
	if w.engine.Keyspace().SetMostNoted(1); w.engine.Keyspace().Used() >= used {
		t.Error("the notes take no memory")
	}
	if keys, _ := w.engine.Keyspace().Noted(); keys != 1 || len(w.received(1)) != int(100-len(told))-1 {
		t.Errorf("%d keys are noted after the limit was lowered", keys)
	}
	w.do(2, "FLUSHALL")
	w.received(1)
	for range 3 {
		w.do(1, "GET", "the only one")
	}
	if list := w.received(1); len(list) > 0 {
		t.Errorf("told of a key that the limit has room for: %+v", list)
	}
	w.do(2, "FLUSHALL")
	w.engine.Keyspace().SetMostNoted(0)
	for i := range 100 {
		w.do(1, "GET", fmt.Sprint("k", i))
	}
	if keys, _ := w.engine.Keyspace().Noted(); keys != 100 {
		t.Errorf("%d keys are noted without a limit", keys)
	}
}

// TestToldBeforeTheReply: who waits for the reply of a write, and then for one of a client that caches, knows
// that this client has been told.
func TestToldBeforeTheReply(t *testing.T) {
	t.Parallel()
	for _, onLoop := range []bool{false, true} {
		w := newHarness(t)
		w.do(1, "HELLO", "3")
		w.do(1, "CLIENT", "TRACKING", "ON")
		w.session(2).OnLoop = onLoop
		for i := range 300 {
			w.do(1, "GET", "k")
			w.do(2, "SET", "k", fmt.Sprint(i))
			told := 0
			if w.session(1).Receiver.(*inbox).take(func(engine.Reply) { told++ }); told != 1 {
				t.Fatalf("on a loop: %v: %d messages have come with the reply to write %d", onLoop, told, i)
			}
		}
	}
}

// TestEvictedKeysAreTold: what is evicted is told before the reply of the command that needs room.
func TestEvictedKeysAreTold(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "HELLO", "3")
	w.do(1, "CLIENT", "TRACKING", "ON")
	w.do(2, "SET", "volatile", "x", "EX", "10000")
	w.do(1, "GET", "volatile")
	w.do(2, "CONFIG", "SET", "maxmemory-policy", "volatile-random")
	w.do(2, "CONFIG", "SET", "maxmemory", "1")
	w.do(1, "SET", "k", "v")
	if list := w.received(1); len(list) != 1 || list[0].Elems[1].Elems[0].Str != "volatile" {
		t.Errorf("told: %+v", list)
	}
}

// TestNotedKeysGoBeforeData: a client that reads many keys does not drive out data by what it has read.
func TestNotedKeysGoBeforeData(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "HELLO", "3")
	w.do(1, "CLIENT", "TRACKING", "ON")
	w.do(2, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	for i := range 100 {
		w.do(2, "SET", fmt.Sprint("data", i), strings.Repeat("x", 1000))
	}
	limit := 2 * w.engine.Keyspace().Used()
	for i := range 100 {
		w.do(1, "GET", fmt.Sprint(strings.Repeat("absent", 1000), i))
	}
	w.do(2, "CONFIG", "SET", "maxmemory", fmt.Sprint(limit))
	for range 10 { // what one command frees is bounded
		w.do(2, "SET", "data0", "x")
	}
	if used := w.engine.Keyspace().Used(); used > limit {
		t.Errorf("%d bytes are used", used)
	}
	if r := w.do(2, "DBSIZE"); r.Int != 100 {
		t.Errorf("%d keys are left", r.Int)
	}
	keys, _ := w.engine.Keyspace().Noted()
	if told := len(w.received(1)); keys == 0 || told != 100-int(keys) {
		t.Errorf("%d keys are noted, %d were told", keys, told)
	}
}

// TestDeathsAreToldWithoutThePurge: a death is told when it happens, also where the dead item has to stay:
// while clients are paused, while a former default may rule again, and in a log of deaths.
func TestDeathsAreToldWithoutThePurge(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.do(1, "HELLO", "3")
	w.do(1, "CLIENT", "TRACKING", "ON")
	w.do(2, "CONTAINER.CREATE", "window", "TTL", "60")
	w.do(2, "CONTAINER.CREATE", "logged", "TTL", "2")
	w.do(2, "CONTAINER.SET", "logged", "LOG", "100")
	for _, c := range []string{"window", "logged"} {
		w.do(2, "DOC.PUT", c, "1", "{}")
	}
	w.do(2, "CONTAINER.SET", "window", "TTL", "2")
	for _, c := range []string{"window", "logged"} {
		w.do(1, "DOC.GET", c, "1")
	}
	w.do(2, "CLOCK", "ADVANCE", "1.999")
	if list := w.received(1); len(list) > 0 {
		t.Errorf("told too early: %+v", list)
	}
	w.do(2, "CLOCK", "ADVANCE", "0.001")
	names := map[string]bool{}
	for _, m := range w.received(1) {
		names[m.Elems[1].Elems[2].Str] = true
	}
	if len(names) != 2 || !names["window/1"] || !names["logged/1"] {
		t.Errorf("told: %v", names)
	}
	w.do(2, "CLOCK", "ADVANCE", "1000")
	if list := w.received(1); len(list) > 0 {
		t.Errorf("told twice: %+v", list)
	}
}

// TestDeathsOfElementsAreTold: who has read a collection is told in the millisecond in which one of its
// elements dies, and not again for those that are dead already.
func TestDeathsOfElementsAreTold(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.do(1, "HELLO", "3")
	w.do(1, "CLIENT", "TRACKING", "ON")
	for _, line := range []string{
		"HSET hash a 1 b 2 c 3", "HPEXPIRE hash 2000 FIELDS 1 a", "HPEXPIRE hash 3000 FIELDS 1 b", "SADD set a b", "EXPIREMEMBER set a 2000 ms",
		"ZADD zset 1 a 2 b", "EXPIREMEMBER zset a 2000 ms", "PEXPIRE zset 2500", "SADD never a",
	} {
		w.do(2, strings.Fields(line)...)
	}
	told := func(seconds string) string {
		for _, line := range []string{"HLEN hash", "SMEMBERS set", "ZCARD zset", "SCARD never"} {
			w.do(1, strings.Fields(line)...)
		}
		w.do(2, "CLOCK", "ADVANCE", seconds)
		var names []string
		for _, m := range w.received(1) {
			names = append(names, m.Elems[1].Elems[0].Str)
		}
		return strings.Join(names, " ") // in the order of ids
	}
	for _, tt := range [][2]string{{"1.999", ""}, {"0.001", "hash set zset"}, {"0.4", ""}, {"0.1", "zset"}, {"0.499", ""}, {"0.001", "hash"}, {"1000", ""}} {
		if got := told(tt[0]); got != tt[1] {
			t.Errorf("after %s s: %q, want %q", tt[0], got, tt[1])
		}
	}

	// Ends that sleep are told when they wake: of the whole container, as all that a default kills.
	w.do(2, "CONTAINER.SET", "0", "TTL", "off")
	w.do(2, "HPEXPIRE", "hash", "2000", "FIELDS", "1", "c")
	w.received(1)
	if got := told("5"); got != "" {
		t.Errorf("while they sleep: %q", got)
	}
	w.do(2, "CONTAINER.SET", "0", "TTL", "-1")
	if list := w.received(1); len(list) != 1 || list[0].Elems[1].Kind != engine.KindNull {
		t.Errorf("when they wake: %+v", list)
	}
}

// TestOrderOfDeaths: the deaths of one millisecond are told in the order of ids, those of elements among
// those of items.
func TestOrderOfDeaths(t *testing.T) {
	t.Parallel()
	w := newSteppedHarness(t)
	w.do(2, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.do(1, "SUBSCRIBE", "__keyevent@0__:expired", "__keyevent@0__:hexpired")
	var want []string
	for i := range 300 {
		id := fmt.Sprintf("k%03d", i)
		if want = append(want, id); i%7 == 0 {
			w.do(2, "HSET", id, "a", "1", "b", "2")
			w.do(2, "HPEXPIREAT", id, fmt.Sprint(w.clock.Now()+1000), "FIELDS", "1", "a")
			continue
		}
		w.do(2, "SET", id, "v", "PX", "1000")
	}
	w.received(1)
	w.do(2, "CLOCK", "ADVANCE", "1")
	var told []string
	for _, m := range w.received(1) {
		told = append(told, m.Elems[2].Str)
	}
	if !slices.Equal(told, want) {
		t.Errorf("told of %d deaths: %v", len(told), told)
	}
}
