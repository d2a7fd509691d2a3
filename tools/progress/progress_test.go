package progress

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		want     string
	}{
		{true, clearLine + "10 items" + clearLine + "12 items" + clearLine + "bad line\n" + clearLine + "14 items" + clearLine},
		{false, "bad line\n100 items\n200 items\n"},
	} {
		var out bytes.Buffer
		now := time.Hour
		p := New(&out, c.terminal, func() time.Duration { return now })
		for n := range 250 {
			if c.terminal && n > 14 {
				break
			}
			p.Show("%d items", n)
			if n == 13 {
				fmt.Fprintln(p.Clearing(&out), "bad line")
			}
			now += 100 * time.Millisecond
		}
		p.Clear()
		p.Clear()
		if got := out.String(); got != c.want {
			t.Errorf("terminal %v: %q\nwant %q", c.terminal, got, c.want)
		}
	}
}

// TestProgressTellsThePace: from the first second on, progress has what is done a second, and how long the
// rest of a file takes.
func TestProgressTellsThePace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Hour
	p := New(&out, true, func() time.Duration { return now })
	for n := range 5 {
		p.Count(1000*n, "items")
		now += time.Second
	}
	read := p.File("reading")
	for n := range int64(4) {
		read("a.db", n*fileBytes*10, 50*fileBytes)
		now += 2 * time.Second
	}
	read("b.db", fileBytes, 2*fileBytes) // a new beginning
	want := clearLine + "1000 items, 1000/s" + clearLine + "2000 items, 1000/s" + clearLine + "3000 items, 1000/s" + clearLine + "4000 items, 1000/s" +
		clearLine + "reading a.db: 0 of 50 MB" + clearLine + "reading a.db: 10 of 50 MB, 5 MB/s, 8 s left" + clearLine + "reading a.db: 20 of 50 MB, 5 MB/s, 6 s left" +
		clearLine + "reading a.db: 30 of 50 MB, 5 MB/s, 4 s left" + clearLine + "reading b.db: 1 of 2 MB"
	if got := out.String(); got != want {
		t.Errorf("it shows %q\nwant     %q", got, want)
	}
}

func TestProgressThatIsOff(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Hour
	p := New(&out, true, func() time.Duration { now += time.Hour; return now })
	p.Disable()
	p.Show("x")
	p.Show("x")
	if out.Len() > 0 {
		t.Errorf("it shows %q", out.String())
	}
}
