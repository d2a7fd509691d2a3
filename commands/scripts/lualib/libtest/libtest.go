package libtest

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/redistest"
	"mayfly/test/drill"
)

var rewrite = flag.Bool("rewrite", false, "write the results of a real Redis into testdata")

// prelude shows values: show is the same text for equal values, try shows the results or the error of a function.
const prelude = `
local function show(v)
  local t = type(v)
  if t == 'string' then return '"' .. v .. '"' end
  if t == 'userdata' then return 'null' end
  if t == 'number' then
    if v ~= v then return 'nan' end
    if v == 1/0 then return 'inf' end
    if v == -1/0 then return '-inf' end
    return string.format('%.17g', v)
  end
  if t ~= 'table' then return t == 'function' and t or tostring(v) end
  local parts = {}
  for k, e in pairs(v) do parts[#parts+1] = show(k) .. '=' .. show(e) end
  table.sort(parts)
  return '{' .. table.concat(parts, ',') .. '}'
end
local function try(f)
  local function pack(...) return select('#', ...), {...} end
  local n, r = pack(pcall(f))
  if not r[1] then return 'error: ' .. tostring(r[2]) end
  local parts = {}
  for i = 2, n do parts[#parts+1] = show(r[i]) end
  return table.concat(parts, ' ')
end
local out = {}
`

// script returns the text that evaluates expressions, each in a function of its own.
func script(expressions []string) string {
	var text strings.Builder
	text.WriteString(prelude)
	for _, e := range expressions {
		if !strings.HasPrefix(e, "local ") && !strings.HasPrefix(e, "for ") {
			e = "return " + e
		}
		fmt.Fprintf(&text, "out[#out+1] = try(function() %s end)\n", e)
	}
	text.WriteString("return out")
	return text.String()
}

// Tables keep indices up to this one in an array, which takes memory for every index below; the default is 2^26.
func init() { lua.MaxArrayIndex = 1 << 16 }

// ErrLimit is what Lua panics with when a script is over its limit.
var ErrLimit = errors.New("over the limit")

// Eval returns the shown results of expressions, with libraries that open sets. charge may panic with ErrLimit.
func Eval(t testing.TB, open func(*lua.LState, func(bytes int)), charge func(bytes int), expressions ...string) []string {
	t.Helper()
	L := lua.NewState(lua.Options{RegistrySize: 16 << 10, RegistryMaxSize: 1 << 20})
	defer L.Close()
	null := L.NewTable()
	null.RawSetString("null", L.NewUserData())
	L.SetGlobal("cjson", null) // unless open sets the real one
	open(L, charge)
	fn, err := L.Load(strings.NewReader(script(expressions)), "user_script")
	if err != nil {
		t.Fatalf("%v in %q", err, expressions)
	}
	L.Push(fn)
	L.Call(0, 1)
	var results []string
	table := L.Get(-1).(*lua.LTable)
	for i := range expressions {
		results = append(results, table.RawGetInt(i+1).String())
	}
	return results
}

// Redis evaluates expressions in a real Redis.
type Redis struct {
	t    testing.TB
	conn redis.Conn
}

func connect(t testing.TB, socket string) *Redis {
	t.Helper()
	conn, err := redis.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Redis{t, conn}
}

// Eval returns the shown results of expressions.
func (r *Redis) Eval(expressions ...string) []string {
	r.t.Helper()
	results, err := redis.Strings(r.conn.Do("EVAL", script(expressions), 0))
	if err != nil {
		r.t.Fatalf("%v in %.2000q", err, expressions)
	}
	if _, err := r.conn.Do("SCRIPT", "FLUSH"); err != nil { // settings of cjson last until then
		r.t.Fatal(err)
	}
	return results
}

// Test compares a library with that of a real Redis: the expressions of testdata/redis.txt, see table, and random ones,
// which f makes anew in each round.
func Test(t *testing.T, open func(*lua.LState, func(bytes int)), f func(g *Generator) []string) {
	t.Parallel()
	t.Run("table", func(t *testing.T) { table(t, open) })
	t.Run("random", func(t *testing.T) {
		t.Parallel()
		real := connect(t, redistest.Start(t))
		g := &Generator{drill.Rand(t)}
		var expressions []string
		for range drill.Pick(0, 400, 30_000) {
			expressions = append(expressions, f(g)...)
		}
		compare(t, real, open, expressions)
	})
}

