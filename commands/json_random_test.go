package commands

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/jsons"
	"mayfly/json/jsonedit"
	"mayfly/test/drill"
)

// TestRandomJSON runs random JSON.* commands with random paths on random documents, and compares each reply
// and the document after it with those of a model, which edits decoded values.
func TestRandomJSON(t *testing.T) {
	t.Parallel()
	runs := drill.Pick(2000, 4000, 1_000_000)
	w := newHarness(t)
	m := &jsonModel{rand: drill.Rand(t), docs: map[string]*jsonNode{}}
	used := map[string]int{}
	for range runs {
		args, want := m.step()
		used[strings.ToLower(args[0])]++
		before := m.before
		if got := notation(w.do(1, args...)); got != want && !(strings.HasPrefix(want, "(error)") && strings.HasPrefix(got, "(error)") && strings.Contains(got, want[7:])) {
			t.Fatalf("%q on %s: got\n%s\nwant\n%s", args, before, got, want)
		}
		for _, key := range jsonKeys {
			want := "(nil)"
			if d := m.docs[key]; d != nil {
				want = notation(engine.Bulk(d.String()))
			}
			if got := notation(w.do(1, "JSON.GET", key)); got != want {
				t.Fatalf("%q on %s: %s is now\n%s\nwant\n%s", args, before, key, got, want)
			}
		}
	}
	for _, name := range jsonCommandNames() {
		if used[name] == 0 {
			t.Errorf("%s was not used in %d runs", name, runs)
		}
	}
}

var jsonKeys = []string{"k", "l"}

// jsonNode is a decoded value: an object, an array, or the JSON of a scalar.
type jsonNode struct {
	kind   byte // one of { [ " 0 t n
	scalar string
	names  []string // of an object
	elems  []*jsonNode
}

func (n *jsonNode) String() string {
	var parts []string
	for i, e := range n.elems {
		part := e.String()
		if n.kind == '{' {
			part = `"` + n.names[i] + `":` + part
		}
		parts = append(parts, part)
	}
	switch n.kind {
	case '{':
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		return "[" + strings.Join(parts, ",") + "]"
	}
	return n.scalar
}

func (n *jsonNode) clone() *jsonNode {
	c := &jsonNode{kind: n.kind, scalar: n.scalar, names: slices.Clone(n.names)}
	for _, e := range n.elems {
		c.elems = append(c.elems, e.clone())
	}
	return c
}

func (n *jsonNode) member(name string) *jsonNode {
	if i := slices.Index(n.names, name); n.kind == '{' && i >= 0 {
		return n.elems[i]
	}
	return nil
}

func (n *jsonNode) element(i int) *jsonNode {
	if i < 0 {
		i = max(i+len(n.elems), 0)
	}
	if n.kind == '[' && i < len(n.elems) {
		return n.elems[i]
	}
	return nil
}

func (n *jsonNode) typeName() string {
	switch {
	case n.kind == '{':
		return "object"
	case n.kind == '[':
		return "array"
	case n.kind == '"':
		return "string"
	case n.kind == 't':
		return "boolean"
	case n.kind == 'n':
		return "null"
	case strings.ContainsAny(n.scalar, ".e"):
		return "number"
	}
	return "integer"
}

// contains reports whether a value is another or within it.
func (n *jsonNode) contains(other *jsonNode) bool {
	return n == other || slices.ContainsFunc(n.elems, func(e *jsonNode) bool { return e.contains(other) })
}

func (n *jsonNode) depth(of *jsonNode) int {
	for _, e := range n.elems {
		if e.contains(of) {
			return 1 + e.depth(of)
		}
	}
	return 0
}

// jsonStep is a step of a path, as the model follows it.
type jsonStep struct {
	text   string
	deep   bool
	choose func(n *jsonNode) []*jsonNode
	name   string // of one member
	index  bool   // of one element
}

// jsonWay is a path.
type jsonWay struct {
	text   string
	legacy bool
	steps  []jsonStep
}

func (p *jsonWay) static() bool {
	return !slices.ContainsFunc(p.steps, func(s jsonStep) bool { return s.deep || s.name == "" && !s.index })
}

