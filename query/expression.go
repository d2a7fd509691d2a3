package query

import (
	"math"
	"strings"
)

// expression reads an expression. Loosest first: OR, AND, NOT, IN with BETWEEN and LIKE, = and !=, < and its
// kin, ||, + and -, * / and %, unary minus.
func (p *parser) expression() node {
	p.enter()
	defer p.leave()
	return p.logical(true, func() node { return p.logical(false, p.not) })
}

// logical reads terms with OR or AND between them. A term in brackets that is of the same kind gives its own:
// so indexes answer its conditions, too.
func (p *parser) logical(or bool, term func() node) node {
	word := "AND"
	if or {
		word = "OR"
	}
	from := p.next
	first := term()
	if !p.peek().is(word) {
		return first
	}
	l := &logical{or: or}
	l.add(conjunct{first, p.since(from)})
	for p.accept(word) {
		from := p.next
		next := term()
		l.add(conjunct{next, p.since(from)})
	}
	return p.fold(l, l.terms...)
}

// add adds a term, or the terms of one of the same kind.
func (n *logical) add(term conjunct) {
	if inner, ok := term.node.(*logical); ok && inner.or == n.or {
		n.terms, n.texts = append(n.terms, inner.terms...), append(n.texts, inner.texts...)
		return
	}
	n.terms, n.texts = append(n.terms, term.node), append(n.texts, term.text)
}

// not reads [NOT] comparison.
func (p *parser) not() node {
	if !p.accept("NOT") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	term := p.not()
	return p.fold(&not{term}, term)
}

