package syntax

import (
	"fmt"

	"mayfly/commands/scripts/lualib"

	"github.com/yuin/gopher-lua/ast"
)

// Bounds on a chunk. The first three are Lua's.
const (
	maxLevels   = 200 // nested blocks and expressions
	maxLocals   = 200 // of a function, at one place
	maxUpvalues = 60  // of a function
	maxDepth    = 8_000
	maxJumps    = 1<<15 - 1 // of a function: the compiler gives each up to four labels, whose numbers have 17 bits
	maxFuncs    = 4_096     // in a chunk: the compiler takes 6 KB for each

	// maxLookups bounds the time of the compiler, which looks constants up in a list: 11,585 in one function, or as many steps in
	// several. They take it about 0.5 s.
	maxLookups = 1 << 26
)

func parseNumber(s string) (float64, bool) { return lualib.ParseNumber(s) }

// Parse parses a chunk. chunk is its name in errors, which are of type *Error.
func Parse(text, chunk string) (stmts []ast.Stmt, err error) {
	p := &parser{lexer: lexer{chunk: chunk, src: text, line: 1, lastLine: 1}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			stmts, err = nil, e
		}
	}()
	p.fn = &function{vararg: true}
	p.next()
	stmts = p.chunk()
	p.check(tokEOF)
	return stmts, nil
}

type parser struct {
	lexer
	fn     *function
	levels int // nested blocks and expressions
	chain  int // elseif parts that enclose the current place
	funcs  int
	looked int // constants that the compiler compares to find those of all functions
}

// function is a function that is being parsed.
type function struct {
	parent   *function
	line     int // 0 for the chunk
	vararg   bool
	locals   []string
	upvalues map[string]bool
	loops    int
	jumps    int // statements and operators that jump

	constants map[constant]int // their places in the compiler's list, from 1
	results   int              // further ones, which the compiler calculates
}

// constant is a number as the script writes it, or a string or name.
type constant struct {
	text   string
	number bool
}

// node is an expression with what the parser has to know of it.
type node struct {
	expr       ast.Expr
	depth      int  // of its tree: the compiler recurses so deeply
	number     bool // a number, or calculated from numbers: the compiler makes a constant of it
	assignable bool // a variable or an index, not in parentheses
	call       bool // a call, not in parentheses
}

func (p *parser) enter() {
	if p.levels++; p.levels > maxLevels {
		p.fail("chunk has too many syntax levels", 0)
	}
}

func (p *parser) leave() { p.levels-- }

// bound refuses an expression whose tree is too deep for the compiler.
func (p *parser) bound(depth int) int {
	if depth+p.chain > maxDepth {
		p.fail("chunk has too many syntax levels", 0)
	}
	return depth
}

func (p *parser) limit(n, most int, what string) {
	if n <= most {
		return
	}
	where := "main function"
	if p.fn.line > 0 {
		where = fmt.Sprintf("function at line %d", p.fn.line)
	}
	p.fail(fmt.Sprintf("%s has more than %d %s", where, most, what), 0)
}

// jump counts a statement or an operator that jumps.
func (p *parser) jump() {
	p.fn.jumps++
	p.limit(p.fn.jumps, maxJumps, "jumps")
}

// use counts the time in which the compiler finds a constant of the running function.
func (p *parser) use(text string, number bool) {
	c := constant{text, number}
	at := p.fn.constants[c]
	if at == 0 {
		if p.fn.constants == nil {
			p.fn.constants = map[constant]int{}
		}
		at = len(p.fn.constants) + p.fn.results + 1
		p.fn.constants[c] = at
	}
	p.look(at)
}

// fold counts the constant that the compiler calculates from numbers, which may be a new one each time. It returns numbers.
func (p *parser) fold(numbers bool) bool {
	if numbers {
		p.fn.results++
		p.look(len(p.fn.constants) + p.fn.results)
	}
	return numbers
}

func (p *parser) look(steps int) {
	if p.looked += steps; p.looked > maxLookups {
		p.fail("constant table overflow", 0)
	}
}

func (p *parser) str(s string, line int) *ast.StringExpr {
	p.use(s, false)
	return at(&ast.StringExpr{Value: s}, line)
}

func (p *parser) test(k kind) bool {
	if p.tok.kind == k {
		p.next()
		return true
	}
	return false
}

