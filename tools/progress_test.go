package tools

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/tools/progress"
)

// TestProgressOfFiles: check, repair and export show how far they have read. Standard output is what it is
// without.
func TestProgressOfFiles(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		for i := range 5 {
			tx.Put(tx.Container("0"), fmt.Sprint(i), keyspace.Plain, strings.Repeat("x", 1<<20), expiry.Inherit)
		}
	})
	for _, args := range [][]string{
		{"check", h.path("data")}, {"repair", h.path("data"), h.path("new")}, {"export", h.path("data")},
	} {
		var out, errs bytes.Buffer
		c := &call{Environment: Environment{In: strings.NewReader(""), Out: &out, Err: &errs, Clock: h.clock}, tool: find(args[0])}
		now := time.Duration(0)
		c.begin(args[1:])
		c.status = progress.New(&errs, true, func() time.Duration { now += time.Second; return now })
		if code, err := c.tool.run(c); code != exitOK || err != nil {
			t.Fatalf("%v: %d, %v", args, code, err)
		}
		c.status.Clear()
		verb := "reading"
		if args[0] == "check" {
			verb = "checking"
		}
		if want := "\x1b[K" + verb + " partition-000.db: 4 of 5 MB"; !strings.Contains(errs.String(), want) {
			t.Errorf("%v shows %q, not %q", args, errs.String(), want)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%v writes progress to standard output", args)
		}
	}
}
