package jsons

import (
	"strings"
	"testing"
	"unsafe"

	"mayfly/commands/engine"
)

// A reply of typed values reads a document in one pass: where its room ends, it has read nothing further. The
// documents end there: a look for the end of a value would run out of text.
func TestTypedReplyReadsOnce(t *testing.T) {
	t.Parallel()
	const levels = 20
	for _, open := range []string{"[", `{"a":`, `[1,{"a":`} {
		text := strings.Repeat(open, levels+2)
		for _, asResp := range []bool{false, true} {
			room := &replyRoom{left: levels * 2 * int(unsafe.Sizeof(engine.Reply{}))}
			if typedReply(room, text, 0, asResp); room.left >= 0 {
				t.Errorf("%s: the reply has room for %d more bytes", open, room.left)
			}
		}
	}
}