// find returns the matches: of a step with ".." those of the value itself first, and none twice.
func (p *jsonWay) find(root *jsonNode) []*jsonNode {
	values := []*jsonNode{root}
	for _, s := range p.steps {
		var next []*jsonNode
		for _, v := range values {
			if s.deep {
				v.walk(func(n *jsonNode) { next = append(next, s.choose(n)...) })
			} else {
				next = append(next, s.choose(v)...)
			}
		}
		values = nil
		for _, v := range next {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	return values
}

// walk calls f for a value and all objects and arrays below it.
func (n *jsonNode) walk(f func(*jsonNode)) {
	f(n)
	for _, e := range n.elems {
		if e.kind == '{' || e.kind == '[' {
			e.walk(f)
		}
	}
}

// jsonModel makes commands and says what they do.
type jsonModel struct {
	rand   *rand.Rand
	docs   map[string]*jsonNode
	before string // the documents before the last command
}

func (m *jsonModel) pick(words ...string) string { return words[m.rand.IntN(len(words))] }

func (m *jsonModel) value(depth int) *jsonNode {
	switch kind := m.rand.IntN(9); {
	case depth > 0 && kind < 3:
		n := &jsonNode{kind: '{'}
		for range m.rand.IntN(4) {
			if name := m.pick("a", "b", "c", "d"); n.member(name) == nil {
				n.names = append(n.names, name)
				n.elems = append(n.elems, m.value(depth-1))
			}
		}
		return n
	case depth > 0 && kind < 6:
		n := &jsonNode{kind: '['}
		for range m.rand.IntN(5) {
			n.elems = append(n.elems, m.value(depth-1))
		}
		return n
	}
	switch m.rand.IntN(5) {
	case 0:
		return &jsonNode{kind: '"', scalar: m.pick(`""`, `"x"`, `"yz"`)}
	case 1:
		return &jsonNode{kind: 't', scalar: m.pick("true", "false")}
	case 2:
		return &jsonNode{kind: 'n', scalar: "null"}
	}
	return &jsonNode{kind: '0', scalar: m.pick("0", "1", "2", "-7", "2.5", "0.0", "9223372036854775807")}
}

func (m *jsonModel) path() *jsonWay {
	p := &jsonWay{legacy: m.rand.IntN(2) == 0}
	for range m.rand.IntN(4) {
		p.steps = append(p.steps, m.pathStep())
	}
	for _, s := range p.steps {
		p.text += s.text
	}
	switch {
	case !p.legacy:
		p.text = "$" + p.text
	case p.text == "":
		p.text = "."
	case p.text[0] == '.' && m.rand.IntN(2) == 0 && !strings.HasPrefix(p.text, ".."):
		p.text = p.text[1:]
	}
	return p
}

func (m *jsonModel) pathStep() (s jsonStep) {
	name, at := m.pick("a", "b", "c", "d"), m.rand.IntN(5)-2
	one := func(n *jsonNode) []*jsonNode {
		if n == nil {
			return nil
		}
		return []*jsonNode{n}
	}
	switch m.rand.IntN(9) {
	case 0, 1:
		return jsonStep{text: "." + name, name: name, choose: func(n *jsonNode) []*jsonNode { return one(n.member(name)) }}
	case 2:
		return jsonStep{text: "['" + name + "']", name: name, choose: func(n *jsonNode) []*jsonNode { return one(n.member(name)) }}
	case 3:
		return jsonStep{text: fmt.Sprintf("[%d]", at), index: true, choose: func(n *jsonNode) []*jsonNode { return one(n.element(at)) }}
	case 4:
		return jsonStep{text: m.pick(".*", "[*]"), choose: func(n *jsonNode) []*jsonNode { return n.elems }}
	case 5:
		return jsonStep{text: ".." + name, deep: true, choose: func(n *jsonNode) []*jsonNode { return one(n.member(name)) }}
	case 6:
		return jsonStep{text: "..*", deep: true, choose: func(n *jsonNode) []*jsonNode { return n.elems }}
	case 7:
		other := m.pick("a", "b", "c", "d")
		return jsonStep{text: fmt.Sprintf(`["%s","%s"]`, name, other), choose: func(n *jsonNode) []*jsonNode {
			return append(one(n.member(name)), one(n.member(other))...)
		}}
	}
	to := m.rand.IntN(5)
	return jsonStep{text: fmt.Sprintf("[%d:%d]", at, to), choose: func(n *jsonNode) []*jsonNode {
		if n.kind != '[' {
			return nil
		}
		from, end := at, min(to, len(n.elems))
		if from < 0 {
			from = max(from+len(n.elems), 0)
		}
		if from >= end {
			return nil
		}
		return n.elems[from:end]
	}}
}

const anyError = "(error)"

// step makes a command. It returns its arguments and reply, as [notation] or an error with words that it
// holds.
func (m *jsonModel) step() (args []string, want string) {
	m.before = fmt.Sprint(m.docs)
	key := m.pick(jsonKeys...)
	doc, p := m.docs[key], m.path()
	if doc == nil || m.rand.IntN(20) == 0 {
		v := m.value(4)
		m.docs[key] = v
		return []string{"JSON.SET", key, m.pick("$", "."), v.String()}, "OK"
	}
	name := jsonCommandNames()[m.rand.IntN(len(jsons.JSONCommands))]
	args = []string{strings.ToUpper(name), key, p.text}
	var r engine.Reply
	var err string
	switch name {
	case "json.get":
		r, err = m.get(doc, p)
	case "json.mget":
		args = []string{"JSON.MGET", key, "none", key, p.text}
		if r, err = m.get(doc, p); err != "" {
			r, err = engine.Null, ""
		}
		r = engine.Array(r, engine.Null, r)
	case "json.type":
		r, err = ask(doc, p, engine.Null, func(n *jsonNode) (engine.Reply, string) { return engine.Bulk(n.typeName()), "" })
	case "json.strlen":
		r, err = ask(doc, p, engine.Fail(engine.Error("does not exist")), func(n *jsonNode) (engine.Reply, string) {
			return engine.Count(len(n.scalar) - 2), unless(n.kind == '"', "expected string but found "+n.typeName())
		})
	case "json.arrlen":
		r, err = ask(doc, p, engine.Fail(engine.Error("does not exist")), func(n *jsonNode) (engine.Reply, string) {
			return engine.Count(len(n.elems)), unless(n.kind == '[', "not an array")
		})
	case "json.objlen":
		r, err = ask(doc, p, engine.Null, func(n *jsonNode) (engine.Reply, string) {
			return engine.Count(len(n.elems)), unless(n.kind == '{', "expected object but found "+n.typeName())
		})
	case "json.objkeys":
		r, err = ask(doc, p, engine.Null, func(n *jsonNode) (engine.Reply, string) {
			return engine.Bulks(n.names...), unless(n.kind == '{', "not an object")
		})
	case "json.arrindex":
		v := m.value(1)
		args = append(args, v.String())
		r, err = ask(doc, p, engine.Fail(engine.Error("does not exist")), func(n *jsonNode) (engine.Reply, string) {
			i := slices.IndexFunc(n.elems, func(e *jsonNode) bool { return e.equals(v) })
			return engine.Count(i), unless(n.kind == '[', "expected array but found "+n.typeName())
		})
	case "json.resp":
		r, err = ask(doc, p, engine.Fail(engine.Error("does not exist")), func(n *jsonNode) (engine.Reply, string) { return n.resp(), "" })
	case "json.debug":
		if len(p.steps) == 0 {
			return []string{"JSON.DEBUG", "MEMORY", "none", "."}, "(integer) 0"
		}
		args = []string{"JSON.DEBUG", "MEMORY", key, p.text}
		r, err = ask(doc, p, engine.Fail(engine.Error("does not exist")), func(n *jsonNode) (engine.Reply, string) { return engine.Count(len(n.String())), "" })
	case "json.set":
		v, option := m.value(2), m.pick("", "", "NX", "XX")
		if args = append(args, v.String()); option != "" {
			args = append(args, option)
		}
		r, err = m.set(key, p, v, option)
	case "json.mset":
		v, u := m.value(2), m.value(2)
		args = append(args, v.String(), "l", "$", u.String())
		saved := doc.clone()
		if _, err = m.set(key, p, v, ""); err == "" {
			m.docs["l"], r = u, engine.OK
		} else {
			m.docs[key] = saved
		}
	case "json.merge":
		v := m.value(2)
		args = append(args, v.String())
		r, err = m.merge(key, p, v)
	case "json.del", "json.forget":
		r = m.del(key, p)
	case "json.clear":
		cleared := 0
		for _, n := range inner(doc, p.find(doc)) {
			switch {
			case len(n.elems) > 0:
				n.names, n.elems = nil, nil
			case n.kind == '0' && !isZero(n.scalar):
				n.scalar = "0"
			default:
				continue
			}
			cleared++
		}
		r = engine.Count(cleared)
	case "json.toggle":
		r, err = m.change(key, p, "not a bool", false, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != 't' {
				return engine.Null, false, ""
			}
			n.scalar = map[string]string{"true": "false", "false": "true"}[n.scalar]
			if p.legacy {
				return engine.Bulk(n.scalar), true, ""
			}
			return engine.Flag(n.scalar == "true"), true, ""
		})
	case "json.numincrby", "json.nummultby":
		by := m.pick("1", "-2", "3", "0.5", "1e2")
		args = append(args, by)
		r, err = m.change(key, p, "does not contains a number", false, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '0' {
				return engine.Bulk("null"), false, ""
			}
			text, ok := calculated(name, n.scalar, by)
			n.scalar = text
			return engine.Bulk(text), true, unless(ok, "out of range")
		})
		if err == "" && !p.legacy {
			var texts []string
			for _, e := range r.Elems {
				texts = append(texts, e.Str)
			}
			for i := range texts {
				if texts[i] == "" {
					texts[i] = "null"
				}
			}
			r = engine.Bulk("[" + strings.Join(texts, ",") + "]")
		}
	case "json.strappend":
		args = append(args, `"é`+`"`)
		r, err = m.change(key, p, "not a string", false, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '"' {
				return engine.Null, false, ""
			}
			n.scalar = n.scalar[:len(n.scalar)-1] + `é"`
			return engine.Count(len(n.scalar) - 2), true, ""
		})
	case "json.arrappend":
		v, u := m.value(1), m.value(1)
		args = append(args, v.String(), u.String())
		r, err = m.change(key, p, "not an array", false, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '[' {
				return engine.Null, false, ""
			}
			n.elems = append(n.elems, v.clone(), u.clone())
			return engine.Count(len(n.elems)), true, ""
		})
	case "json.arrinsert":
		v, at := m.value(1), m.rand.IntN(5)-2
		args = append(args, strconv.Itoa(at), v.String())
		r, err = m.change(key, p, "not an array", true, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '[' {
				return engine.Null, false, ""
			}
			i := at
			if i < 0 {
				i += len(n.elems)
			}
			if i < 0 || i > len(n.elems) {
				return engine.Null, false, "out of bounds"
			}
			n.elems = slices.Insert(n.elems, i, v.clone())
			return engine.Count(len(n.elems)), true, ""
		})
	case "json.arrpop":
		at := m.rand.IntN(7) - 3
		args = append(args, strconv.Itoa(at))
		r, err = m.change(key, p, "not an array", true, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '[' || len(n.elems) == 0 {
				return engine.Null, n.kind == '[', ""
			}
			i := at
			if i < 0 {
				i = max(i+len(n.elems), 0)
			}
			i = min(i, len(n.elems)-1)
			popped := n.elems[i].String()
			n.elems = slices.Delete(slices.Clone(n.elems), i, i+1)
			return engine.Bulk(popped), true, ""
		})
	case "json.arrtrim":
		start, stop := m.rand.IntN(5)-2, m.rand.IntN(9)-5
		args = append(args, strconv.Itoa(start), strconv.Itoa(stop))
		r, err = m.change(key, p, "not an array", true, func(n *jsonNode) (engine.Reply, bool, string) {
			if n.kind != '[' {
				return engine.Null, false, ""
			}
			from, to := start, stop
			if from < 0 {
				from = max(from+len(n.elems), 0)
			}
			if to < 0 {
				to = max(to+len(n.elems), 0)
			}
			if to = min(to, len(n.elems)-1); from > to {
				n.elems = nil
			} else {
				n.elems = slices.Clone(n.elems[from : to+1])
			}
			return engine.Count(len(n.elems)), true, ""
		})
	}
	if err != "" {
		return args, anyError + err
	}
	return args, notation(r)
}