func (p *parser) expected(k kind) { p.syntaxError("'" + k.text() + "' expected") }

func (p *parser) check(k kind) {
	if p.tok.kind != k {
		p.expected(k)
	}
}

func (p *parser) expect(k kind) {
	p.check(k)
	p.next()
}

// match expects the token that ends what another one began at a line.
func (p *parser) match(end, begin kind, line int) {
	if p.test(end) {
		return
	}
	if line == p.line {
		p.expected(end)
	}
	p.syntaxError(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", end.text(), begin.text(), line))
}

func (p *parser) name() string {
	p.check(tokName)
	s := p.tok.str
	p.next()
	return s
}

func (p *parser) declare(name string) {
	p.fn.locals = append(p.fn.locals, name)
	p.limit(len(p.fn.locals), maxLocals, "local variables")
}

// resolve marks a variable of an enclosing function as upvalue of those between.
func (p *parser) resolve(name string) {
	has := func(f *function) bool {
		for i := len(f.locals) - 1; i >= 0; i-- {
			if f.locals[i] == name {
				return true
			}
		}
		return false
	}
	owner := p.fn
	for owner != nil && !has(owner) {
		owner = owner.parent
	}
	if owner == nil {
		p.use(name, false)
		return
	}
	current := p.fn
	for f := current; f != owner; f = f.parent {
		if f.upvalues[name] {
			break
		}
		if f.upvalues == nil {
			f.upvalues = map[string]bool{}
		}
		f.upvalues[name] = true
		p.fn = f
		p.limit(len(f.upvalues), maxUpvalues, "upvalues")
	}
	p.fn = current
}

// at sets the line of a node and returns it.
func at[T ast.PositionHolder](n T, line int) T {
	n.SetLine(line)
	n.SetLastLine(line)
	return n
}

func (p *parser) blockEnds() bool {
	switch p.tok.kind {
	case tokElse, tokElseif, tokEnd, tokEOF, tokUntil:
		return true
	}
	return false
}

func (p *parser) chunk() []ast.Stmt {
	p.enter()
	stmts := []ast.Stmt{}
	for last := false; !last && !p.blockEnds(); {
		var s ast.Stmt
		s, last = p.statement()
		stmts = append(stmts, s)
		p.test(';')
	}
	p.leave()
	return stmts
}

func (p *parser) block() []ast.Stmt {
	n := len(p.fn.locals)
	stmts := p.chunk()
	p.fn.locals = p.fn.locals[:n]
	return stmts
}

func (p *parser) loopBody() []ast.Stmt {
	p.fn.loops++
	stmts := p.block()
	p.fn.loops--
	return stmts
}

func (p *parser) statement() (s ast.Stmt, last bool) {
	line := p.line
	end := func(s ast.Stmt) ast.Stmt {
		s.SetLine(line)
		s.SetLastLine(p.lastLine)
		return s
	}
	switch p.tok.kind {
	case tokIf, tokWhile, tokFor, tokRepeat, tokBreak:
		p.jump()
	}
	switch p.tok.kind {
	case tokIf:
		return p.ifStatement(line), false
	case tokWhile:
		p.next()
		condition := p.expr().expr
		p.expect(tokDo)
		stmts := p.loopBody()
		p.match(tokEnd, tokWhile, line)
		return end(&ast.WhileStmt{Condition: condition, Stmts: stmts}), false
	case tokDo:
		p.next()
		stmts := p.block()
		p.match(tokEnd, tokDo, line)
		return end(&ast.DoBlockStmt{Stmts: stmts}), false
	case tokFor:
		return end(p.forStatement(line)), false
	case tokRepeat:
		p.next()
		n := len(p.fn.locals)
		p.fn.loops++
		stmts := p.chunk()
		p.fn.loops--
		p.match(tokUntil, tokRepeat, line)
		condition := p.expr().expr
		p.fn.locals = p.fn.locals[:n]
		return end(&ast.RepeatStmt{Condition: condition, Stmts: stmts}), false
	case tokFunction:
		return p.functionStatement(line), false
	case tokLocal:
		p.next()
		if p.test(tokFunction) {
			name := p.name()
			p.declare(name)
			f := p.body(line, false)
			return end(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{f}}), false
		}
		return p.localStatement(line), false
	case tokReturn:
		p.next()
		r := &ast.ReturnStmt{}
		if !p.blockEnds() && p.tok.kind != ';' {
			r.Exprs, _ = p.exprList()
		}
		return end(r), true
	case tokBreak:
		p.next()
		if p.fn.loops == 0 {
			p.syntaxError("no loop to break")
		}
		return end(&ast.BreakStmt{}), true
	}
	return p.exprStatement(line), false
}

