package jsonpath

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
)

// A pattern whose repetitions, written out, are long is refused in a path and matches nothing in a document:
// it would take memory and time out of proportion to its text.
func TestLargePatterns(t *testing.T) {
	t.Parallel()
	for pattern, legal := range map[string]bool{
		"a{1000}": true, "a{1000}b{1000}": false, "(a{30}){30}": true, "((a{10}){10}){7}": true, "(a{30}b){32}": false,
		strings.Repeat("x", 1000): true, strings.Repeat(".*", 300): true, strings.Repeat(".*", 500): true, "[a-z]{1,500}": true, "[a-z]{1,900}": false, "(": true,
	} {
		_, err := Parse(fmt.Sprintf("$[?(@=~%q)]", pattern))
		if (err == nil) != legal {
			t.Errorf("%.40s: %v", pattern, err)
		}
		if err != nil && !strings.Contains(err.Error(), "a pattern of =~ has at most 1024 steps") {
			t.Errorf("%.40s: %v", pattern, err)
		}
	}
	if got := find(t, "$[?(@=~$[0])]", `["a{1000}b{1000}","x"]`); len(got) != 0 {
		t.Error(got)
	}
}

// A path with large patterns is not kept.
func TestLargePatternsAreNotCached(t *testing.T) {
	t.Parallel()
	text := `$[?(@=~"a{500}")]`
	a, err := Cached(text)
	drill.Check(t, err)
	if b, _ := Cached(text); a == b {
		t.Error("the path is kept")
	}
}

// Patterns of a document are compiled once each. Many different ones end the evaluation.
func TestPatternsOfDocuments(t *testing.T) {
	t.Parallel()
	repeated := "[" + strings.Repeat(`{"p":"^x{9}$","s":"xxxxxxxxx"},`, 2000) + `{}]`
	if got := find(t, "$[?(@.s=~@.p)]", repeated); len(got) != 2000 {
		t.Errorf("%d matches, want 2000", len(got))
	}
	var different strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&different, `{"p":"a{900}%d","s":"x"},`, i)
	}
	p, err := Parse("$[?(@.s=~@.p)]")
	drill.Check(t, err)
	start := time.Now()
	if _, err := spansOf(p, "["+different.String()+"{}]"); err != ErrBudget {
		t.Errorf("got %v, want ErrBudget", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it takes %v", took)
	}
}

func TestMatchesAreBounded(t *testing.T) {
	t.Parallel()
	doc := "[" + strings.Repeat("1,", MaxMatches) + "1]"
	for _, path := range []string{"$[*]", "$..*", "$[0:]", "$[?(@==1)]"} {
		p, err := Parse(path)
		drill.Check(t, err)
		if spans, err := spansOf(p, doc); err != ErrMatches || len(spans) != 0 {
			t.Errorf("%s: %d matches, %v", path, len(spans), err)
		}
	}
	p, _ := Parse("$[1:]")
	if spans, err := spansOf(p, doc); err != nil || len(spans) != MaxMatches {
		t.Errorf("%d matches, %v", len(spans), err)
	}
}
