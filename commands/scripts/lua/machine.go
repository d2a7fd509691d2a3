package lua

import "strconv"

// Bounds that a script cannot exceed, whatever its limits.
const (
	maxDepth  = 198     // nested calls by way of Go: pcall, metamethods, coroutines
	maxStack  = 200_000 // nested calls of functions, and the expressions and blocks around them, in all coroutines
	stackSize = 256     // bytes of Go's stack for each of these
	MaxValues = 8_000   // arguments or results of a function in Go
	turnFuel  = 20_000  // steps between two questions to the Interrupt
	longText  = 512     // bytes from which comparing and hashing a string counts as work
)

// Interrupt ends a script from outside.
type Interrupt interface {
	// Stop is asked every some thousand steps and within builtins that can run long, by the goroutine of Run
	// or that of a coroutine. A non-nil error ends the script, and no pcall catches it.
	Stop() error

	// Holds is told how many bytes the values may take until it is told again, once they have taken a
	// mebibyte. A non-nil error ends the script likewise.
	Holds(bytes int64) error
}

// Machine runs functions. It serves one goroutine at a time.
type Machine struct {
	Globals *Table

	memory    int64  // bytes that values may take
	random    uint64 // state of math.random
	interrupt Interrupt

	stop    error // ends the script past its pcalls
	fuel    int   // steps until check
	used    int64 // bytes allocated since the last walk, plus what that found alive
	allowed int64 // used above this causes a walk
	hidden  int64 // bytes of buffers
	told    int64 // bytes that the Interrupt knows of
	held    []Value
	epoch   uint32

	frame   *Call // of the running function
	root    *Call
	depth   int
	stack   int
	ret     []Value // results of the last function
	thread  *Coroutine
	threads map[*Coroutine]struct{} // those that have begun and not ended

	stringMeta *Table
	next1      *Function
	sources    map[string]string // names of chunks that the script has loaded, by what errors call them
}

// Call is one call of a function; a Builtin reads its arguments there.
type Call struct {
	M             *Machine
	parent, child *Call // child is kept for the next call
	fn            *Function
	regs, buf     []Value // local variables and what expressions need, and the array behind them
	args          []Value // of a builtin
	varargs       []Value
	line          int
	weight        int
	tails         int // calls in whose place this one is
	tailFn        *Function
	tailArgs      []Value
}

// thrown is the panic of an error in Lua.
type thrown struct{ v Value }

// ended is the panic that ends a script past its pcalls; Machine.stop has the error.
type ended struct{}

// End ends the script: Run returns err.
func (m *Machine) End(err error) {
	if m.stop == nil {
		m.stop = err
	}
	panic(ended{})
}

// Work counts steps, each about as long as one operation, and asks the Interrupt now and then.
func (m *Machine) Work(steps int) {
	if m.fuel -= steps; m.fuel < 0 {
		m.check()
	}
}

func (m *Machine) check() {
	if m.stop != nil {
		panic(ended{})
	}
	m.fuel = turnFuel
	if m.interrupt != nil {
		if err := m.interrupt.Stop(); err != nil {
			m.End(err)
		}
	}
}

// long counts the work of comparing or hashing a string.
func (m *Machine) long(s string) {
	if len(s) > longText {
		m.Work(len(s) >> 6)
	}
}

// longValue is long for what may be a string.
func (m *Machine) longValue(v Value) {
	if s, ok := v.(string); ok {
		m.long(s)
	}
}

// Throw raises a value as an error.
func Throw(v Value) { panic(&thrown{v}) }

// Raise raises an error at the place where the running function is, if it is one in Lua.
func (m *Machine) Raise(message string) { Throw(m.frame.position() + message) }

// where returns the place of the function at a level: 0 is the one that runs, 1 its caller.
func (m *Machine) where(level int) string {
	f := m.frame
	for ; f != nil && level > 0; level-- {
		if f.tails > 0 {
			if level <= f.tails {
				return ""
			}
			level -= f.tails
		}
		f = f.parent
	}
	return f.position()
}

// position returns the chunk and line of a function in Lua, "" of one in Go.
func (c *Call) position() string {
	if c == nil || c.fn == nil || c.fn.proto == nil {
		return ""
	}
	return c.fn.proto.chunk.name + ":" + strconv.Itoa(c.line) + ": "
}

// Place returns the source and the line of the function that raised an error, or of its caller if that is in
// Go. ok is false if there was none.
func (m *Machine) Place() (source string, line int, ok bool) {
	f := m.frame
	if f.fn != nil && f.fn.proto == nil {
		f = f.parent
	}
	if f.fn == nil {
		return "", 0, false
	}
	if f.fn.proto == nil {
		return "=[C]", -1, true
	}
	name := f.fn.proto.chunk.name
	if source, ok = m.sources[name]; !ok {
		source = "@" + name
	}
	return source, f.line, true
}

// enter begins a call. weight is how much of Go's stack it takes.
func (m *Machine) enter(fn *Function, weight int) *Call {
	f := m.frame
	if m.stack += weight; m.stack > maxStack {
		m.stack -= weight
		m.Raise("stack overflow")
	}
	c := f.child
	if c == nil {
		m.Charge(frameSize)
		c = &Call{M: m, parent: f}
		f.child = c
	}
	c.fn, c.weight, c.tails = fn, weight, 0
	m.frame = c
	return c
}

