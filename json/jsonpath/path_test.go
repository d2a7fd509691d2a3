package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// find returns the texts of a path's matches.
func find(t *testing.T, path, doc string) []string {
	t.Helper()
	p, err := Parse(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	spans, err := spansOf(p, doc)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	texts := make([]string, len(spans))
	for i, s := range spans {
		texts[i] = s.Text(doc)
	}
	first, ok, err := p.First(doc)
	if err != nil || ok != (len(spans) > 0) || ok && first != spans[0] {
		t.Errorf("%s: First is %v, %v, %v; Find %v", path, first, ok, err, spans)
	}
	if p.Static() && len(spans) > 1 {
		t.Errorf("%s is static and has %d matches", path, len(spans))
	}
	return texts
}

const store = `{"store":{"book":[
 {"category":"reference","author":"Nigel Rees","title":"Sayings of the Century","price":8.95},
 {"category":"fiction","author":"Evelyn Waugh","title":"Sword of Honour","price":12.99},
 {"category":"fiction","author":"Herman Melville","title":"Moby Dick","isbn":"0-553-21311-3","price":8.99},
 {"category":"fiction","author":"J. R. R. Tolkien","title":"The Lord of the Rings","isbn":"0-395-19395-8","price":22.99}],
 "bicycle":{"color":"red","price":19.95}},"expensive":10}`

// spansOf returns the spans of the matches within the budget of one path.
func spansOf(p *Path, doc string) ([]Span, error) {
	budget := BudgetOf(doc)
	spans, _, err := p.Find(&budget, nil, doc)
	return spans, err
}

// The paths are those of RedisJSON's documentation and tests, and of Goessner's article.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, doc, want string }{
		{"$", " 5 ", "5"},
		{"$", "-1.5e3", "-1.5e3"},
		{".", `"a"`, `"a"`},
		{"$.a", "7", ""},
		{"$.a", `{"a":1}`, "1"},
		{"a", `{"a":1}`, "1"},
		{".a", `{"a":1}`, "1"},
		{"$a", `{"$a":1}`, "1"},
		{"['a']", `{"a":1}`, "1"},
		{".[0]", `[1,2]`, "1"},
		{"[-1]", `[1,2]`, "2"},
		{"$[-5]", `[1,2]`, "1"}, // as in RedisJSON
		{"$[5]", `[1,2]`, ""},
		{"$.[0]", `[1,2]`, "1"},
		{"$[ 0 , 1 ]", `[1,2]`, "1 2"},
		{"$[1,0,1]", `[1,2]`, "2 1"},
		{"$['a','b']", `{"b":1,"a":2}`, "2 1"},
		{`$["a\"b"]`, `{"a\"b":1}`, "1"},
		{`$['a\'b']`, `{"a'b":1}`, "1"},
		{`$["a\\b"]`, `{"a\\b":1,"a\u0062":2}`, "1"},
		{`$['é']`, `{"\u00e9":1}`, "1"},
		{`$["a\":1}"]`, `{"a":1}`, ""},
		{"$.a", `{"a":1,"\u0061":2}`, "2"}, // the last of repeated names
		{"$.a-b:c/#d", `{"a-b:c/#d":1}`, "1"},
		{"$[1:3]", `[0,1,2,3]`, "1 2"},
		{"$[::2]", `[0,1,2,3]`, "0 2"},
		{"$[:2]", `[0,1,2,3]`, "0 1"},
		{"$[-2:]", `[0,1,2,3]`, "2 3"},
		{"$[1:-1]", `[0,1,2,3]`, "1 2"},
		{"$[3:1]", `[0,1,2,3]`, ""},
		{"$[:-9]", `[0,1,2,3]`, ""},
		{"$.*", `{"a":1,"b":[2]}`, "1 [2]"},
		{"$..*", `{"a":{"b":1},"c":2}`, `{"b":1} 2 1`},
		{"$..a", `{"b":{"a":1},"a":{"a":2}}`, `{"a":2} 1 2`}, // the value's own member first
		{"$..[0]", `[[1,2],[3]]`, "[1,2] 1 3"},
		{"$..['a','b']", `{"a":1,"c":{"b":2}}`, "1 2"},
		{"$.store.book[*].author", store, `"Nigel Rees" "Evelyn Waugh" "Herman Melville" "J. R. R. Tolkien"`},
		{"$..price", store, "8.95 12.99 8.99 22.99 19.95"},
		{"$.store..color", store, `"red"`},
		{"$..book[?(@.isbn)].title", store, `"Moby Dick" "The Lord of the Rings"`},
		{"$..book[?(@.price<$.expensive)].price", store, "8.95 8.99"},
		{"$..book[?(@.price > 10 && @.category == \"fiction\" || @.author == 'Nigel Rees')].price", store, "8.95 12.99 22.99"},
		{"$..book[?((@.price > 10 || @.isbn) && @.price < 20)].price", store, "12.99 8.99"},
		{"$..book[?(@.title =~ 'of')].price", store, "8.95 12.99 22.99"},
		{"$..book[?(@.title =~ '(?i)^the')].price", store, "22.99"},
		{"$..book[?(@.title =~ '(')].price", store, ""},
		{"$[?(@=~$[0])]", `["a.c","abc","b"]`, `"a.c" "abc"`},
		{"$[?(@.a == null)]", `[{"a":null},{"a":0},{}]`, `{"a":null}`},
		{"$[?(@ != 1)]", `[1,1.0,"1",[1],null]`, `"1" [1] null`},
		{"$[?(@ == true)]", `[true,false,1]`, "true"},
		{"$[?(@ >= -1.5)]", `[-2,-1.5,-1]`, "-1.5 -1"},
		{"$[?(@ == 9007199254740993)]", `[9007199254740992,9007199254740993]`, "9007199254740993"},
		{"$[?(@.a == @.b)]", `[{"a":{"x":1,"y":2},"b":{"y":2.0,"x":1}},{"a":1,"b":2}]`, `{"a":{"x":1,"y":2},"b":{"y":2.0,"x":1}}`},
		{"$[?(@.a != @.b)]", `[{},{"a":1}]`, `{} {"a":1}`}, // what has no value equals nothing
		{"$.*[?(@>1)]", `{"a":1,"b":2,"c":[1,3]}`, "2 3"},  // a scalar is judged itself
		{"$[?(@.*)]", `[[1],[1,2]]`, "[1]"},                // several values are none
		{"$[?('a'=='a')]", `[1]`, "1"},
		{"$. a [ 0 ]", `{"a":[1]}`, "1"},
	} {
		if got := strings.Join(find(t, tt.path, tt.doc), " "); got != tt.want {
			t.Errorf("%s in %s: got %s, want %s", tt.path, tt.doc, got, tt.want)
		}
	}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	for text, legacy := range map[string]bool{"$": false, "$.a": false, "$[0]": false, ".": true, "a": true, ".a": true, "$a": true, "[0]": true, "..a": true, "*": true} {
		p, err := Parse(text)
		if err != nil || p.Legacy() != legacy || p.Root() != (text == "$" || text == ".") {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for text, static := range map[string]bool{"$": true, "$.a[0]['b']": true, "$.*": false, "$..a": false, "$[0,1]": false, "$[0:1]": false, "$['a','b']": false, "$[?(@)]": false} {
		if p, err := Parse(text); err != nil || p.Static() != static {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path string
		at   int
		want string
	}{
		{"", 0, "<string>"},
		{"$.", 2, "<string>, '*', '['"},
		{"$..", 3, "<string>, '*', '['"},
		{"$[", 2, "['start:end:steps']"},
		{"$.a[", 4, "'<number>[,<number>,...]'"},
		{"$.a[01]", 5, "']'"},
		{"$[1", 3, "']'"},
		{"$[::0]", 4, "<positive number>"},
		{"$['a]", 5, "'''"},
		{`$["a\n"]`, 5, `'\', '"'`},
		{"$.a b", 4, "'..'"},
		{"$.a!", 3, "the end"},
		{"$[?(@.a>)]", 8, "'@', '$', <number>"},
		{"$[?(@.a]", 7, "')'"},
		{"$[99999999999999999999]", 2, "beyond 64 bits"},
		{"$.\xff", 0, "Couldn't parse as UTF-8 string"},
		{strings.Repeat(".a", MaxPath), 32, "at most 4096 bytes"},
		{strings.Repeat(".a", MaxSteps+1), 2*MaxSteps + 2, "at most 128 steps"},
		{"$[?" + strings.Repeat("(", 50) + "@" + strings.Repeat(")", 50) + "]", 35, "nest at most 32 deep"},
		{"$[?(@=~'" + strings.Repeat("a", 1025) + "')]", 1034, "at most 1024 bytes"},
	} {
		_, err := Parse(tt.path)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Position != tt.at || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.50s: %v", tt.path, err)
		}
	}
}

func TestParents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, doc, name, want string }{
		{"$.b", `{"a":1}`, "b", `{"a":1}`},
		{"$.a", `{"a":1}`, "a", ""},
		{"$.x.b", `{"a":1}`, "b", ""},
		{"$.*.b", `{"a":{},"b":{"b":1},"c":3,"d":{"x":0}}`, "b", `{} {"x":0}`},
		{"$[0]['b']", `[{}]`, "b", "{}"},
		{"$..b", `{}`, "", ""},
		{"$[0]", `[]`, "", ""},
		{"$['a','b']", `{}`, "", ""},
		{"$", `{}`, "", ""},
	} {
		p, err := Parse(tt.path)
		drill.Check(t, err)
		spans, name, ok, err := p.Parents(nil, tt.doc)
		var texts []string
		for _, s := range spans {
			texts = append(texts, s.Text(tt.doc))
		}
		if err != nil || ok != (tt.name != "") || name != tt.name || strings.Join(texts, " ") != tt.want {
			t.Errorf("%s: %q, %q, %v, %v", tt.path, texts, name, ok, err)
		}
	}
}

