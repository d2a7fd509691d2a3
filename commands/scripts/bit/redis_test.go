package bit

import (
	"testing"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestResultsAreThoseOfRedis(t *testing.T) {
	libtest.Test(t, Open, func(g *libtest.Generator) []string {
		n := g.Pick("1", "2", g.Number(), "'"+g.Number()+"'")
		list := g.Number()
		for range g.IntN(4) {
			list += ", " + g.Number()
		}
		return []string{
			"bit." + g.Pick("tobit", "bnot", "bswap", "tohex") + "(" + g.Number() + ")",
			"bit." + g.Pick("band", "bor", "bxor") + "(" + list + ")",
			"bit." + g.Pick("lshift", "rshift", "arshift", "rol", "ror", "tohex") + "(" + g.Number() + ", " + n + ")",
		}
	})
}
