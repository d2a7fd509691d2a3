package query_test

import (
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// run evaluates a query over documents and returns its rows, and the error if there is one.
func run(text string, params []query.Param, docs ...string) string {
	q, err := query.Parse(text, params)
	if err != nil {
		return err.Error()
	}
	from, _ := page.ParseCursor(q, "0")
	r, err := page.New(q, page.Options{Count: page.DefaultCount}, from)
	if err != nil {
		return err.Error()
	}
	for i, doc := range docs {
		more, err := r.Add(&query.Document{Text: doc, ID: string(rune('a' + i))})
		if err != nil {
			return err.Error()
		}
		if !more {
			break
		}
	}
	rows, _, err := r.Finish("")
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, row := range rows {
		out = append(out, row.Text)
	}
	return strings.Join(out, "\n")
}

// orders are documents of most tests.
var orders = []string{
	`{"id":1,"status":"open","total":12.5,"tags":["a","b"],"address":{"city":"Oslo"}}`,
	`{"id":2,"status":"open","total":90,"tags":[]}`,
	`{"id":3,"status":"paid","total":7,"note":null}`,
	`{"id":4,"total":"none","status":"paid"}`,
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ query, want string }{
		{"", strings.Join(orders, "\n")},
		{"SELECT * FROM c WHERE c.status = 'open' AND c.total > 20", orders[1]},
		{"WHERE status = 'open' ORDER BY total DESC LIMIT 1", orders[1]},
		{"SELECT id, total ORDER BY total", `{"id":3,"total":7}` + "\n" + `{"id":1,"total":12.5}` + "\n" + `{"id":2,"total":90}` + "\n" + `{"id":4,"total":"none"}`},
		{"SELECT VALUE c.address.city FROM c", `"Oslo"`},
		{"SELECT status, COUNT(1) AS n, SUM(total) AS sum GROUP BY status", `{"status":"open","n":2,"sum":102.5}` + "\n" + `{"status":"paid","n":2}`},
		{"SELECT COUNT(1)", `{"$1":4}`},
		{"SELECT VALUE COUNT(c.note) FROM c", "1"},
		{"SELECT VALUE AVG(c.total) FROM c WHERE c.id < 3", "51.25"},
		{"SELECT DISTINCT VALUE status", `"open"` + "\n" + `"paid"`},
		{"SELECT TOP 1 VALUE id", "1"},
		{"SELECT VALUE id WHERE id IN (1, 3) ORDER BY id DESC", "3\n1"},
		{"SELECT VALUE id WHERE note = null", "3"},
		{"SELECT VALUE id WHERE NOT IS_DEFINED(note) OFFSET 1 LIMIT 1", "2"},
		{"SELECT VALUE id WHERE ARRAY_CONTAINS(tags, 'a')", "1"},
		{"SELECT VALUE {a: id, b: [id, missing]} WHERE id = 1", `{"a":1,"b":[1]}`},
		{"SELECT VALUE tags[1] FROM c", "query, at 14: unknown name tags: with FROM, paths begin with c, like c.tags"},
		{"SELECT VALUE id WHERE status LIKE 'p_i%'", "3\n4"},
		{"SELECT VALUE id WHERE total BETWEEN 7 AND 12.5", "1\n3"},
		{"SELECT * WHERE a = ORDER BY b", "query, at 20: expected a value, found ORDER"},
		{"SELECT JOIN", "query, at 8: expected a value, found JOIN"},
		{"FROM c JOIN t IN c.tags", "query, at 8: JOIN is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
		{"SELECT 1 + 2 * 3, 'a' || 'b' AS s, -id LIMIT 1", `{"$1":7,"s":"ab","$2":-1}`},
	} {
		if got := run(tt.query, nil, orders...); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.query, got, tt.want)
		}
	}
}

// BenchmarkMatch measures the filter of a scan on a document of 285 bytes.
func BenchmarkMatch(b *testing.B) {
	doc := query.Document{Text: `{"sku":"A-1234567","customer":"customer-000123","items":[{"id":1,"qty":2,"price":12.5},{"id":2,"qty":1,"price":99.99}],"address":{"street":"Main Street 1","city":"Springfield","zip":"12345"},"note":"leave at the door please, ring twice","status":"open","total":124.99,"x":"yyyyyyyyyyyyyy"}`}
	q, err := query.Parse("SELECT VALUE COUNT(1) WHERE status = 'open' AND total > 100", nil)
	drill.Check(b, err)
	e := q.Evaluator()
	for b.Loop() {
		e.Load(&doc)
		if !e.Match() {
			b.Fatal("no match")
		}
	}
}
