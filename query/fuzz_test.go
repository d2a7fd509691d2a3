package query_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// checkError reports an error that is not one short line with a position inside of the text.
func checkError(t *testing.T, text string, err error) {
	t.Helper()
	for _, r := range err.Error() {
		if unicode.IsControl(r) || r == utf8.RuneError && !strings.ContainsRune(text, r) {
			t.Errorf("%q: the error has the character %U: %q", text, r, err)
		}
	}
	if len(err.Error()) > 600 {
		t.Errorf("%q: the error has %d bytes", text, len(err.Error()))
	}
	var fault *query.Error
	if errors.As(err, &fault) && (fault.At < 0 || fault.At > utf8.RuneCountInString(text)+1) {
		t.Errorf("%q: the error is at %d", text, fault.At)
	}
}

// fuzzDocuments are documents that fuzzed queries are evaluated on.
var fuzzDocuments = []string{
	`{}`,
	`{"a":1,"b":"x","c":{"a":[1,2,{"b":null}]},"tags":["a","b"],"total":12.5,"status":"open","s":"abc"}`,
	`{"c":{"a":"1","b":true},"a":[],"a":{},"b":null,"total":-1e400,"é":"\ud800"}`,
	`{"c":{"location":{"type":"Point","coordinates":[10,60]}},"loc":{"type":"Point","coordinates":[0,0]}}`,
}

// FuzzParse parses any text, and evaluates what is legal.
func FuzzParse(f *testing.F) {
	for _, text := range append(parseSeeds, typicalSlips()...) {
		f.Add(text, `1`)
	}
	for seed := range uint64(50) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		text, _ := g.query()
		f.Add(text, `"a%"`)
	}
	f.Fuzz(func(t *testing.T, text, param string) {
		q, err := query.Parse(text, []query.Param{{Name: "@p", JSON: param}, {Name: "min", JSON: "1"}})
		if err != nil {
			checkError(t, text, err)
			return
		}
		for cursor, number := "0", 0; number < 3; number++ {
			from, err := page.ParseCursor(q, cursor)
			if err != nil {
				t.Fatalf("%q: cursor %q: %v", text, cursor, err)
			}
			r, err := page.New(q, page.Options{Count: 1}, from)
			if err != nil {
				checkError(t, "", err)
				return
			}
			for i, doc := range fuzzDocuments {
				if more, err := r.Add(&query.Document{Text: doc, ID: string(rune('a' + i))}); err != nil {
					checkError(t, "", err)
					return
				} else if !more {
					break
				}
			}
			rows, next, err := r.Finish("")
			if err != nil {
				checkError(t, "", err)
				return
			}
			for _, row := range rows {
				if !json.Valid([]byte(row.Text)) {
					t.Errorf("%q: the row %q is not JSON", text, row.Text)
				}
			}
			if cursor = next; cursor == "0" {
				return
			}
		}
	})
}

// bytesSource takes decisions from bytes, one each, and then from a seed.
type bytesSource struct {
	data []byte
	rest rand.Source
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.data) == 0 {
		return s.rest.Uint64()
	}
	b := s.data[0]
	s.data = s.data[1:]
	return uint64(b) * 0x0101010101010101
}

// FuzzEvaluate compares queries that bytes decide with the naive evaluator.
func FuzzEvaluate(f *testing.F) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, fault := judge(&bytesSource{data, rand.NewPCG(uint64(len(data)), 3)}); fault != "" {
			t.Errorf("%s\n%s", text, fault)
		}
	})
}

// FuzzCursor reads cursors that a client has made up.
func FuzzCursor(f *testing.F) {
	queries := []string{"", "SELECT a ORDER BY a DESC, b OFFSET 2 LIMIT 7", "SELECT tags, COUNT(1) GROUP BY tags", "LIMIT 5"}
	for i, text := range queries {
		q, err := query.Parse(text, nil)
		drill.Check(f, err)
		f.Add(i, "0")
		from, _ := page.ParseCursor(q, "0")
		r, err := page.New(q, page.Options{Count: 1}, from)
		drill.Check(f, err)
		for _, doc := range fuzzDocuments {
			if more, err := r.Add(&query.Document{Text: doc, ID: "x"}); err != nil || !more {
				break
			}
		}
		if _, next, err := r.Finish("17"); err != nil {
			f.Fatal(err)
		} else {
			f.Add(i, next)
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		q, err := query.Parse(queries[uint(i)%uint(len(queries))], nil)
		drill.Check(t, err)
		from, err := page.ParseCursor(q, text)
		if err != nil {
			checkError(t, "", err)
			return
		}
		r, err := page.New(q, page.Options{Count: 2}, from)
		if err != nil {
			checkError(t, "", err)
			return
		}
		for i, doc := range fuzzDocuments {
			if more, err := r.Add(&query.Document{Text: doc, ID: string(rune('a' + i))}); err != nil || !more {
				break
			}
		}
		if rows, _, err := r.Finish("1"); err != nil || len(rows) > 2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

// FuzzLike compares LIKE with the naive matcher.
func FuzzLike(f *testing.F) {
	for _, s := range stringPool {
		for _, pattern := range likePool {
			f.Add(s, pattern, "!")
			f.Add(s, pattern, "")
		}
	}
	f.Fuzz(func(t *testing.T, s, pattern, escape string) {
		s, pattern = strings.ToValidUTF8(s, "?"), strings.ToValidUTF8(pattern, "?")
		if len(s) > 30 || len(pattern) > 20 || strings.Count(pattern, "%") > 5 || !utf8.ValidString(escape) {
			return
		}
		text := "SELECT VALUE @s LIKE @p"
		char := rune(-1)
		if utf8.RuneCountInString(escape) == 1 {
			text += " ESCAPE @e"
			char, _ = utf8.DecodeRuneInString(escape)
		}
		encoded := func(s string) string {
			out, _ := json.Marshal(s)
			return string(out)
		}
		q, err := query.Parse(text, []query.Param{{Name: "s", JSON: encoded(s)}, {Name: "p", JSON: encoded(pattern)}, {Name: "e", JSON: encoded(escape)}})
		drill.Check(t, err)
		e := q.Evaluator()
		e.Load(&query.Document{Text: "{}"})
		row, _ := e.Row(nil)
		if want := likeMatch([]rune(s), []rune(pattern), char); string(row) != map[bool]string{true: "true", false: "false"}[want] {
			t.Errorf("%q LIKE %q ESCAPE %q: %s, want %v", s, pattern, escape, row, want)
		}
	})
}
