package tools

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"mayfly/keyspace"
	"mayfly/test/drill"

	"github.com/gomodule/redigo/redis"
)

// TestLeftOutAfterResume: the file of --resume may know of nothing that was left out.
func TestLeftOutAfterResume(t *testing.T) {
	t.Parallel()
	r := redisReader{importer: &importer{}}
	drill.Check(t, json.Unmarshal([]byte(`{"keys":20000,"left":null}`), &r.progress))
	r.leave("list", []string{"a", "b"})
	if got := r.progress.Left["list"]; got != (leftOut{2, "a"}) || r.faults != 2 {
		t.Errorf("left out are %+v, %d keys", got, r.faults)
	}
}

// TestElementsThatDieMeanwhile: an element that has died since it was read does not come back without an end.
func TestElementsThatDieMeanwhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    keyspace.Kind
		replies string
	}{
		{keyspace.HashKind, "*3\r\n:-2\r\n:-1\r\n:1767225600001\r\n" + "*1\r\n:-2\r\n"},
		{keyspace.SetKind, ":-2\r\n:-1\r\n:1767225600001\r\n" + ":-2\r\n"},
		{keyspace.SetKind, ":-2\r\n:-1\r\n:1767225600001\r\n" + "-ERR wrong number of arguments for 'pexpiretime' command\r\n"},
	} {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		go func() { _, _ = io.Copy(io.Discard, there) }()
		go func() { _, _ = io.WriteString(there, tt.replies) }()
		ends := elementEnds{&client{conn: redis.NewConn(here, 0, 0)}, map[keyspace.Kind]bool{}}
		got, err := ends.add("key", tt.kind, "1:a1:11:b1:21:c1:3")
		if want := "1:b1:21:c+1767225600001 1:3"; got != want || err != nil {
			t.Errorf("%c: %q, %v, want %q", tt.kind, got, err, want)
		}
		want := ""
		if strings.Contains(tt.replies, "-ERR") { // an older server
			want = "1:d0:"
		}
		if got, err := ends.add("key", tt.kind, "1:d0:"); got != want || err != nil {
			t.Errorf("%c: %q, %v, want %q", tt.kind, got, err, want)
		}
	}
}