func unless(ok bool, err string) string {
	if ok {
		return ""
	}
	return err
}

func isZero(number string) bool { f, _ := strconv.ParseFloat(number, 64); return f == 0 }

func (n *jsonNode) equals(o *jsonNode) bool {
	switch {
	case n.typeName() != o.typeName() || len(n.elems) != len(o.elems):
		return false
	case n.kind == '{':
		for i, name := range n.names {
			if e := o.member(name); e == nil || !e.equals(n.elems[i]) {
				return false
			}
		}
		return true
	}
	return n.scalar == o.scalar && slices.EqualFunc(n.elems, o.elems, (*jsonNode).equals)
}

func (n *jsonNode) resp() engine.Reply {
	switch n.kind {
	case '{', '[':
		elems := []engine.Reply{engine.Status(string(n.kind))}
		for i, e := range n.elems {
			if n.kind == '{' {
				elems = append(elems, engine.Bulk(n.names[i]))
			}
			elems = append(elems, e.resp())
		}
		return engine.Array(elems...)
	case '"':
		return engine.Bulk(n.scalar[1 : len(n.scalar)-1])
	case 't':
		return engine.Status(n.scalar)
	case 'n':
		return engine.Null
	}
	if i, err := strconv.ParseInt(n.scalar, 10, 64); err == nil {
		return engine.Integer(i)
	}
	f, _ := strconv.ParseFloat(n.scalar, 64)
	return engine.Double(f)
}

