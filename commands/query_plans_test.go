package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// explained returns a field of EXPLAIN.
func (w *harness) explained(query, field string) string {
	r := w.do(1, "DOC.QUERY", "c", query, "EXPLAIN")
	for i := 0; i+1 < len(r.Elems); i += 2 {
		if r.Elems[i].Str == field {
			return strings.Clone(r.Elems[i+1].Str) // it may be a view of the query
		}
	}
	return r.Str
}

// TestQueryPlans: a plan reads what it says, and judges the rest of the condition only.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	w.do(1, "INDEX.CREATE", "c", "/a")
	w.do(1, "INDEX.CREATE", "c", "/a", "/b")
	w.do(1, "INDEX.CREATE", "c", "/s")
	for i := range 100 {
		w.do(1, "DOC.PUT", "c", fmt.Sprintf("id-%02d", i), fmt.Sprintf(`{"a":%d,"b":%d,"s":"s%d","x":%d}`, i%10, i/10, i, i))
	}
	w.engine.Keyspace().BuildIndexes()
	w.do(1, "DOC.PUT", "c", "plain", "{}")
	w.do(1, "SELECT", "c")
	w.do(1, "SET", "key", "value")
	w.do(1, "SELECT", "0")
	for _, tt := range []struct{ where, plan, span, filter, order, examined string }{
		// Constants are folded.
		{"a < 1 + 1", "index", "/a < 2", "", "", "20"},
		{"a = LENGTH('ab') AND true", "index", "/a = 2", "", "", "10"},
		{"UPPER('a') = s", "index", `/s = "A"`, "", "", "0"},
		{"1 = 1", "scan", "", "", "", "102"},
		{"a = 1 OR a = -(-2) OR false", "index", "/a of 2 values", "", "", "20"},
		{"a BETWEEN 1 AND 3 - 1", "index", "/a >= 1, /a <= 2", "", "", "20"},
		{"a = 1 AND NOT true", "scan", "nothing: the condition is never true", "", "", "0"},
		{"a = 1 AND x < 1/0", "scan", "nothing: the condition is never true", "", "", "0"},
		{"a BETWEEN 1 AND 'x'", "scan", "nothing: the condition is never true", "", "", "0"},
		{"a = 1 OR x < 1/0", "index", "/a = 1", "", "", "10"},
		{"a < [1]", "scan", "nothing: the condition is never true", "", "", "0"},
		// Ids are looked up.
		{"_id = 'id-07'", "ids", `_id = "id-07"`, "", "", "1"},
		{"'id-07' = _id AND a = 7", "ids", `_id = "id-07"`, "a = 7", "", "1"},
		{"_id IN ('id-07', 'none', 7, 'id-08') AND x > 7", "ids", "_id of 3 values", "x > 7", "", "2"},
		{"_id = 'id-01' OR _id = 'id-02' ORDER BY _id DESC", "ids", "_id of 2 values", "", "index", "2"},
		{"ARRAY_CONTAINS(['id-01', 'id-02'], _id) ORDER BY _id, x", "ids", "_id of 2 values", "", "index", "2"},
		{"_id = 'id-01' ORDER BY x", "ids", `_id = "id-01"`, "", "sort", "1"},
		{"_id = 'key'", "ids", `_id = "key"`, "", "", "1"},
		{"_id = 7", "ids", "_id = 7", "", "", "0"},
		{"STARTSWITH(_id, 'id-0')", "scan", "", "STARTSWITH(_id, 'id-0')", "", "102"},
		{"_id > 'id-5'", "scan", "", "_id > 'id-5'", "", "102"},
		// Equal keys are in the order of ids.
		{"a = 3 ORDER BY _id", "index", "/a = 3", "", "index", "10"},
		{"a = 3 ORDER BY _id DESC", "index", "/a = 3", "", "index", "10"},
		{"a > 7 ORDER BY a DESC, _id DESC", "index", "/a > 7", "", "index", "20"},
		{"a > 7 ORDER BY a DESC, _id", "index", "/a > 7", "", "sort", "20"},
		// Both directions are served.
		{"true ORDER BY a, b", "index", "all of /a /b", "", "index", "100"},
		{"true ORDER BY a DESC, b DESC", "index", "all of /a /b", "", "index", "100"},
		{"true ORDER BY a DESC, b", "scan", "", "", "sort", "102"},
		// A list of values is an IN.
		{"ARRAY_CONTAINS([1, 2, 2], c.a)", "index", "/a of 2 values", "", "", "20"},
		{"ARRAY_CONTAINS([1, [2]], c.a)", "index", "/a of 2 values", "ARRAY_CONTAINS([1, [2]], c.a)", "", "10"},
		{"ARRAY_CONTAINS([1, 2], c.a, true)", "scan", "", "ARRAY_CONTAINS([1, 2], c.a, true)", "", "102"},
		// Conditions that are proven are not in the filter.
		{"x > 5 AND (a = 1) AND b > 3 AND x < 50", "index", "/a = 1, /b > 3", "x > 5 AND x < 50", "", "6"},
		{"(x > 5 OR x < 3) AND a = 1 AND b > 3", "index", "/a = 1, /b > 3", "(x > 5 OR x < 3)", "", "6"},
		// The order of death.
		{"_ttlleft < 10 + 10 AND x > 1", "ends", "_ttlleft < 20", "x > 1", "", "0"},
		{"IS_DEFINED(_ttlleft)", "ends", "all that die", "", "", "101"},
		{"NOT IS_DEFINED(_ttlleft)", "scan", "", "NOT IS_DEFINED(_ttlleft)", "", "102"},
		{"_ttlleft IN (5, 10)", "ends", "_ttlleft between the values of IN", "_ttlleft IN (5, 10)", "", "0"},
		{"_ttlleft < 5 OR _expiresat < 10", "ends", "between _ttlleft < 5 or _expiresat < 10", "_ttlleft < 5 OR _expiresat < 10", "", "0"},
		{"_ttlleft < 5 OR x = 5", "scan", "", "_ttlleft < 5 OR x = 5", "", "102"},
		{"_ttlleft > 5 ORDER BY _ttlleft DESC", "ends", "_ttlleft > 5", "", "sort", "101"},
	} {
		text := "SELECT VALUE c._id FROM c WHERE " + strings.NewReplacer("_id", "c._id", "_ttl", "c._ttl", "_exp", "c._exp").Replace(tt.where)
		if !strings.Contains(tt.where, "c.") {
			text = "SELECT VALUE _id WHERE " + tt.where
		}
		got := []string{w.explained(text, "plan"), w.explained(text, "range"), w.explained(text, "filter"), w.explained(text, "order")}
		if want := []string{tt.plan, tt.span, tt.filter, tt.order}; !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
		if r := w.do(1, "DOC.QUERY", "c", text, "EXPLAIN"); fmt.Sprint(r.Elems[11].Int) != tt.examined {
			t.Errorf("%s: examined %d, want %s", text, r.Elems[11].Int, tt.examined)
		}
		// A scan selects the same.
		scan := strings.Replace(text, "WHERE ", "WHERE (", 1) + ") = true"
		if before, after, ok := strings.Cut(text, " ORDER BY "); ok {
			scan = strings.Replace(before, "WHERE ", "WHERE (", 1) + ") = true ORDER BY " + after
		}
		for _, count := range []string{"1000", "3"} {
			rows, want := w.allPages(t, count, nil, "c", text), w.allPages(t, "1000", nil, "c", scan)
			if !strings.Contains(text, "ORDER") {
				slices.Sort(rows)
				slices.Sort(want)
			}
			if !slices.Equal(rows, want) {
				t.Errorf("%s, COUNT %s:\ngot  %q\nwant %q", text, count, rows, want)
			}
		}
	}
}

