package commands

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/jsons"
	"mayfly/test/drill"
)

// Paths, edits and replies of JSON.* end with an error where nesting, repetition or patterns multiply the
// work. Each of them would take minutes or gigabytes.
func TestJSONIsBounded(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its documents are large
	w := newHarness(t)
	const size = 4 << 20
	w.host.options["max-value-size"] = strconv.Itoa(size)
	w.do(3, "HELLO", "3")
	repeat := func(s string, n int) string { return strings.Repeat(s+",", n-1) + s }
	const many = 1_200_000
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	const often = engine.MinQueueLimit/size + 2 // values of nearly this size are more than a reply may take
	escaped := `"` + strings.Repeat("x", size*15/16) + `\u0000"`
	for key, doc := range map[string]string{
		"ints":  "[" + repeat("1", many) + "]",
		"empty": "[" + repeat("[]", many/4) + "]",
		"rows":  "[" + repeat("[["+repeat("1", many/4)+"]]", 4) + "]",
		"words": "[" + repeat(`"xxxxxxxx"`, many/10) + "]",
		"deep":  strings.Repeat("[", 126) + repeat("1", many/4) + strings.Repeat("]", 126),
		"word":  escaped,
		"text":  strings.Repeat("[", often) + escaped + strings.Repeat("]", often),
		"names": strings.Repeat("[", often) + "{" + escaped + ":1}" + strings.Repeat("]", often),
		"long":  strings.Repeat(`{"a":`, 126) + `"` + strings.Repeat("x", size/4) + `"` + strings.Repeat("}", 126),
	} {
		w.expect("OK", "JSON.SET", key, "$", doc)
	}
	const (
		budget  = "the path reads the document too often"
		matches = "the path matches too many values: legal are up to 1048576"
		reply   = "the reply takes more than"
		growth  = "the document would have more than 4194304 bytes"
	)
	triplets := []string{"JSON.MSET"}
	for range 1000 {
		triplets = append(triplets, "ints", "$[:1]", "1")
	}
	var nulls strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&nulls, `"m%d":null,`, i)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{matches, []string{"JSON.GET", "ints", "$[*]"}},
		{matches, []string{"JSON.TYPE", "ints", "$..*"}},
		{matches, []string{"JSON.DEL", "ints", "$[0:]"}},
		{matches, []string{"JSON.CLEAR", "ints", "$[?(@==1)]"}},
		{budget, []string{"JSON.GET", "deep", "$..*..*..*"}},
		{budget, []string{"JSON.GET", "deep", "$" + strings.Repeat("..*", 100)}},
		{budget, []string{"JSON.GET", "words", `$..[?(@=~"` + strings.Repeat(".*", 200) + `z")]`}},
		{budget, append([]string{"JSON.GET", "ints"}, namedPaths(100)...)},
		{budget, []string{"JSON.ARRINDEX", "deep", "$..*", "[1]"}},
		{budget, []string{"JSON.GET", "long", "$..a"}},
		{budget, []string{"JSON.MERGE", "empty", "$[*]", "{" + strings.TrimSuffix(nulls.String(), ",") + "}"}},
		{reply, []string{"JSON.GET", "deep", "INDENT", strings.Repeat(" ", 32), "NEWLINE", "\n", "."}},
		{reply, append(append([]string{"JSON.MGET"}, strings.Split(strings.Repeat("long ", 200), " ")[:200]...), ".")},
		{reply, []string{"JSON.RESP", "ints"}},
		{reply, []string{"JSON.RESP", "text", "$..*"}},
		{reply, []string{"JSON.RESP", "names", "$..*"}},
		{reply, []string{"JSON.GET", "text", "$..*", "FORMAT", "EXPAND"}},
		{reply, []string{"JSON.GET", "names", "$..*", "FORMAT", "EXPAND"}},
		{reply, []string{"JSON.ARRPOP", "rows", "FORMAT", "EXPAND", "$[*]"}},
		{reply, append([]string{"JSON.GET", "word", "FORMAT", "EXPAND1"}, slices.Repeat([]string{"$"}, often)...)},
		{growth, []string{"JSON.ARRAPPEND", "empty", "$[*]", long}},
		{growth, []string{"JSON.ARRINSERT", "empty", "$[*]", "0", long}},
		{growth, []string{"JSON.STRAPPEND", "words", "$[*]", long}},
		{growth, []string{"JSON.SET", "empty", "$[*]", long}},
		{growth, []string{"JSON.MERGE", "empty", "$[*]", long}},
		{growth, []string{"JSON.MERGE", "empty", "$[*]", `{"a":` + long + `}`}},
		{"the triplets of JSON.MSET walk more than", triplets},
	} {
		session := 1
		if slices.Contains(tt.args, "FORMAT") {
			session = 3 // it speaks RESP3
		}
		r := w.do(session, tt.args...)
		if r.Kind != engine.KindError || !strings.Contains(r.Str, tt.want) {
			t.Errorf("%.60q: got %.100s, want %s", tt.args, notation(r), tt.want)
		}
	}
	w.expect(fmt.Sprintf("(integer) %d", many), "JSON.ARRLEN", "ints")
	w.expect(`"[[]]"`, "JSON.GET", "empty", "$[0]")
	w.expect("1) (integer) 1", "JSON.ARRLEN", "rows", "$[0]")
}

