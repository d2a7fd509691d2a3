package query_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/test/drill"
)

// prefilterConditions are conditions of one path each. Some are true of undefined.
var prefilterConditions = []string{
	"a = 1", "a != 1", "1 < a", "a >= 2", "a = 'x'", "a = 'x\\\\y'", "a = '\"'", "a != 'x'", "'x' = a", "a > 'w'", "a = null", "a = true",
	"a = [1]", "a BETWEEN 1 AND 2", "a IN (1, 'x')", "a NOT IN (1, 'x')", "a LIKE 'x%'", "a LIKE '%y'", "STARTSWITH(a, 'x')",
	"IS_DEFINED(a)", "NOT IS_DEFINED(a)", "IS_NUMBER(a)", "NOT a", "NOT a = 1", "a = 1 OR a = 'x'", "a", "a + 1 = 2", "LENGTH(a) = 1",
	"a = a", "a.b = 1", "a.b = 'x'", "a[0] = 1", "a['b'].a = 1", "ARRAY_CONTAINS(a, 1)", "b = 1", "b = 'x'", "a = b", "a = 1 OR b = 1",
	"b.a = 'x'", "_id = 'i'", "IIF(IS_DEFINED(a), false, true)", "CONCAT(a, 'y') = 'xy'", "a || 'z' = 'xz'",
}

// prefilterDocument returns a document whose names are few, repeated and spelled with escapes.
func prefilterDocument(random *rand.Rand, depth int) string {
	var out strings.Builder
	for i := range random.IntN(4) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString([]string{`"a"`, `"a"`, `"b"`, `"b"`, `"\u0061"`, `"c"`, `""`}[random.IntN(7)])
		out.WriteString([]string{":", ":", " : "}[random.IntN(3)])
		values := []string{"1", "2", "1.0", "-1", `"x"`, `"x"`, `"\u0078"`, `"x\\y"`, `"xy"`, `"\""`, `""`, "true", "null", "[1]", `[1,"x"]`}
		if n := random.IntN(len(values) + 4); n < len(values) {
			out.WriteString(values[n])
		} else if depth > 0 {
			out.WriteString(prefilterDocument(random, depth-1))
		} else {
			out.WriteString("{}")
		}
	}
	return "{" + out.String() + "}"
}

// TestPrefilter: WHERE selects the documents of which its condition is true as an item, whatever is repeated.
func TestPrefilter(t *testing.T) {
	t.Parallel()
	random, selected, rounds := drill.Rand(t), 0, drill.Pick(1000, 5000, 500_000)
	for range rounds {
		var conditions []string
		for range 1 + random.IntN(3) {
			conditions = append(conditions, "("+prefilterConditions[random.IntN(len(prefilterConditions))]+")")
		}
		where := strings.Join(conditions, " AND ")
		q, err := query.Parse("SELECT VALUE "+where+" WHERE "+where, nil)
		if err != nil {
			t.Fatal(where, err)
		}
		e, judge := q.Evaluator(), q.Evaluator()
		for range 5 {
			doc := &query.Document{Text: prefilterDocument(random, 2), ID: "i"}
			judge.Load(doc)
			want, _ := judge.Row(nil)
			e.Load(doc)
			matched := e.Match()
			if matched != (string(want) == "true") || e.Err() != nil {
				t.Fatalf("WHERE %s of %s: %v, %v; as an item it is %q", where, doc.Text, matched, e.Err(), want)
			}
			if row, _ := e.Row(nil); string(row) != string(want) || e.Match() != matched {
				t.Fatalf("WHERE %s of %s: the item is %q after it, and %q without", where, doc.Text, row, want)
			}
			if matched {
				selected++
			}
		}
	}
	if selected < rounds/10 {
		t.Errorf("%d documents are selected", selected)
	}
}

// TestPrefilterErrors: a condition that cannot be judged is an error only if the conditions before it hold.
func TestPrefilterErrors(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 9<<20) + `"`
	doc := &query.Document{Text: `{"long":` + long + `,"a":1}`}
	for _, tt := range []struct {
		where string
		fails bool
	}{
		{"CONCAT(long, long) = 'x'", true},
		{"a = 1 AND CONCAT(long, long) = 'x'", true},
		{"a = 2 AND CONCAT(long, long) = 'x'", false},
		{"missing = 2 AND CONCAT(long, long) = 'x'", false},
		{"a = a + 1 AND CONCAT(long, long) = 'x'", false},
	} {
		q, err := query.Parse("WHERE "+tt.where, nil)
		drill.Check(t, err)
		e := q.Evaluator()
		e.Load(doc)
		if e.Match() || (e.Err() != nil) != tt.fails {
			t.Errorf("WHERE %s: %v", tt.where, e.Err())
		}
		e.Load(&query.Document{Text: `{"a":1}`})
		if e.Match() || e.Err() != nil {
			t.Errorf("WHERE %s of the next document: %v", tt.where, e.Err())
		}
	}
}
