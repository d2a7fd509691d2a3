package commands

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace/eviction"
)

const deathsOfCarts = "__keyevent@carts__:expired"

// bury puts documents with equally long ids into a container with a default of 10 s, has them die, and logs
// the deaths.
func (w *harness) bury(container, prefix string, n int) {
	w.t.Helper()
	for i := range n {
		w.expect("OK", "DOC.PUT", container, fmt.Sprintf("%s-%04d", prefix, i), itemBody)
	}
	w.clock.Advance(10 * time.Second)
	for length := w.logLength(container) + int64(n); w.logLength(container) < length; {
		w.engine.Keyspace().PurgeOnce() // for a limited time
	}
}

// TestInfoDeaths compares INFO and CONTAINER.GET with what XINFO and XLEN tell.
func TestInfoDeaths(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	got := infoFields(t, w.do(1, "INFO", "deaths"))
	if got["logs"] != "0" || got["log_entries"] != "0" || got["log_memory"] != "0" || got["log_oldest_time"] != "0" || got["log16"] != "" {
		t.Errorf("without logs: %v", got)
	}
	before := w.engine.Keyspace().Used()
	w.expect("OK", "CONTAINER.CREATE", "carts", "TTL", "10", "LOG", "3600")
	w.expect("OK", "CONTAINER.CREATE", "empty", "TTL", "10", "LOG", "60")
	w.expect("OK", "CONTAINER.CREATE", "without", "TTL", "10")
	w.bury("carts", "a", 5)
	w.expect("OK", "XGROUP", "CREATE", deathsOfCarts, "mailer", "0")
	w.expect("OK", "XGROUP", "CREATE", deathsOfCarts, "audit", "$")
	w.do(1, "XREADGROUP", "GROUP", "mailer", "w1", "COUNT", "2", "STREAMS", deathsOfCarts, ">")
	w.bury("carts", "b", 3)

	for range 2 {
		got = infoFields(t, w.do(1, "INFO", "deaths"))
		log := field(w.do(1, "CONTAINER.GET", "carts"), "log")
		for name, want := range map[string]string{
			"logs": "2", "log_entries": "8", "log_groups": "2", "log_pending": "2", "log_max_lag": "6",
			"log_bytes": fmt.Sprint(field(log, "bytes").Int), "log_oldest_time": fmt.Sprint((testStart + 10_000) / 1000),
			"log16": fmt.Sprintf("entries=8,bytes=%d,oldest=%d,groups=2,pending=2,lag=6", field(log, "bytes").Int, (testStart+10_000)/1000),
			"log17": "entries=0,bytes=0,oldest=0,groups=0,pending=0,lag=0", "log18": "",
		} {
			if got[name] != want {
				t.Errorf("INFO has %s:%s, want %q", name, got[name], want)
			}
		}
		memory := field(log, "memory").Int
		if got["log_memory"] != fmt.Sprint(memory+field(field(w.do(1, "CONTAINER.GET", "empty"), "log"), "memory").Int) {
			t.Errorf("INFO has log_memory:%s, CONTAINER.GET %d", got["log_memory"], memory)
		}
		if used := w.engine.Keyspace().Used(); memory < 8*(int64(len(itemBody))+6) || memory > used-before {
			t.Errorf("the log takes %d bytes of %d that were added", memory, used-before)
		}
		groups := field(log, "groups").Elems
		if len(groups) != 2 {
			t.Fatalf("CONTAINER.GET has %d groups", len(groups))
		}
		xinfo := w.do(1, "XINFO", "GROUPS", deathsOfCarts)
		for i, g := range groups {
			for _, name := range []string{"name", "pending", "lag"} {
				if got, want := field(g, name), field(xinfo.Elems[i], name); notation(got) != notation(want) {
					t.Errorf("group %d: %s is %s, XINFO GROUPS says %s", i, name, notation(got), notation(want))
				}
			}
		}
		w.restart()
	}

	// A hole in the log makes a lag unknown, as in Redis: null here, and no figure in INFO.
	w.do(1, "XREADGROUP", "GROUP", "audit", "w1", "COUNT", "1", "STREAMS", deathsOfCarts, ">")
	entries := w.do(1, "XRANGE", deathsOfCarts, "-", "+").Elems
	w.expect("(integer) 1", "XDEL", deathsOfCarts, entries[6].Elems[0].Str)
	groups := field(field(w.do(1, "CONTAINER.GET", "carts"), "log"), "groups").Elems
	if notation(field(groups[0], "lag")) != "(nil)" || notation(field(groups[0], "lag")) != notation(field(w.do(1, "XINFO", "GROUPS", deathsOfCarts).Elems[0], "lag")) {
		t.Errorf("the lag behind a hole is %s", notation(field(groups[0], "lag")))
	}
	if got := infoFields(t, w.do(1, "INFO", "deaths"))["log_max_lag"]; got != "0" {
		t.Errorf("log_max_lag is %s", got)
	}
}

