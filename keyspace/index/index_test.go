package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// texts are values of random documents, in JSON; "" is a missing member.
var texts = []string{
	"", "null", "false", "true", "0", "-0", "1", "-1", "2.5", "1e3", "-1e300", "1e308", "9007199254740993", `""`, `"a"`, `"ab"`, `"abcdefgh"`, `"abcdefghi"`,
	`"abcdefghij"`, `"abc\u0000"`, `"\u0000"`, `"abcdefgh\u0000"`, `"é"`, `"😀"`, "[]", "[1]", "{}", `{"a":1}`,
	`"` + strings.Repeat("long", 63) + `lon"`,
}

// longTexts are strings of which a key holds a part only.
var longTexts = []string{`"` + strings.Repeat("long", 64) + `"`, `"` + strings.Repeat("long", 64) + `1"`, `"` + strings.Repeat("long", 64) + `2"`}

// literals are those that conditions compare with.
var literals = slices.DeleteFunc(slices.Concat(texts, longTexts), func(s string) bool { return s == "" })

func pick(random *rand.Rand, list []string) string { return list[random.IntN(len(list))] }

func randomDocument(random *rand.Rand, long bool) string {
	var members []string
	for _, name := range []string{"a", "b", "c"} {
		text := pick(random, texts)
		if long && random.IntN(4) == 0 {
			text = pick(random, longTexts)
		}
		if text != "" {
			members = append(members, `"`+name+`":`+text)
		}
	}
	var elements []string
	for range random.IntN(4) {
		elements = append(elements, pick(random, literals))
	}
	switch random.IntN(8) {
	case 0: // too many for a key each
		elements = slices.Concat(elements, slices.Repeat([]string{"0"}, maxElements), []string{pick(random, literals)})
		fallthrough
	case 1, 2, 3, 4, 5, 6:
		members = append(members, `"t":[`+strings.Join(elements, ",")+"]")
	case 7: // no array
		members = append(members, `"t":`+pick(random, literals))
	}
	if random.IntN(4) > 0 {
		members = append(members, fmt.Sprintf(`"p":{"type":"Point","coordinates":[%g,%g]}`, random.Float64()*360-180, random.Float64()*180-90))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// randomCondition returns a condition on one path.
func randomCondition(random *rand.Rand) string {
	path := pick(random, []string{"a", "b", "c"})
	switch random.IntN(12) {
	case 0, 1, 2:
		return path + " = " + pick(random, literals)
	case 3, 4, 5:
		return path + " " + pick(random, []string{"<", "<=", ">", ">="}) + " " + pick(random, literals)
	case 6:
		return pick(random, literals) + " " + pick(random, []string{"<", "<=", ">", ">=", "="}) + " " + path
	case 7:
		return path + " IN (" + pick(random, literals) + "," + pick(random, literals) + "," + pick(random, literals) + ")"
	case 8:
		return path + " BETWEEN " + pick(random, literals) + " AND " + pick(random, literals)
	case 9:
		return fmt.Sprintf("STARTSWITH(%s, %s)", path, pick(random, []string{`"a"`, `"abcdefgh"`, `"abcdefghi"`, `""`, `"` + strings.Repeat("long", 64) + `"`, `"` + strings.Repeat("long", 65) + `"`}))
	case 10:
		return path + " LIKE " + pick(random, []string{"'a%'", "'abcdefgh%'", "'ab'", "'%b'", "'a%h_'", "'a_'"})
	}
	switch random.IntN(4) {
	case 0:
		return "ARRAY_CONTAINS(t, " + pick(random, literals) + ")"
	case 1:
		return fmt.Sprintf("ST_WITHIN(p, ST_BOX(%d, %d, %d, %d))", random.IntN(360)-180, random.IntN(90)-90, random.IntN(360)-180, random.IntN(90))
	case 2:
		return fmt.Sprintf(`ST_DISTANCE(p, {"type":"Point","coordinates":[%d,%d]}) < %d`, random.IntN(360)-180, random.IntN(180)-90, random.IntN(9_000_000))
	}
	return path + " = " + pick(random, literals) + " OR " + path + " = " + pick(random, literals)
}

func randomQuery(random *rand.Rand) string {
	var conditions []string
	for range random.IntN(4) {
		conditions = append(conditions, "("+randomCondition(random)+")")
	}
	text := "SELECT VALUE _id"
	if conditions != nil {
		text += " WHERE " + strings.Join(conditions, " AND ")
	}
	if random.IntN(2) == 0 {
		direction := pick(random, []string{"", " DESC"})
		text += " ORDER BY " + pick(random, []string{"a", "b", "t"}) + direction
		if random.IntN(2) == 0 {
			text += ", " + pick(random, []string{"b", "c"}) + direction
		}
	}
	return text
}

// TestManyElements checks that a long array has one key, so that a write changes few.
func TestManyElements(t *testing.T) {
	t.Parallel()
	d, err := Define([]string{"/t/[]"}, false)
	drill.Check(t, err)
	r := NewReader([]Definition{d})
	for _, c := range []struct{ elements, keys int }{{maxElements, maxElements}, {maxElements + 1, 1}, {1_000_000, 1}} {
		numbers := make([]string, c.elements)
		for i := range numbers {
			numbers[i] = strconv.Itoa(i)
		}
		if keys := r.Load(`{"t":[`+strings.Join(numbers, ",")+`]}`, 0).Keys(0, nil); len(keys) != c.keys {
			t.Errorf("%d elements: %d keys, want %d", c.elements, len(keys), c.keys)
		}
	}
}

// TestPlans: over random documents and queries the spans of a plan hold every document that the query
// selects, once; those of a proven plan no other ones; and those of an ordered one come in the order of ORDER
// BY.
func TestPlans(t *testing.T) {
	t.Parallel()
	var definitions []Definition
	for _, pointers := range [][]string{{"/a"}, {"/b"}, {"/a", "/b"}, {"/b", "/a", "/c"}, {"/t/[]"}, {"/p"}} {
		d, err := Define(pointers, pointers[0] == "/p")
		drill.Check(t, err)
		definitions = append(definitions, d)
	}
	used := make([]int, len(definitions))
	proven, ordered := 0, 0
	for seed := range drill.Pick[uint64](10, 16, 40) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCollection(definitions)
		for i := range 150 {
			c.put(fmt.Sprintf("id-%d", i*7919%150), randomDocument(random, seed%2 == 0))
		}
		for i := range 300 {
			if i%3 == 0 {
				c.put(fmt.Sprintf("id-%d", random.IntN(150)), randomDocument(random, seed%2 == 0))
			}
			if i%10 == 0 {
				c.remove(fmt.Sprintf("id-%d", random.IntN(150)))
			}
			text := randomQuery(random)
			q, err := query.Parse(text, nil)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			want := c.scan(t, q)
			from := random.IntN(len(definitions)) // so that each one is used alone
			p, ok := Choose(definitions[from:], func(i int) bool { return c.trees[from+i].Cut() == 0 }, q)
			if !ok {
				continue
			}
			p.Index += from
			used[p.Index]++
			got := c.read(t, &p, q)
			if !p.Ordered {
				slices.Sort(got)
				slices.Sort(want)
			} else {
				ordered++
			}
			if p.Proven {
				proven++
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s by %s (%s, ordered %t, proven %t):\ngot  %v\nwant %v", seed, text, definitions[p.Index].String(), p.Range, p.Ordered, p.Proven, got, want)
			}
		}
		c.check(t)
	}
	if slices.Min(used) == 0 || proven == 0 || ordered == 0 {
		t.Errorf("plans not tried: %v, proven %d, ordered %d", used, proven, ordered)
	}
}

// collection is documents with trees over them.
type collection struct {
	definitions []Definition
	reader      *Reader
	trees       []*Tree
	docs        map[string]string
	handles     map[string]uint32
	ids         []string // by handle
}

func newCollection(definitions []Definition) *collection {
	c := &collection{definitions: definitions, reader: NewReader(definitions), docs: map[string]string{}, handles: map[string]uint32{}, ids: []string{""}}
	for range definitions {
		c.trees = append(c.trees, New(func(h uint32) string { return c.ids[h] }))
	}
	return c
}

func (c *collection) remove(id string) {
	if _, ok := c.docs[id]; !ok {
		return
	}
	c.reader.Load(c.docs[id], 0)
	for i, tree := range c.trees {
		for _, k := range c.reader.Keys(i, nil) {
			tree.Remove(k, c.handles[id])
		}
	}
	delete(c.docs, id)
}

func (c *collection) put(id, doc string) {
	c.remove(id)
	if c.handles[id] == 0 {
		c.handles[id] = uint32(len(c.ids))
		c.ids = append(c.ids, id)
	}
	c.docs[id] = doc
	c.reader.Load(doc, 0)
	for i, tree := range c.trees {
		for _, k := range c.reader.Keys(i, nil) {
			tree.Add(k, c.handles[id])
		}
	}
}

// scan returns the ids that a query selects, by looking at all documents.
func (c *collection) scan(t *testing.T, q *query.Query) (ids []string) {
	return c.results(t, q, page.Options{Count: page.MaxCount}, func(add func(id string, proven bool)) {
		for id := range c.docs {
			add(id, false)
		}
	})
}

// read returns the ids that a query selects, by a plan.
func (c *collection) read(t *testing.T, p *Plan, q *query.Query) []string {
	return c.results(t, q, page.Options{Count: page.MaxCount, Ordered: p.Ordered, Proven: p.Proves}, func(add func(id string, proven bool)) {
		for i := range p.Spans {
			s := &p.Spans[i]
			if p.Desc {
				s = &p.Spans[len(p.Spans)-1-i]
			}
			cursor, ok := c.trees[p.Index].Range(&s.Low, &s.High, p.Desc)
			for ; ok; ok = cursor.Next() {
				id := c.ids[cursor.Handle()]
				k := cursor.Key()
				if p.Proven && !k.Cut {
					e := q.Evaluator()
					if e.Load(&query.Document{Text: c.docs[id], ID: id}); !e.Match() {
						t.Fatalf("%s does not prove that the query selects %s", p.Range, c.docs[id])
					}
				}
				add(id, !k.Cut)
			}
		}
	})
}

// results returns the rows of a query over the documents that each adds.
func (c *collection) results(t *testing.T, q *query.Query, options page.Options, each func(add func(id string, proven bool))) (rows []string) {
	from, err := page.ParseCursor(q, "0")
	drill.Check(t, err)
	r, err := page.New(q, options, from)
	drill.Check(t, err)
	each(func(id string, proven bool) {
		if _, err := r.Add(&query.Document{Text: c.docs[id], ID: id, Proven: proven}); err != nil {
			t.Fatal(err)
		}
	})
	list, _, err := r.Finish("")
	drill.Check(t, err)
	for _, row := range list {
		rows = append(rows, row.Text)
	}
	return rows
}

// check compares the trees with those of the documents that are there.
func (c *collection) check(t *testing.T) {
	t.Helper()
	fresh := newCollection(c.definitions)
	fresh.ids, fresh.handles = c.ids, c.handles
	for id, doc := range c.docs {
		fresh.put(id, doc)
	}
	for i, tree := range c.trees {
		if got, want := keysOf(tree), keysOf(fresh.trees[i]); !slices.Equal(got, want) {
			t.Fatalf("%s holds\n%v\nwant\n%v", c.definitions[i].String(), got, want)
		}
		for id := range c.docs {
			defer c.remove(id)
		}
	}
}

// keysOf returns the entries of a tree.
func keysOf(tree *Tree) (all []string) {
	cursor, ok := tree.Range(nil, nil, false)
	for ; ok; ok = cursor.Next() {
		k := cursor.Key()
		all = append(all, fmt.Sprintf("%d %x %q %s", k.kind, k.prefix, k.text, tree.ids(cursor.Handle())))
	}
	if len(all) != tree.Len() {
		all = append(all, fmt.Sprintf("%d entries of %d", len(all), tree.Len()))
	}
	return all
}
