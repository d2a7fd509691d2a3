package lua

import (
	"errors"
	"math"
	"testing"

	"mayfly/test/drill"
)

// What compares, hashes or reads a long string counts it as work.
func TestLongStringsAreWork(t *testing.T) {
	t.Parallel()
	for _, f := range []string{
		"rawequal(s, r)", "rawget(t, s)", "next(t, s)", "for k in pairs(t) do end", "table.foreach(t, function() end)", "n[s] = 1",
		"tonumber(s)", "tonumber(s, 36)", "for i = s, 0 do end", "for i = 0, s do end", "for i = 0, 0, s do end",
	} {
		chunk, err := Compile(`local s = string.rep('x', 1000000)
			local r, t, n = s .. '', {[s] = 1}, setmetatable({}, {__newindex = type})
			for i = 1, 100 do pcall(function() `+f+` end) end`, "chunk")
		drill.Check(t, err)
		asks := turns(20)
		m := New()
		m.Reset(64<<20, &asks)
		func() {
			defer func() {
				if r := recover(); r == nil || !errors.Is(m.Ended(r), errWork) {
					t.Errorf("%s: it ends with %v, want %v", f, r, errWork)
				}
			}()
			m.Run(chunk)
		}()
	}
}

func TestLogarithmsOfSubnormalNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, want float64
	}{{1e-310, -310}, {1e-320, -320.00000483494802}, {5e-324, -323.30621534311581}, {1e-300, -300}} {
		for name, want := range map[string]float64{"log10": c.want, "log": c.want * math.Ln10} {
			m := New()
			got := m.Call(m.Globals.Get("math").(*Table).Get(name), c.x).(float64)
			if math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s of %v is %v, want %v", name, c.x, got, want)
			}
		}
	}
}
