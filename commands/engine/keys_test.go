package engine

import (
	"slices"
	"strings"
	"testing"
)

func TestMarkKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		syntax string
		keys   Keys
		first  int
		want   string // the names that are keys
	}{
		{"key [key ...]", AllKeys, 1, "key"},
		{"key value [key value ...]", Pairs, 1, "key"},
		{"source destination [DB destination-db] [REPLACE]", Keys{1, 2, 1}, 1, "source destination"},
		{"container id [id ...]", AllIDs, 1, "id"},
		{"key", Keys{2, 2, 1}, 2, "key"},
		{"a TOKEN b id", Keys{4, 4, 1}, 1, "id"},
		{"a b", Keys{}, 1, ""},
	} {
		args, err := ParseSyntax(c.syntax)
		if err != nil {
			t.Fatal(err)
		}
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

func TestKeysIDs(t *testing.T) {
	t.Parallel()
	args := []string{"command", "1", "2", "3", "4"}
	for _, tt := range []struct {
		keys Keys
		want []string
	}{
		{Keys{}, nil},
		{OneKey, []string{"1"}},
		{AllKeys, []string{"1", "2", "3", "4"}},
		{OneID, []string{"2"}},
		{AllIDs, []string{"2", "3", "4"}},
		{Pairs, []string{"1", "3"}},
	} {
		if got := tt.keys.ids(nil, args); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.keys, got, tt.want)
		}
	}
}
