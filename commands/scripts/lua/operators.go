package lua

import (
	"math"
	"strings"
)

// maxMetaLoop bounds chains of __index and __newindex.
const maxMetaLoop = 100

// raise raises an error at a line.
func (c *Call) raise(line int, message string) {
	c.line = line
	c.M.Raise(message)
}

// wrong raises "attempt to <what> <name> (a <type> value)". n is the expression of the value.
func (c *Call) wrong(line int, what string, v Value, n *node) {
	kind, name := "", ""
	for n != nil && n.op == opParen {
		n = n.a
	}
	if n != nil {
		switch n.op {
		case opLocal:
			kind, name = "local", n.text
		case opUpvalue:
			kind, name = "upvalue", n.text
		case opGlobal:
			kind, name = "global", n.text
		case opMethod:
			kind, name = "method", n.text
		case opIndex:
			kind, name = "field", "?"
			if s, ok := n.b.val.(string); ok && n.b.op == opConst {
				name = s
			}
		}
	}
	if kind != "" {
		what += " " + kind + " '" + name + "' (a " + TypeOf(v) + " value)"
	} else {
		what += " a " + TypeOf(v) + " value"
	}
	c.raise(line, "attempt to "+what)
}

// callNamed calls what a script calls. n is the call.
func (m *Machine) callNamed(f Value, args []Value, weight int, n *node) []Value {
	if _, ok := f.(*Function); !ok {
		if _, ok := m.metaOf(f, "__call").(*Function); !ok {
			if n != nil && n.op == opCall {
				n = n.a
			}
			m.frame.wrong(m.frame.line, "call", f, n)
		}
	}
	return m.call(f, args, weight)
}

// index returns o[k]. n is the expression of o.
func (c *Call) index(line int, o, k Value, n *node) Value {
	for range maxMetaLoop {
		c.M.longValue(k)
		var h Value
		if t, ok := o.(*Table); ok {
			if v := t.Get(k); v != nil || t.meta == nil {
				return v
			}
			if h = c.M.metaOf(t, "__index"); h == nil {
				return nil
			}
		} else if h = c.M.metaOf(o, "__index"); h == nil {
			c.wrong(line, "index", o, n)
		}
		if f, ok := h.(*Function); ok {
			c.line = line
			return c.M.Call(f, o, k)
		}
		o, n = h, nil
	}
	c.raise(line, "loop in gettable")
	return nil
}

// setIndex does o[k] = v. n is the expression of o.
func (c *Call) setIndex(line int, o, k, v Value, n *node) {
	c.line = line
	for range maxMetaLoop {
		c.M.longValue(k)
		var h Value
		if t, ok := o.(*Table); ok {
			if t.sealed {
				c.M.Raise("Attempt to modify a readonly table")
			}
			if t.meta != nil && t.Get(k) == nil {
				h = c.M.metaOf(t, "__newindex")
			}
			if h == nil {
				c.M.Set(t, k, v)
				return
			}
		} else if h = c.M.metaOf(o, "__newindex"); h == nil {
			c.wrong(line, "index", o, n)
		}
		if f, ok := h.(*Function); ok {
			c.M.Call(f, o, k, v)
			return
		}
		o, n = h, nil
	}
	c.M.Raise("loop in settable")
}

var events = map[string]string{"+": "__add", "-": "__sub", "*": "__mul", "/": "__div", "%": "__mod", "^": "__pow"}

// arith computes with values of which at least one is no number. Without b it negates.
func (c *Call) arith(line int, op string, x, y Value, a, b *node) Value {
	f, ok1 := c.Number(x)
	g, ok2 := c.Number(y)
	event := events[op]
	if b == nil {
		event = "__unm"
	}
	switch {
	case ok1 && ok2 && b == nil:
		return Number(-f)
	case ok1 && ok2:
		return Number(operators[op](f, g))
	}
	h := c.M.metaOf(x, event)
	if h == nil {
		h = c.M.metaOf(y, event)
	}
	if h != nil {
		c.line = line
		return c.M.Call(h, x, y)
	}
	if ok1 {
		x, a = y, b
	}
	c.wrong(line, "perform arithmetic on", x, a)
	return nil
}

