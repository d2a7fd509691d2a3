package lua

import (
	"errors"
	"strings"
	"testing"
)

// The errors are those of Lua 5.1.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"return 1":                        "",
		"local a <const> = 1":             "chunk:1: unexpected symbol near '<'",
		"\x00":                            "chunk:1: unexpected symbol", // in C a token of 0 is none, and a string ends there
		"break 'a\x00b'":                  "chunk:1: no loop to break near ''a'",
		"goto x":                          "chunk:1: '=' expected near 'x'",
		"x = ":                            "chunk:1: unexpected symbol near '<eof>'",
		"\n\nx = = 1":                     "chunk:3: unexpected symbol near '='",
		"for i = 1 do end":                "chunk:1: ',' expected near 'do'",
		"if x then":                       "chunk:1: 'end' expected near '<eof>'",
		"if x\nthen":                      "chunk:2: 'end' expected (to close 'if' at line 1) near '<eof>'",
		"f(":                              "chunk:1: unexpected symbol near '<eof>'",
		"x = 'open":                       "chunk:1: unfinished string near '<eof>'",
		"x = [[open":                      "chunk:1: unfinished long string near '<eof>'",
		"--[[ open":                       "chunk:1: unfinished long comment near '<eof>'",
		"x = 3y":                          "chunk:1: malformed number near '3y'",
		"x = '\\300'":                     "chunk:1: escape sequence too large near '''",
		"break":                           "chunk:1: no loop to break near '<eof>'",
		"function f() return ... end":     "chunk:1: cannot use '...' outside a vararg function near '...'",
		"x\n(f)()":                        "chunk:2: ambiguous syntax (function call x new statement) near '('",
		"return 1 x = 2":                  "chunk:1: '<eof>' expected near 'x'",
		"x = @":                           "chunk:1: unexpected symbol near '@'",
		"x = " + strings.Repeat("{", 300): "chunk:1: chunk has too many syntax levels",
	} {
		_, err := Compile(text, "chunk")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.30q: %s, want %s", text, got, want)
		}
	}
}

func TestChunkID(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, want := range map[string]string{
		"=user_script": "user_script",
		"@file.lua":    "file.lua",
		"@" + long:     "..." + long[:52],
		"return 1":     `[string "return 1"]`,
		"one\ntwo":     `[string "one..."]`,
		long:           `[string "` + long[:43] + `..."]`,
	} {
		if got := chunkID(name); got != want {
			t.Errorf("%.20q: %s, want %s", name, got, want)
		}
	}
}

// Whatever the text, compiling ends, with a chunk or with an error that begins with the chunk and a line.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"return {1, a = 2, [3] = f'x'}", "for k, v in pairs(t) do break end", "local function f(...) return ... end",
		"x = [==[ a ]==] .. '\\065\\n'", "repeat local x = 1 until not x", "a.b['c']:d{1}.e = 0x1F ^ -2 % 3e-1", "if x then elseif y then else end", "--[[", "#!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Compile(text, "chunk")
		var known *SyntaxError
		if err != nil && (!errors.As(err, &known) || !strings.HasPrefix(err.Error(), "chunk:")) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
