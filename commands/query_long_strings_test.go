package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestOrderOfLongStrings: an index gives the order of strings that it cuts. Their documents settle ties, on
// pages of any size, beside writes.
func TestOrderOfLongStrings(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	long := strings.Repeat("z", 300)
	tails := []string{"", "a", "b", "é", `\u0000`, long}
	value := func() string {
		switch random.IntN(4) {
		case 0:
			return fmt.Sprint(random.IntN(5))
		case 1:
			return `"` + strings.Repeat("z", 254+random.IntN(4)) + `"`
		case 2:
			return `"` + long + tails[random.IntN(len(tails))] + `"`
		}
		return []string{"null", "true", `[1]`, `{"x":1}`, `"short"`, `"\u0000` + long + `"`}[random.IntN(6)]
	}
	rows := 0
	for _, text := range []string{
		"ORDER BY b", "ORDER BY b DESC", "ORDER BY b LIMIT 200", "ORDER BY a, b", "ORDER BY a DESC, b DESC", "WHERE a = 1 ORDER BY b",
		"WHERE b >= '" + long + "' ORDER BY b", "WHERE b IN ('" + long + "', 3, '" + long + "b') ORDER BY b DESC", "WHERE a = '" + long + "' AND b > 1 ORDER BY a, b",
	} {
		text = "SELECT VALUE _id " + text
		w := newHarness(t)
		for _, c := range []string{"plain", "c"} {
			w.do(1, "CONTAINER.SET", c, "TTL", "-1")
		}
		w.do(1, "INDEX.CREATE", "c", "/b")
		w.do(1, "INDEX.CREATE", "c", "/a", "/b")
		for i := range 200 {
			doc := `"a":` + value() + `,"b":` + value()
			for _, c := range []string{"plain", "c"} {
				w.do(1, "DOC.PUT", c, fmt.Sprint("stay-", i), "{"+doc+"}")
			}
			w.do(1, "DOC.PUT", "c", fmt.Sprint("dies-", i), "{"+doc+fmt.Sprintf(`,"ttl":%d}`, 1+i%30))
		}
		w.engine.Keyspace().BuildIndexes()
		if r := w.do(1, "DOC.QUERY", "c", text, "EXPLAIN"); r.Elems[9].Str != "index" || r.Elems[21].Kind != engine.KindNull {
			t.Errorf("%.60s: %s", text, notation(r))
		}
		want := w.allPages(t, "10000", nil, "plain", text)
		for _, count := range []string{"7", "150", "1"}[:drill.Pick(2, 3, 3)] {
			if strings.Contains(text, "LIMIT") && count != "7" {
				continue // what dies counts
			}
			got := w.allPages(t, count, func() {
				w.do(1, "DOC.DEL", "c", fmt.Sprint("dies-", random.IntN(200)))
				w.do(1, "DOC.PUT", "c", "new", `{"a":1,"b":`+value()+`}`)
				w.clock.Advance(time.Second)
			}, "c", text)
			got = slices.DeleteFunc(got, func(id string) bool { return !strings.HasPrefix(id, `"stay-`) })
			if strings.Contains(text, "LIMIT") {
				want = want[:min(len(want), len(got))]
			}
			if rows += len(got); !slices.Equal(got, want) {
				t.Errorf("%.60s: COUNT %s: %d rows, want %d", text, count, len(got), len(want))
			}
		}
	}
	if rows < 1000 {
		t.Errorf("only %d rows were compared", rows)
	}
}

