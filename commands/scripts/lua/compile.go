package lua

import (
	"math"
	"slices"
)

// A function is compiled to closures of Go: one for each expression and statement.
type (
	expr  func(c *Call) Value
	exprs func(c *Call) []Value // which are read before any other function runs
	pair  func(c *Call) (Value, Value)
	stmt  func(c *Call) outcome
)

// outcome is what a statement leaves to do to those around it.
type outcome byte

const (
	doNext outcome = iota
	doBreak
	doReturn // Machine.ret has the results, or Call.tailFn what to call instead
)

// Chunk is a compiled text. It is immutable.
type Chunk struct {
	name   string // in errors
	size   int    // bytes that it takes, about
	loaded bool   // by the script, and not before
	main   *proto
}

// Size returns about how many bytes the chunk takes.
func (c *Chunk) Size() int { return c.size }

type proto struct {
	chunk     *Chunk
	params    int
	vararg    bool
	arg       bool  // the register after the parameters has the further arguments as a table
	captured  []int // parameters that functions within use
	registers int
	body      stmt
}

// Compile compiles a text. name stands for it in errors, which have the words of Lua 5.1.
func Compile(text, name string) (*Chunk, error) {
	fn, nodes, err := parse(text, name)
	if err != nil {
		return nil, err
	}
	c := &Chunk{name: name, size: protoSize + nodes*nodeSize + len(text)}
	c.main = compile(c, fn)
	return c, nil
}

// Function returns the function that runs the chunk.
func (c *Chunk) Function() *Function { return &Function{proto: c.main} }

// compiler compiles one function.
type compiler struct {
	chunk *Chunk
	fn    *function
	p     *proto
	free  int // the first register that is not in use
	depth int // expressions and blocks around the present one
}

func compile(chunk *Chunk, fn *function) *proto {
	g := &compiler{chunk: chunk, fn: fn, p: &proto{chunk: chunk, params: len(fn.params), vararg: fn.vararg}}
	for _, v := range fn.params {
		g.declare(v)
		if v.captured {
			g.p.captured = append(g.p.captured, v.reg)
		}
	}
	if fn.vararg && fn.parent != nil {
		g.p.arg = !fn.dots
		g.declare(fn.arg)
		if fn.arg.captured {
			g.p.captured = append(g.p.captured, fn.arg.reg)
		}
	}
	g.p.body = g.stmt(fn.body)
	return g.p
}

// take reserves registers.
func (g *compiler) take(n int) int {
	at := g.free
	g.free += n
	g.p.registers = max(g.p.registers, g.free)
	return at
}

func (g *compiler) declare(v *local) { v.reg = g.take(1) }

// scope runs f, and frees the registers that it takes.
func (g *compiler) scope(f func()) {
	free := g.free
	g.depth++
	f()
	g.depth--
	g.free = free
}

// weight is how much of Go's stack a call takes from here.
func (g *compiler) weight() int { return g.depth + 4 }

func (g *compiler) stmt(n *node) (s stmt) {
	if n.op == opLocals || n.op == opLocalFunction { // whose variables outlive it
		return g.locals(n)
	}
	g.scope(func() { s = g.statement(n) })
	return s
}

func (g *compiler) statement(n *node) stmt {
	switch n.op {
	case opBlock:
		return g.block(n)
	case opCall, opMethod:
		call := g.call(n)
		return func(c *Call) outcome {
			call(c)
			return doNext
		}
	case opAssign:
		return g.assign(n)
	case opWhile:
		cond, body := g.expr(n.a), g.stmt(n.b)
		return loop(func(c *Call) bool { return Truth(cond(c)) }, body, func(*Call) bool { return false })
	case opRepeat:
		body := g.block(n.b) // its variables are those of the condition too
		until := g.expr(n.a)
		return loop(func(*Call) bool { return true }, body, func(c *Call) bool { return Truth(until(c)) })
	case opIf:
		return g.conditions(n)
	case opFor:
		return g.forNumbers(n)
	case opForIn:
		return g.forIn(n)
	case opReturn:
		return g.returns(n)
	case opBreak:
		return func(*Call) outcome { return doBreak }
	}
	panic("lua: unknown statement")
}

