package redisfmt

import (
	"strings"
	"testing"
)

func TestEqualFold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"nx", "NX", true}, {"Nx", "nX", true}, {"nx", "xx", false}, {"nx", "nxx", false},
		{"@", "`", false}, {"[", "{", false}, {"é", "É", false},
		{"\u212aEEPTTL", "KEEPTTL", false}, {"\u017fET", "SET", false}, // strings.EqualFold folds these
	} {
		if got := EqualFold(tt.a, tt.b); got != tt.want {
			t.Errorf("EqualFold(%q, %q) = %t", tt.a, tt.b, got)
		}
	}
}

func TestWriteQuoted(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": `""`, "a b": `"a b"`, `"\`: `"\"\\"`, "\n\r\t\a\b": `"\n\r\t\a\b"`,
		"\x00\x1f\x7f\x80\xff": `"\x00\x1f\x7f\x80\xff"`, "é": `"\xc3\xa9"`,
	} {
		var out strings.Builder
		if WriteQuoted(&out, s); out.String() != want {
			t.Errorf("WriteQuoted(%q) = %s, want %s", s, out.String(), want)
		}
	}
}

func TestCString(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "a": "a", "a\x00b": "a", "\x00": ""} {
		if got := CString(s); got != want {
			t.Errorf("CString(%q) = %q", s, got)
		}
	}
}
