package tools

import (
	"fmt"
	"io"
	"os"
	"time"

	"mayfly/expiry/clock"

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
		p.begun = true
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

// file returns a function that shows how far a file has been read.
func (p *progress) file(verb string) func(name string, at, size int64) {
	last, of := int64(0), ""
	return func(name string, at, size int64) {
		if name == of && at >= last && at-last < progressBytes {
			return
		}
		last, of = at, name
		p.show("%s %s: %d of %d MB", verb, name, at>>20, size>>20)
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
