package progress

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"mayfly/tools/chart"

	"github.com/mattn/go-isatty"
)

// Progress is shown after firstShown. On a terminal it is one line that changes, elsewhere a line now and
// then.
const (
	firstShown = time.Second
	onTerminal = 200 * time.Millisecond
	elsewhere  = 10 * time.Second
	clearLine  = "\r\x1b[K"
	fileBytes  = 1 << 20 // of a file, between looks at the clock
)

// Line shows how far work is on one stream, which is standard error for all who use it. Its methods must not
// be called concurrently.
type Line struct {
	out      io.Writer
	terminal bool
	now      func() time.Duration

	off   bool
	begun bool
	start time.Duration // of the work
	next  time.Duration // when to show it again
	shown bool          // on the terminal's last line
}

// New returns a Line that writes to out, which is a terminal or not. now returns a time that never goes back.
func New(out io.Writer, terminal bool, now func() time.Duration) *Line {
	return &Line{out: out, terminal: terminal, now: now}
}

// Disable makes the line show nothing from now on.
func (l *Line) Disable() { l.off = true }

// Show shows the progress if it is time to. The first call begins the work.
func (l *Line) Show(format string, args ...any) {
	if l.off {
		return
	}
	now := l.now()
	if !l.begun {
		l.begun, l.start = true, now
		if l.next = now + elsewhere; l.terminal {
			l.next = now + firstShown
		}
	}
	if now < l.next {
		return
	}
	if !l.terminal {
		l.next = now + elsewhere
		fmt.Fprintf(l.out, format+"\n", args...)
		return
	}
	l.next, l.shown = now+onTerminal, true
	fmt.Fprintf(l.out, clearLine+format, args...)
}

// Count shows how many lines or items are done, and how many a second.
func (l *Line) Count(n int, what string) {
	l.Show("%d %s%s", n, what, pace{l, l.start, int64(n), 0})
}

// File returns a function that shows how far a file has been read. Positions and sizes are in bytes.
func (l *Line) File(verb string) func(name string, at, size int64) {
	last, of, since := int64(0), "", time.Duration(0)
	return func(name string, at, size int64) {
		if name == of && at >= last && at-last < fileBytes {
			return
		}
		if name != of || at < last {
			since = l.now()
		}
		last, of = at, name
		l.Show("%s %s: %d of %d MB%s", verb, name, at>>20, size>>20, pace{l, since, at, size})
	}
}

// Clear removes the progress from the terminal.
func (l *Line) Clear() {
	if l.shown {
		l.shown = false
		_, _ = io.WriteString(l.out, clearLine)
	}
}

// Clearing returns a stream whose lines replace the progress on the terminal.
func (l *Line) Clearing(to io.Writer) io.Writer { return clearing{l, to} }

type clearing struct {
	*Line
	to io.Writer
}

func (c clearing) Write(b []byte) (int, error) {
	c.Clear()
	return c.to.Write(b)
}

// pace prints how much is done a second, and how long the rest takes. It is read only when it is shown.
type pace struct {
	line  *Line
	since time.Duration
	done  int64
	of    int64 // bytes; 0: it is a number of items without an end
}

func (p pace) String() string {
	perSecond, left, known := Rate(p.line.now()-p.since, p.done, p.of)
	switch {
	case !known:
		return ""
	case p.of == 0:
		return fmt.Sprintf(", %.0f/s", perSecond)
	}
	return fmt.Sprintf(", %.0f MB/s, %s left", perSecond/(1<<20), chart.Span(left))
}

// Rate returns how much of some work is done a second, and how many seconds the rest takes at that rate.
// Neither is known within the first second, or before anything is done.
func Rate(took time.Duration, done, of int64) (perSecond float64, left int64, known bool) {
	if took < time.Second || done <= 0 {
		return 0, 0, false
	}
	perSecond = float64(done) / took.Seconds()
	return perSecond, int64(math.Ceil(float64(max(of-done, 0)) / perSecond)), true
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }
