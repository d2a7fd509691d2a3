package lua

import "math"

func (m *Machine) tableLibrary() map[string]Builtin {
	return map[string]Builtin{
		"concat": func(c *Call) []Value {
			t, separator := c.Table(1), c.TextOr(2, "")
			last := c.int32Or(4, m.Len(t))
			out := m.NewBuffer()
			for i := c.int32Or(3, 1); i <= last; i++ {
				m.Work(1)
				s, ok := ToText(t.At(i))
				if !ok {
					c.Fail("invalid value (%s) at index %d in table for 'concat'", TypeOf(t.At(i)), i)
				}
				out.Add(s)
				if i != last {
					out.Add(separator)
				}
			}
			return c.Return(out.Text())
		},
		"foreach": func(c *Call) []Value {
			t, f := c.Table(1), c.function(2)
			for k, v, _ := m.next(t, nil); k != nil; {
				if r := m.Call(f, k, v); r != nil {
					return c.Return(r)
				}
				var ok bool
				if k, v, ok = m.next(t, k); !ok {
					c.Fail("invalid key to 'next'")
				}
			}
			return nil
		},
		"foreachi": func(c *Call) []Value {
			t, f := c.Table(1), c.function(2)
			for i, n := 1, m.Len(t); i <= n; i++ {
				if r := m.Call(f, Int(i), t.At(i)); r != nil {
					return c.Return(r)
				}
			}
			return nil
		},
		"getn": func(c *Call) []Value { return c.Return(Int(m.Len(c.Table(1)))) },
		"insert": func(c *Call) []Value {
			t := c.Table(1)
			e := m.Len(t) + 1
			pos := e
			switch c.N() {
			case 2:
			case 3:
				pos = c.Int32(2)
				e = max(e, pos)
				m.Work(e - pos)
				for i := e; i > pos; i-- {
					m.store(t, Int(i), t.At(i-1))
					m.Work(1)
				}
			default:
				c.Fail("wrong number of arguments to 'insert'")
			}
			m.store(t, Int(pos), c.Arg(c.N()))
			return nil
		},
		"maxn": func(c *Call) []Value {
			most := 0.0
			for k := range m.All(c.Table(1)) {
				if f, ok := k.(float64); ok {
					most = max(most, f)
				}
			}
			return c.Return(Number(most))
		},
		"remove": func(c *Call) []Value {
			t := c.Table(1)
			e := m.Len(t)
			pos := c.int32Or(2, e)
			if pos < 1 || pos > e {
				return nil
			}
			v := t.At(pos)
			for ; pos < e; pos++ {
				m.Work(1)
				m.store(t, Int(pos), t.At(pos+1))
			}
			m.store(t, Int(e), nil)
			return c.Return(v)
		},
		"setn": func(c *Call) []Value {
			c.Table(1)
			c.Fail("'setn' is obsolete")
			return nil
		},
		"sort": func(c *Call) []Value {
			s := sorter{c: c, t: c.Table(1)}
			if c.Arg(2) != nil {
				s.f = c.function(2)
			}
			s.sort(1, m.Len(s.t))
			return nil
		},
	}
}

// sorter sorts as ltablib.c does, so that a comparison function sees the same pairs.
type sorter struct {
	c *Call
	t *Table
	f *Function
}

func (s *sorter) set(i int, v Value) { s.c.M.store(s.t, Int(i), v) }

func (s *sorter) less(a, b Value) bool {
	s.c.M.Work(4)
	if s.f != nil {
		return Truth(s.c.M.Call(s.f, a, b))
	}
	return s.c.less(0, a, b)
}

func (s *sorter) swap(i, j int, a, b Value) {
	s.set(i, b)
	s.set(j, a)
}

// order swaps elements i < j if they are not in order.
func (s *sorter) order(i, j int) bool {
	a, b := s.t.At(i), s.t.At(j)
	if !s.less(b, a) {
		return false
	}
	s.swap(i, j, a, b)
	return true
}

