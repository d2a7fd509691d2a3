package query

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mayfly/json/jsontext"
)

// Document is a document as a query sees it. The caller fills what the query needs: see [Query.Needs].
type Document struct {
	Text string // valid JSON, an object
	ID   string
	Etag string

	Time   int64 // of the last write, ms since 1970
	TTL    int64 // the effective time to live in seconds, -1 for ever; only with HasTTL
	HasTTL bool
	Ends   int64 // time of death, ms since 1970; 0 if it does not die
	Left   int64 // ms until then

	Proven bool // an index tells that conditions are true: see [Evaluator.Prove]
}

// Limits of an evaluation.
const (
	// maxComputed is the size in bytes of a value that a query makes.
	maxComputed = 16 << 20

	// maxWork and workPerByte of the document bound the work on one document, in bytes of about a
	// nanosecond. They stop patterns and lists that multiply.
	maxWork     = 256 << 20
	workPerByte = 32

	// ownWork is the work in bytes that a document of any size may cause, before it counts as work on
	// constants: see constantsWeight.
	ownWork         = 16 << 10
	constantsWeight = 8

	// evalWork is the work of evaluating a part of an expression, in bytes.
	evalWork = 16

	// walkWork is the work of a byte of an array or object that is walked through, in bytes.
	walkWork = 8

	// canonicalWork is the work of a byte of an array or object that is compared by content, in bytes.
	canonicalWork = 16
)

var errWork = fmt.Errorf("query works too long on one document: its patterns or lists are too large for it; legal is work on %d MiB and %d times its size", maxWork>>20, workPerByte)

// Evaluator evaluates a query on one document after the other. It is not safe for concurrent use.
type Evaluator struct {
	q      *Query
	doc    *Document
	root   pathNode
	slots  []slot
	turn   uint32 // of the document, to tell old slots
	groups []Value
	totals []Value // of the aggregates

	located uint32 // the turn of the last document whose paths were looked for

	conditions []condition // of WHERE that paths judge
	rest       []node      // the other conditions
	unproven   node        // of WHERE, for documents that are proven
	sorted     bool        // WHERE is sorted into conditions and rest
	judging    bool        // paths judge conditions while they are located
	unsure     bool        // a condition has met an error: the whole of WHERE decides

	done int // the work on this document, in bytes
	most int // the work that is legal
	err  error

	polygons polygonCache
}

// slot is where a path leads in the document.
type slot struct {
	from, to int
	times    uint32 // how often it was found
	turn     uint32 // of the document it was found in
	decoded  uint32 // of the document that value is of
	value    Value
}

// Evaluator returns an evaluator of the query.
func (q *Query) Evaluator() *Evaluator {
	e := &Evaluator{q: q, unproven: q.where, slots: make([]slot, len(q.paths)), root: pathNode{slot: -1}}
	for i, p := range q.paths {
		e.root.add(p, i)
	}
	return e
}

// Needs returns what the query reads of a document besides its text.
func (q *Query) Needs() Needs { return q.needs }

// Load makes a document the current one. The document and its text stay unchanged until the next Load. Work
// returns what it costs.
func (e *Evaluator) Load(doc *Document) {
	e.doc, e.done, e.most, e.err = doc, 0, maxWork+workPerByte*len(doc.Text), nil
	e.turn++
}

// locate finds where the paths lead in the current document, once and only if one is asked for.
func (e *Evaluator) locate() {
	if e.located != e.turn {
		e.located = e.turn
		e.work(len(e.doc.Text))
		e.root.locate(e, e.doc.Text, jsontext.Skip(e.doc.Text, 0, ' '), true)
	}
}

// Work returns the work on the current document in bytes: of text read, of strings compared, and 16 for each
// part of an expression. What the document is too small for is work on constants and counts many times: it
// takes longer a byte than reading does.
func (e *Evaluator) Work() int {
	return e.done + (constantsWeight-1)*max(0, e.done-ownWork-workPerByte*len(e.doc.Text))
}

// Err returns the error of the current document: a value too large, or too much work.
func (e *Evaluator) Err() error { return e.err }

// work counts work.
func (e *Evaluator) work(n int) {
	if e.done += n; e.done > e.most && e.err == nil {
		e.err = errWork
	}
}

