package lua

import "iter"

// Coroutine is a function that can stop in its midst. Each has a stack of Go of its own from its first resume
// on.
type Coroutine struct {
	fn     *Function
	root   *Call
	frame  *Call
	in     []Value // arguments of the last resume
	yield  func([]Value) bool
	next   func() ([]Value, bool)
	stop   func()
	failed *thrown
	caller *Coroutine
	status string
	base   int // depth at which it runs
	stack  int // that it has taken
	mark   uint32
}

// killed is the panic that ends a coroutine after its script.
type killed struct{}

func (m *Machine) newCoroutine(c *Call) *Coroutine {
	fn, ok := c.Arg(1).(*Function)
	if !ok || fn.proto == nil {
		c.ArgError(1, "Lua function expected")
	}
	m.Charge(threadSize)
	co := &Coroutine{fn: fn, root: &Call{M: m}, status: "suspended"}
	co.frame = co.root
	return co
}

// resume runs a coroutine until it yields or ends. failed is the error that it has raised.
func (m *Machine) resume(co *Coroutine, args []Value) (out []Value, failed *thrown) {
	m.Work(64)
	m.deeper()
	m.Charge(slotSize * len(args))
	co.in = append([]Value(nil), args...)
	if co.next == nil {
		co.begin(m)
	}
	caller, frame, base := m.thread, m.frame, m.stack
	if caller != nil {
		caller.status = "normal"
	}
	co.caller, co.status, co.base, co.frame.M = caller, "running", m.depth, m
	m.thread, m.frame = co, co.frame
	m.stack += co.stack
	out, alive := co.next()
	co.frame, co.stack = m.frame, max(m.stack-base, 0)
	m.thread, m.frame, m.stack, m.depth = caller, frame, base, co.base-1
	if caller != nil {
		caller.status = "running"
	}
	if !alive {
		co.status = "dead"
		delete(m.threads, co)
		out, failed = m.ret, co.failed
		co.root, co.frame, co.fn, co.stack = nil, nil, nil, 0
	} else {
		co.status = "suspended"
	}
	co.in = nil
	return out, failed
}

// begin makes the stack of a coroutine.
func (co *Coroutine) begin(m *Machine) {
	co.next, co.stop = iter.Pull(func(yield func([]Value) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(r)
				}
			}
		}()
		co.yield = yield
		co.failed = m.protect(func() { m.ret = m.call(co.fn, co.in, 16) })
	})
	if m.threads == nil {
		m.threads = map[*Coroutine]struct{}{}
	}
	m.threads[co] = struct{}{}
}

// wait stops the running coroutine until it is resumed, and returns the arguments of that.
func (m *Machine) wait(c *Call) []Value {
	co := m.thread
	if co == nil || m.depth != co.base {
		Throw("attempt to yield across metamethod/C-call boundary")
	}
	if !co.yield(c.args) {
		panic(killed{})
	}
	return co.in
}

func (m *Machine) coroutineLibrary() map[string]Builtin {
	check := func(c *Call) *Coroutine {
		co, ok := c.Arg(1).(*Coroutine)
		if !ok {
			c.ArgError(1, "coroutine expected")
		}
		return co
	}
	return map[string]Builtin{
		"create": func(c *Call) []Value { return c.Return(m.newCoroutine(c)) },
		"resume": func(c *Call) []Value {
			co := check(c)
			if co.status != "suspended" {
				return c.Return(false, "cannot resume "+co.status+" coroutine")
			}
			out, failed := m.resume(co, c.args[1:])
			if failed != nil {
				return c.Return(false, failed.v)
			}
			return c.prefix(true, out)
		},
		"running": func(c *Call) []Value {
			if m.thread == nil {
				return c.Return(nil)
			}
			return c.Return(m.thread)
		},
		"status": func(c *Call) []Value { return c.Return(check(c).status) },
		"wrap": func(c *Call) []Value {
			co := m.newCoroutine(c)
			m.Charge(functionSize)
			return c.Return(&Function{name: "wrap", holds: []Value{co}, builtin: func(c *Call) []Value {
				if co.status != "suspended" {
					c.Fail("cannot resume %s coroutine", co.status)
				}
				out, failed := m.resume(co, c.args)
				if failed == nil {
					return out
				}
				v := failed.v
				if s, ok := v.(string); ok {
					m.Charge(2*len(s) + StringSize)
					v = m.where(1) + s
				}
				Throw(v)
				return nil
			}})
		},
		"yield": func(c *Call) []Value { return m.wait(c) },
	}
}
