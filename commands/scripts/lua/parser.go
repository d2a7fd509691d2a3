package lua

import (
	"fmt"
	"slices"
)

// Bounds on a chunk. The first three are Lua's.
const (
	maxLevels   = 200 // nested blocks and expressions
	maxLocals   = 200 // of a function, at one place
	maxUpvalues = 60  // of a function
	maxChain    = 1_000
	maxNodes    = 1 << 18
	nodeSize    = 240 // bytes of a node and of what it is compiled to
)

// node is a part of the tree of a chunk. Its op says what the others are.
type node struct {
	op    op
	line  int
	text  string // a name, or an operator
	val   Value
	a, b  *node
	list  []*node // arguments, values, statements of a block
	more  []*node // keys of a table, targets of an assignment
	vars  []*local
	fn    *function
	chain int // nested operators, of those that Lua does not nest
}

type op byte

const (
	opConst    op = iota // val
	opVararg             // ...
	opLocal              // vars[0]
	opUpvalue            // vars[0], in function fn
	opGlobal             // text
	opIndex              // a[b]
	opCall               // a(list...)
	opMethod             // a:text(list...)
	opFunction           // fn
	opBinary             // a text b
	opUnary              // text a
	opConcat             // list
	opParen              // (a)
	opTable              // keys more, nil for positional ones; values list
	opLocals             // local vars = list
	opAssign             // more = list
	opBlock              // do list end
	opWhile              // while a do b end
	opRepeat             // repeat b until a
	opIf                 // conditions more and blocks list in turn, the last may have no condition
	opFor                // for vars[0] = list do b end
	opForIn              // for vars in list do b end
	opReturn             // return list
	opBreak
	opLocalFunction // local function vars[0] = a
)

// local is a local variable.
type local struct {
	name     string
	fn       *function
	captured bool // a function within uses it
	reg      int
}

// function is a function that is being parsed.
type function struct {
	parent   *function
	line     int // 0 for the chunk
	vararg   bool
	dots     bool // it uses ...
	params   []*local
	arg      *local // after the parameters, if it is vararg
	locals   []*local
	upvalues []*local // of functions around it
	loops    int
	body     *node
}

type parser struct {
	lexer
	fn     *function
	scope  map[string][]*local // variables that a name means, the innermost one last
	levels int                 // nested blocks and expressions
	nodes  int
}