func (p *parser) ifStatement(line int) ast.Stmt {
	chain := p.chain
	first := &ast.IfStmt{}
	for current := first; ; {
		at(current, p.line)
		p.next() // if or elseif
		current.Condition = p.expr().expr
		p.expect(tokThen)
		current.Then = p.block()
		if p.tok.kind == tokElseif {
			p.chain++
			p.bound(0)
			p.jump()
			inner := &ast.IfStmt{}
			current.Else = []ast.Stmt{inner}
			current = inner
			continue
		}
		if p.test(tokElse) {
			current.Else = p.block()
		}
		break
	}
	p.match(tokEnd, tokIf, line)
	p.chain = chain
	first.SetLine(line)
	first.SetLastLine(p.lastLine)
	return first
}

func (p *parser) forStatement(line int) ast.Stmt {
	p.next()
	names := []string{p.name()}
	switch p.tok.kind {
	case '=':
		p.next()
		s := &ast.NumberForStmt{Name: names[0]}
		s.Init = p.expr().expr
		p.expect(',')
		s.Limit = p.expr().expr
		if p.test(',') {
			s.Step = p.expr().expr
		}
		s.Stmts = p.forBody(line, names)
		return s
	case ',', tokIn:
		for p.test(',') {
			names = append(names, p.name())
		}
		p.expect(tokIn)
		s := &ast.GenericForStmt{Names: names}
		s.Exprs, _ = p.exprList()
		s.Stmts = p.forBody(line, names)
		return s
	}
	p.syntaxError("'=' or 'in' expected")
	return nil
}

func (p *parser) forBody(line int, names []string) []ast.Stmt {
	p.expect(tokDo)
	n := len(p.fn.locals)
	for _, hidden := range []string{"(for a)", "(for b)", "(for c)"} {
		p.declare(hidden)
	}
	for _, name := range names {
		p.declare(name)
	}
	stmts := p.loopBody()
	p.fn.locals = p.fn.locals[:n]
	p.match(tokEnd, tokFor, line)
	return stmts
}

func (p *parser) functionStatement(line int) ast.Stmt {
	p.next()
	nameLine := p.line
	first := p.name()
	p.resolve(first)
	name := &ast.FuncName{Func: at(&ast.IdentExpr{Value: first}, nameLine)}
	for depth := 0; p.tok.kind == '.'; {
		p.next()
		key := p.str(p.name(), p.lastLine)
		name.Func = at(&ast.AttrGetExpr{Object: name.Func, Key: key}, p.lastLine)
		depth = p.bound(depth + 1)
	}
	if p.test(':') {
		name = &ast.FuncName{Receiver: name.Func, Method: p.name()}
	}
	f := p.body(line, name.Receiver != nil)
	s := &ast.FuncDefStmt{Name: name, Func: f}
	s.SetLine(line)
	s.SetLastLine(p.lastLine)
	return s
}

func (p *parser) localStatement(line int) ast.Stmt {
	s := &ast.LocalAssignStmt{Exprs: []ast.Expr{}}
	for {
		s.Names = append(s.Names, p.name())
		p.limit(len(p.fn.locals)+len(s.Names), maxLocals, "local variables")
		if !p.test(',') {
			break
		}
	}
	if p.test('=') {
		s.Exprs, _ = p.exprList()
	}
	for _, name := range s.Names {
		p.declare(name)
	}
	return at(s, line)
}

func (p *parser) exprStatement(line int) ast.Stmt {
	first := p.primary()
	if first.call {
		return at(&ast.FuncCallStmt{Expr: first.expr}, line)
	}
	s := &ast.AssignStmt{}
	for v := first; ; v = p.primary() {
		if !v.assignable {
			p.syntaxError("syntax error")
		}
		s.Lhs = append(s.Lhs, v.expr)
		if len(s.Lhs)+p.levels > maxLevels {
			p.limit(len(s.Lhs), maxLevels-p.levels, "variables in assignment")
		}
		if !p.test(',') {
			break
		}
	}
	p.expect('=')
	s.Rhs, _ = p.exprList()
	return at(s, p.lastLine)
}