func (g *compiler) block(n *node) stmt {
	list := make([]stmt, len(n.list))
	for i, s := range n.list {
		list[i] = g.stmt(s)
	}
	if len(list) == 1 {
		return list[0]
	}
	return func(c *Call) outcome {
		for _, s := range list {
			if o := s(c); o != doNext {
				return o
			}
		}
		return doNext
	}
}

// loop runs a body until a condition before it is false, or one after it true.
func loop(before func(*Call) bool, body stmt, after func(*Call) bool) stmt {
	return func(c *Call) outcome {
		for before(c) {
			c.M.Work(4)
			if o := body(c); o == doBreak {
				break
			} else if o != doNext {
				return o
			}
			if after(c) {
				break
			}
		}
		return doNext
	}
}

func (g *compiler) conditions(n *node) stmt {
	conds, blocks := g.exprs(n.more), make([]stmt, len(n.list))
	for i, b := range n.list {
		blocks[i] = g.stmt(b)
	}
	return func(c *Call) outcome {
		for i, cond := range conds {
			if Truth(cond(c)) {
				return blocks[i](c)
			}
		}
		if len(blocks) > len(conds) {
			return blocks[len(conds)](c)
		}
		return doNext
	}
}

// put returns a function that gives a new variable its value.
func put(v *local) func(c *Call, x Value) {
	i := v.reg
	if v.captured {
		return func(c *Call, x Value) {
			c.M.Charge(cellSize)
			c.regs[i] = &cell{v: x}
		}
	}
	return func(c *Call, x Value) { c.regs[i] = x }
}

func (g *compiler) locals(n *node) stmt {
	if n.op == opLocalFunction {
		v := n.vars[0]
		g.declare(v)
		set, f := put(v), g.expr(n.a)
		return func(c *Call) outcome {
			set(c, nil)
			f := f(c)
			if v.captured {
				c.regs[v.reg].(*cell).v = f
			} else {
				c.regs[v.reg] = f
			}
			return doNext
		}
	}
	first := g.free
	values := g.into(n.list, len(n.vars))
	g.free = first
	sets := make([]func(*Call, Value), len(n.vars))
	for i, v := range n.vars {
		g.declare(v)
		sets[i] = put(v)
	}
	return func(c *Call) outcome {
		values(c)
		for i, set := range sets {
			set(c, c.regs[first+i])
		}
		return doNext
	}
}

// into returns a function that gives the registers from the first free one on the values of a list: n of
// them.
func (g *compiler) into(list []*node, n int) func(c *Call) {
	base := g.take(max(n, len(list)))
	fixed, more := g.list(list)
	return func(c *Call) {
		for i, e := range fixed {
			c.regs[base+i] = e(c)
		}
		at := len(fixed)
		if more != nil && at < n {
			at += copy(c.regs[base+at:base+n], more(c))
		} else if more != nil {
			more(c)
		}
		for ; at < n; at++ {
			c.regs[base+at] = nil
		}
	}
}

// list compiles a list of expressions; more has the values of the last one if it may have several.
func (g *compiler) list(list []*node) (fixed []expr, more exprs) {
	n := len(list) - 1
	if n < 0 || !several(list[n]) {
		return g.exprs(list), nil
	}
	fixed = g.exprs(list[:n])
	if list[n].op == opVararg {
		return fixed, func(c *Call) []Value { return c.varargs }
	}
	return fixed, g.call(list[n])
}

// several reports whether an expression may have other than one value.
func several(n *node) bool { return n.op == opCall || n.op == opMethod || n.op == opVararg }

func (g *compiler) exprs(list []*node) []expr {
	out := make([]expr, len(list))
	for i, n := range list {
		out[i] = g.expr(n)
	}
	return out
}