// pathNode is a node of the tree of a query's paths.
type pathNode struct {
	slot       int         // of the path that ends here, or -1
	conditions []condition // of that path
	turn       uint32      // of the last document that has the member
	repeated   uint32      // the last document that has it twice
	names      []string
	first      [256]bool      // bytes that names begin with in a document: a quote is that of an empty name
	members    []*pathNode    // in the order of names
	byName     map[string]int // the index in members, if names are many
	indexes    []int          // ascending
	elements   []*pathNode    // in the order of indexes
}

// fewNames is the number of names up to which comparing them one by one is fastest.
const fewNames = 8

// add adds a path that ends in a slot.
func (n *pathNode) add(p path, slot int) {
	for _, s := range p {
		child := n.child(s)
		if child == nil {
			child = &pathNode{slot: -1}
			if s.index < 0 {
				n.names, n.members = append(n.names, s.name), append(n.members, child)
				n.indexNames()
				n.first['\\'], n.first[(s.name + `"`)[0]] = true, true
			} else {
				i, _ := slices.BinarySearch(n.indexes, s.index)
				n.indexes, n.elements = slices.Insert(n.indexes, i, s.index), slices.Insert(n.elements, i, child)
			}
		}
		n = child
	}
	n.slot = slot
}

// child returns the node one step below, or nil.
func (n *pathNode) child(s step) *pathNode {
	if s.index < 0 {
		if i := n.member(s.name); i >= 0 {
			return n.members[i]
		}
		return nil
	}
	if i, ok := slices.BinarySearch(n.indexes, s.index); ok {
		return n.elements[i]
	}
	return nil
}

// indexNames notes the last name for member.
func (n *pathNode) indexNames() {
	switch {
	case len(n.names) <= fewNames:
	case n.byName == nil:
		n.byName = map[string]int{}
		for i, name := range n.names {
			n.byName[name] = i
		}
	default:
		n.byName[n.names[len(n.names)-1]] = len(n.names) - 1
	}
}

// member returns the index of the child of a name, or -1.
func (n *pathNode) member(name string) int {
	if n.byName != nil {
		if i, ok := n.byName[name]; ok {
			return i
		}
		return -1
	}
	for i, want := range n.names {
		if len(want) == len(name) && want == name {
			return i
		}
	}
	return -1
}

// locate notes where the paths below the node lead in the value at i, and returns its end; -1 if a condition
// of WHERE is not true. Paths through a repeated name lead nowhere: once is false from the second time on,
// and for those below.
func (n *pathNode) locate(e *Evaluator, text string, i int, once bool) (end int) {
	judging := e.judging && n.conditions != nil && e.slots[n.slot].turn != e.turn
	c := text[i]
	switch {
	case judging && n.differs(text, i):
		e.reject()
		return -1
	case c == '{' && n.members != nil:
		end = n.locateMembers(e, text, i, once)
	case c == '[' && n.elements != nil:
		end = n.locateElements(e, text, i, once)
	default:
		end = jsontext.ValueEnd(text, i)
	}
	if n.slot >= 0 && end >= 0 {
		s := &e.slots[n.slot]
		if s.turn != e.turn {
			s.turn, s.times = e.turn, 0
		}
		if s.from, s.to = i, end; once {
			s.times++
		} else {
			s.times += 2
		}
		if judging && n.judge(e, text[i:end]) {
			return -1
		}
	}
	return end
}

// locateElements is locate for an array.
func (n *pathNode) locateElements(e *Evaluator, text string, i int, once bool) (end int) {
	w := jsontext.WalkAt(text, i)
	next := 0
	for index := 0; w.Step(); index++ {
		if next < len(n.indexes) && n.indexes[next] == index {
			if w.Pos = n.elements[next].locate(e, text, w.ValueFrom, once); w.Pos < 0 {
				return -1
			}
			next++
		} else {
			w.Pos = jsontext.ValueEnd(text, w.ValueFrom)
		}
	}
	return w.Start + 1
}

// locateMembers is locate for an object.
func (n *pathNode) locateMembers(e *Evaluator, text string, i int, once bool) (end int) {
	for i++; ; {
		if i = jsontext.Skip(text, i, ','); text[i] == '}' {
			return i + 1
		}
		nameEnd := jsontext.StringEnd(text, i)
		child := -1
		if n.first[text[i+1]] {
			child = n.find(text[i:nameEnd])
		}
		if i = jsontext.Skip(text, nameEnd, ':'); child < 0 {
			i = jsontext.ValueEnd(text, i)
			continue
		}
		member := n.members[child]
		again := member.turn == e.turn
		if member.turn = e.turn; again && member.repeated != e.turn {
			member.repeated = e.turn
			member.forget(e)
		}
		if i = member.locate(e, text, i, once && !again); i < 0 {
			return -1
		}
	}
}

