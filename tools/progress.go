package tools

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"mayfly/expiry/clock"
	"mayfly/tools/chart"

	"github.com/mattn/go-isatty"
)

// Terminals says which of a tool's streams are terminals.
type Terminals struct{ In, Out, Err bool }

// TerminalsOf returns which of the process' streams are terminals.
func TerminalsOf(in, out, err *os.File) Terminals {
	return Terminals{In: isatty.IsTerminal(in.Fd()), Out: isatty.IsTerminal(out.Fd()), Err: isatty.IsTerminal(err.Fd())}
}

// Progress is shown after firstShown. On a terminal it is one line that changes, elsewhere a line now and then.
const (
	firstShown    = time.Second
	onTerminal    = 200 * time.Millisecond
	elsewhere     = 10 * time.Second
	clearLine     = "\r\x1b[K"
	progressBytes = 1 << 20 // of a file, between looks at the clock
)

// progress shows on standard error how far a tool is. It never writes to standard output.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Duration

	off   bool
	begun bool
	start time.Duration // of the tool's work
	next  time.Duration // when to show it again
	shown bool          // on the terminal's last line
}

func newProgress(out io.Writer, terminal bool) *progress {
	return &progress{out: out, terminal: terminal, now: clock.Monotonic}
}

// show shows the progress if it is time to.
func (p *progress) show(format string, args ...any) {
	if p.off {
		return
	}
	now := p.now()
	if !p.begun {
		p.begun, p.start = true, now
		if p.next = now + elsewhere; p.terminal {
			p.next = now + firstShown
		}
	}
	if now < p.next {
		return
	}
	if !p.terminal {
		p.next = now + elsewhere
		fmt.Fprintf(p.out, format+"\n", args...)
		return
	}
	p.next, p.shown = now+onTerminal, true
	fmt.Fprintf(p.out, clearLine+format, args...)
}

// count shows how many lines or items are done, and how many a second.
func (p *progress) count(n int, what string) {
	p.show("%d %s%s", n, what, pace{p, p.start, int64(n), 0})
}

// pace prints how much is done a second, and how long the rest takes, from the first second on. It is read only when it is
// shown.
type pace struct {
	p     *progress
	since time.Duration
	done  int64
	of    int64 // bytes; 0: it is a number of items without an end
}

func (x pace) String() string {
	took := x.p.now() - x.since
	if took < time.Second || x.done == 0 {
		return ""
	}
	perSecond := float64(x.done) / took.Seconds()
	if x.of == 0 {
		return fmt.Sprintf(", %.0f/s", perSecond)
	}
	return fmt.Sprintf(", %.0f MB/s, %s left", perSecond/(1<<20), chart.Span(int64(math.Ceil(float64(max(x.of-x.done, 0))/perSecond))))
}

// file returns a function that shows how far a file has been read.
func (p *progress) file(verb string) func(name string, at, size int64) {
	last, of, since := int64(0), "", time.Duration(0)
	return func(name string, at, size int64) {
		if name == of && at >= last && at-last < progressBytes {
			return
		}
		if name != of || at < last {
			since = p.now()
		}
		last, of = at, name
		p.show("%s %s: %d of %d MB%s", verb, name, at>>20, size>>20, pace{p, since, at, size})
	}
}

// clear removes the progress from the terminal.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		_, _ = io.WriteString(p.out, clearLine)
	}
}

// clearing is a stream whose lines replace the progress on the terminal.
type clearing struct {
	*progress
	to io.Writer
}

func (c clearing) Write(b []byte) (int, error) {
	c.clear()
	return c.to.Write(b)
}