// TestQueryAdvice: what would serve a query better.
func TestQueryAdvice(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	for i := range 30 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), `{"a":1,"b":2,"at":{"type":"Point","coordinates":[1,2]}}`)
	}
	const point = "{type: 'Point', coordinates: [1, 2]}"
	for _, tt := range []struct{ query, want string }{
		{"WHERE a = 1", "INDEX.CREATE c /a"},
		{"WHERE a = 1 ORDER BY _id", "INDEX.CREATE c /a"},
		{"WHERE _id = '1' AND a = 1", ""},
		{"WHERE a = 1 AND false", ""},
		{"ORDER BY a, _id", "INDEX.CREATE c /a"},
		{"ORDER BY _id", "no index is over _id: a condition that an index serves leaves less to sort"},
		{"ORDER BY a, b DESC", "an index gives ORDER BY in one direction only, as INDEX.CREATE c /a /b"},
		{"WHERE b = 2 ORDER BY a, b DESC", "INDEX.CREATE c /b"},
		{"ORDER BY ST_DISTANCE(at, " + point + ") LIMIT 10", "INDEX.CREATE c /at GEO"},
		{"ORDER BY ST_DISTANCE(at, " + point + ")", ""},
		{"ORDER BY ST_DISTANCE(at, " + point + ") DESC LIMIT 10", ""},
	} {
		if got := w.explained(tt.query, "advice"); got != tt.want {
			t.Errorf("%s: advice %q, want %q", tt.query, got, tt.want)
		}
	}
	w.engine.QueryBudget.Store(20)
	for _, tt := range []struct{ query, want string }{
		{"ORDER BY _id", "ERR query would examine more than 20 documents (query-budget): no index is over _id: a condition that an index serves leaves less to sort"},
		{"ORDER BY a, b DESC", "ERR query would examine more than 20 documents (query-budget): an index gives ORDER BY in one direction only, as INDEX.CREATE c /a /b"},
		{"ORDER BY a", "ERR query would examine more than 20 documents (query-budget): INDEX.CREATE c /a helps"},
		{"SELECT COUNT(1)", "ERR query would examine more than 20 documents (query-budget): a narrower query or CONFIG SET query-budget helps"},
	} {
		w.expectError(tt.want, "DOC.QUERY", "c", tt.query)
	}
	w.do(1, "CONTAINER.SET", "long", "TTL", "1000")
	for i := range 10 {
		w.do(1, "DOC.PUT", "long", fmt.Sprint(i), `{"s":"`+strings.Repeat("x", 40_000)+`"}`)
	}
	w.expectError("ERR query would examine more than 20 documents (query-budget); it stopped after 4, as each 8 KiB of text and values counts as one more: INDEX.CREATE long /s helps", "DOC.QUERY", "long", "SELECT COUNT(1) WHERE s > 'y'")
}