// TestMaxMemoryBesideLog fills the memory while a log holds entries. Under volatile-ttl entries go, under the
// other policies they stay: noeviction refuses writes.
func TestMaxMemoryBesideLog(t *testing.T) {
	t.Parallel()
	const deaths = 300
	for policy := eviction.None; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			w := newHarness(t)
			w.expect("OK", "CONTAINER.CREATE", "carts", "TTL", "10", "LOG", "100")
			w.bury("carts", "a", deaths)
			w.expect(fmt.Sprintf("(integer) %d", deaths), "XLEN", deathsOfCarts)
			w.expect("OK", "CONTAINER.CREATE", "orders", "TTL", "100000") // lives longer than the entries
			w.limit(w.engine.Keyspace().Used()+20_000, policy)
			refused := 0
			for i := range 400 {
				if w.do(1, "DOC.PUT", "orders", fmt.Sprintf("id-%04d", i), itemBody).Kind == engine.KindError {
					refused++
				}
			}
			left := w.do(1, "XLEN", deathsOfCarts).Int
			switch policy {
			case eviction.None:
				if refused == 0 || left != deaths {
					t.Errorf("%d writes were refused, and %d of %d entries are left", refused, left, deaths)
				}
			case eviction.VolatileTTL:
				if count := w.do(1, "DOC.COUNT", "orders").Int; refused > 0 || left == 0 || left >= deaths || count < 300 {
					t.Errorf("%d writes were refused, %d of %d entries and %d of 400 documents are left", refused, left, deaths, count)
				}
			default:
				if count := w.do(1, "DOC.COUNT", "orders").Int; refused > 0 || left != deaths || count == 400 {
					t.Errorf("%d writes were refused, %d of %d entries and %d of 400 documents are left", refused, left, deaths, count)
				}
			}
		})
	}
}

// TestMemoryOfADeath: a death moves memory to the log and frees it when the entry goes.
func TestMemoryOfADeath(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "carts", "TTL", "10", "LOG", "100")
	w.bury("carts", "a", 200)
	w.expect("(integer) 200", "XTRIM", deathsOfCarts, "MAXLEN", "0")
	empty := w.engine.Keyspace().Used()
	for i := range 200 {
		w.expect("OK", "DOC.PUT", "carts", fmt.Sprintf("b-%04d", i), itemBody)
	}
	living := w.engine.Keyspace().Used() - empty
	w.clock.Advance(10 * time.Second)
	w.engine.Keyspace().PurgeOnce()
	if dead := w.engine.Keyspace().Used() - empty; dead < living || dead > living+200*64 {
		t.Errorf("200 documents take %d bytes, their entries %d", living, dead)
	}
	w.clock.Advance(100 * time.Second)
	for range 3 {
		w.engine.Keyspace().PurgeOnce()
	}
	if left := w.engine.Keyspace().Used() - empty; left < 0 || left > 100 { // the counters of the log have more digits
		t.Errorf("%d bytes are left when the entries have gone", left)
	}
}

// TestHistoryOfLog: a change of the log is a change of the settings.
func TestHistoryOfLog(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "carts", "TTL", "10")
	etag := func() string { return field(w.do(1, "CONTAINER.GET", "carts"), "etag").Str }
	for _, args := range [][]string{{"LOG", "60"}, {"LOG", "120"}, {"MAXLEN", "5"}, {"BODIES", "NO"}, {"LOG", "OFF"}} {
		before := etag()
		w.expect("OK", append([]string{"CONTAINER.SET", "carts"}, args...)...)
		newest := w.do(1, "CONTAINER.HISTORY", "carts", "COUNT", "1").Elems[0]
		if before == etag() || field(newest, "what").Str != "set" || field(newest, "etag").Str != etag() || field(newest, "ttl").Str != "10" {
			t.Errorf("%v: %s, before it %s, after it %s", args, notation(newest), before, etag())
		}
		before = etag()
		w.expect("OK", append([]string{"CONTAINER.SET", "carts"}, args...)...) // again
		if etag() != before {
			t.Errorf("%v again gives the container a new etag", args)
		}
		if args[0] != "LOG" || args[1] != "OFF" {
			w.expect("(nil)", append([]string{"CONTAINER.SET", "carts", "IFMATCH", "0000000000000001"}, args...)...)
		}
	}
	if !regexp.MustCompile(`"log" => \(nil\)$`).MatchString(notation(w.do(1, "CONTAINER.GET", "carts"))) {
		t.Error("the log is still there")
	}
}
