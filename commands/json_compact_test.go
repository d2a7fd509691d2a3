package commands

import (
	"strconv"
	"strings"
	"testing"
)

// JSON.GET shows a document compact, whoever wrote it last. What is known of a document that JSON.SET has made compact is
// known no longer than until the next write of its body.
func TestJSONGetIsCompact(t *testing.T) {
	t.Parallel()
	for _, long := range []string{"", strings.Repeat("x", slowBytes)} {
		w := newHarness(t)
		before := `{"a":"` + long + `","n":[]}`
		for _, c := range []struct {
			want  string
			write []string
		}{
			{before, []string{"DOC.TOUCH", "0", "k"}},
			{`{"a":"b","n":[1,2]}`, []string{"DOC.PUT", "0", "k", ` { "a" : "b", "n":[1, 2] } `}},
			{`{"a":"b","n":[1,2]}`, []string{"DOC.PUT", "0", "k", `{"a":0,"n":[1,2],"a":"b"}`}},
			{`{"a":"b"}`, []string{"DOC.PUT", "0", "k", `{"a":"\u0062"}`}},
			{before, []string{"DOC.PUT", "0", "k", strings.Replace(before, ",", "\n,", 1)}},
			{`{"a":"b","n":[1,2]}`, []string{"DOC.MERGE", "0", "k", `{"a": "b", "n":[1, 2]}`}},
			{`{"a":"` + long + `","n":[1,2]}`, []string{"DOC.PATCH", "0", "k", "SET", "/n", `[1, 2]`}},
			{`{"a":"b","n":[1,2]}`, []string{"JSON.SET", "k", "$", ` { "a" : "b", "n":[1, 2] } `}},
			{`{"a":"` + long + `","n":[1,2]}`, []string{"JSON.SET", "k", "$.n", ` [1 , 2] `}},
			{`{"a":"` + long + `","n":[],"m":[1]}`, []string{"JSON.MERGE", "k", "$", `{"m" : [ 1 ]}`}},
			{`[1,2]`, []string{"JSON.SET", "k", "$", "[1, 2]"}},
		} {
			for _, inOne := range []bool{false, true} {
				if inOne {
					w.expect("OK", "MULTI")
				}
				w.do(1, "JSON.SET", "k", "$", before)
				w.do(1, "JSON.GET", "k")
				w.do(1, c.write...)
				if inOne {
					w.do(1, "EXEC")
				}
				for range 2 {
					w.expect(strconv.Quote(c.want), "JSON.GET", "k")
					w.expect(strconv.Quote("["+c.want+"]"), "JSON.GET", "k", "$")
				}
			}
		}
	}
}