func (g *compiler) assign(n *node) stmt {
	if len(n.more) == 1 && len(n.list) == 1 {
		return g.assignOne(n.more[0], n.list[0], n.line)
	}
	// The objects and keys of all targets come first, then all values; the last target is assigned first, as
	// in C.
	sets := make([]func(c *Call, v Value), len(n.more))
	prepare := make([]func(c *Call), 0, len(n.more))
	for i, t := range n.more {
		if t.op != opIndex {
			sets[i] = g.store(t, n.line)
			continue
		}
		at, both, line := g.take(2), g.both(t.a, t.b), n.line
		prepare = append(prepare, func(c *Call) { c.regs[at], c.regs[at+1] = both(c) })
		sets[i] = func(c *Call, v Value) { c.setIndex(line, c.regs[at], c.regs[at+1], v, t.a) }
	}
	base := g.free
	values := g.into(n.list, len(sets))
	return func(c *Call) outcome {
		for _, f := range prepare {
			f(c)
		}
		values(c)
		for i := len(sets) - 1; i >= 0; i-- {
			sets[i](c, c.regs[base+i])
		}
		return doNext
	}
}

func (g *compiler) assignOne(target, value *node, line int) stmt {
	if target.op != opIndex {
		e, set := g.expr(value), g.store(target, line)
		return func(c *Call) outcome {
			set(c, e(c))
			return doNext
		}
	}
	object := target.a
	if simple(value) || late(object) && late(target.b) {
		both, e, first := g.both(object, target.b), g.expr(value), !simple(value)
		return func(c *Call) outcome {
			var v Value
			if first {
				v = e(c)
			}
			o, k := both(c)
			if !first {
				v = e(c)
			}
			c.setIndex(line, o, k, v, object)
			return doNext
		}
	}
	at, both, e := g.take(2), g.both(object, target.b), g.expr(value)
	return func(c *Call) outcome {
		c.regs[at], c.regs[at+1] = both(c)
		v := e(c)
		c.setIndex(line, c.regs[at], c.regs[at+1], v, object)
		return doNext
	}
}

// store returns a function that sets a variable.
func (g *compiler) store(n *node, line int) func(c *Call, v Value) {
	switch n.op {
	case opLocal:
		i := n.vars[0].reg
		if n.vars[0].captured {
			return func(c *Call, v Value) { c.regs[i].(*cell).v = v }
		}
		return func(c *Call, v Value) { c.regs[i] = v }
	case opUpvalue:
		i := slices.Index(g.fn.upvalues, n.vars[0])
		return func(c *Call, v Value) { c.fn.up[i].v = v }
	}
	var key Value = n.text
	return func(c *Call, v Value) { c.setIndex(line, c.M.Globals, key, v, nil) }
}

func (g *compiler) forNumbers(n *node) stmt {
	line := n.line
	if len(n.list) == 2 {
		n.list = append(n.list, &node{op: opConst, val: 1.0})
	}
	base := g.free
	control := g.into(n.list, 3)
	g.declare(n.vars[3])
	set, body := put(n.vars[3]), g.stmt(n.b)
	return func(c *Call) outcome {
		control(c)
		var f [3]float64
		for i, what := range []string{"initial value", "limit", "step"} {
			var ok bool
			if f[i], ok = c.Number(c.regs[base+i]); !ok {
				c.raise(line, "'for' "+what+" must be a number")
			}
		}
		// As in C the step is subtracted first, then added: sums that are not exact show it, and infinite
		// steps end.
		for i := f[0] - f[2] + f[2]; f[2] > 0 && i <= f[1] || f[2] <= 0 && i >= f[1]; i += f[2] {
			c.M.Work(4)
			set(c, Number(i))
			if o := body(c); o == doBreak {
				break
			} else if o != doNext {
				return o
			}
		}
		return doNext
	}
}

