package aof

import (
	"slices"
	"strings"
	"testing"
)

// cutAll returns the commands of a text, and what is left of it at the first that is malformed.
func cutAll(text string) (ops []Op, rest string) {
	for text != "" {
		o, rest, ok := Cut(text)
		if !ok {
			return ops, text
		}
		ops, text = append(ops, o), rest
	}
	return ops, ""
}

func TestCut(t *testing.T) {
	t.Parallel()
	ops := []Op{{Key: "1:a", Rec: "r"}, {Key: "1:a", Del: true}, {Key: "", Rec: ""}, {Key: "2:" + strings.Repeat("k", 300), Rec: "\r\n$"}}
	text := string(AppendOps(nil, ops))
	if got, rest := cutAll(text); rest != "" || !slices.Equal(got, ops) {
		t.Errorf("got %+v and %q", got, rest)
	}
	for end := 1; end < len(text); end++ {
		whole, rest := cutAll(text[:end])
		if len(whole) >= len(ops) || string(AppendOps(nil, whole))+rest != text[:end] {
			t.Fatalf("of %d bytes %q are left", end, rest)
		}
	}
	for _, bad := range []string{"*1\r\n$3\r\ndel\r\n", delHead + "$01\r\na\r\n", delHead + "$\r\n\r\n", delHead + "$-1\r\n", delHead + "$9999999999999999\r\na\r\n", delHead + "$1\r\nab\r"} {
		if _, _, ok := Cut(bad); ok {
			t.Errorf("%q is cut", bad)
		}
	}
}

// FuzzCut: what is cut off is what was written.
func FuzzCut(f *testing.F) {
	f.Add(string(AppendOps(nil, []Op{{Key: "1:a", Rec: "r"}, {Key: "1:a", Del: true}})))
	f.Add(setHead + "$1\r\na\r\n$99999\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		ops, rest := cutAll(text)
		if string(AppendOps(nil, ops))+rest != text {
			t.Errorf("%q is cut into %+v and %q", text, ops, rest)
		}
	})
}
