package commands

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// JSON.GET shows a document compact, by whatever command it was written. What is known of a document that
// JSON.SET has made compact is known no longer than until the next write of its body.
func TestJSONGetIsCompact(t *testing.T) {
	t.Parallel()
	for _, long := range []string{"", strings.Repeat("x", engine.SlowBytes)} {
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

// TestLongJSONGet: a long reply is rendered as it is sent, and what it keeps in memory until then is the
// document alone.
func TestLongJSONGet(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const n = 10_000
	doc := ` {"a":[` + strings.Repeat(`{"b":1,"b":[]},`, n) + `"\u0078"], "c":{}}`
	items := "[" + strings.Repeat(`{"b":[]},`, n) + `"x"]`
	w.expect("OK", "DOC.PUT", "0", "k", doc)
	for paths, want := range map[string]string{
		".":          `{"a":` + items + `,"c":{}}`,
		"$":          `[{"a":` + items + `,"c":{}}]`,
		".a":         items,
		"$.a":        "[" + items + "]",
		"$.a[*]":     items,
		".a .c":      `{".a":` + items + `,".c":{}}`,
		"$.a $.a .c": `{"$.a":[` + items + `],".c":[{}]}`,
		".a $.none":  `{".a":[` + items + `],"$.none":[]}`,
	} {
		var spaced bytes.Buffer
		drill.Check(t, json.Indent(&spaced, []byte(want), "", "--"))
		for layout, want := range map[string]string{"": want, "INDENT|--|NEWLINE|\n|SPACE| |": spaced.String()} {
			args := strings.FieldsFunc(layout, func(r rune) bool { return r == '|' })
			r := w.do(1, slices.Concat([]string{"JSON.GET", "k"}, args, strings.Fields(paths))...)
			got := r.Str
			switch r.Kind {
			case engine.KindElement:
				got = "[" + r.Str + "]"
			case engine.KindText:
				if got = r.Text.String(); len(got) != r.Text.Size || r.Text.Held > 3*len(doc) {
					t.Errorf("%s %s: %d bytes, but its size is %d; %d are held", layout, paths, len(got), r.Text.Size, r.Text.Held)
				}
			default:
				if layout != "" {
					t.Errorf("%s %s: a text in memory, kind %d", layout, paths, r.Kind)
				}
			}
			if got != want {
				t.Errorf("%s %s: %.200q, want %.200q", layout, paths, got, want)
			}
		}
	}
}
