package cjson

import (
	"strconv"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestResultsAreThoseOfRedis(t *testing.T) {
	libtest.Test(t, openLibrary, func(g *libtest.Generator) []string {
		settings := g.Pick("", "", "", "cjson.encode_number_precision("+strconv.Itoa(1+g.IntN(14))+") ", "cjson.encode_sparse_array(true) ",
			"cjson.encode_sparse_array(false, 0) ", "cjson.encode_sparse_array(false, "+strconv.Itoa(g.IntN(5))+", "+strconv.Itoa(g.IntN(15))+") ",
			"cjson.encode_invalid_numbers('null') ", "cjson.encode_max_depth("+strconv.Itoa(1+g.IntN(4))+") ",
			"cjson.decode_invalid_numbers(false) ", "cjson.decode_max_depth("+strconv.Itoa(1+g.IntN(4))+") ")
		return []string{
			"local cjson = cjson.new() " + settings + "return cjson.encode(" + g.Value(3) + ")",
			"local cjson = cjson.new() " + settings + "return cjson.decode(cjson.encode(" + g.Value(3) + "))",
			"local cjson = cjson.new() " + settings + "return cjson.decode(" + libtest.Quote(text(g)) + ")",
			"cjson.decode(" + libtest.Quote(g.Pick("", "-", "+", "0x", "[-")+strings.Trim(g.Number(), "/")+g.Pick("", "]", "e", ".", "e+", "x", "p1", "f")) + ")",
		}
	})
}

// text returns something like JSON.
func text(g *libtest.Generator) string {
	var out strings.Builder
	depth := 0
	for range g.IntN(20) {
		part := g.Pick("[", "[", "{\"a\":", "{", "]", "}", ",", ",", ":", "1", "-2.5e3", "\"x\"", "\"\\u00e9\\n\"", "\"\\ud83d\\ude00\"",
			"\"\\ud83d", "\"\\q\"", "true", "false", "null", "nul", " ", "\n", "inf", "nan", "0x1F", "\x00", "\"", "\\", g.Bytes(3))
		depth += strings.Count(part, "[") - strings.Count(part, "]")
		out.WriteString(part)
	}
	if g.IntN(2) == 0 {
		out.WriteString(strings.Repeat("]", max(depth, 0)))
	}
	return out.String()
}

func openLibrary(L *lua.LState, charge func(int)) { Open(L, charge) }