// Hostile paths end soon: a step after the other works on a set of values, and reading is paid by the
// document's size.
func TestBudget(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":[`, 60) + strings.Repeat(`]}`, 60)
	if n := len(find(t, "$..*..*..*..*..*", nested)); n != 115 {
		t.Errorf("%d matches", n)
	}
	wide := "[" + strings.Repeat(`{"a":1},`, 20000) + "0]"
	for _, path := range []string{"$[?(@.a==1 && $..[?(@..[?(@..a)])])]", "$..[?(@..[?($..[?(@.b)])])]", "$[?($[?(@.a==$.b)])]"} {
		p, err := Parse(path)
		drill.Check(t, err)
		e := newEvaluation(wide)
		e.run(p.steps, e.root)
		if least := -4 * len(wide); e.left < least {
			t.Errorf("%s has read %d bytes beyond its budget", path, -e.left)
		}
	}
	deep := strings.Repeat("[", 120) + strings.Repeat("1,", 1<<18) + "1" + strings.Repeat("]", 120)
	p, _ := Parse("$..a..b")
	if _, err := spansOf(p, deep); err != ErrBudget {
		t.Errorf("%v", err)
	}
}

func TestCached(t *testing.T) {
	t.Parallel()
	buffer := []byte("$.a.b")
	p, err := Cached(string(buffer))
	if again, _ := Cached("$.a.b"); err != nil || again != p {
		t.Errorf("%v, %v, %v", p, again, err)
	}
	for i := range 3 * maxCached {
		if _, err := Cached(fmt.Sprint("$.n", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(cache.paths); n > maxCached {
		t.Errorf("%d paths are kept", n)
	}
	if _, err := Cached("$["); err == nil {
		t.Error("no error")
	}
}

// node is a value of the oracle, which decodes the document.
type node struct {
	span     Span
	scalar   any // nil for null too
	names    []string
	children []*node
	object   bool
	array    bool
}

func decode(t testing.TB, doc string) *node {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var value func() *node
	value = func() *node {
		from := int(d.InputOffset())
		for from < len(doc) && strings.IndexByte(" \t\r\n,:", doc[from]) >= 0 {
			from++
		}
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		n := &node{span: Span{from, 0}}
		switch token {
		case json.Delim('{'):
			n.object = true
			for d.More() {
				name, _ := d.Token()
				child := value()
				if i := slices.Index(n.names, name.(string)); i >= 0 {
					n.children[i] = child // the order of the oracle is not that of the text then
				} else {
					n.names, n.children = append(n.names, name.(string)), append(n.children, child)
				}
			}
			_, _ = d.Token()
		case json.Delim('['):
			n.array = true
			for d.More() {
				n.children = append(n.children, value())
			}
			_, _ = d.Token()
		default:
			n.scalar = token
		}
		n.span.To = int(d.InputOffset())
		return n
	}
	return value()
}

// oracle follows steps as RedisJSON does, by recursion, with repeated matches.
type oracle struct{ root *node }

func (o oracle) follow(steps []step, n *node, found func(*node)) {
	if len(steps) == 0 {
		found(n)
		return
	}
	s, rest := steps[0], steps[1:]
	if s.deep {
		s.deep = false
		shallow := append([]step{s}, rest...)
		var scan func(n *node)
		scan = func(n *node) {
			o.follow(shallow, n, found)
			for _, c := range n.children {
				scan(c)
			}
		}
		scan(n)
		return
	}
	at := func(i int) {
		if i >= 0 && i < len(n.children) {
			o.follow(rest, n.children[i], found)
		}
	}
	abs := func(i int) int {
		if i < 0 {
			i = max(0, i+len(n.children))
		}
		return i
	}
	switch s.kind {
	case byName:
		for _, name := range s.names {
			if n.object {
				at(slices.Index(n.names, name))
			}
		}
	case byIndex:
		for _, i := range s.indices {
			if n.array {
				at(abs(i))
			}
		}
	case bySlice:
		to := len(n.children)
		if !s.slice.open {
			to = min(to, abs(s.slice.to))
		}
		for i := abs(s.slice.from); n.array && i < to; i += s.slice.by {
			at(i)
		}
	case all:
		for i := range n.children {
			at(i)
		}
	case byFilter:
		if !n.object && !n.array {
			if o.selects(&s.filter, n) {
				o.follow(rest, n, found)
			}
			return
		}
		for i, c := range n.children {
			if o.selects(&s.filter, c) {
				at(i)
			}
		}
	}
}

func (o oracle) selects(f *filter, n *node) bool {
	for _, all := range f.any {
		holds := true
		for _, c := range all {
			holds = holds && o.holds(&c, n)
		}
		if holds {
			return true
		}
	}
	return false
}

func (o oracle) holds(c *condition, n *node) bool {
	if c.nested != nil {
		return o.selects(c.nested, n)
	}
	l := o.term(&c.left, n)
	if c.op == exists {
		return l != nil
	}
	r := o.term(&c.right, n)
	if c.op == matches {
		return l != nil && r != nil && isString(l) && isString(r) && matched(r.scalar.(string), l.scalar.(string))
	}
	order, comparable := compareNodes(l, r)
	switch c.op {
	case equal:
		return comparable && order == 0
	case notEqual:
		return !comparable || order != 0
	case less:
		return comparable && order < 0 && !l.object && !l.array
	case lessOrEqual:
		return comparable && order <= 0 && !l.object && !l.array
	case greater:
		return comparable && order > 0 && !l.object && !l.array
	default:
		return comparable && order >= 0 && !l.object && !l.array
	}
}

func isString(n *node) bool { _, ok := n.scalar.(string); return ok }

func matched(pattern, text string) bool {
	r, err := regexp.Compile(pattern)
	return err == nil && r.MatchString(text)
}

// compareNodes compares two values; those of containers are only equal or not.
func compareNodes(l, r *node) (int, bool) {
	if l == nil || r == nil {
		return 0, false
	}
	lc, rc := l.object || l.array, r.object || r.array
	if lc || rc {
		if l.object != r.object || l.array != r.array || len(l.children) != len(r.children) {
			return 1, lc && rc
		}
		for i, c := range l.children {
			other := r.children[i]
			if l.object {
				k := slices.Index(r.names, l.names[i])
				if k < 0 {
					return 1, true
				}
				other = r.children[k]
			}
			if order, ok := compareNodes(c, other); !ok || order != 0 {
				return 1, true
			}
		}
		return 0, true
	}
	switch a := l.scalar.(type) {
	case nil:
		return 0, r.scalar == nil
	case bool:
		b, ok := r.scalar.(bool)
		if !ok || a == b {
			return 0, ok
		}
		if a {
			return 1, true
		}
		return -1, true
	case string:
		b, ok := r.scalar.(string)
		return strings.Compare(a, b), ok
	case json.Number:
		b, ok := r.scalar.(json.Number)
		if !ok {
			return 0, false
		}
		x, _ := a.Float64()
		y, _ := b.Float64()
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func (o oracle) term(t *term, n *node) *node {
	switch t.kind {
	case literal:
		switch t.value.kind {
		case nullValue:
			return &node{}
		case trueValue, falseValue:
			return &node{scalar: t.value.kind == trueValue}
		case stringValue:
			return &node{scalar: t.value.text}
		}
		return &node{scalar: json.Number(fmt.Sprint(t.value.float()))}
	case fromRoot:
		n = o.root
	}
	var found []*node
	o.follow(t.steps, n, func(n *node) {
		if !slices.Contains(found, n) {
			found = append(found, n)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// compareWithOracle compares the matches of a path with those of the oracle.
func compareWithOracle(t *testing.T, path, doc string) {
	t.Helper()
	p, err := Parse(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	got, err := spansOf(p, doc)
	if err != nil {
		return
	}
	root := decode(t, doc)
	var want []Span
	oracle{root}.follow(p.steps, root, func(n *node) {
		if !slices.Contains(want, n.span) {
			want = append(want, n.span)
		}
	})
	if !slices.Equal(got, want) {
		t.Errorf("%s in %s: got %v, want %v", path, doc, got, want)
	}
}

func randomDoc(r *rand.Rand, depth int) string {
	kind := r.IntN(9)
	if depth == 0 {
		kind = r.IntN(6)
	}
	switch kind {
	case 0, 1, 2:
		return fmt.Sprint(r.IntN(5) - 2)
	case 3:
		return []string{"1.5", "2.0", "true", "false", "null"}[r.IntN(5)]
	case 4, 5:
		return []string{`"a"`, `"b"`, `"ab"`, `"a\"]"`, `"\u0061"`}[r.IntN(5)]
	case 6:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, randomDoc(r, depth-1))
		}
		return "[" + strings.Join(parts, " , ") + "]"
	}
	var parts []string
	for _, i := range r.Perm(4)[:r.IntN(5)] {
		parts = append(parts, []string{`"a"`, `"b"`, `"c"`, `"\u0064"`}[i]+" : "+randomDoc(r, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func randomSteps(r *rand.Rand, most, depth int) string {
	var path strings.Builder
	for range r.IntN(most + 1) {
		dots := []string{"", "", ".", ".."}[r.IntN(4)]
		switch r.IntN(7) {
		case 0, 1, 2:
			if dots == "" {
				dots = "."
			}
			path.WriteString(dots + string("abcd"[r.IntN(4)]))
		case 3:
			path.WriteString(dots + fmt.Sprintf("[%d]", r.IntN(5)-2))
		case 4:
			path.WriteString(dots + []string{"[*]", "[0,-1]", "['a',\"b\"]", "[1:]", "[:-1]", "[::2]", "[0:2:1]"}[r.IntN(7)])
		case 5:
			if dots == "" {
				dots = "."
			}
			path.WriteString(dots + "*")
		case 6:
			if depth > 0 {
				path.WriteString(dots + "[?(" + randomFilter(r, depth-1) + ")]")
			}
		}
	}
	return path.String()
}

func randomFilter(r *rand.Rand, depth int) string {
	term := func() string {
		switch r.IntN(5) {
		case 0:
			return []string{"1", "-1", "1.5", "'a'", `"b"`, "true", "null"}[r.IntN(7)]
		case 1:
			return "$" + randomSteps(r, 2, depth)
		}
		return "@" + randomSteps(r, 2, depth)
	}
	one := func() string {
		if r.IntN(3) == 0 {
			return term()
		}
		return term() + []string{"==", "!=", "<", "<=", ">", ">=", "=~"}[r.IntN(7)] + term()
	}
	text := one()
	for range r.IntN(3) {
		next := one()
		if r.IntN(4) == 0 {
			next = "(" + next + " || " + one() + ")"
		}
		text += []string{" && ", " || "}[r.IntN(2)] + next
	}
	return text
}

// Random paths in random documents have the matches that a naive evaluation of the decoded document has.
func TestRandomPaths(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	for range drill.Pick(2000, 5000, 1_000_000) {
		compareWithOracle(t, "$"+randomSteps(r, 4, 2), randomDoc(r, 4))
		if t.Failed() {
			return
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, path := range []string{"$", ".", "$.a[0]", "$..a[?(@.b>1&&$.c=='x')]", "$[1:-1:2]", "a.b", `$["a\"b",'c']`, "$[?(@=~'a.*')]"} {
		f.Add(path, `{"a":[{"b":2,"c":"x"}]}`)
	}
	f.Fuzz(func(t *testing.T, path, doc string) {
		p, err := Parse(path)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if !json.Valid([]byte(doc)) {
			return
		}
		spans, err := spansOf(p, doc)
		for _, s := range spans {
			if err == nil && !json.Valid([]byte(s.Text(doc))) {
				t.Errorf("%q in %q: %v", path, doc, s)
			}
		}
		_, _, _ = p.First(doc)
		_, _, _, _ = p.Parents(nil, doc)
	})
}

// A path tells of repeated names where older members could be among its matches, however many names there
// are.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	wide := "{"
	for i := range 100 {
		wide += fmt.Sprintf(`"m%d":%d,`, i, i)
	}
	for _, tt := range []struct {
		doc, paths string
		want       bool
	}{
		{`{"a":1,"a":{"b":1}}`, "$.a $.a.b .a $.* $..* $[?(@.b==1)] $['a','c']", true},
		{`{"a":{"b":1},"c":1,"a":2}`, "$..b $..[0]", true},
		{`{"c":{"a":1,"\u0061":2}}`, "$.c.a $.c.* $..* $..a", true},
		{wide + `"m7":1}`, "$.m7 $.* $[?(@>1)]", true},
		{`{"a":1,"a":2,"c":{"b":1},"l":[{"b":1},{"b":2}]}`, "$ $.c $.c.b $.c.* $.l[*].b $.l[0:1].*", false},
		{`{"a":1,"b":{"a":1,"b":2},"l":["a","a",{"a":1}]}`, "$.a $.* $..* $..a $..[?(@.a==1)]", false},
		{wide + `"n":1}`, "$.m7 $.* $..* $[?(@>1)]", false},
	} {
		for text := range strings.FieldsSeq(tt.paths) {
			p, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			budget := BudgetOf(tt.doc)
			if _, repeated, err := p.Find(&budget, nil, tt.doc); repeated != tt.want || err != nil {
				t.Errorf("%s of %s: %v, %v", text, tt.doc, repeated, err)
			}
			if _, _, repeated, _ := p.FirstWithin(&budget, tt.doc); repeated != tt.want {
				t.Errorf("the first of %s of %s: %v", text, tt.doc, repeated)
			}
		}
	}
}

func BenchmarkFirst(b *testing.B) {
	p, _ := Parse("$.store.bicycle.price")
	for b.Loop() {
		if _, ok, _ := p.First(store); !ok {
			b.Fatal("no match")
		}
	}
}

func BenchmarkCached(b *testing.B) {
	for b.Loop() {
		if _, err := Cached("$.store.bicycle.price"); err != nil {
			b.Fatal(err)
		}
	}
}
