package redisfmt

import (
	"slices"
	"testing"
)

func TestSplitLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want []string // nil: unbalanced
	}{
		{"PING", []string{"PING"}},
		{" \t SET  a   b \v", []string{"SET", "a", "b"}},
		{"\vSET\va \"b\"\vc", []string{"SET\va", "b", "c"}},
		{`SET a "hello world"`, []string{"SET", "a", "hello world"}},
		{`SET a ""`, []string{"SET", "a", ""}},
		{`a"b c"`, []string{"ab c"}},
		{`a'b c'`, []string{"ab c"}},
		{`"\n\r\t\b\a\\\"\q"`, []string{"\n\r\t\b\a\\\"q"}},
		{`"\x41\xfF\x4g"`, []string{"A\xffx4g"}},
		{`'\n\'"'`, []string{`\n'"`}},
		{`a\n`, []string{`a\n`}},
		{"a\x00b", []string{"a\x00b"}},
		{"", []string{}},
		{" \r\t", []string{}},
		{`"a`, nil},
		{`'a`, nil},
		{`"a\`, nil},
		{`"a"b`, nil},
		{`'a'b`, nil},
		{`"a""b"`, nil},
		{`"\x4`, nil},
	} {
		got, ok := SplitLine(c.line)
		if ok != (c.want != nil) {
			t.Errorf("%q: balanced is %v", c.line, ok)
		} else if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q", c.line, got)
		}
	}
}
