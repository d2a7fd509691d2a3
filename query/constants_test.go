package query_test

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/query"
)

// TestWorkOnConstants: large constants are read once, or each document counts what walking them costs.
func TestWorkOnConstants(t *testing.T) {
	t.Parallel()
	numbered := func(open, item, end string, n int) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(item, i, i))
		}
		return open + strings.Join(items, ",") + end
	}
	for _, tt := range []struct {
		text, param string
		most, least int // the work on a document behind the first
		want        bool
	}{
		{"WHERE CONTAINS(s, @p, true)", `"` + strings.Repeat("Ab", 200_000) + `"`, 1000, 0, false},
		{"WHERE STARTSWITH(s, @p, true)", `"TEXT"`, 1000, 0, true},
		{"WHERE ENDSWITH(s, @p, true)", `"` + strings.Repeat("x", 1000) + `"`, 1000, 0, false},
		{"WHERE STRINGEQUALS(s, @p, true)", `"TEXT 7"`, 1000, 0, true},
		{"WHERE ARRAY_CONTAINS(@p, s)", numbered("[", `"text %d",%d`, "]", 20_000), 1000, 0, true},
		{"WHERE ARRAY_CONTAINS(@p, n, false)", numbered("[", `%d.0,"%d"`, "]", 20_000), 1000, 0, true},
		{"WHERE ARRAY_CONTAINS(@p, {x: n})", numbered("[", `{"x":%d},%d`, "]", 5_000), 1000, 0, true},
		{"WHERE {a: n, b: @p} = {b: @p, a: n}", numbered("{", `"m%d":%d`, "}", 30_000), 1 << 62, 60 << 20, true},
		{`WHERE ARRAY_CONTAINS(@p, {"x": n, "y": s}, true)`, numbered("[", `{"x":%d,"y":"%d"}`, "]", 40_000), 1 << 62, 30 << 20, false},
		{"WHERE LOWER(CONCAT(@p, s)) = 'x'", `"` + strings.Repeat("Ab", 200_000) + `"`, 1 << 62, 5 << 20, false},
	} {
		q, err := query.Parse(tt.text, []query.Param{{Name: "p", JSON: tt.param}})
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		e := q.Evaluator()
		for i := range 3 {
			e.Load(&query.Document{Text: fmt.Sprintf(`{"n":%d,"s":"text 7"}`, i), ID: "x"})
			if got := e.Match(); got != tt.want || e.Err() != nil {
				t.Errorf("%s: %t, %v", tt.text, got, e.Err())
			}
		}
		if work := e.Work(); work > tt.most || work < tt.least {
			t.Errorf("%s: work %d, want %d to %d", tt.text, work, tt.least, tt.most)
		}
	}
}
