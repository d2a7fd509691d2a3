package commands

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestQueryCountsAll: a count without WHERE reads no document, and counts what one with WHERE does: no plain
// keys, none of the dead. Its budget and what it examines are the same.
func TestQueryCountsAll(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "100")
	w.do(1, "SELECT", "c")
	for i := range 3000 {
		id := strconv.Itoa(i)
		switch i % 5 {
		case 0:
			w.do(1, "SET", "plain-"+id, "x", "EX", "50")
		case 1:
			w.do(1, "DOC.PUT", "c", id, `{"ttl":10}`)
		default:
			w.do(1, "DOC.PUT", "c", id, fmt.Sprintf(`{"n":%d}`, i))
		}
	}
	w.do(1, "SELECT", "0")
	count := func(query string) (rows string, examined int64) {
		t.Helper()
		_, list := w.queryPage(t, "c", query)
		r := w.do(1, "DOC.QUERY", "c", query, "EXPLAIN")
		return list[0], r.Elems[11].Int
	}
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "2400"}, {11 * time.Second, "1800"}, {40 * time.Second, "1800"}, {50 * time.Second, "0"}} {
		w.clock.Advance(tt.after)
		all, examined := count("SELECT VALUE COUNT(1)")
		filtered, examinedToo := count("SELECT VALUE COUNT(1) WHERE IS_STRING(_id)")
		if all != tt.want || filtered != tt.want || examined != examinedToo {
			t.Errorf("after %v more: counts %s and %s, examined %d and %d; want %s", tt.after, all, filtered, examined, examinedToo, tt.want)
		}
	}
	for i := range 2000 {
		w.do(1, "DOC.PUT", "c", strconv.Itoa(i), "{}")
	}
	w.engine.QueryBudget.Store(1000)
	const over = "ERR query would examine more than 1000 documents"
	for _, query := range []string{"SELECT VALUE COUNT(1)", "SELECT VALUE COUNT(1) WHERE IS_STRING(_id)"} {
		if r := w.do(1, "DOC.QUERY", "c", query); !strings.HasPrefix(r.Str, over) {
			t.Errorf("%s: %s, want %s", query, notation(r), over)
		}
	}
}
