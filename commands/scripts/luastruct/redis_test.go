package luastruct

import (
	"strings"
	"testing"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestResultsAreThoseOfRedis(t *testing.T) {
	libtest.Test(t, Open, func(g *libtest.Generator) []string {
		var format, args strings.Builder
		for range g.IntN(8) {
			option := g.Pick("b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "c", "c0", "x", " ", "<", ">", "!", "z")
			if g.IntN(3) == 0 {
				option += g.Pick("0", "1", "2", "3", "4", "5", "8", "9", "16", "31", "32", "33", "1000", "2147483647", "2147483648")
			}
			format.WriteString(option)
			args.WriteString(", " + g.Pick(g.Number(), g.Number(), libtest.Quote(g.Bytes(40)), "'12'", "nil"))
		}
		f := "'" + format.String() + "'"
		return []string{
			"struct.pack(" + f + args.String() + ")",
			"struct.pack('" + g.Pick(">", "<", "!", "!4", "") + g.Pick("b", "H", "l", "T", "i3", "I7", "i16", "f", "d") + "', " + g.Number() + ")",
			"struct.unpack('" + g.Pick(">", "<", "!4") + g.Pick("b", "H", "l", "T", "i3", "I7", "i16", "i9", "I32", "f", "d") + "', " + libtest.Quote(g.Bytes(40)) + ")",
			"struct.unpack(" + f + ", " + libtest.Quote(g.Bytes(100)) + g.Pick("", "", ", 1", ", 3", ", "+g.Number()) + ")",
			"struct.size(" + f + ")",
		}
	})
}
