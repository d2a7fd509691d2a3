package engine

import (
	"slices"
	"testing"
)

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