// TestUnknownMembers: EXPLAIN says which member a query names that no document has, if it selects nothing.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	for _, query := range []string{"WHERE status = open", "WHERE c.status = 'open'"} {
		if got := w.explained(query, "advice"); strings.Contains(got, "no document") {
			t.Errorf("%s over no documents: advice %q", query, got)
		}
	}
	for i := range 10 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), `{"a":1,"status":"open","x":{"c":1}}`)
	}
	w.do(1, "DOC.PUT", "c", "rare", `{"rare":1}`)
	for _, tt := range []struct{ query, want string }{
		{"WHERE status = open", "no document that was read has a member open: as a string it is written 'open'"},
		{"WHERE a = 2 AND c.status = 'open'", "no document that was read has a member c: paths begin with c after FROM c only"},
		{"FROM c WHERE c.stats = 'open' AND c.a = 1", "no document that was read has a member stats"},
		{"SELECT COUNT(1) WHERE a = 1 AND missing > 2", "no document that was read has a member missing: as a string it is written 'missing'"},
		{"WHERE status = 'paid'", "INDEX.CREATE c /status"},
		{"WHERE rare = 2", "INDEX.CREATE c /rare"},
		{"WHERE status = 'open' OR missing = 1", ""},
		{"WHERE NOT IS_DEFINED(missing)", ""},
		{"WHERE _ttl = 5 AND a = 1", "INDEX.CREATE c /a"},
	} {
		if got := w.explained(tt.query, "advice"); got != tt.want {
			t.Errorf("%s: advice %q, want %q", tt.query, got, tt.want)
		}
	}
}