// leave ends a call.
func (m *Machine) leave(c *Call) {
	clear(c.regs)
	c.fn, c.regs, c.args, c.varargs, c.tailFn, c.tailArgs = nil, nil, nil, nil, nil, nil
	m.stack -= c.weight
	m.frame = c.parent
}

// call calls a value. weight is how deep in expressions and blocks of its function the call is.
func (m *Machine) call(f Value, args []Value, weight int) []Value {
	fn, ok := f.(*Function)
	if !ok {
		fn, args = m.callable(f, args)
	}
	m.Work(4 + len(args))
	if fn.builtin == nil {
		return m.run(m.enter(fn, weight), args)
	}
	c := m.enter(fn, weight)
	c.args = args
	if m.used += 32; m.used > m.allowed {
		m.measure(0)
	}
	r := fn.builtin(c)
	m.leave(c)
	return r
}

// callable returns the function that a call of another value runs, and its arguments.
func (m *Machine) callable(f Value, args []Value) (*Function, []Value) {
	fn, ok := m.metaOf(f, "__call").(*Function)
	if !ok {
		m.Raise("attempt to call a " + TypeOf(f) + " value")
	}
	m.Charge(slotSize * (len(args) + 1))
	return fn, append([]Value{f}, args...)
}

// run runs a function in Lua and those that it ends with.
func (m *Machine) run(c *Call, args []Value) (results []Value) {
	for {
		p := c.fn.proto
		c.begin(p, args)
		if m.ret = m.ret[:0]; cap(m.ret) > 256 {
			m.ret = nil
		}
		if p.body(c) == doReturn {
			results = m.ret
		}
		if c.tailFn == nil {
			m.leave(c)
			return results
		}
		args, results = c.tailArgs, nil
		c.fn, c.tailFn, c.tailArgs = c.tailFn, nil, nil
		c.tails++
	}
}

// begin gives a function its registers, the first of which are its arguments.
func (c *Call) begin(p *proto, args []Value) {
	c.varargs = nil
	if p.vararg && len(args) > p.params {
		c.M.Charge(slotSize * (len(args) - p.params))
		c.varargs = append([]Value(nil), args[p.params:]...)
	}
	if cap(c.buf) < p.registers {
		c.M.Charge(slotSize * (p.registers + 8))
		c.buf = append(make([]Value, 0, p.registers+8), args[:min(len(args), p.params)]...)
	} else {
		copy(c.buf[:p.params], args)
	}
	old := len(c.regs)
	c.regs = c.buf[:p.registers]
	if n := min(len(args), p.params); old > 0 {
		clear(c.buf[n:max(old, p.registers)])
	}
	if p.arg {
		t := c.M.NewTable(len(c.varargs))
		for i, v := range c.varargs {
			c.M.SetElement(t, i+1, v)
		}
		c.M.Set(t, "n", Int(len(c.varargs)))
		c.regs[p.params] = t
	}
	for _, i := range p.captured {
		c.M.Charge(cellSize)
		c.regs[i] = &cell{v: c.regs[i]}
	}
}

// Call calls a function from Go, and returns its first result.
func (m *Machine) Call(f Value, args ...Value) Value {
	if r := m.CallAll(f, args); len(r) > 0 {
		return r[0]
	}
	return nil
}

// CallAll calls a function from Go.
func (m *Machine) CallAll(f Value, args []Value) []Value {
	m.Work(8)
	m.deeper()
	r := m.call(f, args, 24)
	m.depth--
	return r
}

func (m *Machine) deeper() {
	if m.depth++; m.depth > maxDepth {
		m.depth--
		m.Raise("C stack overflow")
	}
}

// protect calls f, and returns the error that it raises. What ends a script passes through.
func (m *Machine) protect(f func()) (failed *thrown) {
	frame, depth, stack, thread, hidden, held := m.frame, m.depth, m.stack, m.thread, m.hidden, len(m.held)
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		e, ok := r.(*thrown)
		if !ok || m.stop != nil {
			panic(r)
		}
		m.unwind(frame)
		m.depth, m.stack, m.thread, m.hidden = depth, stack, thread, hidden
		m.Release(held)
		if s, ok := e.v.(string); ok { // the raiser has not charged it
			m.Charge(StringSize + len(s))
		}
		failed = e
	}()
	f()
	return nil
}

// unwind leaves all calls within one.
func (m *Machine) unwind(to *Call) {
	for c := to.child; c != nil && (c.fn != nil || c.regs != nil); c = c.child {
		clear(c.regs)
		c.fn, c.regs, c.args, c.varargs, c.tailFn, c.tailArgs = nil, nil, nil, nil, nil, nil
	}
	m.frame = to
}

// Hold makes a value that a builtin is about to fill count as the script's, until Release of what Hold
// returns.
func (m *Machine) Hold(v Value) int {
	m.held = append(m.held, v)
	return len(m.held) - 1
}

// Release ends the Hold that returned n, and later ones.
func (m *Machine) Release(n int) {
	clear(m.held[n:])
	m.held = m.held[:n]
}

// metaOf returns a metamethod of a value, nil if it has none.
func (m *Machine) metaOf(v Value, event string) Value {
	if t := m.metatable(v); t != nil {
		if i := t.find(event); i >= 0 {
			return t.entries.at(i).v
		}
	}
	return nil
}

func (m *Machine) metatable(v Value) *Table {
	switch v := v.(type) {
	case *Table:
		return v.meta
	case string:
		return m.stringMeta
	}
	return nil
}
