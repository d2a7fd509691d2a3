package cmsgpack

import (
	"testing"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestResultsAreThoseOfRedis(t *testing.T) {
	libtest.Test(t, Open, func(g *libtest.Generator) []string {
		packed := string(bytesOf(g))
		return []string{
			"cmsgpack.pack(" + g.Value(3) + ")",
			"cmsgpack.unpack(cmsgpack.pack(" + g.Value(3) + ", " + g.Value(0) + "))",
			"cmsgpack.unpack(" + libtest.Quote(packed) + ")",
			"cmsgpack." + g.Pick("unpack_one", "unpack_limit") + "(" + libtest.Quote(packed) + g.Pick("", ", 0", ", 1", ", 2", ", "+g.Number()) + g.Pick("", ", 0", ", 1", ", 9") + ")",
		}
	})
}

// bytesOf returns something like MessagePack. Keys of maps are small, as a high index takes memory for those below it.
func bytesOf(g *libtest.Generator) []byte {
	var out []byte
	for range g.IntN(12) {
		switch g.IntN(4) {
		case 0:
			out = append(out, byte(g.Uint32()))
		case 1:
			out = append(out, 0xc0+byte(g.IntN(0x20)), 0, byte(g.IntN(4)))
		case 2:
			out = append(out, 0x80+byte(g.IntN(0x12)), byte(g.IntN(100)))
		default:
			out = append(out, 0xa0+byte(g.IntN(4)), 'a', 'b')
		}
	}
	return out
}