func (s *sorter) sort(l, u int) {
	for l < u {
		s.order(l, u)
		if u-l == 1 {
			return
		}
		i := (l + u) / 2
		if !s.order(l, i) {
			s.order(i, u)
		}
		if u-l == 2 {
			return
		}
		pivot := s.t.At(i)
		s.swap(i, u-1, pivot, s.t.At(u-1))
		i, j := l, u-1
		for {
			var a, b Value
			for i++; ; i++ {
				if a = s.t.At(i); !s.less(a, pivot) {
					break
				}
				if i > u {
					s.c.Fail("invalid order function for sorting")
				}
			}
			for j--; ; j-- {
				if b = s.t.At(j); !s.less(pivot, b) {
					break
				}
				if j < l {
					s.c.Fail("invalid order function for sorting")
				}
			}
			if j < i {
				break
			}
			s.swap(i, j, a, b)
		}
		s.swap(u-1, i, s.t.At(u-1), s.t.At(i))
		if i-l < u-i {
			j, i, l = l, i-1, i+1
		} else {
			j, i, u = i+1, u, i-1
		}
		s.sort(j, i)
	}
}

func (m *Machine) mathLibrary() map[string]Builtin {
	functions := map[string]Builtin{
		"random": m.mathRandom,
		"randomseed": func(c *Call) []Value { // as srand48
			m.random = uint64(uint32(int32(c.Int(1))))<<16 | 0x330E
			return nil
		},
		"ldexp": func(c *Call) []Value { return c.Return(Number(math.Ldexp(c.Num(1), c.Int32(2)))) },
		"frexp": func(c *Call) []Value {
			fraction, exponent := math.Frexp(c.Num(1))
			return c.Return(Number(fraction), Int(exponent))
		},
		"modf": func(c *Call) []Value {
			whole, fraction := math.Modf(c.Num(1))
			if math.IsInf(whole, 0) {
				fraction = math.Copysign(0, whole)
			}
			return c.Return(Number(whole), Number(fraction))
		},
		"max": func(c *Call) []Value { return extreme(c, func(a, b float64) bool { return a > b }) },
		"min": func(c *Call) []Value { return extreme(c, func(a, b float64) bool { return a < b }) },
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "sin": math.Sin,
		"log": logarithm(math.Log), "log10": logarithm(math.Log10),
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(x float64) float64 { return x / (math.Pi / 180) },
		"rad": func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		functions[name] = func(c *Call) []Value { return c.Return(Number(f(c.Num(1)))) }
	}
	fmod := func(a, b float64) float64 { return hardwareNaN(math.Mod(a, b), a, b) }
	for name, f := range map[string]func(a, b float64) float64{"atan2": math.Atan2, "fmod": fmod, "mod": fmod, "pow": math.Pow} {
		functions[name] = func(c *Call) []Value { return c.Return(Number(f(c.Num(1), c.Num(2)))) }
	}
	return functions
}

// logarithm returns a logarithm that is right for subnormal numbers, which Go's are not on amd64.
func logarithm(log func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if x > 0 && x < 0x1p-1022 {
			return log(x*0x1p52) - log(0x1p52)
		}
		return log(x)
	}
}

func extreme(c *Call, better func(a, b float64) bool) []Value {
	best := c.Num(1)
	for i := 2; i <= c.N(); i++ {
		if f := c.Num(i); better(f, best) {
			best = f
		}
	}
	return c.Return(Number(best))
}

// mathRandom is Redis' own math.random over lrand48.
func (m *Machine) mathRandom(c *Call) []Value {
	const most = 1<<31 - 1
	m.random = (m.random*0x5DEECE66D + 0xB) & (1<<48 - 1)
	r := float64(int64(m.random>>17)%most) / most
	switch c.N() {
	case 0:
		return c.Return(r)
	case 1:
		u := c.Int32(1)
		if u < 1 {
			c.ArgError(1, "interval is empty")
		}
		return c.Return(Number(float64(int64(r*float64(u))) + 1))
	case 2:
		l, u := c.Int32(1), c.Int32(2)
		if l > u {
			c.ArgError(2, "interval is empty")
		}
		return c.Return(Number(float64(int64(r*float64(int32(u-l+1)))) + float64(l)))
	}
	c.Fail("wrong number of arguments")
	return nil
}