// find returns the index of the child of a name as the document writes it, or -1.
func (n *pathNode) find(quoted string) int {
	name := quoted[1 : len(quoted)-1]
	child := n.member(name)
	if child < 0 && strings.IndexByte(name, '\\') >= 0 {
		child = n.member(jsontext.Unquote(quoted))
	}
	return child
}

// forget makes all slots below the node undefined in this document.
func (n *pathNode) forget(e *Evaluator) {
	if n.slot >= 0 {
		s := &e.slots[n.slot]
		s.turn, s.times = e.turn, 2
	}
	for _, child := range n.members {
		child.forget(e)
	}
	for _, child := range n.elements {
		child.forget(e)
	}
}

// text returns the JSON that the path of a slot leads to; "" is undefined.
func (e *Evaluator) text(slot int) string {
	e.locate()
	s := &e.slots[slot]
	if s.turn != e.turn || s.times != 1 {
		return ""
	}
	return e.doc.Text[s.from:s.to]
}

func (n *literal) eval(*Evaluator) Value { return n.value }

func (n *pathRef) eval(e *Evaluator) Value {
	if n.group >= 0 {
		return descend(e.groups[n.group], n.rest)
	}
	switch {
	case len(n.path) == 0:
		return ValueOf(strings.Trim(e.doc.Text, jsontext.Space))
	case n.pseudo != stored:
		return descend(n.pseudo.value(e.doc), n.rest)
	}
	e.locate()
	s := &e.slots[n.slot]
	if s.turn != e.turn || s.times != 1 {
		return Value{}
	}
	if s.decoded != e.turn {
		s.decoded, s.value = e.turn, ValueOf(e.doc.Text[s.from:s.to])
	}
	return s.value
}

// value returns the value of a pseudo member. Ends are compared to the millisecond and written in seconds,
// as DOC.EXPIRETIME and DOC.TTL write them.
func (p pseudo) value(doc *Document) Value {
	switch p {
	case pseudoID:
		return StringValue(doc.ID)
	case pseudoEtag:
		return StringValue(doc.Etag)
	case pseudoTS:
		return NumberValue(math.Floor(float64(doc.Time) / 1000))
	case pseudoTTL:
		if doc.HasTTL {
			return NumberValue(float64(doc.TTL))
		}
	case pseudoExpiresAt:
		if doc.Ends > 0 {
			return seconds(doc.Ends)
		}
	case pseudoTTLLeft:
		if doc.Ends > 0 {
			return seconds(doc.Left)
		}
	}
	return Value{}
}

// seconds returns milliseconds as a number of seconds that is written rounded, as Redis rounds.
func seconds(ms int64) Value {
	return SpelledNumber(float64(ms)/1000, string(jsontext.AppendNumber(nil, math.Floor(float64(ms+500)/1000))))
}

// descend follows steps from a value.
func descend(v Value, steps []step) Value {
	for _, s := range steps {
		v = v.at(s)
	}
	return v
}

// at returns a member or element. A repeated member is undefined.
func (v Value) at(s step) (found Value) {
	if s.index < 0 && v.kind != Object || s.index >= 0 && v.kind != Array {
		return Value{}
	}
	times := 0
	w := jsontext.WalkAt(v.text, 0)
	for i := 0; w.Next(); i++ {
		if i == s.index || s.index < 0 && w.Name() == s.name {
			times++
			found = ValueOf(w.Value())
		}
	}
	if times != 1 {
		return Value{}
	}
	return found
}

func (n *memberOf) eval(e *Evaluator) Value {
	v := n.base.eval(e)
	if e.work(evalWork + walkWork*len(v.text)); e.err != nil {
		return Value{}
	}
	return v.at(n.step)
}

func (n *logical) eval(e *Evaluator) Value {
	decided := n.or // the value that decides alone
	unknown := false
	for _, term := range n.terms {
		e.work(evalWork)
		v := term.eval(e)
		switch {
		case e.err != nil:
			return Value{}
		case v.kind != Bool:
			unknown = true
		case v.num == 1 == decided:
			return v
		}
	}
	if unknown {
		return Value{}
	}
	return BoolValue(!decided)
}