// body parses a function from its parameters on.
func (p *parser) body(line int, method bool) *ast.FunctionExpr {
	if p.funcs++; p.funcs > maxFuncs {
		p.fail(fmt.Sprintf("chunk has more than %d functions", maxFuncs), 0)
	}
	p.fn = &function{parent: p.fn, line: line}
	if method {
		p.declare("self")
	}
	p.expect('(')
	list := &ast.ParList{Names: []string{}}
	if p.tok.kind != ')' {
		for {
			if p.tok.kind == tokDots {
				p.next()
				list.HasVargs = true
				break
			}
			if p.tok.kind != tokName {
				p.syntaxError("<name> or '...' expected")
			}
			list.Names = append(list.Names, p.name())
			p.declare(list.Names[len(list.Names)-1])
			if !p.test(',') {
				break
			}
		}
	}
	if p.fn.vararg = list.HasVargs; list.HasVargs {
		p.declare("arg")
	}
	p.expect(')')
	f := &ast.FunctionExpr{ParList: list, Stmts: p.chunk()}
	f.SetLine(line)
	f.SetLastLine(p.line)
	p.match(tokEnd, tokFunction, line)
	p.fn = p.fn.parent
	return f
}

func (p *parser) exprList() (list []ast.Expr, depth int) {
	for {
		n := p.expr()
		list = append(list, n.expr)
		depth = max(depth, n.depth)
		if !p.test(',') {
			return list, depth
		}
	}
}

func (p *parser) expr() node { return p.binary(0) }

type operator struct{ left, right int }

var operators = map[kind]operator{
	'+': {6, 6}, '-': {6, 6}, '*': {7, 7}, '/': {7, 7}, '%': {7, 7}, '^': {10, 9}, tokConcat: {5, 4},
	tokNE: {3, 3}, tokEq: {3, 3}, '<': {3, 3}, tokLE: {3, 3}, '>': {3, 3}, tokGE: {3, 3}, tokAnd: {2, 2}, tokOr: {1, 1},
}

const unaryPriority = 8

// binary parses an expression whose operators bind more closely than a limit.
func (p *parser) binary(limit int) node {
	p.enter()
	var left node
	switch op := p.tok.kind; op {
	case tokNot, '-', '#':
		p.next()
		operand := p.binary(unaryPriority)
		left.depth = p.bound(operand.depth + 1)
		switch op {
		case tokNot:
			p.jump()
			left.expr = at(&ast.UnaryNotOpExpr{Expr: operand.expr}, p.lastLine)
		case '-':
			left.expr = at(&ast.UnaryMinusOpExpr{Expr: operand.expr}, p.lastLine)
			left.number = p.fold(operand.number)
		case '#':
			left.expr = at(&ast.UnaryLenOpExpr{Expr: operand.expr}, p.lastLine)
		}
	default:
		left = p.simple()
	}
	for {
		op := p.tok.kind
		o, ok := operators[op]
		if !ok || o.left <= limit {
			break
		}
		p.next()
		right := p.binary(o.right)
		e, numbers := binaryExpr(op, left.expr, right.expr, p.lastLine), left.number && right.number
		left = node{expr: e, depth: p.bound(max(left.depth, right.depth) + 1)}
		switch e.(type) {
		case *ast.ArithmeticOpExpr:
			left.number = p.fold(numbers)
		case *ast.LogicalOpExpr, *ast.RelationalOpExpr:
			p.jump()
		}
	}
	p.leave()
	return left
}

func binaryExpr(op kind, left, right ast.Expr, line int) ast.Expr {
	switch op {
	case tokConcat:
		return at(&ast.StringConcatOpExpr{Lhs: left, Rhs: right}, line)
	case tokAnd, tokOr:
		return at(&ast.LogicalOpExpr{Operator: op.text(), Lhs: left, Rhs: right}, line)
	case tokNE, tokEq, '<', tokLE, '>', tokGE:
		return at(&ast.RelationalOpExpr{Operator: op.text(), Lhs: left, Rhs: right}, line)
	}
	return at(&ast.ArithmeticOpExpr{Operator: op.text(), Lhs: left, Rhs: right}, line)
}