// A long value that is compared with many others, or merged into them, is read once. What reads it copies it,
// so memory tells how often that is.
func TestJSONReadsArgumentOnce(t *testing.T) {
	w := newHarness(t)
	size := drill.Pick(20_000, 100_000, 100_000)
	zeros, members := "0."+strings.Repeat("0", size)+"1", `{"a":{`
	for i := range size / 10 {
		members += fmt.Sprintf(`"m%d":1,`, i)
	}
	members += `"m":1}}`
	nulls := strings.ReplaceAll(members, ":1", ":null")
	w.expect("OK", "JSON.SET", "k", "$", "["+strings.Repeat(`["",1,{},{"a":{}},[[""]]],`, 300)+"[]]")
	for _, args := range [][]string{
		{"JSON.ARRINDEX", "k", "$[*]", `"\n` + strings.Repeat("x", size) + `"`}, {"JSON.ARRINDEX", "k", "$[*]", zeros},
		{"JSON.ARRINDEX", "k", "$[*]", members}, {"JSON.ARRINDEX", "k", "$[*]", `[["\n` + strings.Repeat("x", size) + `"]]`},
		{"JSON.NUMINCRBY", "k", "$[*][1]", zeros}, {"JSON.NUMMULTBY", "k", "$[*][1]", zeros},
		{"JSON.MERGE", "k", "$[:80][2]", nulls[len(`{"a":`) : len(nulls)-1]},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := w.do(1, args...)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; r.Kind == engine.KindError || allocated > 100*uint64(size) {
			t.Errorf("%.60q: %d bytes are allocated for %.20s", args, allocated, notation(r))
		}
	}
}

// namedPaths returns paths that have no match.
func namedPaths(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("$..none%d", i))
	}
	return paths
}

// A long value that replaces nested matches is in the document once.
func TestJSONSetOfNestedMatches(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "JSON.SET", "k", "$", strings.Repeat(`{"a":`, 100)+"1"+strings.Repeat("}", 100))
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	w.expect("OK", "JSON.SET", "k", "$..a", long)
	w.expect("(integer) 1048576", "JSON.STRLEN", "k", ".a")
}