// concat joins values from the last on, in place.
func (c *Call) concat(line int, values []Value, nodes []*node) Value {
	for len(values) > 1 {
		n := len(values) - 1
		from := n
		size := 0
		for ; from >= 0; from-- {
			if s, ok := values[from].(string); ok {
				size += len(s)
			} else if _, ok := values[from].(float64); ok {
				size += 16
			} else {
				break
			}
		}
		if n-from < 2 { // one of the last two is neither string nor number
			x, y := values[n-1], values[n]
			h := c.M.metaOf(x, "__concat")
			if h == nil {
				h = c.M.metaOf(y, "__concat")
			}
			if h == nil {
				if n-1 == from {
					c.wrong(line, "concatenate", x, nodes[n-1])
				}
				c.wrong(line, "concatenate", y, nodes[n])
			}
			c.line = line
			values[n-1] = c.M.Call(h, x, y)
			values = values[:n]
			continue
		}
		c.M.Charge(size + StringSize)
		b := make([]byte, 0, size)
		for _, v := range values[from+1:] {
			if s, ok := v.(string); ok {
				b = append(b, s...)
			} else {
				b = AppendNumber(b, v.(float64), 14)
			}
		}
		values[from+1] = string(b)
		values = values[:from+2]
	}
	return values[0]
}

func (c *Call) length(line int, v Value, n *node) Value {
	switch v := v.(type) {
	case string:
		return Int(len(v))
	case *Table:
		return Int(c.M.Len(v))
	}
	if h := c.M.metaOf(v, "__len"); h != nil {
		c.line = line
		return c.M.Call(h, v)
	}
	c.wrong(line, "get length of", v, n)
	return nil
}

func (c *Call) equal(line int, x, y Value) bool {
	switch a := x.(type) {
	case string:
		c.M.long(a)
	case *Table:
		if b, ok := y.(*Table); ok && a != b && a.meta != nil && b.meta != nil {
			h := c.M.metaOf(a, "__eq")
			c.line = line
			return h != nil && h == c.M.metaOf(b, "__eq") && Truth(c.M.Call(h, a, b))
		}
	}
	return x == y
}

// compare compares two numbers, or two strings: below 0 if x is less, NaN is unordered. ok is false for other
// values.
func (c *Call) compare(x, y Value) (order float64, ok bool) {
	switch a := x.(type) {
	case float64:
		b, ok := y.(float64)
		switch {
		case a == b:
			return 0, ok
		case a < b:
			return -1, ok
		case a > b:
			return 1, ok
		}
		return math.NaN(), ok
	case string:
		b, ok := y.(string)
		c.M.long(a)
		return float64(strings.Compare(a, b)), ok
	}
	return 0, false
}

func (c *Call) less(line int, x, y Value) bool {
	if order, ok := c.compare(x, y); ok {
		return order < 0
	}
	return c.order(line, x, y, "__lt", true)
}

func (c *Call) lessEqual(line int, x, y Value) bool {
	if order, ok := c.compare(x, y); ok {
		return order <= 0
	}
	if h := c.M.metaOf(x, "__le"); h != nil && h == c.M.metaOf(y, "__le") {
		return c.order(line, x, y, "__le", true)
	}
	return !c.order(line, y, x, "__lt", false)
}

// order asks the metamethod that two values of one type share. inOrder tells in which order an error names
// them.
func (c *Call) order(line int, x, y Value, event string, inOrder bool) bool {
	c.line = line
	a, b := TypeOf(x), TypeOf(y)
	if h := c.M.metaOf(x, event); a == b && h != nil && h == c.M.metaOf(y, event) {
		return Truth(c.M.Call(h, x, y))
	}
	if !inOrder {
		a, b = b, a
	}
	if a == b {
		c.M.Raise("attempt to compare two " + a + " values")
	}
	c.M.Raise("attempt to compare " + a + " with " + b)
	return false
}