// TestManyLongStrings: an index that cuts many strings does not give their order, and EXPLAIN says why. A
// range without strings comes in its order.
func TestManyLongStrings(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	for i := range 600 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint("s", i), `{"b":"`+strings.Repeat("z", 256)+fmt.Sprint(i)+`"}`)
		w.do(1, "DOC.PUT", "c", fmt.Sprint("n", i), fmt.Sprintf(`{"b":%d}`, i))
	}
	w.do(1, "INDEX.CREATE", "c", "/b")
	w.engine.Keyspace().BuildIndexes()
	const why = "the index /b does not give ORDER BY: it has 600 strings that it cuts at 256 bytes, and sorts at most 512"
	if r := w.do(1, "DOC.QUERY", "c", "ORDER BY b", "EXPLAIN"); r.Elems[9].Str != "sort" || r.Elems[21].Str != why {
		t.Errorf("plan %s", notation(r))
	}
	w.engine.QueryBudget.Store(100)
	w.expectError("query would examine more than 100 documents (query-budget): "+why, "DOC.QUERY", "c", "ORDER BY b")
	for _, text := range []string{"WHERE b >= 5 ORDER BY b LIMIT 3", "WHERE b IN ('x', 7) ORDER BY b"} {
		if r := w.do(1, "DOC.QUERY", "c", text, "EXPLAIN"); r.Elems[9].Str != "index" {
			t.Errorf("%s: plan %s", text, notation(r))
		}
	}
}

// TestManyLongStringsBesideOrder: strings that no row can have do not keep an index from giving the order,
// however many tie. If rows can have them, a page that needs their order says so, and a new query sorts.
func TestManyLongStringsBesideOrder(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	w.do(1, "INDEX.CREATE", "c", "/a", "/b")
	w.engine.Keyspace().BuildIndexes()
	long := strings.Repeat("z", 256)
	for i, a := range []int{1, 1, 2, 3} {
		w.do(1, "DOC.PUT", "c", fmt.Sprint("row", i), fmt.Sprintf(`{"a":%d,"b":5}`, a))
		w.do(1, "DOC.PUT", "c", fmt.Sprint("other", i), fmt.Sprintf(`{"a":%d,"b":%q}`, a, long))
	}
	const all = "SELECT VALUE _id WHERE a = 1 ORDER BY b"
	next, rows := w.queryPage(t, "c", all, "COUNT", "2")
	if want := []string{`"row0"`, `"row1"`}; !slices.Equal(rows, want) {
		t.Errorf("the first page is %q, want %q", rows, want)
	}
	for i := range 4097 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), fmt.Sprintf(`{"a":1,"b":%q}`, long))
	}
	for text, want := range map[string][]string{
		"WHERE a > 0 AND b = 5 ORDER BY a, b":           {`"row0"`, `"row1"`, `"row2"`, `"row3"`},
		"WHERE a > 0 AND b = 5 ORDER BY a DESC, b DESC": {`"row3"`, `"row2"`, `"row1"`, `"row0"`},
		"WHERE a IN (1, 2) AND b = 5 ORDER BY a, b":     {`"row0"`, `"row1"`, `"row2"`},
	} {
		for _, count := range []string{"1", "100"} {
			if got := w.allPages(t, count, nil, "c", "SELECT VALUE _id "+text); !slices.Equal(got, want) {
				t.Errorf("%s, COUNT %s: got %q, want %q", text, count, got, want)
			}
		}
		if order := w.explained(text, "order"); order != "index" {
			t.Errorf("%s: order %s", text, order)
		}
	}
	w.expectError(`ERR invalid cursor: its index no longer gives the order of this page; begin again with "0"`, "DOC.QUERY", "c", all, "CURSOR", next)
	if _, rows := w.queryPage(t, "c", all, "COUNT", "5000"); len(rows) != 4101 {
		t.Errorf("sorted, %d rows come, want 4101", len(rows))
	}
}

// TestOrderOfLongDocuments: documents that are read for the order of strings that an index cuts count for the
// budget, on each page anew.
func TestOrderOfLongDocuments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	w.do(1, "INDEX.CREATE", "c", "/b")
	w.engine.Keyspace().BuildIndexes()
	for i := range 10 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), fmt.Sprintf(`{"b":"%s%d","text":"%s"}`, strings.Repeat("z", 256), i, strings.Repeat("x", 64<<10)))
	}
	w.engine.QueryBudget.Store(100) // 80 for the order, and about 9 for each row
	pages := 0
	rows := w.allPages(t, "100", func() { pages++ }, "c", "SELECT VALUE _id ORDER BY b")
	if len(rows) != 10 || pages < 3 {
		t.Errorf("%d rows on %d pages", len(rows), pages+1)
	}
}