func (n *not) eval(e *Evaluator) Value {
	e.work(evalWork)
	if v := n.term.eval(e); v.kind == Bool {
		return BoolValue(v.num == 0)
	}
	return Value{}
}

func (n *negative) eval(e *Evaluator) Value {
	if v := n.term.eval(e); v.kind == Number {
		return NumberValue(-v.num)
	}
	return Value{}
}

func (n *comparison) eval(e *Evaluator) Value {
	return n.op.compare(e, n.left.eval(e), n.right.eval(e))
}

// compare compares values of the same type. Arrays and objects are equal or not, and have no order.
func (op operator) compare(e *Evaluator, a, b Value) Value {
	e.work(evalWork)
	if a.kind != b.kind || a.kind == Undefined || e.err != nil {
		return Value{}
	}
	switch {
	case a.kind == String:
		if e.work(min(len(a.text), len(b.text))); op <= notEqual {
			return BoolValue((a.text == b.text) == (op == equal))
		}
	case a.kind >= Array && op <= notEqual:
		return BoolValue(e.equal(a, b) == (op == equal))
	case a.kind >= Array:
		return Value{}
	}
	c := Compare(a, b)
	switch op {
	case equal:
		return BoolValue(c == 0)
	case notEqual:
		return BoolValue(c != 0)
	case less:
		return BoolValue(c < 0)
	case lessOrEqual:
		return BoolValue(c <= 0)
	case greater:
		return BoolValue(c > 0)
	}
	return BoolValue(c >= 0)
}

func (n *between) eval(e *Evaluator) Value {
	v := n.term.eval(e)
	low := greaterOrEqual.compare(e, v, n.low.eval(e))
	high := lessOrEqual.compare(e, v, n.high.eval(e))
	switch {
	case low.kind == Bool && low.num == 0 || high.kind == Bool && high.num == 0:
		return BoolValue(false)
	case low.kind != Bool || high.kind != Bool:
		return Value{}
	}
	return BoolValue(true)
}

// equal reports whether two arrays or objects are equal.
func (e *Evaluator) equal(a, b Value) bool {
	if a.text == b.text {
		e.work(len(a.text))
		return true
	}
	e.work(canonicalWork * (len(a.text) + len(b.text)))
	return e.err == nil && Equal(a, b)
}

// canonical appends the canonical text of a value.
func (e *Evaluator) canonical(out []byte, v Value) []byte {
	switch {
	case v.kind >= Array:
		e.work(canonicalWork * len(v.text))
	case v.kind == String:
		e.work(2 * len(v.text))
	}
	if e.err != nil {
		return out
	}
	return appendCanonical(out, v)
}

// index prepares the look-up of values that are all literals.
func (n *in) index() {
	n.set = make(map[string]bool, len(n.values))
	for _, value := range n.values {
		v := value.(*literal).value
		n.set[setKey(v)] = true
		n.kinds |= 1 << v.kind
	}
}

// setKey returns a key that is the same for equal values only.
func setKey(v Value) string {
	if v.kind == String {
		return `"` + v.text
	}
	return Canonical(v)
}

// eval is an OR of equalities: of different types they are undefined, so a list with other types than the
// value's is false for no value.
func (n *in) eval(e *Evaluator) Value {
	v := n.term.eval(e)
	e.work(evalWork)
	if v.kind == Undefined {
		return v
	}
	if n.set == nil {
		result := BoolValue(false)
		for _, value := range n.values {
			switch r := equal.compare(e, v, value.eval(e)); {
			case r.isTrue() || e.err != nil:
				return r
			case r.kind == Undefined:
				result = r
			}
		}
		return result
	}
	if n.kinds>>v.kind&1 == 1 {
		e.work(len(v.text))
		if v.kind >= Array {
			e.work(canonicalWork * len(v.text))
		}
		if e.err == nil && n.set[setKey(v)] {
			return BoolValue(true)
		}
	}
	if n.kinds != 1<<v.kind {
		return Value{}
	}
	return BoolValue(false)
}

func (n *likeExpr) eval(e *Evaluator) Value {
	v := n.term.eval(e)
	w := n.compiled
	e.work(evalWork)
	if w == nil {
		pattern := n.pattern.eval(e)
		if pattern.kind != String || len(pattern.text) > MaxSize {
			return Value{}
		}
		e.work(len(pattern.text) * likeCharWork)
		w = compileLike(pattern.text, n.escape)
	}
	if v.kind != String || e.err != nil {
		return Value{}
	}
	matched, work := w.matches(v.text, e.most-e.done)
	e.work(work)
	return BoolValue(matched)
}