// compare fails for each expression that a real Redis and the library evaluate differently.
func compare(t *testing.T, real *Redis, open func(*lua.LState, func(bytes int)), expressions []string) {
	t.Helper()
	const batch = 100
	wrong := 0
	for len(expressions) > 0 {
		part := expressions[:min(batch, len(expressions))]
		expressions = expressions[len(part):]
		want := real.Eval(part...)
		got := Eval(t, open, func(int) {}, part...)
		for i := range part {
			if got[i] != want[i] {
				t.Errorf("%.500s\n  is %.300q\nwant %.300q", part[i], got[i], want[i])
				if wrong++; wrong == 20 {
					t.FailNow()
				}
			}
		}
	}
}

// table checks testdata/redis.txt: expressions on lines of their own, each followed by its result in a real Redis, quoted.
// If one is installed it is asked too; with -rewrite its results replace those of the file.
func table(t *testing.T, open func(*lua.LState, func(bytes int))) {
	t.Helper()
	const path = "testdata/redis.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var real *Redis
	if socket := redistest.Find(t); socket != "" {
		real = connect(t, socket)
	}
	var out strings.Builder
	var expression string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			out.WriteString(line + "\n")
			continue
		}
		if line[0] != '\t' {
			expression = line
			out.WriteString(line + "\n")
			if !*rewrite {
				continue
			}
			line = "\t\"\""
		} else if *rewrite {
			continue
		}
		want, err := strconv.Unquote(line[1:])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if real != nil {
			if result := real.Eval(expression)[0]; result != want && !*rewrite {
				t.Errorf("%s\nis %q in Redis, and %q in %s", expression, result, want, path)
			} else {
				want = result
			}
		}
		out.WriteString("\t" + strconv.Quote(want) + "\n")
		if got := Eval(t, open, func(int) {}, expression)[0]; got != want {
			t.Errorf("%s\n  is %q\nwant %q", expression, got, want)
		}
	}
	if *rewrite {
		if real == nil {
			t.Fatal("-rewrite needs redis-server 7")
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Generator writes random Lua.
type Generator struct{ *rand.Rand }

// Pick returns one of some texts.
func (g *Generator) Pick(texts ...string) string { return texts[g.IntN(len(texts))] }

// Quote returns a string as a literal of Lua.
func Quote(s string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for i := range len(s) {
		fmt.Fprintf(&out, "\\%03d", s[i])
	}
	out.WriteByte('\'')
	return out.String()
}

// Bytes returns up to n random bytes, few of them in most cases.
func (g *Generator) Bytes(n int) string {
	b := make([]byte, g.IntN(1+g.IntN(n+1)))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return string(b)
}

// Number returns a number: small, at the edge of an integer's size, or with any bits. It is never a zero with a sign,
// which the constants of Lua 5.1 confuse with 0.
func (g *Generator) Number() string {
	var f float64
	switch g.IntN(5) {
	case 0:
		f = float64(g.IntN(300) - 100)
	case 1:
		f = math.Ldexp(1, g.IntN(66)) + float64(g.IntN(5)-2)
		if g.IntN(2) == 0 {
			f = -f
		}
	case 2:
		f = float64(g.IntN(2000)-1000) / float64(int(1)<<g.IntN(6))
	case 3:
		f = g.NormFloat64() * math.Pow(10, float64(g.IntN(30)-10))
	default:
		f = math.Float64frombits(g.Uint64())
	}
	switch {
	case f != f || f == 0:
		return "0"
	case math.IsInf(f, 0):
		return "1/0"
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// Value returns a value with tables up to a depth. Tables have at most one key that is no index, as the order of the
// others is not the same in Redis.
func (g *Generator) Value(depth int) string {
	kinds := 8
	if depth == 0 {
		kinds = 5
	}
	switch g.IntN(kinds) {
	case 0:
		return g.Pick("true", "false", "nil", "cjson.null")
	case 1, 2:
		return g.Number()
	case 3, 4:
		return Quote(g.Bytes(300))
	case 5:
		key := g.Pick(g.Number(), Quote(g.Bytes(20)), "true", "2", "12", "1", "3")
		return "{[" + key + "]=" + g.Value(depth-1) + "}"
	}
	var out strings.Builder
	for range g.IntN(20) {
		out.WriteString(g.Value(depth-1) + ",")
	}
	return "{" + out.String() + "}"
}
