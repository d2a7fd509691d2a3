package scripts

import (
	lua "github.com/yuin/gopher-lua"
)

func (m *machine) tableFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"concat":   m.tableConcat,
		"foreach":  m.tableForeach,
		"foreachi": m.tableForeachi,
		"getn":     func(L *lua.LState) int { L.Push(lua.LNumber(m.length(L, checkTable(L, 1)))); return 1 },
		"insert":   m.tableInsert,
		"maxn":     m.tableMaxN,
		"remove":   m.tableRemove,
		"setn":     func(L *lua.LState) int { checkTable(L, 1); fail(L, "'setn' is obsolete"); return 0 },
		"sort":     m.tableSort,
	}
}

func (m *machine) tableConcat(L *lua.LState) int {
	t := checkTable(L, 1)
	separator := ""
	if !absent(L, 2) {
		separator = checkString(L, 2)
	}
	i, last := 1, 0
	if !absent(L, 3) {
		i = checkInt(L, 3)
	}
	if absent(L, 4) {
		last = m.length(L, t)
	} else {
		last = checkInt(L, 4)
	}
	out := buffer{m: m, L: L}
	for ; i <= last; i++ {
		m.Work(L, 1)
		v := m.rawGet(L, t, lua.LNumber(i))
		if !lua.LVCanConvToString(v) {
			fail(L, "invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		out.addValue(v)
		if i != last {
			out.add(separator)
		}
	}
	L.Push(lua.LString(out.b))
	return 1
}

func (m *machine) tableForeach(L *lua.LState) int {
	t, f := checkTable(L, 1), checkFunction(L, 2)
	for k, v := m.next(L, t, lua.LNil); k != lua.LNil; k, v = m.next(L, t, k) {
		if r := m.call(L, f, k, v); r != lua.LNil {
			L.Push(r)
			return 1
		}
	}
	return 0
}

func (m *machine) tableForeachi(L *lua.LState) int {
	t, f := checkTable(L, 1), checkFunction(L, 2)
	for i, n := 1, m.length(L, t); i <= n; i++ {
		if r := m.call(L, f, lua.LNumber(i), m.rawGet(L, t, lua.LNumber(i))); r != lua.LNil {
			L.Push(r)
			return 1
		}
	}
	return 0
}

func (m *machine) tableInsert(L *lua.LState) int {
	t := checkTable(L, 1)
	e := m.length(L, t) + 1
	pos := e
	switch L.GetTop() {
	case 2:
	case 3:
		pos = checkInt(L, 2)
		e = max(e, pos)
		m.Work(L, e-pos)
		for i := e; i > pos; i-- {
			m.store(L, t, number(lua.LNumber(i)), m.rawGet(L, t, lua.LNumber(i-1)))
			m.Work(L, 1)
		}
	default:
		fail(L, "wrong number of arguments to 'insert'")
	}
	m.store(L, t, number(lua.LNumber(pos)), L.Get(-1))
	return 0
}

func (m *machine) tableMaxN(L *lua.LState) int {
	t := checkTable(L, 1)
	var most lua.LNumber
	for k, _ := m.next(L, t, lua.LNil); k != lua.LNil; k, _ = m.next(L, t, k) {
		m.Work(L, 1)
		if n, ok := k.(lua.LNumber); ok {
			most = max(most, n)
		}
	}
	L.Push(most)
	return 1
}

func (m *machine) tableRemove(L *lua.LState) int {
	t := checkTable(L, 1)
	e := m.length(L, t)
	pos := e
	if !absent(L, 2) {
		pos = checkInt(L, 2)
	}
	if pos < 1 || pos > e {
		return 0
	}
	v := m.rawGet(L, t, lua.LNumber(pos))
	for ; pos < e; pos++ {
		m.Work(L, 1)
		m.store(L, t, number(lua.LNumber(pos)), m.rawGet(L, t, lua.LNumber(pos+1)))
	}
	m.store(L, t, number(lua.LNumber(e)), lua.LNil)
	L.Push(v)
	return 1
}

func (m *machine) tableSort(L *lua.LState) int {
	t := checkTable(L, 1)
	n := m.length(L, t)
	s := sorter{m: m, L: L, t: t}
	if !absent(L, 2) {
		s.f = checkFunction(L, 2)
	}
	s.sort(1, n)
	return 0
}

// sorter sorts as ltablib.c does, so that a comparison function sees the same pairs.
type sorter struct {
	m *machine
	L *lua.LState
	t *lua.LTable
	f *lua.LFunction
}

func (s *sorter) get(i int) lua.LValue { return s.m.rawGet(s.L, s.t, lua.LNumber(i)) }

func (s *sorter) set(i int, v lua.LValue) { s.m.store(s.L, s.t, number(lua.LNumber(i)), v) }

func (s *sorter) less(a, b lua.LValue) bool {
	s.m.Work(s.L, 4)
	if s.f != nil {
		return lua.LVAsBool(s.m.call(s.L, s.f, a, b))
	}
	return s.m.less(s.L, a, b)
}

func (s *sorter) swap(i, j int, a, b lua.LValue) {
	s.set(i, b)
	s.set(j, a)
}

func (s *sorter) sort(l, u int) {
	for l < u {
		if a, b := s.get(l), s.get(u); s.less(b, a) {
			s.swap(l, u, a, b)
		}
		if u-l == 1 {
			return
		}
		i := (l + u) / 2
		if a, b := s.get(i), s.get(l); s.less(a, b) {
			s.swap(i, l, a, b)
		} else if b := s.get(u); s.less(b, a) {
			s.swap(i, u, a, b)
		}
		if u-l == 2 {
			return
		}
		pivot := s.get(i)
		s.swap(i, u-1, pivot, s.get(u-1))
		i, j := l, u-1
		for {
			var a, b lua.LValue
			for i++; ; i++ {
				if a = s.get(i); !s.less(a, pivot) {
					break
				}
				if i > u {
					fail(s.L, "invalid order function for sorting")
				}
			}
			for j--; ; j-- {
				if b = s.get(j); !s.less(pivot, b) {
					break
				}
				if j < l {
					fail(s.L, "invalid order function for sorting")
				}
			}
			if j < i {
				break
			}
			s.swap(i, j, a, b)
		}
		s.swap(u-1, i, s.get(u-1), s.get(i))
		if i-l < u-i {
			j, i = l, i-1
			l = i + 2
		} else {
			j, i = i+1, u
			u = j - 2
		}
		s.sort(j, i)
	}
}
