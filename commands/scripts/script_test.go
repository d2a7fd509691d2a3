package scripts

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/commands/scripts/lua"
)

// The first line of a script declares flags; errors have the words of Redis.
func TestShebang(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want Flags
		err  string
	}{
		{"return 1", Flags{}, ""},
		{"#!lua\nreturn 1", Flags{Declared: true}, ""},
		{"#!lua flags=no-writes,allow-stale\nreturn 1", Flags{Declared: true, NoWrites: true, AllowStale: true}, ""},
		{"#!lua flags=\nreturn 1", Flags{Declared: true}, ""},
		{"#!lua", Flags{}, "ERR Invalid script shebang"},
		{"#!js\nreturn 1", Flags{}, "ERR Unexpected engine in script shebang: #!js"},
		{"#!lua name=x\nreturn 1", Flags{}, "ERR Unknown lua shebang option: name=x"},
		{"#!lua flags=x\nreturn 1", Flags{}, "ERR Unexpected flag in script shebang: x"},
	} {
		s, err := new(Cache).Load(c.body, false)
		if text := errorText(err); text != c.err {
			t.Errorf("%q: error %q, want %q", c.body, text, c.err)
		}
		if err == nil && s.Flags() != c.want {
			t.Errorf("%q: %+v, want %+v", c.body, s.Flags(), c.want)
		}
	}
}

// What cannot be compiled is an error with the line, and is not cached.
func TestErrors(t *testing.T) {
	t.Parallel()
	const begin = "ERR Error compiling script (new function): "
	const refused = begin + "user_script:1: "
	var cache Cache
	for body, want := range map[string]string{
		"\xff\xfe":                                  refused + "unexpected symbol near '\xff'",
		"return +":                                  refused + "unexpected symbol near '+'",
		"local a = 1\nlocal = 2":                    begin + "user_script:2: '<name>' expected near '='",
		strings.Repeat("x", lua.MaxBody+1):          begin + "script is larger than 2097152 bytes",
		strings.Repeat("local a = 1 ", 300):         refused + "main function has more than 200 local variables",
		"return {" + numbered("%d,", 300_000) + "}": refused + "chunk is too large",
		numbered("y%d() ", 200_000):                 refused + "chunk is too large",
		"return " + strings.Repeat("(", 1000):       refused + "chunk has too many syntax levels",
	} {
		if _, err := cache.Load(body, true); errorText(err) != want {
			t.Errorf("%.40q: %q, want %q", body, errorText(err), want)
		}
	}
	if s := cache.Stats(); s != (Stats{}) {
		t.Errorf("the cache has %+v", s)
	}
}

// numbered returns a text for each number below n.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// A cached script is found by the digest of its body, whatever the case of its letters.
func TestSHA1(t *testing.T) {
	t.Parallel()
	const digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // sha1sum of the body
	var cache Cache
	s, err := cache.Load("return 1", false)
	if err != nil || s.SHA1() != digest || s.Body() != "return 1" || s.Size() < 512 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, sha := range []string{digest, strings.ToUpper(digest)} {
		if found, ok := cache.Get(sha); !ok || found != s {
			t.Errorf("%s is not found", sha)
		}
	}
	if _, ok := cache.Get(digest[1:]); ok {
		t.Error("a part of the digest finds the script")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
