package commands

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestQueryLimits: every small TOP, OFFSET and LIMIT gives its part of all rows, on pages of any size,
// however the documents are read and ordered.
func TestQueryLimits(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	w.do(1, "INDEX.CREATE", "c", "PATHS", "n")
	for i := range 6 {
		w.do(1, "DOC.PUT", "c", fmt.Sprint("id-", i), fmt.Sprintf(`{"n":%d,"m":%d,"at":{"type":"Point","coordinates":[%d,0]}}`, i, i%3, i))
	}
	for _, query := range []string{
		"SELECT %sVALUE n",
		"SELECT %sVALUE n WHERE _id IN ('id-1', 'id-2', 'id-4')",
		"SELECT %sVALUE n WHERE n > 1",
		"SELECT %sVALUE n ORDER BY n DESC",
		"SELECT %sVALUE n ORDER BY m DESC, n",
		"SELECT %sVALUE n WHERE m >= 0 ORDER BY m",
		"SELECT %sVALUE n ORDER BY _ends",
		"SELECT %sVALUE COUNT(1)",
		"SELECT %sVALUE COUNT(1) WHERE n > 2",
		"SELECT %sVALUE m GROUP BY m",
		"SELECT DISTINCT %sVALUE m",
		"SELECT %sVALUE missing",
		"SELECT %sVALUE n WHERE false",
		"SELECT %sVALUE n WHERE ST_DISTANCE(at, {'type':'Point','coordinates':[0,0]}) < 1e7",
	} {
		_, all := w.queryPage(t, "c", fmt.Sprintf(query, ""))
		for n := range 4 {
			w.checkPages(t, fmt.Sprintf(query, fmt.Sprint("TOP ", n, " ")), all[:min(n, len(all))])
			for offset := range 4 {
				rest := all[min(offset, len(all)):]
				w.checkPages(t, fmt.Sprintf(query, "")+fmt.Sprint(" OFFSET ", offset, " LIMIT ", n), rest[:min(n, len(rest))])
			}
		}
	}
}

// checkPages compares the rows of all pages of a query, and what EXPLAIN says of them.
func (w *harness) checkPages(t *testing.T, query string, want []string) {
	t.Helper()
	for _, count := range []string{"1", "2", "100"} {
		var rows []string
		for cursor := "0"; ; {
			var page []string
			cursor, page = w.queryPage(t, "c", query, "COUNT", count, "CURSOR", cursor)
			if rows = append(rows, page...); cursor == "0" {
				break
			}
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%s, COUNT %s: %q, want %q", query, count, rows, want)
		}
	}
	if r := w.do(1, "DOC.QUERY", "c", query, "EXPLAIN"); r.Kind != engine.KindMap && r.Kind != engine.KindArray {
		t.Errorf("EXPLAIN of %s: %+v", query, r)
	}
}

// TestEmptyCursor: a cursor that no page has returned is an error, and does not start over.
func TestEmptyCursor(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	w.expect(`(error) ERR invalid cursor "": legal are "0" and what the page before returned`, "DOC.QUERY", "c", "SELECT *", "CURSOR", "")
}

// A cursor whose place no page has returned is named in the error, too.
func TestForgedCursor(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "c")
	for _, id := range []string{"1", "2"} {
		w.expect("OK", "DOC.PUT", "c", id, "{}")
	}
	cursor := w.do(1, "DOC.QUERY", "c", "SELECT * FROM c", "COUNT", "1").Elems[0].Str
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	drill.Check(t, err)
	place := bytes.IndexByte(data[8:], 'h') // how a place in a scan begins
	if place < 0 {
		t.Fatalf("%q has no place in a scan", data)
	}
	data[8+place] = 'x'
	forged := base64.RawURLEncoding.EncodeToString(data)
	w.expect("(error) ERR invalid cursor "+forged+`: legal are "0" and what the page before returned`, "DOC.QUERY", "c", "SELECT * FROM c", "COUNT", "1", "CURSOR", forged)
}
