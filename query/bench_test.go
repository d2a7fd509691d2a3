package query_test

import (
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// benchDocument has 285 bytes.
const benchDocument = `{"sku":"A-1234567","customer":"customer-000123","items":[{"id":1,"qty":2,"price":12.5},{"id":2,"qty":1,"price":99.99}],"address":{"street":"Main Street 1","city":"Springfield","zip":"12345"},"note":"leave at the door please, ring twice","status":"open","total":124.99,"x":"yyyyyyyyyyyyyy"}`

// BenchmarkAdd measures what one document costs a page.
func BenchmarkAdd(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"count", "SELECT VALUE COUNT(1) WHERE status = 'open' AND total > 100"},
		{"missing", "SELECT VALUE COUNT(1) WHERE missing = 1"},
		{"rejected", "SELECT VALUE COUNT(1) WHERE customer = 'none' AND total > 100"},
		{"like", "SELECT VALUE COUNT(1) WHERE note LIKE '%door%'"},
		{"in", "SELECT VALUE COUNT(1) WHERE status IN ('paid', 'new', 'open')"},
		{"nested", "SELECT VALUE COUNT(1) WHERE address.city = 'Springfield' AND items[1].price > 50"},
		{"group", "SELECT status, COUNT(1) AS n, SUM(total) AS sum GROUP BY status"},
		{"sort", "SELECT sku ORDER BY total DESC LIMIT 10"},
		{"skip", "SELECT sku, total OFFSET 9000000000"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			q, err := query.Parse(bb.text, nil)
			drill.Check(b, err)
			from, err := page.ParseCursor(q, "0")
			drill.Check(b, err)
			r, err := page.New(q, page.Options{Count: 1000}, from)
			drill.Check(b, err)
			doc := query.Document{Text: benchDocument, ID: "1"}
			b.ReportAllocs()
			for b.Loop() {
				if more, err := r.Add(&doc); err != nil || !more {
					b.Fatal(more, err)
				}
			}
		})
	}
}

// BenchmarkParse measures a usual query.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := query.Parse("SELECT c.status, c.total FROM c WHERE c.status = @s AND c.total > 100 ORDER BY c.total DESC LIMIT 10", []query.Param{{Name: "@s", JSON: `"open"`}}); err != nil {
			b.Fatal(err)
		}
	}
}
