package query_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// pages evaluates a query in pages of count rows over the records and returns all rows.
func pages(text string, params []query.Param, records []*record, options page.Options) ([]page.Row, error) {
	count := options.Count
	q, err := query.Parse(text, params)
	if err != nil {
		return nil, err
	}
	var all []page.Row
	cursor := "0"
	for range 10_000 {
		from, err := page.ParseCursor(q, cursor)
		if err != nil {
			return nil, err
		}
		r, err := page.New(q, options, from)
		if err != nil {
			return nil, err
		}
		next := 0
		if from.Position != "" {
			if next, err = strconv.Atoi(from.Position); err != nil {
				return nil, err
			}
		}
		for more := true; more && next < len(records); next++ {
			doc := records[next].doc
			doc.Text, doc.ID = strings.Clone(doc.Text), strings.Clone(doc.ID)
			if more, err = r.Add(&doc); err != nil {
				return nil, err
			}
		}
		position := ""
		if next < len(records) {
			position = strconv.Itoa(next)
		}
		var rows []page.Row
		if rows, cursor, err = r.Finish(position); err != nil {
			return nil, err
		}
		if len(rows) > count && cursor != "0" {
			return nil, fmt.Errorf("page of %d rows: COUNT is %d", len(rows), count)
		}
		all = append(all, rows...)
		if cursor == "0" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the pages do not end")
}

// judge compares a random query with the naive evaluator. It returns what differs.
func judge(source rand.Source) (text string, fault string) {
	g := &generator{Rand: rand.New(source)}
	var records []*record
	for i := range g.IntN(12) {
		records = append(records, g.record(string(rune('a'+i))+strconv.Itoa(g.IntN(3))))
	}
	g.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	text, q := g.query()
	want := q.rows(records)
	all := slices.Clone(want)
	want = q.cut(want)

	describe := func(rows []page.Row) string {
		out := ""
		for _, r := range records {
			out += fmt.Sprintf("  %+v\n", r.doc)
		}
		for _, p := range g.params {
			out += fmt.Sprintf("  %s = %s\n", p.Name, p.JSON)
		}
		for _, r := range want {
			out += fmt.Sprintf("want %s %#v\n", r.id, r.value)
		}
		for _, r := range rows {
			out += fmt.Sprintf("got  %s %s\n", r.ID, r.Text)
		}
		return out
	}
	for i, count := range []int{1000, 1, 1 + g.IntN(4), 1 + g.IntN(4)} {
		options, documents := page.Options{Count: count}, records
		if i == 3 { // as from an index
			if len(q.orderBy) == 0 || q.distinct {
				break
			}
			options.Ordered, documents = true, q.inOrder(records)
		}
		rows, err := pages(text, g.params, documents, options)
		if err != nil {
			return text, err.Error() + "\n" + describe(nil)
		}
		// Groups and distinct rows of equal value may come in any order.
		anyOrder := q.grouped
		if len(rows) != len(want) {
			return text, fmt.Sprintf("COUNT %d: %d rows, want %d\n%s", count, len(rows), len(want), describe(rows))
		}
		rest := slices.Clone(all)
		for i, row := range rows {
			value := decode(row.Text)
			if !anyOrder {
				if row.ID != want[i].id || !same(value, want[i].value) {
					return text, fmt.Sprintf("COUNT %d: row %d differs\n%s", count, i, describe(rows))
				}
				continue
			}
			j := slices.IndexFunc(rest, func(r naiveRow) bool { return same(r.value, value) })
			if j < 0 {
				return text, fmt.Sprintf("COUNT %d: row %d is not expected\n%s", count, i, describe(rows))
			}
			rest = slices.Delete(rest, j, j+1)
		}
	}
	return text, ""
}

// TestRandomQueries compares random queries over random documents with the naive evaluator.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	first := drill.Seed(t)
	for n := range drill.Pick[uint64](1000, 5000, 1_000_000) {
		if text, fault := judge(rand.NewPCG(first+n, 0)); fault != "" {
			t.Fatalf("%s\n%s\nthe first query with -seed %d", text, fault, first+n)
		}
	}
}