// parse parses a chunk. Errors are of type *SyntaxError.
func parse(text, chunk string) (fn *function, nodes int, err error) {
	p := &parser{lexer: lexer{chunk: chunk, src: text, line: 1, lastLine: 1}, scope: map[string][]*local{}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.fn = &function{vararg: true}
	p.next()
	p.fn.body = p.block()
	p.check(tokEOF)
	return p.fn, p.nodes, nil
}

func (p *parser) node(n node) *node {
	if n.line == 0 {
		n.line = p.lastLine
	}
	if p.nodes++; p.nodes > maxNodes {
		p.fail("chunk is too large", false)
	}
	if n.chain > maxChain {
		p.fail("chunk has too many syntax levels", false)
	}
	return &n
}

func (p *parser) enter() {
	if p.levels++; p.levels > maxLevels {
		p.fail("chunk has too many syntax levels", false)
	}
}

func (p *parser) limit(n, most int, what string) {
	if n <= most {
		return
	}
	where := "main function"
	if p.fn.line > 0 {
		where = fmt.Sprintf("function at line %d", p.fn.line)
	}
	p.fail(fmt.Sprintf("%s has more than %d %s", where, most, what), false)
}

func (p *parser) test(k token) bool {
	if p.tok == k {
		p.next()
		return true
	}
	return false
}

func (p *parser) check(k token) {
	if p.tok != k {
		p.fail("'"+string(k)+"' expected", true)
	}
}

func (p *parser) expect(k token) {
	p.check(k)
	p.next()
}

// match expects the token that ends what another one began at a line.
func (p *parser) match(end, begin token, line int) {
	if p.tok != end && line != p.line {
		p.fail(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", end, begin, line), true)
	}
	p.expect(end)
}

func (p *parser) name() string {
	p.check(tokName)
	s := p.str
	p.next()
	return s
}

func (p *parser) declare(name string) *local {
	v := &local{name: name, fn: p.fn}
	p.fn.locals = append(p.fn.locals, v)
	p.limit(len(p.fn.locals), maxLocals, "local variables")
	p.scope[name] = append(p.scope[name], v)
	return v
}

// close ends the scope of all local variables but the first n.
func (p *parser) close(n int) {
	for _, v := range p.fn.locals[n:] {
		p.scope[v.name] = p.scope[v.name][:len(p.scope[v.name])-1]
	}
	p.fn.locals = p.fn.locals[:n]
}

// variable returns the node of a name.
func (p *parser) variable(name string, line int) *node {
	found := p.scope[name]
	if len(found) == 0 {
		return p.node(node{op: opGlobal, text: name, line: line})
	}
	v := found[len(found)-1]
	n := node{op: opLocal, vars: []*local{v}, line: line, text: name}
	if v.fn != p.fn {
		n.op, v.captured = opUpvalue, true
	}
	for f := p.fn; f != v.fn && !slices.Contains(f.upvalues, v); f = f.parent {
		if f.upvalues = append(f.upvalues, v); len(f.upvalues) > maxUpvalues {
			p.fn = f
			p.limit(len(f.upvalues), maxUpvalues, "upvalues")
		}
	}
	return p.node(n)
}

func (p *parser) blockEnds() bool {
	switch p.tok {
	case "else", "elseif", "end", tokEOF, "until":
		return true
	}
	return false
}

// chunk parses statements, whose local variables stay declared.
func (p *parser) chunk() *node {
	p.enter()
	b := p.node(node{op: opBlock})
	for last := false; !last && !p.blockEnds(); p.test(";") {
		last = p.tok == "return" || p.tok == "break"
		b.list = append(b.list, p.statement())
	}
	p.levels--
	return b
}

func (p *parser) block() *node {
	n := len(p.fn.locals)
	b := p.chunk()
	p.close(n)
	return b
}

func (p *parser) loopBody() *node {
	p.fn.loops++
	b := p.block()
	p.fn.loops--
	return b
}

func (p *parser) statement() *node {
	line := p.line
	switch p.tok {
	case "if":
		return p.ifStatement(line)
	case "while":
		p.next()
		n := p.node(node{op: opWhile, line: line, a: p.expr()})
		p.expect("do")
		n.b = p.loopBody()
		p.match("end", "while", line)
		return n
	case "do":
		p.next()
		n := p.block()
		p.match("end", "do", line)
		return n
	case "for":
		return p.forStatement(line)
	case "repeat":
		p.next()
		locals := len(p.fn.locals)
		p.fn.loops++
		n := p.node(node{op: opRepeat, line: line, b: p.chunk()})
		p.fn.loops--
		p.match("until", "repeat", line)
		n.a = p.expr()
		p.close(locals)
		return n
	case "function":
		return p.functionStatement(line)
	case "local":
		p.next()
		return p.localStatement(line)
	case "return":
		p.next()
		n := p.node(node{op: opReturn, line: line})
		if !p.blockEnds() && p.tok != ";" {
			n.list = p.exprList()
		}
		return n
	case "break":
		p.next()
		if p.fn.loops == 0 {
			p.fail("no loop to break", true)
		}
		return p.node(node{op: opBreak})
	}
	return p.exprStatement()
}

func (p *parser) ifStatement(line int) *node {
	n := p.node(node{op: opIf, line: line})
	for more := true; more; more = p.tok == "elseif" {
		p.next()
		n.more = append(n.more, p.expr())
		p.expect("then")
		n.list = append(n.list, p.block())
	}
	if p.test("else") {
		n.list = append(n.list, p.block())
	}
	p.match("end", "if", line)
	return n
}

func (p *parser) forStatement(line int) *node {
	p.next()
	names := []string{p.name()}
	n := p.node(node{op: opForIn, line: line})
	switch p.tok {
	case "=":
		p.next()
		n.op = opFor
		n.list = append(n.list, p.expr())
		p.expect(",")
		n.list = append(n.list, p.expr())
		if p.test(",") {
			n.list = append(n.list, p.expr())
		}
	case ",", "in":
		for p.test(",") {
			names = append(names, p.name())
		}
		p.expect("in")
		n.list = p.exprList()
	default:
		p.fail("'=' or 'in' expected", true)
	}
	p.expect("do")
	locals := len(p.fn.locals)
	for _, name := range append([]string{"(for a)", "(for b)", "(for c)"}, names...) {
		n.vars = append(n.vars, p.declare(name))
	}
	n.b = p.loopBody()
	p.close(locals)
	p.match("end", "for", line)
	return n
}

func (p *parser) functionStatement(line int) *node {
	p.next()
	n := p.variable(p.name(), p.lastLine)
	method := false
	for !method && (p.tok == "." || p.tok == ":") {
		method = p.tok == ":"
		p.next()
		n = p.node(node{op: opIndex, a: n, b: p.constant(p.name()), chain: n.chain + 1})
	}
	f := p.body(line, method)
	return p.node(node{op: opAssign, line: line, more: []*node{n}, list: []*node{f}})
}

func (p *parser) localStatement(line int) *node {
	if p.test("function") {
		n := p.node(node{op: opLocalFunction, line: line, vars: []*local{p.declare(p.name())}})
		n.a = p.body(line, false)
		return n
	}
	n := p.node(node{op: opLocals, line: line})
	names := []string{p.name()}
	for p.test(",") {
		names = append(names, p.name())
		p.limit(len(p.fn.locals)+len(names), maxLocals, "local variables")
	}
	if p.test("=") {
		n.list = p.exprList()
	}
	for _, name := range names {
		n.vars = append(n.vars, p.declare(name))
	}
	return n
}

func (p *parser) exprStatement() *node {
	first := p.primary()
	if first.op == opCall || first.op == opMethod {
		return first
	}
	n := p.node(node{op: opAssign})
	for v := first; ; v = p.primary() {
		if v.op != opLocal && v.op != opUpvalue && v.op != opGlobal && v.op != opIndex {
			p.fail("syntax error", true)
		}
		n.more = append(n.more, v)
		p.limit(len(n.more), maxLevels-p.levels, "variables in assignment")
		if !p.test(",") {
			break
		}
	}
	p.expect("=")
	n.list = p.exprList()
	n.line = p.lastLine
	return n
}

// body parses a function from its parameters on.
func (p *parser) body(line int, method bool) *node {
	f := &function{parent: p.fn, line: line}
	p.fn = f
	if method {
		p.declare("self")
	}
	p.expect("(")
	for p.tok != ")" {
		if f.vararg = p.test("..."); f.vararg {
			break
		}
		if p.tok != tokName {
			p.fail("<name> or '...' expected", true)
		}
		p.declare(p.name())
		if !p.test(",") {
			break
		}
		if p.tok == ")" {
			p.fail("<name> or '...' expected", true)
		}
	}
	f.params = f.locals[:len(f.locals):len(f.locals)]
	if f.vararg { // in Redis' Lua it has the values as a table
		p.declare("arg")
	}
	p.expect(")")
	f.body = p.block()
	p.match("end", "function", line)
	f.arg = append(f.locals, nil)[len(f.params)]
	p.close(0)
	p.fn = f.parent
	return p.node(node{op: opFunction, line: line, fn: f})
}

func (p *parser) exprList() (list []*node) {
	for {
		list = append(list, p.expr())
		if len(list) > 250 && p.tok == "," {
			p.fail("function or expression too complex", false)
		}
		if !p.test(",") {
			return list
		}
	}
}

func (p *parser) expr() *node { return p.binary(0) }

var priorities = map[token]struct{ left, right int }{
	"+": {6, 6}, "-": {6, 6}, "*": {7, 7}, "/": {7, 7}, "%": {7, 7}, "^": {10, 9}, "..": {5, 4},
	"~=": {3, 3}, "==": {3, 3}, "<": {3, 3}, "<=": {3, 3}, ">": {3, 3}, ">=": {3, 3}, "and": {2, 2}, "or": {1, 1},
}

const unaryPriority = 8

// binary parses an expression whose operators bind more closely than a limit.
func (p *parser) binary(limit int) *node {
	p.enter()
	var left *node
	switch op := p.tok; op {
	case "not", "-", "#":
		p.next()
		a := p.binary(unaryPriority)
		left = p.node(node{op: opUnary, text: string(op), a: a, chain: a.chain + 1})
		if f, ok := a.val.(float64); ok && op == "-" && a.op == opConst && f != 0 {
			left = p.node(node{op: opConst, val: -f})
		}
	default:
		left = p.simple()
	}
	for {
		op := p.tok
		o, ok := priorities[op]
		if !ok || o.left <= limit {
			break
		}
		p.next()
		right := p.binary(o.right)
		n := node{op: opBinary, text: string(op), a: left, b: right, chain: max(left.chain, right.chain) + 1}
		if op == ".." {
			n.op, n.list = opConcat, []*node{left, right}
			if right.op == opConcat {
				n.list = append([]*node{left}, right.list...)
			}
		}
		left = p.node(n)
	}
	p.levels--
	return left
}

func (p *parser) constant(v Value) *node { return p.node(node{op: opConst, val: v}) }

func (p *parser) simple() *node {
	var n *node
	switch p.tok {
	case tokNumber:
		n = p.constant(Number(p.num))
	case tokString:
		n = p.constant(p.str)
	case "nil":
		n = p.constant(nil)
	case "true":
		n = p.constant(true)
	case "false":
		n = p.constant(false)
	case "...":
		if !p.fn.vararg {
			p.fail("cannot use '...' outside a vararg function", true)
		}
		p.fn.dots = true
		n = p.node(node{op: opVararg})
	case "{":
		return p.table()
	case "function":
		line := p.line
		p.next()
		return p.body(line, false)
	default:
		return p.primary()
	}
	p.next()
	return n
}

func (p *parser) primary() *node {
	var n *node
	line := p.line
	switch p.tok {
	case "(":
		p.next()
		n = p.expr()
		p.match(")", "(", line)
		n = p.node(node{op: opParen, a: n, chain: n.chain + 1})
	case tokName:
		n = p.variable(p.name(), line)
	default:
		p.fail("unexpected symbol", true)
	}
	for {
		line := p.line
		m := node{a: n, chain: n.chain + 1}
		switch p.tok {
		case ".":
			p.next()
			m.op, m.b = opIndex, p.constant(p.name())
		case "[":
			p.next()
			m.op, m.b = opIndex, p.expr()
			p.expect("]")
		case ":":
			p.next()
			m.op, m.text, m.line = opMethod, p.name(), p.line
			m.list = p.args()
		case "(", tokString, "{":
			m.op, m.line, m.list = opCall, line, p.args()
		default:
			return n
		}
		n = p.node(m)
	}
}

func (p *parser) args() []*node {
	line := p.line
	switch p.tok {
	case "(":
		if line != p.lastLine {
			p.fail("ambiguous syntax (function call x new statement)", true)
		}
		p.next()
		if p.test(")") {
			return nil
		}
		list := p.exprList()
		p.match(")", "(", line)
		return list
	case "{":
		return []*node{p.table()}
	case tokString:
		n := p.constant(p.str)
		p.next()
		return []*node{n}
	}
	p.fail("function arguments expected", true)
	return nil
}

func (p *parser) table() *node {
	line := p.line
	p.expect("{")
	t := p.node(node{op: opTable, line: line})
	for p.tok != "}" {
		var key, value *node
		switch {
		case p.tok == "[":
			p.next()
			key = p.expr()
			p.expect("]")
			p.expect("=")
			value = p.expr()
		case p.tok == tokName && p.assigns():
			key = p.constant(p.name())
			p.next()
			value = p.expr()
		default:
			value = p.expr()
		}
		t.more, t.list = append(t.more, key), append(t.list, value)
		if !p.test(",") && !p.test(";") {
			break
		}
	}
	p.match("}", "{", line)
	return t
}

// assigns reports whether an equals sign follows the present name.
func (p *parser) assigns() bool {
	ahead := p.lexer
	ahead.next()
	return ahead.tok == "="
}
