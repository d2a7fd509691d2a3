package scripts

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// A table constructor stores what stands in it, however many positional fields it has and whatever comes
// after them.
func TestTableConstructors(t *testing.T) {
	t.Parallel()
	tails := []struct {
		fields       string
		more, x, one string // positional fields that it adds, field x, field 1
	}{
		{"", "", "nil", "1"},
		{"x = f(),", "", "p", "1"},
		{"x = ...,", "", "p", "1"},
		{"[f()] = f(),", "", "nil", "1"},
		{"f()", "pq", "nil", "1"},
		{"...", "pq", "nil", "1"},
		{"(f())", "p", "nil", "1"},
		{"x = f(), y = {f(), x = f()}, f()", "pq", "p", "1"},
		{"x = f(), 'a', 'b', y = f()", "ab", "p", "1"},
	}
	for _, n := range []int{1, 2, 49, 50, 51, 99, 100, 101, 30_000} {
		fields := []string{"1"}
		for i := 2; i <= n; i++ {
			fields = append(fields, fmt.Sprint(i%100))
		}
		list := strings.Join(fields, ",")
		for _, tail := range tails {
			script := "local function f() return 'p', 'q' end local function make(...) return {" + list + "," + tail.fields + "} end local t = make('p', 'q')\n" +
				"for i = 2, " + fmt.Sprint(n) + " do if t[i] ~= i % 100 then return 'field ' .. i .. ' is ' .. tostring(t[i]) end end\n" +
				"return table.concat(t, '', " + fmt.Sprint(n+1) + ") .. ' ' .. #t .. ' ' .. tostring(t.x) .. ' ' .. tostring(t[1])"
			want := fmt.Sprintf("%s %d %s %s", tail.more, n+len(tail.more), tail.x, tail.one)
			s, err := new(Cache).Load(script, false)
			drill.Check(t, err)
			if v, err := Run(s, nil, echo{}, nil, nil, Limits{}); err != nil || v.Str != want {
				t.Errorf("%d fields, then %s: %.200q, %v, want %q", n, tail.fields, v.Str, err, want)
			}
		}
	}
}
