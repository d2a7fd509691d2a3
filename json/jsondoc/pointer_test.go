package jsondoc

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"mayfly/json/jsontext"
	"mayfly/test/drill"
)

// pointerTo writes a token as a pointer does.
func pointerTo(token string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// eachValue calls visit with the pointer and the bytes of every value in a JSON text, as encoding/json
// reads it. Members come in order, repeated names included.
func eachValue(t *testing.T, at, text string, visit func(at, raw string)) {
	t.Helper()
	visit(at, text)
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	opening, err := d.Token()
	drill.Check(t, err)
	if opening != json.Delim('{') && opening != json.Delim('[') {
		return
	}
	for i := 0; d.More(); i++ {
		token := strconv.Itoa(i)
		if opening == json.Delim('{') {
			name, err := d.Token()
			drill.Check(t, err)
			token = name.(string)
		}
		var raw json.RawMessage
		drill.Check(t, d.Decode(&raw))
		eachValue(t, at+pointerTo(token), string(raw), visit)
	}
}

// valuesByPointer returns the bytes of all values in a text by their pointers. It leaves out values with
// a repeated pointer, and those in them.
func valuesByPointer(t *testing.T, text string) map[string]string {
	values, times := map[string]string{}, map[string]int{}
	eachValue(t, "", strings.Trim(text, jsontext.Space), func(at, raw string) {
		values[at] = raw
		times[at]++
	})
	for at := range values {
		for prefix := range times {
			if times[prefix] > 1 && (at == prefix || strings.HasPrefix(at, prefix+"/")) {
				delete(values, at)
			}
		}
	}
	return values
}

func TestPointerTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"/":           {""},
		"//":          {"", ""},
		"/a":          {"a"},
		"/a/":         {"a", ""},
		"/a/b/0":      {"a", "b", "0"},
		"/~0/~1":      {"~", "/"},
		"/~01":        {"~1"},
		"/~10":        {"/0"},
		"/~0~1~1~0":   {"~//~"},
		"/a.b/*/é 日本": {"a.b", "*", "é 日本"},
	} {
		p, err := ParsePointer(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var got []string
		for p != "" {
			var token string
			token, p = p.cutToken()
			got = append(got, token)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q: tokens %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"a", " /a", "a/", "~1", "#/a", "/~", "/~2", "/a/~", "/~0~", "/~~0", "/\xff", "/a\xc0\x80"} {
		if p, err := ParsePointer(text); err == nil {
			t.Errorf("%q was taken as %q", text, p)
		}
	}
}

func TestPointerBelow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p, other Pointer
		want     bool
	}{
		{"/a", "/a", false}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a/", "/a", true}, {"/b/a", "/a", false},
	} {
		if got := tt.p.below(tt.other); got != tt.want {
			t.Errorf("%s below %s: %v", tt.p, tt.other, got)
		}
	}
}

// Every value is found with its bytes, in documents of every shape.
func TestPointerFindsEverything(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		text := randomDocument(random)
		for path, raw := range valuesByPointer(t, text) {
			p, err := ParsePointer(path)
			drill.Check(t, err)
			at, err := p.find(text)
			if err != nil || !at.found || text[at.from:at.to] != raw {
				t.Fatalf("%s in %s: %+v, %v; want %s", path, text, at, err, raw)
			}
		}
	}
}

// Several pointers at once find what each of them finds alone.
func TestValuesFindTheSame(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		text := randomDocument(random)
		if random.IntN(3) == 0 { // repeat a name
			text = `{"a":` + text + `,"b":1,"` + []string{"a", "c"}[random.IntN(2)] + `":` + randomDocument(random) + "}"
		}
		paths := make([]Pointer, 2+random.IntN(10))
		for i := range paths {
			paths[i] = Pointer(randomPath(t, random, text))
		}
		all := Values(text, paths)
		for i, path := range paths {
			if one := Values(text, paths[i:i+1]); one[0] != all[i] {
				t.Fatalf("%q in %s: %s, among %q %s", path, text, one[0], paths, all[i])
			}
		}
	}
	deep := strings.Repeat("/a", 128)
	for path, want := range map[string]string{deep[2:]: "{}", deep: "", deep + "/a": "", strings.Repeat("/", 1000): ""} {
		for _, paths := range [][]Pointer{{Pointer(path)}, {"/b", Pointer(path)}} {
			if got := Values(nested(128), paths)[len(paths)-1]; got != want {
				t.Errorf("%q of %d: %q, want %q", path, len(paths), got, want)
			}
		}
	}
}

// BenchmarkValues measures what the path for a single pointer saves: a tree of one.
func BenchmarkValues(b *testing.B) {
	order := `{"id":"order-000123","customer":"c-4711","status":"shipped","total":149.95,"items":[{"sku":"A-1","qty":2},{"sku":"B-7","qty":1}]}`
	b.Run("single", func(b *testing.B) {
		for b.Loop() {
			Values(order, []Pointer{"/items/1/qty"})
		}
	})
	b.Run("tree of one", func(b *testing.B) {
		for b.Loop() {
			var root pathNode
			end := root.addPath("/items/1/qty")
			root.locate(order, 0)
			if end.result(order) != "1" {
				b.Fatal("not found")
			}
		}
	})
}

