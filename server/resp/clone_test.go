package resp

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestCloneShort: the copies outlive the buffer from which the arguments were parsed, also that of a command
// of one word.
func TestCloneShort(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{{"FLUSHDB"}, {"EXEC"}, {"SET", "key", ""}, {""}, {}} {
		var args []string
		buffer := []byte(strings.Join(want, "") + "-")
		rest := unsafe.String(&buffer[0], len(buffer))
		for _, arg := range want {
			args = append(args, rest[:len(arg)])
			rest = rest[len(arg):]
		}
		own, ok := CloneShort(args)
		clear(buffer) // the next client reads into it
		if !ok || !slices.Equal(own, want) {
			t.Errorf("%q became %q, %v", want, own, ok)
		}
	}
	long := []string{strings.Repeat("x", 5<<10)}
	if own, ok := CloneShort(long); ok || !slices.Equal(own, long) {
		t.Error("long arguments are cloned")
	}
}