var operators = map[string]operator{"=": equal, "!=": notEqual, "<>": notEqual, "<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual}

// comparison reads a value and the condition of IN, BETWEEN or LIKE on it. Conditions do not chain.
func (p *parser) comparison() node {
	left := p.compared()
	t := p.peek()
	negated := t.is("NOT")
	if negated {
		t = p.after()
	}
	switch {
	case conditions[t.upper] && t.kind == wordToken:
		if negated {
			p.take()
		}
	case negated:
		p.take()
		p.expected("IN, BETWEEN or LIKE")
	default:
		return left
	}
	if left = p.condition(left); negated {
		left = p.fold(&not{left}, left)
	}
	switch t := p.peek(); {
	case t.kind == wordToken && (conditions[t.upper] || t.upper == "NOT"), p.comparing():
		p.fail(t.at, "IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets")
	}
	return left
}

// conditions are the words that begin a condition.
var conditions = map[string]bool{"IN": true, "BETWEEN": true, "LIKE": true}

// comparing reports whether the next token is an operator that compares.
func (p *parser) comparing() bool {
	_, ok := operators[p.peek().text]
	return ok && p.peek().kind == markToken
}

// compared reads terms with comparisons between them, from left to right. < and its kin bind tighter than =
// and !=.
func (p *parser) compared() node {
	var pending *comparison // an = or != that waits for its right side
	left, _ := p.concat()
	for joined := false; p.comparing(); {
		t := p.peek()
		if joined {
			p.fail(t.at, "|| joins strings: write OR between conditions, or brackets")
		}
		p.take()
		op := operators[t.text]
		var right node
		right, joined = p.concat()
		switch {
		case op > notEqual:
			left = p.compare(op, left, right)
			continue
		case pending != nil:
			left = p.compare(pending.op, pending.left, left)
		}
		pending, left = &comparison{op: op, left: left}, right
	}
	if pending == nil {
		return left
	}
	return p.compare(pending.op, pending.left, left)
}

// compare returns a comparison. With undefined, and of the order of arrays and objects, it is undefined.
func (p *parser) compare(op operator, left, right node) node {
	for _, side := range []node{left, right} {
		if l, ok := side.(*literal); ok && (l.value.kind == Undefined || op > notEqual && l.value.unordered()) {
			return &literal{}
		}
	}
	return p.fold(&comparison{op, left, right}, left, right)
}

// condition reads IN (…), BETWEEN … AND … or LIKE … after its first value.
func (p *parser) condition(left node) node {
	switch p.take().upper {
	case "IN":
		p.require("(")
		n := &in{term: left}
		if p.peek().is("SELECT") {
			p.fail(p.peek().at, "a subquery is not supported: %s", clauses)
		}
		for ok := true; ok; ok = p.accept(",") {
			if len(n.values) == MaxIn {
				p.fail(p.peek().at, "more than %d values in IN", MaxIn)
			}
			n.values = append(n.values, p.expression())
		}
		p.close(")")
		p.index(n)
		return p.fold(n, append(n.values[:len(n.values):len(n.values)], left)...)
	case "BETWEEN":
		low, _ := p.concat()
		p.require("AND")
		high, _ := p.concat()
		return p.fold(&between{left, low, high}, left, low, high)
	}
	at := p.peek().at
	n := &likeExpr{term: left}
	n.pattern, _ = p.concat()
	if p.accept("ESCAPE") {
		t := p.take()
		v := valueOf(t)
		if t.kind == paramToken {
			v = p.param(t)
		}
		if v.kind != String || len([]rune(v.text)) != 1 {
			p.fail(t.at, "ESCAPE takes a string of one character, found %s", found(t))
		}
		n.escape = v.text
	}
	if pattern, ok := n.pattern.(*literal); ok && pattern.value.kind == String {
		if p.patterns += len(pattern.value.text); p.patterns > maxPatterns {
			p.fail(at, "the patterns of LIKE have more than %d bytes", maxPatterns)
		}
		n.compiled = compileLike(pattern.value.text, n.escape)
	}
	return p.fold(n, n.term, n.pattern)
}

// index prepares the look-up of the values of an IN.
func (p *parser) index(n *in) {
	for _, value := range n.values {
		l, ok := value.(*literal)
		if !ok {
			return
		}
		if p.constant.done += len(l.value.text); p.constant.done > maxFolded {
			return
		}
	}
	n.index()
}

// close takes the bracket that ends a list.
func (p *parser) close(bracket string) {
	if !p.accept(bracket) {
		p.expected(", or " + bracket)
	}
}

// concat reads terms with || between them. joined is false if there is none.
func (p *parser) concat() (left node, joined bool) {
	left = p.arithmetic(0)
	for p.accept("||") {
		right := p.arithmetic(0)
		left, joined = p.fold(&concat{left, right}, left, right), true
	}
	return left, joined
}

// arithmeticOperators are in the order of their precedence, loosest first.
var arithmeticOperators = [2]string{"+-", "*/%"}

// arithmetic reads terms with operators of a level or tighter ones between them.
func (p *parser) arithmetic(level int) node {
	if level == len(arithmeticOperators) {
		return p.unary()
	}
	left := p.arithmetic(level + 1)
	for t := p.peek(); t.kind == markToken && len(t.text) == 1 && strings.Contains(arithmeticOperators[level], t.text); t = p.peek() {
		p.take()
		right := p.arithmetic(level + 1)
		left = p.fold(&arithmetic{t.text[0], left, right}, left, right)
	}
	return left
}

// unary reads a value with signs before it.
func (p *parser) unary() node {
	if p.accept("+") {
		p.enter()
		defer p.leave()
		zero, term := &literal{NumberValue(0)}, p.unary()
		return p.fold(&arithmetic{'+', zero, term}, zero, term)
	}
	if !p.accept("-") {
		return p.postfix(p.primary())
	}
	p.enter()
	defer p.leave()
	term := p.unary()
	return p.fold(&negative{term}, term)
}

// primary reads a literal, a parameter, a path, a function or an expression in brackets.
func (p *parser) primary() node {
	t := p.peek()
	switch t.kind {
	case numberToken, stringToken:
		return &literal{valueOf(p.take())}
	case paramToken:
		return &literal{p.param(p.take())}
	case wordToken:
		return p.word()
	case markToken:
		switch t.text {
		case "(":
			p.take()
			if p.peek().is("SELECT") {
				p.fail(t.at, "a subquery is not supported: %s", clauses)
			}
			n := p.expression()
			if !p.accept(")") {
				p.expected(")")
			}
			return n
		case "[":
			return p.array()
		case "{":
			return p.object()
		}
	}
	p.expected("a value")
	return nil
}

// constants are the words that are literals.
var constants = map[string]Value{"TRUE": BoolValue(true), "FALSE": BoolValue(false), "NULL": NullValue, "UNDEFINED": {}}

// word reads a constant, a function or a path.
func (p *parser) word() node {
	t := p.take()
	if v, ok := constants[t.upper]; ok {
		return &literal{v}
	}
	if reserved[t.upper] {
		p.next--
		p.expected("a value")
	}
	if t.upper == "CASE" && p.peek().kind == wordToken && p.alias == "" {
		p.fail(t.at, "CASE is not supported: IIF(condition, a, b) chooses")
	}
	if p.peek().is("(") {
		return p.call(t)
	}
	if t.upper == "UDF" && p.alias != "" && p.alias != t.text && p.peek().is(".") {
		p.fail(t.at, "user-defined functions are not supported: legal are %s", functionNames)
	}
	ref := &pathRef{at: t.at, group: -1}
	if p.alias == "" {
		ref.path = path{{t.text, -1}}
	} else if t.text != p.alias {
		p.fail(t.at, "unknown name %s: with FROM, paths begin with %s, like %s.%s", found(t), p.alias, p.alias, found(t))
	}
	for {
		s, ok := p.step()
		if !ok {
			break
		}
		ref.path = append(ref.path, s)
	}
	if t := p.peek(); t.is("(") {
		p.fail(t.at, "%s is no function: user-defined functions are not supported", clip(ref.path.String()))
	}
	p.bindPath(ref)
	return ref
}

// bindPath gives the path its slot, and notes what the query reads.
func (p *parser) bindPath(ref *pathRef) {
	if !p.aggregate {
		p.free = append(p.free, ref)
	}
	if len(ref.path) == 0 {
		return
	}
	if first := ref.path[0]; first.index < 0 {
		ref.pseudo = pseudoMembers[first.name]
	}
	needs := &p.q.needs
	switch ref.pseudo {
	case stored:
		key := ref.path.key()
		slot, ok := p.slots[key]
		if !ok {
			slot = len(p.q.paths)
			p.slots[key] = slot
			p.q.paths = append(p.q.paths, ref.path)
		}
		ref.slot = slot
		return
	case pseudoID:
		needs.ID = true
	case pseudoEtag:
		needs.Etag = true
	case pseudoTS:
		needs.Time = true
	case pseudoTTL:
		needs.TTL = true
	case pseudoExpiresAt, pseudoTTLLeft:
		needs.Ends = true
	}
	ref.rest = ref.path[1:]
}

// step reads .name, ["name"] or [n].
func (p *parser) step() (step, bool) {
	switch {
	case p.accept("."):
		t := p.peek()
		if t.kind != wordToken {
			p.expected("a name")
		}
		p.take()
		return step{t.text, -1}, true
	case p.accept("["):
		t := p.take()
		v := valueOf(t)
		if t.kind == paramToken {
			v = p.param(t)
		}
		s := step{v.text, -1}
		switch {
		case v.kind == String:
		case v.kind == Number && v.num >= 0 && v.num == math.Trunc(v.num) && v.num <= math.MaxInt32:
			s = step{"", int(v.num)}
		default:
			p.fail(t.at, "expected the name of a member in quotes or the index of an element from 0, found %s", found(t))
		}
		if !p.accept("]") {
			p.expected("]")
		}
		return s, true
	}
	return step{}, false
}

// postfix reads members and elements of a value that is no path.
func (p *parser) postfix(base node) node {
	if _, ok := base.(*pathRef); ok {
		if t := p.peek(); !t.is(".") && !t.is("[") {
			return base
		}
	}
	for {
		s, ok := p.step()
		if !ok {
			return base
		}
		base = p.fold(&memberOf{base, s}, base)
	}
}

// call reads a function with its arguments.
func (p *parser) call(name token) node {
	if subqueryWords[name.upper] {
		p.fail(name.at, "%s is not supported: subqueries are not", name.upper)
	}
	switch name.upper {
	case "COUNT", "SUM", "AVG", "MIN", "MAX":
		return p.aggregateCall(name)
	}
	f, ok := functions[name.upper]
	if !ok {
		p.fail(name.at, "unknown function %s: legal are %s", found(name), functionNames)
	}
	args := p.arguments()
	if len(args) < f.least || len(args) > f.most {
		p.fail(name.at, "%s takes %s, found %d", f.name, f.arity(), len(args))
	}
	return p.fold(&call{function: f, args: args, prepared: preparedOf(f, args)}, args...)
}

// arguments reads (expression {, expression}).
func (p *parser) arguments() (args []node) {
	p.require("(")
	if p.accept(")") {
		return nil
	}
	for ok := true; ok; ok = p.accept(",") {
		if len(args) == MaxItems {
			p.fail(p.peek().at, "more than %d arguments", MaxItems)
		}
		args = append(args, p.expression())
	}
	p.close(")")
	return args
}

// aggregateCall reads COUNT, SUM, AVG, MIN or MAX.
func (p *parser) aggregateCall(name token) node {
	switch {
	case p.aggregate:
		p.fail(name.at, "%s is inside of another aggregate", name.upper)
	case !p.aggregates:
		p.fail(name.at, "%s is legal in SELECT only", name.upper)
	}
	if t := p.tokens[min(p.next+1, len(p.tokens)-1)]; t.is("DISTINCT") && beginsItem(p.tokens[min(p.next+2, len(p.tokens)-1)]) {
		p.fail(t.at, "DISTINCT is not supported inside of %s: SELECT DISTINCT is", name.upper)
	}
	p.aggregate = true
	args := p.arguments()
	p.aggregate = false
	if len(args) != 1 {
		hint := ""
		if name.upper == "COUNT" {
			hint = ": all are counted by COUNT(1)"
		}
		p.fail(name.at, "%s takes 1 argument, found %d%s", name.upper, len(args), hint)
	}
	a := &aggregate{name: name.upper, arg: args[0], index: len(p.q.aggregates)}
	p.q.aggregates = append(p.q.aggregates, a)
	return a
}

// array reads [a, b, …].
func (p *parser) array() node {
	p.require("[")
	n := &arrayOf{}
	if p.accept("]") {
		return p.fold(n)
	}
	for ok := true; ok; ok = p.accept(",") {
		if len(n.elements) == MaxIn {
			p.fail(p.peek().at, "more than %d elements", MaxIn)
		}
		n.elements = append(n.elements, p.expression())
	}
	p.close("]")
	return p.fold(n, n.elements...)
}

// object reads {name: a, "name": b, …}.
func (p *parser) object() node {
	p.require("{")
	n := &objectOf{}
	if p.accept("}") {
		return p.fold(n)
	}
	names := map[string]bool{}
	for ok := true; ok; ok = p.accept(",") {
		t := p.peek()
		name := t.text
		switch {
		case t.kind == stringToken:
			name = t.str
		case t.kind != wordToken:
			p.expected("a name")
		}
		p.take()
		if names[name] {
			p.fail(t.at, "two members are named %s", found(t))
		}
		names[name] = true
		if len(n.names) == MaxItems {
			p.fail(t.at, "more than %d members", MaxItems)
		}
		p.require(":")
		n.names = append(n.names, name)
		n.values = append(n.values, p.expression())
	}
	p.close("}")
	return p.fold(n, n.values...)
}

// maxFolded is the work of evaluating what is constant in a query, in bytes. The rest is evaluated on each
// document.
const maxFolded = 1 << 20

// fold evaluates an expression whose parts are all literals.
func (p *parser) fold(n node, parts ...node) node {
	for _, part := range parts {
		if _, ok := part.(*literal); !ok {
			return n
		}
	}
	if p.constant.done > maxFolded {
		return n
	}
	v := n.eval(&p.constant)
	if p.constant.err != nil {
		p.constant.err = nil
		return n
	}
	return &literal{v}
}
