package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQueryOrderUndefined: documents whose first value of ORDER BY is undefined are left out when an index
// gives the order, too.
func TestQueryOrderUndefined(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "100")
	w.do(1, "INDEX.CREATE", "c", "/a", "/b")
	for i, doc := range []string{
		`{"a":1,"b":1}`, `{"a":1}`, `{"a":1,"b":2,"b":2}`, `{"a":1,"b":null}`, `{"b":1}`, `{"a":2}`, `{"a":2,"b":5}`,
	} {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), doc)
	}
	w.engine.Keyspace().BuildIndexes()
	for _, tt := range []struct{ query, want string }{
		{"WHERE a = 1 ORDER BY b", "3 0"},
		{"WHERE a = 1 ORDER BY b DESC", "0 3"},
		{"WHERE a = 1 AND b > 0 ORDER BY b", "0"},
		{"WHERE a = 1 AND b = null ORDER BY b", "3"},
		{"WHERE a = 2 ORDER BY a, b", "5 6"},
		{"WHERE a >= 1 ORDER BY a, b", "1 2 3 0 5 6"},
		{"ORDER BY a, b LIMIT 6", "1 2 3 0 5 6"},
		{"ORDER BY a, b", "1 2 3 0 5 6"},
	} {
		for _, text := range []string{"SELECT VALUE _id " + tt.query, "SELECT * " + tt.query} {
			_, rows := w.queryPage(t, "c", text, "WITHIDS")
			var ids []string
			for i := 0; i < len(rows); i += 2 {
				ids = append(ids, rows[i])
			}
			if !slices.Equal(ids, strings.Fields(tt.want)) {
				t.Errorf("%s: %q, want %s", text, ids, tt.want)
			}
		}
		if r := w.do(1, "DOC.QUERY", "c", tt.query, "EXPLAIN"); r.Elems[9].Str != "index" {
			t.Errorf("%s: plan %s", tt.query, notation(r))
		}
	}
}

// TestPagesOfTimeLeft: all pages of a query count the time left from the moment of the first, so that no row
// comes twice and none is left out while time goes on.
func TestPagesOfTimeLeft(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SELECT VALUE _id ORDER BY _ttlleft",
		"SELECT VALUE _id ORDER BY _ttlleft DESC",
		"SELECT VALUE _id ORDER BY _ttlleft, n DESC",
		"SELECT VALUE _id ORDER BY n DESC, _ttlleft",
		"SELECT VALUE _id ORDER BY _expiresat DESC",
		"SELECT VALUE _id WHERE n = 1 ORDER BY _ttlleft",
		"SELECT VALUE _id WHERE _id IN ('1', '3', '5', '7', '9') ORDER BY _ttlleft DESC",
		"SELECT VALUE _id WHERE _ttlleft > 99.5 ORDER BY _ttlleft DESC",
		"SELECT VALUE _id WHERE _ttlleft > 99.5 ORDER BY n",
		"SELECT VALUE _id WHERE _ttlleft > 99.5",
		"SELECT VALUE _id WHERE _ttlleft + 0 > 99.5",
		"SELECT _ttlleft, COUNT(1) AS documents GROUP BY _ttlleft",
		"SELECT n, MAX(_ttlleft) AS longest GROUP BY n",
	} {
		w := newHarness(t)
		w.do(1, "CONTAINER.SET", "c", "TTL", "100")
		w.do(1, "INDEX.CREATE", "c", "/n")
		for i := range 12 {
			w.do(1, "DOC.PUT", "c", fmt.Sprint(i), fmt.Sprintf(`{"n":%d}`, i%3))
			w.clock.Advance(50 * time.Millisecond)
		}
		w.engine.Keyspace().BuildIndexes()
		_, want := w.queryPage(t, "c", query)
		if len(want) < 3 {
			t.Fatalf("%s: %q", query, want)
		}
		var got []string
		for cursor := "0"; len(got) <= len(want); w.clock.Advance(70 * time.Millisecond) {
			var page []string
			cursor, page = w.queryPage(t, "c", query, "COUNT", "2", "CURSOR", cursor)
			if got = append(got, page...); cursor == "0" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: pages of %q, want %q", query, got, want)
		}
	}
}