func (n *arithmetic) eval(e *Evaluator) Value {
	e.work(evalWork)
	a, b := n.left.eval(e), n.right.eval(e)
	if a.kind != Number || b.kind != Number {
		return Value{}
	}
	switch n.op {
	case '+':
		return NumberValue(a.num + b.num)
	case '-':
		return NumberValue(a.num - b.num)
	case '*':
		return NumberValue(a.num * b.num)
	case '/':
		return NumberValue(a.num / b.num)
	}
	return NumberValue(math.Mod(a.num, b.num))
}

func (n *concat) eval(e *Evaluator) Value {
	e.work(evalWork)
	return e.join(n.left.eval(e), n.right.eval(e))
}

// join returns the strings one after the other. It is undefined if one of them is no string.
func (e *Evaluator) join(values ...Value) Value {
	size := 0
	for _, v := range values {
		if v.kind != String {
			return Value{}
		}
		size += len(v.text)
	}
	if !e.fits(size) {
		return Value{}
	}
	out := make([]byte, 0, size)
	for _, v := range values {
		out = append(out, v.text...)
	}
	return StringValue(string(out))
}

// fits counts the work of making a value, and reports whether it is not too large.
func (e *Evaluator) fits(size int) bool {
	e.work(evalWork + size)
	if size > maxComputed && e.err == nil {
		e.err = fmt.Errorf("query makes a value of %d bytes: legal are at most %d", size, maxComputed)
	}
	return e.err == nil
}

func (n *call) eval(e *Evaluator) Value {
	e.work(evalWork)
	if n.prepared != nil {
		return n.prepared.run(e, n.args)
	}
	var few [4]Value
	args := few[:0]
	for _, arg := range n.args {
		args = append(args, arg.eval(e))
	}
	if e.err != nil {
		return Value{}
	}
	return n.function.run(e, args)
}

func (n *arrayOf) eval(e *Evaluator) Value { return e.compose(Array, "[]", nil, n.elements) }

func (n *objectOf) eval(e *Evaluator) Value { return e.compose(Object, "{}", n.names, n.values) }

// compose returns an array or object of the parts that are defined. An array has no names.
func (e *Evaluator) compose(kind Kind, brackets string, names []string, parts []node) Value {
	out := []byte(brackets[:1])
	for i, part := range parts {
		v := part.eval(e)
		if v.kind == Undefined {
			continue
		}
		if !e.fits(len(out) + len(v.text)) {
			return Value{}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if names != nil {
			out = append(jsontext.AppendString(out, names[i]), ':')
		}
		out = v.AppendJSON(out)
	}
	return Value{kind: kind, text: string(append(out, brackets[1]))}
}

// eval returns the total of the group. Documents count by add.
func (n *aggregate) eval(e *Evaluator) Value { return e.totals[n.index] }

// Row appends what SELECT makes of the current document. ok is false if it makes nothing: VALUE of an
// undefined value.
func (e *Evaluator) Row(out []byte) (row []byte, ok bool) {
	q := e.q
	if q.items == nil {
		return append(out, e.doc.Text...), true
	}
	if q.value {
		from := len(out)
		out = e.appendItem(out, q.items[0].expr)
		if _, copied := q.items[0].expr.(*pathRef); !copied {
			e.fits(len(out) - from)
		}
		return out, len(out) > from
	}
	out = append(out, '{')
	first := true
	for _, it := range q.items {
		from := len(out)
		if !first {
			out = append(out, ',')
		}
		out = append(jsontext.AppendString(out, it.name), ':')
		at := len(out)
		if out = e.appendItem(out, it.expr); len(out) == at {
			out = out[:from]
			continue
		}
		if first = false; !e.fits(len(out)) {
			break
		}
	}
	return append(out, '}'), true
}

// appendItem appends the JSON of an expression. The value of a path is copied as the document spells it.
func (e *Evaluator) appendItem(out []byte, expr node) []byte {
	if ref, ok := expr.(*pathRef); ok && ref.group < 0 && ref.pseudo == stored && len(ref.path) > 0 {
		return append(out, e.text(ref.slot)...)
	}
	return expr.eval(e).AppendJSON(out)
}