// FuzzPointer compares the search with encoding/json: it finds the same bytes, or nothing.
func FuzzPointer(f *testing.F) {
	for _, path := range []string{"", "/", "/a", "/a/0", "/a/-", "/a/01", "/ttl", "/a/ttl", "/~0~1", "a", "/~", "/\xff", "/x\u00e9"} {
		for _, seed := range jsonSeeds {
			f.Add(seed, path)
		}
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := ParsePointer(path)
		if err != nil {
			return
		}
		if _, err := Parse(text, testMaxSize); err != nil {
			return
		}
		at, err := p.find(text)
		want, there := valuesByPointer(t, text)[path]
		if there != (err == nil && at.found) || there && text[at.from:at.to] != want {
			t.Fatalf("%q in %q: %+v, %v; want %q, %v", path, text, at, err, want, there)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("not one line: %q", err)
		}
		if two := Values(text, []Pointer{"", p}); two[1] != want {
			t.Fatalf("%q in %q: with another path %q, want %q", path, text, two[1], want)
		}
	})
}

// The reference implementation works on documents as encoding/json reads them, with numbers as text.

// readJSON reads a text without repeated names.
func readJSON(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// tokens splits a pointer in the simplest way.
func tokens(path string) []string {
	all := strings.Split(path, "/")[1:]
	for i := range all {
		all[i] = strings.ReplaceAll(strings.ReplaceAll(all[i], "~1", "/"), "~0", "~")
	}
	return all
}

var errReference = errors.New("refused")

// randomDocument returns a random object with few names and much white space.
func randomDocument(random *rand.Rand) string {
	return randomSpace(random) + randomObject(random, 3) + randomSpace(random)
}

func randomSpace(random *rand.Rand) string {
	return []string{"", "", "", " ", "\n\t", " \r\n "}[random.IntN(6)]
}

// randomNames are names of members: first the name, then its spellings in JSON.
var randomNames = [][]string{
	{"a", `"a"`, `"\u0061"`}, {"b", `"b"`}, {"0", `"0"`}, {"1", `"1"`}, {"-", `"-"`}, {"", `""`}, {"a.b", `"a.b"`}, {"a/b", `"a\/b"`, `"a/b"`},
	{"~", `"~"`}, {"~1", `"~1"`}, {"*", `"*"`}, {`q"\`, `"q\"\\"`}, {"é", `"é"`, `"\u00e9"`}, {"😀", `"\ud83d\ude00"`, `"😀"`},
	{"ttl", `"ttl"`}, {"x,y", `"x,y"`}, {"}]", `"}]"`},
}

func randomObject(random *rand.Rand, levels int) string {
	var members []string
	for _, i := range random.Perm(len(randomNames))[:random.IntN(5)] {
		spellings := randomNames[i][1:]
		members = append(members, randomSpace(random)+spellings[random.IntN(len(spellings))]+randomSpace(random)+":"+
			randomSpace(random)+randomValue(random, levels-1)+randomSpace(random))
	}
	if members == nil {
		members = []string{randomSpace(random)}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomValue(random *rand.Rand, levels int) string {
	if levels > 0 {
		switch random.IntN(3) {
		case 0:
			return randomObject(random, levels)
		case 1:
			elements := make([]string, random.IntN(4))
			for i := range elements {
				elements[i] = randomSpace(random) + randomValue(random, levels-1) + randomSpace(random)
			}
			return "[" + strings.Join(elements, ",") + "]"
		}
	}
	return []string{
		"0", "1", "-1", "-0", "1.50", "2e3", "0.1", "9223372036854775807", "-9223372036854775808", "1e999", "18446744073709551616",
		"true", "false", "null", `""`, `"}\"]"`, `"\\"`, `"text"`, "{}", "[]",
	}[random.IntN(20)]
}

// randomPath returns a pointer to a value of the document, or beside one, or to nothing.
func randomPath(t *testing.T, random *rand.Rand, text string) string {
	var all []string
	eachValue(t, "", strings.Trim(text, jsontext.Space), func(at, _ string) { all = append(all, at) })
	path := all[random.IntN(len(all))]
	if path == "" || random.IntN(3) == 0 {
		path += pointerTo(randomNames[random.IntN(len(randomNames))][0])
	}
	return path
}

func TestSuggestPointer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$.a": "/a", "$.a.b": "/a/b", "$.a[0].b": "/a/0/b", "$['a b']": "/a b", `$["a/b"][10]`: "/a~1b/10", "$.m~n": "/m~0n", ".a": "/a", "a": "/a", "a.b[1]": "/a/b/1",
		"a/b": "/a/b", "/a": "/a", "/a.b/$": "/a.b/$", "$[0]": "/0", "[0]": "/0", "ü": "/ü",
		"": "", "$": "", ".": "", "$.": "", "$..a": "", "$.*": "", "$.a[*]": "", "$.a[-1]": "", "$.a[": "", "$.a[]": "", "$.a[0:1]": "", "$a": "", "/a~": "", "a/~2": "", "\xff": "",
		"$.a[?(@.b)]": "", strings.Repeat("a", 257): "",
	} {
		p, ok := SuggestPointer(text)
		if string(p) != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", text, p, ok, want)
		}
		if _, err := ParsePointer(string(p)); err != nil {
			t.Errorf("%q: %q is no pointer: %v", text, p, err)
		}
	}
}
