package jsondoc

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/json/jsontext"
	"mayfly/redisfmt"
	"mayfly/test/drill"
)

// Random patches on random documents give the result of the reference, order aside. What they do not name
// keeps its bytes.
func TestPatchAgainstReference(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	done, refused, rounds := 0, 0, drill.Pick(500, 800, 200_000)
	for range rounds {
		text := randomDocument(random)
		args := randomPatch(t, random, text)
		if checkPatch(t, text, args) {
			done++
		} else {
			refused++
		}
	}
	if done < rounds/10 || refused < rounds/10 {
		t.Errorf("%d patches succeeded and %d failed: the random ones say little", done, refused)
	}
}

func randomPatch(t *testing.T, random *rand.Rand, text string) []string {
	var args []string
	for range 1 + random.IntN(4) {
		name := operators[random.IntN(len(operators))].name
		args = append(args, name, randomPath(t, random, text))
		switch name {
		case "MOVE":
			args = append(args, randomPath(t, random, text))
		case "INCR":
			args = append(args, []string{"1", "-3", "0.5", "1e2", "9223372036854775807"}[random.IntN(5)])
		case "ADD", "SET", "REPLACE":
			args = append(args, randomSpace(random)+randomValue(random, 2)+randomSpace(random))
		}
	}
	return args
}

// checkPatch compares a patch with the reference and reports whether the patch succeeds. The document is
// valid and has no repeated names.
func checkPatch(t *testing.T, text string, args []string) bool {
	t.Helper()
	operations, err := ParsePatch(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	got, err := operations.edit(text)
	want := readJSON(t, text)
	var wantErr error
	for _, op := range operations {
		if want, wantErr = referencePatch(t, want, op); wantErr != nil {
			break
		}
	}
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%s patched with %q: error %v, the reference says %v", text, args, err, wantErr)
	}
	if err != nil {
		if !strings.HasPrefix(err.Error(), "operation ") || strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("%q: error %q", args, err)
		}
		return false
	}
	if _, err := Parse(got, len(got)); err != nil {
		t.Fatalf("%s patched with %q became %s: %v", text, args, got, err)
	}
	if !reflect.DeepEqual(readJSON(t, got), want) {
		t.Fatalf("%s patched with %q became %s, the reference says %v", text, args, got, want)
	}
	checkBytesKept(t, text, got, operations)
	return true
}

// checkBytesKept checks that untouched values keep their bytes and members their order. Touched are the
// values on the way to a path of an operation and below it, and arrays whose elements it moves.
func checkBytesKept(t *testing.T, text, got string, operations Patch) {
	t.Helper()
	var touched []string
	for _, op := range operations {
		for _, path := range []Pointer{op.path, op.from} {
			if path == "" {
				continue
			}
			touched = append(touched, string(path))
			if holder := string(path[:strings.LastIndexByte(string(path), '/')]); holder != "" {
				if raw, ok := valuesByPointer(t, text)[holder]; ok && raw[0] == '[' {
					touched = append(touched, holder)
				}
			}
		}
	}
	untouched := func(at string) bool {
		for _, path := range touched {
			if strings.HasPrefix(path+"/", at+"/") || strings.HasPrefix(at+"/", path+"/") {
				return false
			}
		}
		return true
	}
	after := valuesByPointer(t, got)
	for at, raw := range valuesByPointer(t, text) {
		if untouched(at) && after[at] != raw {
			t.Fatalf("%s became %s: %s was %s", text, got, at, raw)
		}
	}
	order := func(text string) (names []string) {
		eachValue(t, "", strings.Trim(text, jsontext.Space), func(at, _ string) {
			if untouched(at) {
				names = append(names, at)
			}
		})
		return names
	}
	if before, after := order(text), order(got); !slices.Equal(before, after) {
		t.Fatalf("%s became %s: the order of %q became %q", text, got, before, after)
	}
}

// referencePatch applies one operation to a document as encoding/json reads it.
func referencePatch(t *testing.T, doc any, op operation) (any, error) {
	path := tokens(string(op.path))
	if op.name != "MOVE" {
		var value any
		if op.value != "" {
			value = readJSON(t, op.value)
		}
		return referenceEdit(doc, path, op.name, value)
	}
	from := tokens(string(op.from))
	if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
		return nil, errReference
	}
	value, err := referenceGet(doc, from)
	if err != nil || slices.Equal(path, from) {
		return doc, err
	}
	if doc, err = referenceEdit(doc, from, "REMOVE", nil); err != nil {
		return nil, err
	}
	return referenceEdit(doc, path, "ADD", value)
}

