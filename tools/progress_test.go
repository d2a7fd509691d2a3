package tools

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		want     string
	}{
		{true, clearLine + "10 items" + clearLine + "12 items" + clearLine + "bad line\n" + clearLine + "14 items" + clearLine},
		{false, "bad line\n100 items\n200 items\n"},
	} {
		var out bytes.Buffer
		now := time.Hour
		p := newProgress(&out, c.terminal)
		p.now = func() time.Duration { return now }
		for n := range 250 {
			if c.terminal && n > 14 {
				break
			}
			p.show("%d items", n)
			if n == 13 {
				fmt.Fprintln(clearing{p, &out}, "bad line")
			}
			now += 100 * time.Millisecond
		}
		p.clear()
		p.clear()
		if got := out.String(); got != c.want {
			t.Errorf("terminal %v: %q\nwant %q", c.terminal, got, c.want)
		}
	}
}

// TestProgressTellsThePace: from the first second on, progress has what is done a second, and how long the rest of a file takes.
func TestProgressTellsThePace(t *testing.T) {
	var out bytes.Buffer
	now := time.Hour
	p := newProgress(&out, true)
	p.now = func() time.Duration { return now }
	for n := range 5 {
		p.count(1000*n, "items")
		now += time.Second
	}
	read := p.file("reading")
	for n := range int64(4) {
		read("a.db", n*progressBytes*10, 50*progressBytes)
		now += 2 * time.Second
	}
	read("b.db", progressBytes, 2*progressBytes) // a new beginning
	want := clearLine + "1000 items, 1000/s" + clearLine + "2000 items, 1000/s" + clearLine + "3000 items, 1000/s" + clearLine + "4000 items, 1000/s" +
		clearLine + "reading a.db: 0 of 50 MB" + clearLine + "reading a.db: 10 of 50 MB, 5 MB/s, 8 s left" + clearLine + "reading a.db: 20 of 50 MB, 5 MB/s, 6 s left" +
		clearLine + "reading a.db: 30 of 50 MB, 5 MB/s, 4 s left" + clearLine + "reading b.db: 1 of 2 MB"
	if got := out.String(); got != want {
		t.Errorf("it shows %q\nwant     %q", got, want)
	}
}

func TestProgressThatIsOff(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, true)
	p.off, p.now = true, func() time.Duration { return time.Hour }
	p.show("x")
	p.show("x")
	if out.Len() > 0 {
		t.Errorf("it shows %q", out.String())
	}
}

// TestProgressOfFiles: check, repair and export show how far they have read. Standard output is what it is without.
func TestProgressOfFiles(t *testing.T) {
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
		c.status.terminal, c.status.now = true, func() time.Duration { now += time.Second; return now }
		if code, err := c.tool.run(c); code != exitOK || err != nil {
			t.Fatalf("%v: %d, %v", args, code, err)
		}
		c.status.clear()
		verb := "reading"
		if args[0] == "check" {
			verb = "checking"
		}
		if want := clearLine + verb + " partition-000.db: 4 of 5 MB"; !strings.Contains(errs.String(), want) {
			t.Errorf("%v shows %q, not %q", args, errs.String(), want)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%v writes progress to standard output", args)
		}
	}
}
