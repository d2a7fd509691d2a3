package syntax

import (
	"strings"
	"testing"

	"mayfly/test/drill"
)

func TestMarkKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		syntax string
		keys   Positions
		first  int
		want   string // the names that are keys
	}{
		{"key [key ...]", Positions{1, -1, 1}, 1, "key"},
		{"key value [key value ...]", Positions{1, -1, 2}, 1, "key"},
		{"source destination [DB destination-db] [REPLACE]", Positions{1, 2, 1}, 1, "source destination"},
		{"container id [id ...]", Positions{2, -1, 1}, 1, "id"},
		{"key", Positions{2, 2, 1}, 2, "key"},
		{"a TOKEN b id", Positions{4, 4, 1}, 1, "id"},
		{"a b", Positions{}, 1, ""},
	} {
		args, err := Parse(c.syntax)
		drill.Check(t, err)
		MarkKeys(args, c.keys, c.first)
		var keys []string
		var collect func([]Argument)
		collect = func(args []Argument) {
			for _, a := range args {
				if a.Kind == KindKey {
					keys = append(keys, a.Name)
				}
				collect(a.Args)
			}
		}
		collect(args)
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%s: keys %q, want %q", c.syntax, got, c.want)
		}
	}
}