func (m *jsonModel) get(doc *jsonNode, p *jsonWay) (engine.Reply, string) {
	found := p.find(doc)
	if p.legacy {
		if len(found) == 0 {
			return engine.Null, "does not exist"
		}
		return engine.Bulk(found[0].String()), ""
	}
	return engine.Bulk((&jsonNode{kind: '[', elems: found}).String()), ""
}

// ask is what a command tells of the values at a path: of a legacy one of the first, else of all.
func ask(doc *jsonNode, p *jsonWay, none engine.Reply, tell func(*jsonNode) (engine.Reply, string)) (engine.Reply, string) {
	found := p.find(doc)
	if p.legacy {
		switch {
		case len(found) > 0:
			return tell(found[0])
		case none.Kind == engine.KindError:
			return engine.Null, none.Str[len("ERR "):]
		}
		return none, ""
	}
	elems := make([]engine.Reply, len(found))
	for i, n := range found {
		r, err := tell(n)
		if elems[i] = r; err != "" {
			elems[i] = engine.Null
		}
	}
	return engine.Array(elems...), ""
}

// inner returns values with those within others before them.
func inner(doc *jsonNode, values []*jsonNode) []*jsonNode {
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b *jsonNode) int { return doc.depth(b) - doc.depth(a) })
	return values
}