// Every command judges its arguments before it looks for the document, and has RedisJSON's word for a plain
// key.
func TestJSONOfPlainKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "plain", "v")
	w.expect("OK", "JSON.SET", "doc", "$", "{}")
	for _, args := range [][]string{
		{"JSON.ARRAPPEND", "plain", "$", "1"}, {"JSON.ARRINDEX", "plain", "$", "1"}, {"JSON.ARRINSERT", "plain", "$", "0", "1"},
		{"JSON.ARRLEN", "plain"}, {"JSON.ARRPOP", "plain"}, {"JSON.ARRTRIM", "plain", "$", "0", "1"}, {"JSON.CLEAR", "plain"},
		{"JSON.DEBUG", "MEMORY", "plain"}, {"JSON.DEL", "plain", "$.a"}, {"JSON.DEL", "plain"}, {"JSON.FORGET", "plain"},
		{"JSON.GET", "plain"}, {"JSON.GET", "plain", "$"}, {"JSON.MERGE", "plain", "$", "{}"}, {"JSON.MSET", "doc", "$", "1", "plain", "$", "{}"},
		{"JSON.NUMINCRBY", "plain", "$", "1"}, {"JSON.NUMMULTBY", "plain", "$", "1"}, {"JSON.OBJKEYS", "plain"}, {"JSON.OBJLEN", "plain"},
		{"JSON.RESP", "plain"}, {"JSON.SET", "plain", "$", "{}"}, {"JSON.SET", "plain", "$.a", "1"}, {"JSON.STRAPPEND", "plain", `"x"`},
		{"JSON.STRLEN", "plain"}, {"JSON.TOGGLE", "plain", "$"}, {"JSON.TYPE", "plain"},
	} {
		w.expect("(error) WRONGTYPE Existing key has wrong Redis type", args...)
	}
	w.expect("1) (nil)\n2) \"{}\"", "JSON.MGET", "plain", "doc", ".")
	w.expect(`"v"`, "GET", "plain")
	w.expect(`"{}"`, "JSON.GET", "doc") // MSET changed nothing
	for _, name := range jsonCommandNames() {
		w.expect(fmt.Sprintf("(error) ERR wrong number of arguments for '%s' command", name), name)
	}
}

// As in RedisJSON, integers are judged before JSON, and JSON before the path.
func TestJSONJudgesIntegersFirst(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, args := range [][]string{
		{"JSON.ARRINSERT", "k", "$[", "x", "{"}, {"JSON.ARRTRIM", "k", "$[", "x", "1"}, {"JSON.ARRTRIM", "k", "$[", "1", "x"},
		{"JSON.ARRINDEX", "k", "$[", "{", "x"}, {"JSON.ARRINDEX", "k", "$[", "{", "1", "x"},
	} {
		w.expect("(error) "+engine.ErrNotInteger.Error(), args...)
	}
	for _, args := range [][]string{{"JSON.ARRINSERT", "k", "$[", "1", "{"}, {"JSON.ARRINDEX", "k", "$[", "{", "1"}} {
		plain := slices.Clone(args)
		plain[2] = "$"
		w.expect(notation(w.do(1, plain...)), args...)
	}
}

func jsonCommandNames() (names []string) {
	for i := range jsons.JSONCommands {
		names = append(names, jsons.JSONCommands[i].Name)
	}
	return names
}

// TestJSONOfDeepResults nests a document too deep by each kind of write, with values that are legal
// themselves.
func TestJSONOfDeepResults(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	deep := strings.Repeat("[", 127) + strings.Repeat("]", 127)
	w.expect("OK", "JSON.SET", "doc", "$", `{"a":[],"o":{}}`)
	for _, args := range [][]string{
		{"JSON.SET", "doc", "$.o.x", deep}, {"JSON.SET", "doc", "$.a", "[" + deep + "]"}, {"JSON.SET", "new", "$", "[[" + deep + "]]"},
		{"JSON.ARRAPPEND", "doc", "$.a", deep}, {"JSON.ARRINSERT", "doc", "$.a", "0", deep}, {"JSON.MERGE", "doc", "$.o", `{"x":` + deep + "}"},
		{"JSON.MSET", "doc", "$.o.x", deep},
	} {
		w.expectError("ERR recursion limit exceeded: document nested deeper than 128 levels at byte", args...)
	}
	w.expect(`"{\"a\":[],\"o\":{}}"`, "JSON.GET", "doc")
}

// The end of a long document is written into it without locks.
func TestJSONSetLongWithEnd(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	long := `{"s":"` + strings.Repeat("x", engine.SlowBytes) + `"}`
	for _, tt := range []struct{ option, at, ttl string }{{"EX", "5", "5"}, {"PXAT", strconv.Itoa(testStart + 2500), "3"}, {"KEEPTTL", "", "3"}} {
		args := []string{"JSON.SET", "k", "$", long, tt.option, tt.at}
		if tt.at == "" {
			args = args[:5]
		}
		w.expect("OK", args...)
		w.expect("(integer) "+tt.ttl, "TTL", "k")
		w.expect(strconv.Quote(strings.TrimSuffix(long, "}")+`,"ttl":`+tt.ttl+"}"), "GET", "k")
	}
}
