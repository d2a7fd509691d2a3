package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