func (g *compiler) forIn(n *node) stmt {
	line, weight := n.line, g.weight()
	base := g.free
	control := g.into(n.list, 3)
	g.free = base + 3
	args := g.take(2)
	g.free = args
	sets := make([]func(*Call, Value), len(n.vars)-3)
	for i, v := range n.vars[3:] {
		g.declare(v)
		sets[i] = put(v)
	}
	g.take(2)
	body := g.stmt(n.b)
	return func(c *Call) outcome {
		control(c)
		for {
			c.M.Work(8)
			var results []Value
			if t, ok := c.regs[base+1].(*Table); ok && c.regs[base] == c.M.next1 { // pairs, often
				k, v, ok := c.M.next(t, c.regs[base+2])
				if !ok {
					c.raise(line, "invalid key to 'next'")
				}
				c.M.ret = append(c.M.ret[:0], k, v)
				results = c.M.ret
			} else {
				c.line = line
				c.regs[args], c.regs[args+1] = c.regs[base+1], c.regs[base+2]
				c.M.deeper()
				results = c.M.callNamed(c.regs[base], c.regs[args:args+2], weight, nil)
				c.M.depth--
			}
			if len(results) == 0 || results[0] == nil {
				return doNext
			}
			c.regs[base+2] = results[0]
			for i, set := range sets {
				if i < len(results) {
					set(c, results[i])
				} else {
					set(c, nil)
				}
			}
			if o := body(c); o == doBreak {
				return doNext
			} else if o != doNext {
				return o
			}
		}
	}
}

func (g *compiler) returns(n *node) stmt {
	if len(n.list) == 1 {
		e := n.list[0]
		if e.op == opCall || e.op == opMethod {
			return g.tail(e)
		}
		if e.op != opVararg {
			one := g.expr(e)
			return func(c *Call) outcome {
				v := one(c)
				c.M.ret = append(c.M.ret[:0], v)
				return doReturn
			}
		}
	}
	base := g.take(len(n.list))
	fixed, more := g.list(n.list)
	return func(c *Call) outcome {
		for i, e := range fixed {
			c.regs[base+i] = e(c)
		}
		var rest []Value
		if more != nil {
			rest = more(c)
		}
		c.M.Return(c.regs[base:base+len(fixed)], rest)
		return doReturn
	}
}

// Return makes values the results of the running function.
func (m *Machine) Return(values, more []Value) []Value {
	if len(values)+len(more) > 16 {
		m.Charge(slotSize * (len(values) + len(more)))
	}
	if len(values) > 0 && len(more) > 0 { // more may be the results of another function, which are where these go
		m.ret = append(append(make([]Value, 0, len(values)+len(more)), values...), more...)
	} else {
		m.ret = append(append(m.ret[:0], values...), more...)
	}
	return m.ret
}

// tail compiles a call whose results are those of the function.
func (g *compiler) tail(n *node) stmt {
	prepare := g.prepare(n)
	line, weight := n.line, g.weight()
	return func(c *Call) outcome {
		f, args := prepare(c)
		c.line = line
		if fn, ok := f.(*Function); ok && fn.proto != nil {
			c.M.Work(4 + len(args))
			c.tailFn, c.tailArgs = fn, args
			return doReturn
		}
		r := c.M.callNamed(f, args, weight, n)
		c.M.Return(nil, r)
		return doReturn
	}
}

// call compiles a call.
func (g *compiler) call(n *node) exprs {
	prepare := g.prepare(n)
	line, weight := n.line, g.weight()
	return func(c *Call) []Value {
		f, args := prepare(c)
		c.line = line
		return c.M.callNamed(f, args, weight, n)
	}
}

