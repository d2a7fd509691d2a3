package entry

import (
	"strings"
	"testing"

	"mayfly/test/drill"
)

// What a member may be called is bounded, and has no byte that a line of a log or of CLUSTER NODES cannot
// show.
func TestLegalNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "node-1.eu_2", "9", strings.Repeat("n", 63)} {
		if !IsName(name) {
			t.Errorf("name %q is refused", name)
		}
	}
	for _, name := range []string{"", "-a", ".a", "a b", "a\n", "a\x00", "ä", "a=b", strings.Repeat("n", 64)} {
		if IsName(name) {
			t.Errorf("name %q is taken", name)
		}
	}
	for _, addr := range []string{"h:1", "10.0.0.1:65535", "[::1]:7000", "[fe80::1%eth0]:7000", "db-1.example.com:7100", "host_1:7"} {
		if !IsAddr(addr) {
			t.Errorf("address %q is refused", addr)
		}
	}
	for _, addr := range []string{"", "h", ":1", "h:", "h:0", "h:65536", "h:+7", "h:007", "h:x", "h\n:1", "h\x00:1", "h h:1", "h,g:1", "h=g:1",
		"h/x:1", "u@h:1", "0.0.0.0:7000", "[::]:7000", "::1:7000", strings.Repeat("h", 256) + ":1", strings.Repeat("h", 1<<20) + ":1"} {
		if IsAddr(addr) {
			t.Errorf("address %.40q is taken", addr)
		}
	}
	whole := Member{ID: 1, Name: "a", Addr: "h:1", Client: "h:2"}
	drill.Report(t, whole.Check())
	for _, m := range []Member{{Name: "a\n", Addr: "h:1"}, {Name: "a", Addr: "h"}, {Name: "a", Addr: "h:1", Client: "\r\n:1"}} {
		if err := m.Check(); err == nil || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
