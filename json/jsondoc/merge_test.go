package jsondoc

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// The test cases of RFC 7396, appendix A. A document or patch that is no object is wrapped into one, as
// its member w, where the same rules apply.
func TestMergeRFC7396(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, ``},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		doc, patch, want := tt[0], tt[1], tt[2]
		wrapped := doc[0] != '{' || patch[0] != '{'
		if wrapped {
			doc, patch = `{"w":`+doc+`}`, `{"w":`+patch+`}`
			want = map[bool]string{true: `{}`, false: `{"w":` + want + `}`}[want == ""]
		}
		p, err := ParseMergePatch(patch)
		if err != nil {
			t.Errorf("%s: %v", patch, err)
			continue
		}
		if got, err := p.Merge(doc); got != want || err != nil {
			t.Errorf("%s merged with %s: %s, %v; want %s", doc, patch, got, err, want)
		}
	}
}

func TestMergeAgainstReference(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	for range drill.Pick(500, 800, 200_000) {
		checkMerge(t, randomDocument(random), randomDocument(random))
	}
}

// The members of a patch are looked up in a map if they are many, else by a search.
func TestMergeManyMembers(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		var doc, patch []string
		for i := range n {
			name := `"m` + strconv.Itoa(i) + `":`
			if i%2 == 0 {
				doc = append(doc, name+"0")
			}
			patch = append(patch, name+[]string{"1", "null", `{"x":null}`}[i%3])
		}
		checkMerge(t, "{"+strings.Join(doc, ",")+"}", "{"+strings.Join(patch, ",")+"}")
		if _, err := ParseMergePatch("{" + strings.Join(append(patch, `"z":1,"z":2`), ",") + "}"); err == nil {
			t.Errorf("a repeated name among %d was accepted", n)
		}
	}
}

// checkMerge compares a merge with the reference; the texts have no repeated names. What the patch does
// not name keeps its bytes.
func checkMerge(t *testing.T, text, patch string) {
	t.Helper()
	p, err := ParseMergePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	for _, there := range []bool{true, false} {
		object := text
		if !there {
			object = ""
		}
		got, err := p.Merge(object)
		if err != nil {
			t.Fatalf("%s merged with %s: %v", text, patch, err)
		}
		if _, err := Parse(got, len(got)); err != nil {
			t.Fatalf("%s merged with %s became %s: %v", text, patch, got, err)
		}
		var doc any
		if there {
			doc = readJSON(t, text)
		}
		if want := referenceMerge(doc, readJSON(t, patch)); !reflect.DeepEqual(readJSON(t, got), want) {
			t.Fatalf("%s merged with %s became %s, the reference says %v", text, patch, got, want)
		}
		if !there {
			continue
		}
		before, after, named := valuesByPointer(t, text), valuesByPointer(t, got), valuesByPointer(t, patch)
		for at, raw := range before {
			kept := true
			for path := at; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
				if value, ok := named[path]; ok {
					kept = kept && path != at && value[0] == '{' && before[path][0] == '{'
				}
			}
			if at != "" && kept && after[at] != raw {
				t.Fatalf("%s merged with %s became %s: %s was %s", text, patch, got, at, raw)
			}
		}
	}
}

// referenceMerge is the algorithm of RFC 7396, chapter 2.
func referenceMerge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if object, ok := target.(map[string]any); ok {
		for name, value := range object {
			result[name] = value
		}
	}
	for name, value := range members {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = referenceMerge(result[name], value)
		}
	}
	return result
}

// FuzzMerge compares merges with the reference if no name is repeated. No merge panics.
func FuzzMerge(f *testing.F) {
	for _, doc := range jsonSeeds {
		for _, patch := range []string{`{}`, `{"a":null}`, `{"a":{"ttl":null,"b":[null]}}`, ` { "ttl" : 1 , "\u0061" : {} } `, `{"a":1,"a":2}`} {
			f.Add(doc, patch)
		}
	}
	f.Fuzz(func(t *testing.T, doc, patch string) {
		for _, text := range []string{doc, patch} {
			if _, err := Parse(text, testMaxSize); err != nil {
				return
			}
		}
		p, err := ParseMergePatch(patch)
		switch {
		case (err != nil) != repeatsNames(t, patch) && !strings.Contains(patch, "["): // names in arrays may repeat
			t.Fatalf("%q: %v", patch, err)
		case err != nil:
		case repeatsNames(t, doc) || repeatsNames(t, patch):
			if got, err := p.Merge(doc); err == nil {
				if _, err := Parse(got, len(got)); err != nil {
					t.Fatalf("%q merged with %q became %q: %v", doc, patch, got, err)
				}
			}
		default:
			checkMerge(t, doc, patch)
		}
	})
}

// BenchmarkMerge merges a patch of few members, which are searched without a map: see fewMembers.
func BenchmarkMerge(b *testing.B) {
	order := `{"id":"order-000123","customer":"c-4711","status":"shipped","total":149.95,"items":[{"sku":"A-1","qty":2},{"sku":"B-7","qty":1}]}`
	for b.Loop() {
		p, err := ParseMergePatch(`{"status":"paid","total":150,"note":{"a":1}}`)
		drill.Check(b, err)
		if _, err := p.Apply(order, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
