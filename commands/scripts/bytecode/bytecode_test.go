package bytecode

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

func compile(t *testing.T, text string) *lua.FunctionProto {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	p, err := lua.Compile(chunk, "test")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// first returns the place of the first instruction with an opcode.
func first(t *testing.T, p *lua.FunctionProto, op uint32) int {
	t.Helper()
	for pc, inst := range p.Code {
		if inst>>26 == op {
			return pc
		}
	}
	t.Fatalf("no instruction %d in %v", op, p)
	return 0
}

// Operands are those that the compiler has written.
func TestOperands(t *testing.T) {
	p := compile(t, "local a, b = 1, 2 local c = a + 'k' while c do c = b[1] end return c")
	add := p.Code[first(t, p, Add)]
	if A(add) != 2 || B(add) != 0 || C(add)&RK == 0 || p.Constants[C(add)&^RK] != lua.LString("k") {
		t.Errorf("ADD %d %d %d, constants %v", A(add), B(add), C(add), p.Constants)
	}
	load := p.Code[first(t, p, LoadK)]
	if A(load) != 0 || p.Constants[Bx(load)] != lua.LNumber(1) {
		t.Errorf("LOADK %d %d, constants %v", A(load), Bx(load), p.Constants)
	}
	back := 0
	for pc, inst := range p.Code {
		if inst>>26 == Jmp && SBx(inst) < 0 {
			back = pc + 1 + SBx(inst)
		}
	}
	if test := first(t, p, Test); back == 0 || back > test {
		t.Errorf("the loop jumps back to %d, its test is at %d", back, test)
	}
	for _, c := range []int{0, 1, MaxC} {
		if inst := WithC(add, c); C(inst) != c || A(inst) != A(add) || B(inst) != B(add) || inst>>26 != Add {
			t.Errorf("with C %d: %d of %d %d %d", c, inst>>26, A(inst), B(inst), C(inst))
		}
	}
}

// A register is named by what gave it its value.
func TestValueName(t *testing.T) {
	for _, c := range []struct{ text, kind, name string }{
		{"local f = 1 f()", "local", "f"},
		{"local f = 1 do local g = f end f()", "local", "f"},
		{"f()", "global", "f"},
		{"t.f()", "field", "f"},
		{"t[1]()", "field", "?"},
		{"t:f()", "method", "f"},
		{"t.a.f()", "field", "f"},
		{"local t = {} t.f()", "field", "f"},
		{"local t = {1, 2, f = 3} t.f()", "field", "f"},
		{"('x')()", "", ""},
		{"local a, b = 1 b()", "local", "b"},
		{"local a = function() return b end t.f(a)", "field", "f"},
	} {
		p := compile(t, c.text)
		call := first(t, p, Call)
		if kind, name := ValueName(&lua.LFunction{Proto: p}, call, A(p.Code[call])); kind != c.kind || name != c.name {
			t.Errorf("%s: %q %q, want %q %q", c.text, kind, name, c.kind, c.name)
		}
	}
	p := compile(t, "local up = 1 return function() up() end").FunctionPrototypes[0]
	call := first(t, p, Call)
	if kind, name := ValueName(&lua.LFunction{Proto: p}, call, A(p.Code[call])); kind != "upvalue" || name != "up" {
		t.Errorf("an upvalue: %q %q", kind, name)
	}
}
