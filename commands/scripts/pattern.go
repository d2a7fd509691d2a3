package scripts

import (
	"strings"

	"mayfly/commands/scripts/cformat"
	"mayfly/commands/scripts/pattern"

	lua "github.com/yuin/gopher-lua"
)

// matcher is a search of a script.
type matcher struct {
	pattern.Matcher
	m *machine
	L *lua.LState
}

func (m *machine) newMatcher(L *lua.LState, source, pat string) *matcher {
	ms := &matcher{m: m, L: L}
	ms.Source, ms.Pattern = source, cformat.CString(pat) // a zero byte ends a pattern, as in C
	ms.Work = func(steps int) { m.Work(L, steps) }
	ms.Fail = func(message string) { fail(L, "%s", message) }
	return ms
}

// value returns capture i of the match from s to e; the whole match if the pattern has no captures and i is 0.
func (ms *matcher) value(i, s, e int) lua.LValue {
	from, to, position := ms.Capture(i, s, e)
	if position {
		return lua.LNumber(from + 1)
	}
	return ms.m.substring(ms.L, ms.Source, from, to)
}

// push pushes all captures, or the whole match if whole and there are none, and returns their number.
func (ms *matcher) push(whole bool, s, e int) int {
	n := ms.Captures()
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		ms.L.Push(ms.value(i, s, e))
	}
	return n
}

// substring returns a part of a string. It copies what is much shorter than the whole, which it would keep alive.
func (m *machine) substring(L *lua.LState, s string, from, to int) lua.LValue {
	part := s[from:to]
	if len(part) == len(s) {
		return lua.LString(part)
	}
	m.Charge(L, stringSize+len(part))
	return lua.LString(strings.Clone(part))
}