// prepare returns a function that evaluates what a call calls, and its arguments.
func (g *compiler) prepare(n *node) func(c *Call) (Value, []Value) {
	self := 0
	if n.op == opMethod {
		self = 1
	}
	base := g.take(1 + self + len(n.list))
	object, key, line := g.expr(n.a), Value(n.text), n.line
	fixed, more := g.list(n.list)
	first := base + 1 + self
	end := first + len(fixed)
	return func(c *Call) (Value, []Value) {
		if v := object(c); self == 0 {
			c.regs[base] = v
		} else {
			c.regs[base+1] = v
			c.regs[base] = c.index(line, v, key, n.a)
		}
		for i, e := range fixed {
			c.regs[first+i] = e(c)
		}
		args := c.regs[base+1 : end : end]
		if more != nil {
			rest := more(c)
			c.M.Charge(slotSize * len(rest))
			args = append(args, rest...)
		}
		return c.regs[base], args
	}
}

// simple reports whether an expression has its value without running other code.
func simple(n *node) bool {
	return n.op == opConst || n.op == opLocal || n.op == opUpvalue || n.op == opParen && simple(n.a)
}

// late reports whether an operation reads an operand after it has evaluated the others, as in C.
func late(n *node) bool { return n.op == opConst || n.op == opLocal }

// both compiles two operands. While the second one runs other code, the first one is in a register.
func (g *compiler) both(a, b *node) pair {
	x := g.expr(a)
	if b.op == opConst {
		k := b.val
		return func(c *Call) (Value, Value) { return x(c), k }
	}
	if late(a) {
		y := g.expr(b)
		return func(c *Call) (Value, Value) {
			v := y(c)
			return x(c), v
		}
	}
	if simple(b) {
		y := g.expr(b)
		return func(c *Call) (Value, Value) { return x(c), y(c) }
	}
	at := g.take(1)
	y := g.expr(b)
	return func(c *Call) (Value, Value) {
		c.regs[at] = x(c)
		v := y(c)
		return c.regs[at], v
	}
}

func (g *compiler) expr(n *node) (e expr) {
	g.scope(func() { e = g.expression(n) })
	return e
}

func (g *compiler) expression(n *node) expr {
	line := n.line
	switch n.op {
	case opConst:
		v := n.val
		return func(*Call) Value { return v }
	case opVararg:
		return func(c *Call) Value { return first(c.varargs) }
	case opLocal:
		i := n.vars[0].reg
		if n.vars[0].captured {
			return func(c *Call) Value { return c.regs[i].(*cell).v }
		}
		return func(c *Call) Value { return c.regs[i] }
	case opUpvalue:
		i := slices.Index(g.fn.upvalues, n.vars[0])
		return func(c *Call) Value { return c.fn.up[i].v }
	case opGlobal:
		var key Value = n.text
		return func(c *Call) Value { return c.index(line, c.M.Globals, key, nil) }
	case opIndex:
		both := g.both(n.a, n.b)
		return func(c *Call) Value {
			o, k := both(c)
			return c.index(line, o, k, n.a)
		}
	case opCall, opMethod:
		call := g.call(n)
		return func(c *Call) Value { return first(call(c)) }
	case opParen:
		return g.expr(n.a)
	case opFunction:
		return g.closure(n.fn)
	case opTable:
		return g.table(n)
	case opConcat:
		base := g.free
		values := g.into(n.list, len(n.list))
		return func(c *Call) Value {
			values(c)
			return c.concat(line, c.regs[base:base+len(n.list)], n.list)
		}
	case opUnary:
		return g.unary(n)
	}
	return g.binary(n)
}