func referenceGet(doc any, path []string) (any, error) {
	for _, token := range path {
		switch holder := doc.(type) {
		case map[string]any:
			value, ok := holder[token]
			if !ok {
				return nil, errReference
			}
			doc = value
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || strconv.Itoa(i) != token || i < 0 || i >= len(holder) {
				return nil, errReference
			}
			doc = holder[i]
		default:
			return nil, errReference
		}
	}
	return doc, nil
}

// referenceEdit returns a copy of the document with the operation done at the path.
func referenceEdit(doc any, path []string, op string, value any) (any, error) {
	token := path[0]
	if len(path) > 1 {
		child, err := referenceGet(doc, path[:1])
		if err != nil {
			return nil, err
		}
		child, err = referenceEdit(child, path[1:], op, value)
		if err != nil {
			return nil, err
		}
		path, op, value = path[:1], "REPLACE", child
	}
	old, err := referenceGet(doc, path)
	found := err == nil
	if op == "INCR" {
		if !found {
			op = "ADD"
			if _, array := doc.([]any); array {
				return nil, errReference
			}
		} else if value, err = referenceSum(old, value); err != nil {
			return nil, err
		}
	}
	switch holder := doc.(type) {
	case map[string]any:
		holder = maps.Clone(holder)
		if !found && (op == "REPLACE" || op == "REMOVE") {
			return nil, errReference
		}
		if op == "REMOVE" {
			delete(holder, token)
		} else {
			holder[token] = value
		}
		return holder, nil
	case []any:
		i, err := strconv.Atoi(token)
		if token == "-" {
			i, err = len(holder), nil
		} else if err != nil || strconv.Itoa(i) != token || i < 0 {
			return nil, errReference
		}
		switch {
		case op == "ADD" && i <= len(holder):
			return slices.Insert(slices.Clone(holder), i, value), nil
		case op == "ADD" || i >= len(holder):
			return nil, errReference
		case op == "REMOVE":
			return slices.Delete(slices.Clone(holder), i, i+1), nil
		}
		holder = slices.Clone(holder)
		holder[i] = value
		return holder, nil
	}
	return nil, errReference
}

// referenceSum adds in 64 bits if both numbers are written so, else as doubles.
func referenceSum(a, b any) (any, error) {
	x, ok := a.(json.Number)
	if !ok {
		return nil, errReference
	}
	y := b.(json.Number)
	n, errN := x.Int64()
	m, errM := y.Int64()
	if errN == nil && errM == nil && x != "-0" {
		sum := n + m
		if m > 0 && sum < n || m < 0 && sum > n {
			return nil, errReference
		}
		return json.Number(strconv.FormatInt(sum, 10)), nil
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	if errF != nil || errG != nil {
		return nil, errReference
	}
	sum, err := json.Marshal(f + g)
	if err != nil {
		return nil, errReference
	}
	return json.Number(sum), nil
}

// The examples of RFC 6902 for the supported operations. A document that is an array is wrapped into an
// object.
func TestPatchRFC6902(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, patch, want string }{
		{`{"foo":"bar"}`, `ADD /baz "qux"`, `{"foo":"bar","baz":"qux"}`},                                                                                               // A.1
		{`{"foo":["bar","baz"]}`, `ADD /foo/1 "qux"`, `{"foo":["bar","qux","baz"]}`},                                                                                   // A.2
		{`{"baz":"qux","foo":"bar"}`, `REMOVE /baz`, `{"foo":"bar"}`},                                                                                                  // A.3
		{`{"foo":["bar","qux","baz"]}`, `REMOVE /foo/1`, `{"foo":["bar","baz"]}`},                                                                                      // A.4
		{`{"baz":"qux","foo":"bar"}`, `REPLACE /baz "boo"`, `{"baz":"boo","foo":"bar"}`},                                                                               // A.5
		{`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `MOVE /foo/waldo /qux/thud`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`}, // A.6
		{`{"foo":["all","grass","cows","eat"]}`, `MOVE /foo/1 /foo/3`, `{"foo":["all","cows","eat","grass"]}`},                                                         // A.7
		{`{"foo":"bar"}`, `ADD /child {"grandchild":{}}`, `{"foo":"bar","child":{"grandchild":{}}}`},                                                                   // A.10
		{`{"foo":"bar"}`, `ADD /baz/bat "qux"`, ``},                                                                                                                    // A.12
		{`{"/":9,"~1":10}`, `REPLACE /~01 11`, `{"/":9,"~1":11}`},                                                                                                      // A.14
		{`{"foo":["bar"]}`, `ADD /foo/- ["abc","def"]`, `{"foo":["bar",["abc","def"]]}`},                                                                               // A.16
		{`{"a":1}`, `MOVE /a /a`, `{"a":1}`},
		{`{"a":{"b":1}}`, `MOVE /a /a/b`, ``},
		{`{"a":{"b":1}}`, `MOVE /a/b /a`, `{"a":1}`},
	} {
		operations, err := ParsePatch(strings.Fields(tt.patch))
		if err != nil {
			t.Errorf("%s: %v", tt.patch, err)
			continue
		}
		got, err := operations.edit(tt.doc)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s patched with %s: %s, %v; want %s", tt.doc, tt.patch, got, err, tt.want)
		}
	}
}

