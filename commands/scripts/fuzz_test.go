package scripts

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// mustEnd runs a script and fails if it meets an internal error or takes long.
func mustEnd(t *testing.T, body string) {
	s, err := new(Cache).Load(body, false)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "ERR ") || strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("error of compiling: %q", err)
		}
		return
	}
	asks := patience(10) // a script that is never asked again does not end
	v, err := Run(s, &asks, echo{}, []string{"k1", "k2"}, []string{"a", "1"}, Limits{Memory: 4 << 20, Result: 1 << 20})
	var internal *InternalError
	if errors.As(err, &internal) {
		t.Fatalf("%v\n%s\n%s", err, body, internal.Stack)
	}
	if v.Kind == Error && strings.Contains(v.Str, "runtime error") {
		t.Fatalf("%s\n%s", v.Str, body)
	}
}

// FuzzRun runs any text.
func FuzzRun(f *testing.F) {
	files, _ := filepath.Glob("testdata/compare*.txt")
	for _, file := range files {
		for i, body := range readScripts(f, file) {
			if i%5 == 0 {
				f.Add(body)
			}
		}
	}
	for _, list := range [][]string{endless, greedy, slow, deep} {
		for i, body := range list {
			if i%10 == 0 {
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body string) { mustEnd(t, body) })
}

// FuzzGrammar runs programs that a grammar makes of random numbers: most of them compile.
func FuzzGrammar(f *testing.F) {
	for i := range uint64(50) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := grammar{rand.New(rand.NewPCG(seed, 0)), 60}
		mustEnd(t, g.block(4))
	})
}

// grammar writes random programs.
type grammar struct {
	*rand.Rand
	left int // statements that may still come
}

func (g *grammar) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *grammar) name() string { return g.pick("a", "b", "c", "d", "t", "f") }

func (g *grammar) block(depth int) string {
	var b strings.Builder
	b.WriteString("local a, b, c, d, t, f = 1, 'x', {}, nil, {1, 2, 3}, function(...) return ... end\n")
	for range 1 + g.IntN(6) {
		b.WriteString(g.statement(depth))
		b.WriteString("\n")
	}
	if g.IntN(2) == 0 {
		b.WriteString("return " + g.expr(depth) + ", " + g.expr(depth))
	}
	return b.String()
}

func (g *grammar) statement(depth int) string {
	g.left--
	if depth <= 0 || g.left < 0 {
		return g.name() + " = " + g.expr(1)
	}
	depth--
	switch g.IntN(15) {
	case 0:
		return "if " + g.expr(depth) + " then " + g.block(depth) + " else " + g.block(depth) + " end"
	case 1:
		return "for i = " + g.expr(depth) + ", " + g.expr(depth) + " do " + g.statement(depth) + " if a == 5 then break end end"
	case 2:
		return "for k, v in " + g.pick("pairs", "ipairs") + "(" + g.expr(depth) + ") do " + g.statement(depth) + " end"
	case 3:
		return "while " + g.expr(depth) + " do " + g.statement(depth) + " break end"
	case 4:
		return "repeat " + g.statement(depth) + " until " + g.expr(depth)
	case 5:
		return "function t." + g.name() + "(...) " + g.block(depth) + " end"
	case 6:
		return "local function " + g.name() + "(a, b) " + g.block(depth) + " end"
	case 7:
		return g.name() + "[" + g.expr(depth) + "] = " + g.expr(depth)
	case 8:
		return "pcall(function() " + g.block(depth) + " end)"
	case 9:
		return "local " + g.name() + ", " + g.name() + " = " + g.expr(depth) + ", " + g.expr(depth)
	case 10:
		return g.name() + ", " + g.name() + " = " + g.expr(depth)
	case 11:
		return "do local co = coroutine." + g.pick("wrap", "create") + "(function(...) " + g.block(depth) + " end) pcall(coroutine.resume, co, " + g.expr(depth) + ") pcall(co) pcall(co) end"
	case 12:
		return "do coroutine.yield(" + g.expr(depth) + ") end"
	case 13:
		return "setmetatable(" + g.pick("t", "c", "{}") + ", {" + g.pick("__index", "__newindex", "__call", "__add", "__concat", "__eq", "__lt", "__le", "__len", "__unm", "__tostring") +
			" = " + g.pick("t", "c", "f", "function(...) "+g.block(depth)+" end") + "})"
	}
	return "local _ = " + g.expr(depth)
}

func (g *grammar) expr(depth int) string {
	if depth <= 0 {
		return g.pick("a", "b", "c", "d", "t", "f", "1", "-1", "0", "1e308", "0.5", "nil", "true", "false", "'x'", "''", "'10'", "{}", "KEYS", "ARGV", "2^53", "0/0", "1/0", "#t", "#b")
	}
	depth--
	e := func() string { return g.expr(depth) }
	switch g.IntN(12) {
	case 0:
		return "(" + e() + " " + g.pick("+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or") + " " + e() + ")"
	case 1:
		return g.pick("-", "not ", "#") + e()
	case 2:
		return g.name() + "." + g.name()
	case 3:
		return g.name() + "[" + e() + "]"
	case 4:
		return g.name() + "(" + e() + ", " + e() + ")"
	case 5:
		return g.name() + ":" + g.pick("rep", "sub", "a", "find", "format", "gsub") + "(" + e() + ", " + e() + ")"
	case 6:
		return "{" + e() + ", " + e() + ", [" + g.pick("1", "'k'", "2") + "] = " + e() + ", a = " + e() + "}"
	case 7:
		return "function(...) " + g.block(depth) + " end"
	case 8:
		return "select(" + e() + ", " + e() + ", " + e() + ")"
	case 9:
		return "(" + g.name() + ")"
	}
	library := g.pick("string.rep", "string.sub", "string.find", "string.gsub", "string.format", "string.byte", "string.char", "string.gmatch", "string.match",
		"table.concat", "table.insert", "table.remove", "table.sort", "table.maxn", "unpack", "next", "pcall", "xpcall", "error", "assert", "tostring", "tonumber",
		"rawget", "rawset", "rawequal", "setmetatable", "getmetatable", "loadstring", "load", "math.floor", "math.random", "math.max", "math.fmod",
		"redis.call", "redis.pcall", "redis.error_reply", "redis.sha1hex", "redis.setresp", "cjson.encode", "cjson.decode", "cmsgpack.pack", "cmsgpack.unpack",
		"struct.pack", "struct.unpack", "bit.band", "bit.tohex", "coroutine.wrap", "coroutine.create", "coroutine.resume", "coroutine.status", "coroutine.yield")
	n := g.IntN(4)
	args := make([]string, n)
	for i := range args {
		args[i] = e()
	}
	return library + "(" + strings.Join(args, ", ") + ")"
}