func first(list []Value) Value {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (g *compiler) unary(n *node) expr {
	a, line := g.expr(n.a), n.line
	switch n.text {
	case "not":
		return func(c *Call) Value { return !Truth(a(c)) }
	case "-":
		return func(c *Call) Value {
			v := a(c)
			if f, ok := v.(float64); ok {
				return Number(-f)
			}
			return c.arith(line, "-", v, v, n.a, nil)
		}
	}
	return func(c *Call) Value { return c.length(line, a(c), n.a) }
}

func (g *compiler) binary(n *node) expr {
	line := n.line
	switch n.text {
	case "and", "or":
		a, b, and := g.expr(n.a), g.expr(n.b), n.text == "and"
		return func(c *Call) Value {
			if v := a(c); Truth(v) != and {
				return v
			}
			return b(c)
		}
	}
	both := g.both(n.a, n.b)
	switch op := n.text; op {
	case "==":
		return func(c *Call) Value {
			x, y := both(c)
			return c.equal(line, x, y)
		}
	case "~=":
		return func(c *Call) Value {
			x, y := both(c)
			return !c.equal(line, x, y)
		}
	case "<", ">":
		return func(c *Call) Value {
			x, y := both(c)
			if op == ">" {
				x, y = y, x
			}
			return c.less(line, x, y)
		}
	case "<=", ">=":
		return func(c *Call) Value {
			x, y := both(c)
			if op == ">=" {
				x, y = y, x
			}
			return c.lessEqual(line, x, y)
		}
	default:
		compute := operators[op]
		return func(c *Call) Value {
			x, y := both(c)
			if a, ok := x.(float64); ok {
				if b, ok := y.(float64); ok {
					return Number(compute(a, b))
				}
			}
			return c.arith(line, op, x, y, n.a, n.b)
		}
	}
}

var operators = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b },
	"-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b },
	"/": func(a, b float64) float64 { return a / b },
	"^": math.Pow,
	"%": func(a, b float64) float64 { return hardwareNaN(a-math.Floor(a/b)*b, a, b) },
}

// hardwareNaN returns f, the result for a and b, with the sign that a new NaN has on amd64: scripts can see
// it.
func hardwareNaN(f, a, b float64) float64 {
	if math.IsNaN(f) && !math.IsNaN(a) && !math.IsNaN(b) {
		return math.Copysign(f, -1)
	}
	return f
}

func (g *compiler) closure(fn *function) expr {
	p := compile(g.chunk, fn)
	type source struct {
		i     int
		outer bool // an upvalue of this function
	}
	from := make([]source, len(fn.upvalues))
	for i, v := range fn.upvalues {
		if from[i] = (source{v.reg, false}); v.fn != g.fn {
			from[i] = source{slices.Index(g.fn.upvalues, v), true}
		}
	}
	return func(c *Call) Value {
		c.M.Charge(functionSize + 8*len(from))
		f := &Function{proto: p}
		if len(from) > 0 {
			f.up = make([]*cell, len(from))
		}
		for i, s := range from {
			if s.outer {
				f.up[i] = c.fn.up[s.i]
			} else {
				f.up[i] = c.regs[s.i].(*cell)
			}
		}
		return f
	}
}

func (g *compiler) table(n *node) expr {
	at, line := g.take(1), n.line
	positional := 0
	type field struct {
		both  pair
		value expr
	}
	fields := make([]field, 0, len(n.list))
	var more exprs
	for i, v := range n.list {
		if key := n.more[i]; key != nil {
			fields = append(fields, field{both: g.both(key, v)})
			continue
		}
		if i == len(n.list)-1 && several(v) {
			_, more = g.list(n.list[i:])
			break
		}
		positional++
		fields = append(fields, field{value: g.expr(v)})
	}
	return func(c *Call) Value {
		t := c.M.NewTable(positional)
		c.regs[at] = t
		i := 0
		for _, f := range fields {
			c.line = line
			if f.value != nil {
				v := f.value(c)
				i++
				c.M.SetElement(t, i, v)
				continue
			}
			k, v := f.both(c)
			c.M.Set(t, k, v)
		}
		if more != nil {
			for _, v := range more(c) {
				i++
				c.M.SetElement(t, i, v)
			}
		}
		return t
	}
}

// SetElement does t[i] = v for an element that follows others. The array has room for nil too.
func (m *Machine) SetElement(t *Table, i int, v Value) {
	if v == nil && i == t.array.len()+1 {
		m.push(t, false)
		*t.array.at(i - 1) = nil
		return
	}
	m.Set(t, Int(i), v)
}
