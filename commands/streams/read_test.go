package streams

import (
	"strings"
	"testing"
	"unsafe"

	"mayfly/commands/engine"
)

// What waits keeps none of the arguments, which are views of the read buffer.
func TestAWaitKeepsNoArguments(t *testing.T) {
	t.Parallel()
	key := []byte("__keyevent@orders__:expired")
	o := readOptions{keys: []string{string(key)}, group: string([]byte("g"))}
	lines := o.lines(true)
	if k := lines[0]; k.Container != "orders" || sharesMemory(k.Container, o.keys[0]) || sharesMemory(k.Group, o.group) {
		t.Errorf("%+v", k)
	}
	if o.keys[0] = "orders"; len(o.lines(true)) != 0 {
		t.Error("a client waits for what is no stream")
	}
}

func TestParseXRead(t *testing.T) {
	t.Parallel()
	args := func(text string) []string { return strings.Fields(text) }
	o, err := parseXRead(args("XREADGROUP GROUP STREAMS c COUNT 3 NOACK BLOCK 7 STREAMS a b > 0"), true)
	if err != nil || o.group != "STREAMS" || o.consumer != "c" || o.count != 3 || o.block != 7 || !o.noAck || len(o.keys) != 2 || o.ids[1] != "0" {
		t.Errorf("%+v, %v", o, err)
	}
	for text, want := range map[string]error{
		"XREADGROUP STREAMS a >":             errMissingGroup,
		"XREADGROUP GROUP g c STREAMS a b >": errUnbalanced,
		"XREADGROUP GROUP g c COUNT 1":       engine.ErrSyntax,
		"XREADGROUP GROUP g c BLOCK":         engine.ErrSyntax,
	} {
		if _, err := parseXRead(args(text), true); err != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

func sharesMemory(a, b string) bool {
	from, to := uintptr(unsafe.Pointer(unsafe.StringData(b))), uintptr(len(b))
	at := uintptr(unsafe.Pointer(unsafe.StringData(a)))
	return at >= from && at < from+to
}