func (p *parser) simple() node {
	var e ast.Expr
	line := p.line
	switch p.tok.kind {
	case tokNumber:
		p.use(p.tok.str, true)
		e = at(&ast.NumberExpr{Value: p.tok.str}, line)
	case tokString:
		e = p.str(p.tok.str, line)
	case tokNil:
		e = at(&ast.NilExpr{}, line)
	case tokTrue:
		e = at(&ast.TrueExpr{}, line)
	case tokFalse:
		e = at(&ast.FalseExpr{}, line)
	case tokDots:
		if !p.fn.vararg {
			p.syntaxError("cannot use '...' outside a vararg function")
		}
		e = at(&ast.Comma3Expr{}, line)
	case '{':
		return p.table()
	case tokFunction:
		p.next()
		return node{expr: p.body(line, false)}
	default:
		return p.primary()
	}
	number := p.tok.kind == tokNumber
	p.next()
	return node{expr: e, number: number}
}

func (p *parser) primary() node {
	var n node
	line := p.line
	switch p.tok.kind {
	case '(':
		p.next()
		n = p.expr()
		p.match(')', '(', line)
		single(n.expr)
		n = node{expr: n.expr, depth: n.depth, number: n.number}
	case tokName:
		name := p.name()
		p.resolve(name)
		n = node{expr: at(&ast.IdentExpr{Value: name}, line), assignable: true}
	default:
		p.syntaxError("unexpected symbol")
	}
	for {
		line := p.line
		depth := n.depth
		switch p.tok.kind {
		case '.':
			p.next()
			key := p.str(p.name(), p.lastLine)
			n = node{expr: at(&ast.AttrGetExpr{Object: n.expr, Key: key}, p.lastLine), assignable: true}
		case '[':
			key := p.index()
			depth = max(depth, key.depth)
			n = node{expr: at(&ast.AttrGetExpr{Object: n.expr, Key: key.expr}, p.lastLine), assignable: true}
		case ':':
			p.next()
			method := p.name()
			line = p.line
			args, d := p.args()
			depth = max(depth, d)
			n = node{expr: at(&ast.FuncCallExpr{Receiver: n.expr, Method: method, Args: args}, line), call: true}
		case '(', tokString, '{':
			args, d := p.args()
			depth = max(depth, d)
			n = node{expr: at(&ast.FuncCallExpr{Func: n.expr, Args: args}, line), call: true}
		default:
			return n
		}
		n.depth = p.bound(depth + 1)
	}
}

// single makes an expression have one value. All others than calls and ... have one anyway.
func single(e ast.Expr) {
	switch e := e.(type) {
	case *ast.Comma3Expr:
		e.AdjustRet = true
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	}
}

func (p *parser) index() node {
	p.next()
	n := p.expr()
	p.expect(']')
	return n
}

func (p *parser) args() ([]ast.Expr, int) {
	line := p.line
	switch p.tok.kind {
	case '(':
		if line != p.lastLine {
			p.syntaxError("ambiguous syntax (function call x new statement)")
		}
		p.next()
		if p.test(')') {
			return []ast.Expr{}, 0
		}
		list, depth := p.exprList()
		p.match(')', '(', line)
		return list, depth
	case '{':
		t := p.table()
		return []ast.Expr{t.expr}, t.depth
	case tokString:
		s := p.str(p.tok.str, line)
		p.next()
		return []ast.Expr{s}, 0
	}
	p.syntaxError("function arguments expected")
	return nil, 0
}

func (p *parser) table() node {
	line := p.line
	p.expect('{')
	t := at(&ast.TableExpr{Fields: []*ast.Field{}}, line)
	depth := 0
	for p.tok.kind != '}' {
		f := &ast.Field{}
		switch {
		case p.tok.kind == tokName && p.peek() == '=':
			f.Key = p.str(p.name(), p.lastLine)
			p.next()
		case p.tok.kind == '[':
			key := p.index()
			f.Key, depth = key.expr, max(depth, key.depth)
			p.expect('=')
		}
		v := p.expr()
		f.Value, depth = v.expr, max(depth, v.depth)
		if f.Key != nil {
			single(f.Value) // for {1, k = f()} the compiler appends the values of f otherwise
		}
		t.Fields = append(t.Fields, f)
		if !p.test(',') && !p.test(';') {
			break
		}
	}
	p.match('}', '{', line)
	return node{expr: t, depth: p.bound(depth + 1)}
}
