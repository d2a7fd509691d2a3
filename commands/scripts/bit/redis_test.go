package bit

import (
	"testing"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestResultsAreThoseOfRedis(t *testing.T) {
	libtest.Table(t, Open)
}

func TestRandomResultsAreThoseOfRedis(t *testing.T) {
	real := libtest.StartRedis(t)
	if real == nil {
		t.Skip("needs redis-server 7")
	}
	g := libtest.NewGenerator()
	var expressions []string
	for range rounds() {
		n := g.Pick("1", "2", g.Number(), "'"+g.Number()+"'")
		list := g.Number()
		for range g.IntN(4) {
			list += ", " + g.Number()
		}
		expressions = append(expressions,
			"bit."+g.Pick("tobit", "bnot", "bswap", "tohex")+"("+g.Number()+")",
			"bit."+g.Pick("band", "bor", "bxor")+"("+list+")",
			"bit."+g.Pick("lshift", "rshift", "arshift", "rol", "ror", "tohex")+"("+g.Number()+", "+n+")")
	}
	libtest.Compare(t, real, Open, expressions)
}

func rounds() int {
	if testing.Short() {
		return 300
	}
	return 3000
}