// change is a command that changes the values at a path. An error changes nothing.
func (m *jsonModel) change(key string, p *jsonWay, kind string, moves bool, apply func(*jsonNode) (engine.Reply, bool, string)) (engine.Reply, string) {
	doc := m.docs[key]
	saved := doc.clone()
	found := p.find(doc)
	places := (&jsonNode{elems: []*jsonNode{doc}}).clone() // to find the outermost afterwards
	path := map[*jsonNode]*jsonNode{}                      // of the values to those in places
	doc.pair(places.elems[0], path)
	elems, changed := make([]engine.Reply, len(found)), make([]bool, len(found))
	for _, n := range inner(doc, found) {
		i := slices.Index(found, n)
		r, ok, err := apply(n)
		if err != "" {
			m.docs[key] = saved
			return engine.Null, err
		}
		if elems[i], changed[i] = r, ok; !ok {
			elems[i] = engine.Null
		}
	}
	if !p.legacy {
		return engine.Array(elems...), ""
	}
	answer := -1
	for i := range found {
		if changed[i] {
			answer = i
		}
	}
	if answer < 0 {
		return engine.Null, kind
	}
	if moves {
		at := places.elems[0]
		for {
			if i := slices.IndexFunc(found, func(n *jsonNode) bool { return path[n] == at }); i >= 0 && changed[i] {
				return elems[i], ""
			}
			var next *jsonNode
			name := ""
			for k, e := range at.elems {
				if !slices.ContainsFunc(found, func(n *jsonNode) bool { return changed[slices.Index(found, n)] && e.contains(path[n]) }) {
					continue
				}
				if at.kind == '[' {
					next = e
					break
				}
				if next == nil || at.names[k] > name {
					next, name = e, at.names[k]
				}
			}
			at = next
		}
	}
	return elems[answer], ""
}

// pair notes for each value the one at the same place of a copy.
func (n *jsonNode) pair(other *jsonNode, pairs map[*jsonNode]*jsonNode) {
	pairs[n] = other
	for i, e := range n.elems {
		e.pair(other.elems[i], pairs)
	}
}

