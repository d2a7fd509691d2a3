package jsonedit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/json/jsonpath"
	"mayfly/test/drill"
)

// setAt is [Tree.Set] on the text.
func setAt(t *testing.T, doc, path, value string) (string, Outcome) {
	t.Helper()
	if found := spans(t, path, doc); len(found) > 0 {
		text, _ := Transform(doc, found, func(int, string) (string, error) { return value, nil })
		return text, Changed
	}
	p, _ := jsonpath.Parse(path)
	parents, name, ok, _ := p.Parents(nil, doc)
	switch {
	case !ok:
		return doc, NoElement
	case len(parents) == 0:
		return doc, NoParent
	}
	text, _ := Transform(doc, parents, func(_ int, object string) (string, error) { return AddMember(object, name, value), nil })
	return text, Changed
}

// TestTree edits random documents at random places, and compares each outcome and the text with those of one
// edit after the other.
func TestTree(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	seen := map[Outcome]int{}
	for range drill.Pick(2000, 20_000, 1_000_000) {
		var paths []string
		var places Places
		for range 1 + random.IntN(10) {
			path := "$"
			for range 1 + random.IntN(3) {
				path += pick(random, ".a", ".b", `["c\"d"]`, `[""]`, "[0]", "[1]", "[-1]", "[-2]")
			}
			paths = append(paths, path)
			p, err := jsonpath.Parse(path)
			drill.Check(t, err)
			places.Add(p.Steps())
		}
		doc := randomValue(random, 3)
		tree, want, log := NewTree(doc, &places), doc, doc
		for range random.IntN(12) {
			path, value := paths[random.IntN(len(paths))], randomValue(random, 2)
			value = strings.TrimSpace(value)
			p, _ := jsonpath.Parse(path)
			log += fmt.Sprintf("\n%s = %s", path, value)
			if has := len(spans(t, path, want)) > 0; tree.Has(p.Steps()) != has {
				t.Fatalf("%s\nit has a value: %v", log, !has)
			}
			next, outcome := setAt(t, want, path, value)
			if got := tree.Set(p.Steps(), value); got != outcome {
				t.Fatalf("%s\nthe outcome is %v, want %v", log, got, outcome)
			}
			seen[outcome]++
			want = next
			if got := tree.Text(); got != want || tree.Size() != len(want) {
				t.Fatalf("%s\ngot  %s of %d bytes\nwant %s", log, got, tree.Size(), want)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("the outcomes are %v", seen)
	}
}

func pick(random *rand.Rand, list ...string) string { return list[random.IntN(len(list))] }

// randomValue returns a value with white space and repeated names.
func randomValue(random *rand.Rand, depth int) string {
	space := pick(random, "", "", " ", "\n")
	if depth == 0 || random.IntN(4) == 0 {
		return space + pick(random, "1", `"x"`, "null", `"}]\""`, "{}", "[ ]") + space
	}
	var parts []string
	object := random.IntN(2) == 0
	for range random.IntN(4) {
		value := randomValue(random, depth-1)
		if object {
			value = space + pick(random, `"a"`, `"b"`, `"\u0061"`, `"c\"d"`, `""`) + space + ":" + value
		}
		parts = append(parts, value)
	}
	text := space + strings.Join(parts, ",") + space
	if object {
		return space + "{" + text + "}" + space
	}
	return space + "[" + text + "]" + space
}

// TestTreeReadsOnce: many edits of a long document read it once.
func TestTreeReadsOnce(t *testing.T) {
	t.Parallel()
	const n = 3000
	var places Places
	var list [][]jsonpath.Step
	for i := range n {
		p, _ := jsonpath.Parse(fmt.Sprintf("$.list[%d].member", -1-i))
		list = append(list, p.Steps())
		places.Add(p.Steps())
	}
	doc := `{"list":[` + strings.Repeat(`{"member":1},`, n-1) + `{}]}`
	tree := NewTree(doc, &places)
	for range 3 {
		for _, steps := range list {
			if got := tree.Set(steps, "2"); got != Changed {
				t.Fatal(got)
			}
		}
	}
	if want := `{"list":[` + strings.Repeat(`{"member":2},`, n-1) + `{"member":2}]}`; tree.Text() != want {
		t.Error("the text is wrong")
	}
	if tree.Read > 4*len(doc) {
		t.Errorf("%d bytes of %d were read", tree.Read, len(doc))
	}
}