// FuzzPatch compares patches of one or two operations with the reference if no name is repeated. No
// patch panics.
func FuzzPatch(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add(seed, "ADD", "/a", "1", "SET", "/b", "[ ]")
		f.Add(seed, "REMOVE", "/a", "", "INCR", "/ttl", "1.5")
		f.Add(seed, "MOVE", "/a", "/ttl/0", "REPLACE", "/ttl", "null")
	}
	f.Add(`{"a":[1,{"b":2}]}`, "MOVE", "/a/1/b", "/a/0", "ADD", "/a/-", `{"x":"\""}`)
	f.Fuzz(func(t *testing.T, text, op1, path1, value1, op2, path2, value2 string) {
		var args []string
		for _, op := range [][]string{{op1, path1, value1}, {op2, path2, value2}} {
			if redisfmt.EqualFold(op[0], "REMOVE") {
				op = op[:2]
			}
			args = append(args, op...)
		}
		operations, err := ParsePatch(args)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		if _, err := Parse(text, testMaxSize); err != nil {
			return
		}
		for _, op := range operations {
			if op.value != "" && repeatsNames(t, op.value) {
				return
			}
		}
		if !repeatsNames(t, text) {
			checkPatch(t, text, args)
		} else if got, err := operations.edit(text); err == nil {
			if _, err := Parse(got, testMaxSize+len(value1)+len(value2)); err != nil && !strings.Contains(err.Error(), "nested deeper") {
				t.Fatalf("%s patched with %q became %s: %v", text, args, got, err)
			}
		}
	})
}

// repeatsNames reports whether an object in the text repeats a name.
func repeatsNames(t *testing.T, text string) (repeats bool) {
	seen := map[string]bool{}
	eachValue(t, "", strings.Trim(text, jsontext.Space), func(at, _ string) {
		repeats = repeats || seen[at]
		seen[at] = true
	})
	return repeats
}

// BenchmarkPatch shows that a search reads each part of a document once, however deep the path. Else a
// document of many levels would lock its partition a hundred times as long as a flat one.
func BenchmarkPatch(b *testing.B) {
	const size = 1 << 20
	filler := strings.Repeat(" ", size)
	for name, c := range map[string]struct{ text, path string }{
		"flat": {`{"a":` + filler + `1}`, "/a"},
		"deep": {strings.Repeat(`{"a":`, 127) + "{" + filler + `"a":1` + strings.Repeat("}", 128), strings.Repeat("/a", 128)},
	} {
		operations, err := ParsePatch([]string{"INCR", c.path, "1"})
		drill.Check(b, err)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if _, err := operations.edit(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	order := `{"id":"order-000123","customer":"c-4711","status":"shipped","total":149.95,"items":[{"sku":"A-1","qty":2},{"sku":"B-7","qty":1}]}`
	for _, path := range []string{"/total", "/items/1/qty"} {
		operations, err := ParsePatch([]string{"INCR", path, "1"})
		drill.Check(b, err)
		b.Run(fmt.Sprint("order", strings.ReplaceAll(path, "/", ".")), func(b *testing.B) {
			for b.Loop() {
				if _, err := operations.edit(order); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