// TestCursorBesideLongStrings: a cursor of an index goes on when strings come that the index cuts.
func TestCursorBesideLongStrings(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "INDEX.CREATE", "0", "/a")
	for i := range 10 {
		w.do(1, "DOC.PUT", "0", fmt.Sprint(i), fmt.Sprintf(`{"a":"%d"}`, i))
	}
	w.engine.Keyspace().BuildIndexes()
	cursor, _ := w.queryPage(t, "0", "ORDER BY a", "COUNT", "3")
	for i := range 600 {
		w.do(1, "DOC.PUT", "0", fmt.Sprint("long", i), `{"a":"`+strings.Repeat("x", 300)+`"}`)
	}
	if _, rows := w.queryPage(t, "0", "ORDER BY a", "CURSOR", cursor); len(rows) != 607 {
		t.Errorf("%d rows follow, want 607", len(rows))
	}
}

// TestQueryBudgetOfLookUps: look-ups in an index that find nothing count, in each partition.
func TestQueryBudgetOfLookUps(t *testing.T) {
	t.Parallel()
	w := newBudgetHarness(t)
	w.do(1, "INDEX.CREATE", "c", "/a")
	w.engine.Keyspace().BuildIndexes()
	absent := make([]string, 300)
	for i := range absent {
		absent[i] = fmt.Sprint(100 + i)
	}
	in := "WHERE a IN (" + strings.Join(absent, ",") + ")"
	if r := w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1) "+in); !strings.HasPrefix(r.Str, "ERR query would examine more than 200 documents") {
		t.Errorf("%s", notation(r))
	}
	if r := w.do(1, "DOC.QUERY", "c", in); notation(r) != "1) \"0\"\n2) (empty array)" { // a page goes on until it has a place to go on from
		t.Errorf("%s", notation(r))
	}
	w.engine.QueryBudget.Store(10_000)
	if r := w.do(1, "DOC.QUERY", "c", "SELECT VALUE COUNT(1) "+in); notation(r) != "1) \"0\"\n2) 1) \"0\"" {
		t.Errorf("%s", notation(r))
	}
}

// newBudgetHarness has 50 documents in a container, and a budget of 200.
func newBudgetHarness(t *testing.T) *harness {
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	for i := range 50 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), `{"a":1}`)
	}
	w.engine.QueryBudget.Store(200)
	return w
}

// TestQueryBudgetOfScript: the queries of a script have the budget of an EXEC, and share it with the other
// queries of that in which it runs.
func TestQueryBudgetOfScript(t *testing.T) {
	t.Parallel()
	w := newBudgetHarness(t)
	eval := []string{"EVAL", "local n = 0; for i = 1, 30 do n = n + #redis.call('DOC.QUERY', 'c', 'SELECT VALUE a')[2] end; return n", "0"}
	for range 2 { // the next script begins anew
		w.expect("(integer) 220", eval...) // each has a tenth, and at least 1
	}
	w.do(1, "MULTI")
	w.do(1, eval...)
	w.do(1, eval...)
	w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1)")
	r := w.do(1, "EXEC")
	if got := notation(r); r.Elems[0].Int != 220 || r.Elems[1].Int != 30 || !strings.Contains(got, "all queries of this EXEC or script") {
		t.Errorf("in EXEC: %s", got)
	}
}

// TestQueryBudgetOfExec: a query in EXEC has a tenth of the budget, and all of them together have one.
func TestQueryBudgetOfExec(t *testing.T) {
	t.Parallel()
	w := newBudgetHarness(t)
	for range 2 { // the next EXEC begins anew
		w.do(1, "MULTI")
		for range 30 {
			w.do(1, "DOC.QUERY", "c", "SELECT VALUE a")
		}
		w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1)")
		r := w.do(1, "EXEC")
		examined := 0
		for i, reply := range r.Elems[:30] {
			rows := len(reply.Elems[1].Elems)
			if want := 20; i < 10 && rows != want || i > 10 && rows > 1 {
				t.Errorf("query %d: %d rows", i, rows)
			}
			if reply.Elems[0].Str == "0" {
				t.Errorf("query %d has no cursor", i)
			}
			examined += rows
		}
		if examined > 200+30 {
			t.Errorf("the queries have examined %d documents", examined)
		}
		if want := "ERR query would examine more than 1 documents (query-budget), which are left of those of all queries of this EXEC or script: a narrower query or CONFIG SET query-budget helps"; r.Elems[30].Str != want {
			t.Errorf("the sum gives %q", r.Elems[30].Str)
		}
	}
}