func (m *jsonModel) set(key string, p *jsonWay, v *jsonNode, option string) (engine.Reply, string) {
	doc := m.docs[key]
	if len(p.steps) == 0 {
		if option == "NX" {
			return engine.Null, ""
		}
		m.docs[key] = v
		return engine.OK, ""
	}
	if found := p.find(doc); option != "NX" && len(found) > 0 {
		for _, n := range inner(doc, found) {
			*n = *v.clone()
		}
		return engine.OK, ""
	}
	if option == "XX" {
		return engine.Null, ""
	}
	return m.add(doc, p, v)
}

// add adds the member that the last step of a path names.
func (m *jsonModel) add(doc *jsonNode, p *jsonWay, v *jsonNode) (engine.Reply, string) {
	if !p.static() {
		return engine.Null, "wrong static path"
	}
	last := p.steps[len(p.steps)-1]
	if last.index {
		if len(p.find(doc)) > 0 {
			return engine.Null, ""
		}
		return engine.Null, "array index out of range"
	}
	parents := (&jsonWay{steps: p.steps[:len(p.steps)-1]}).find(doc)
	if len(parents) == 0 || parents[0].kind != '{' || parents[0].member(last.name) != nil {
		return engine.Null, ""
	}
	parents[0].names = append(parents[0].names, last.name)
	parents[0].elems = append(parents[0].elems, v.clone())
	return engine.OK, ""
}

func (m *jsonModel) merge(key string, p *jsonWay, patch *jsonNode) (engine.Reply, string) {
	doc := m.docs[key]
	found := p.find(doc)
	if len(found) == 0 {
		return m.add(doc, p, patch)
	}
	for _, n := range inner(doc, found) {
		*n = *merged(n, patch)
	}
	return engine.OK, ""
}

// merged is RFC 7396.
func merged(n, patch *jsonNode) *jsonNode {
	if patch.kind != '{' {
		return patch.clone()
	}
	out := &jsonNode{kind: '{'}
	if n != nil && n.kind == '{' {
		out = n.clone()
	}
	for i, name := range patch.names {
		k := slices.Index(out.names, name)
		switch e := patch.elems[i]; {
		case e.kind == 'n' && k >= 0:
			out.names, out.elems = slices.Delete(out.names, k, k+1), slices.Delete(out.elems, k, k+1)
		case e.kind == 'n':
		case k >= 0:
			out.elems[k] = merged(out.elems[k], e)
		default:
			out.names, out.elems = append(out.names, name), append(out.elems, merged(nil, e))
		}
	}
	return out
}

func (m *jsonModel) del(key string, p *jsonWay) engine.Reply {
	doc := m.docs[key]
	if len(p.steps) == 0 {
		delete(m.docs, key)
		return engine.Integer(1)
	}
	found := p.find(doc)
	count := 0
	var remove func(n *jsonNode)
	remove = func(n *jsonNode) {
		var names []string
		var elems []*jsonNode
		for i, e := range n.elems {
			if slices.Contains(found, e) {
				count++
				continue
			}
			remove(e)
			if elems = append(elems, e); n.kind == '{' {
				names = append(names, n.names[i])
			}
		}
		n.names, n.elems = names, elems
	}
	remove(doc)
	if count > 0 && len(doc.elems) == 0 {
		delete(m.docs, key)
	}
	return engine.Count(count)
}

// calculated is a sum or product: exact for two integers, else a double. ok is false if it is out of range.
func calculated(command, value, by string) (text string, ok bool) {
	a, isInt := new(big.Int).SetString(value, 10)
	b, alsoInt := new(big.Int).SetString(by, 10)
	if isInt && alsoInt {
		if command == "json.numincrby" {
			a.Add(a, b)
		} else {
			a.Mul(a, b)
		}
		return a.String(), a.IsInt64()
	}
	x, _ := strconv.ParseFloat(value, 64)
	y, _ := strconv.ParseFloat(by, 64)
	if command == "json.numincrby" {
		x += y
	} else {
		x *= y
	}
	text, err := jsonedit.Multiply(jsonedit.ReadNumber(strconv.FormatFloat(x, 'e', -1, 64)), jsonedit.ReadNumber("1.0")) // its spelling
	return text, err == nil
}
