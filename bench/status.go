package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mayfly/tools/chart"
	"mayfly/tools/progress"
)

// status is what a run does at the moment, shown on standard error. Its methods may be called concurrently. A
// nil status shows nothing.
type status struct {
	mu   sync.Mutex // protects all below
	line *progress.Line
	now  func() time.Duration

	mode  string
	steps counter // of the mode; its zero value: they are not counted
	step  string
	sent  counter // commands of the step
}

// counter tells how far a part of a run is.
type counter struct {
	began    time.Duration
	done, of int
}

func newStatus(out io.Writer, terminal bool, now func() time.Duration) *status {
	return &status{line: progress.New(out, terminal, now), now: now}
}

type statusKey struct{}

// withStatus returns a context whose work reports to a status.
func withStatus(ctx context.Context, s *status) context.Context {
	return context.WithValue(ctx, statusKey{}, s)
}

// statusOf returns the status that the work of a context reports to.
func statusOf(ctx context.Context) *status {
	s, _ := ctx.Value(statusKey{}).(*status)
	return s
}

// begin begins a mode.
func (s *status) begin(mode string) {
	s.change(func() { s.mode, s.steps, s.step, s.sent = mode, counter{began: s.now()}, "", counter{} })
}

// next begins a step of the mode.
func (s *status) next(format string, args ...any) {
	s.change(func() { s.step, s.sent = fmt.Sprintf(format, args...), counter{} })
}

// nextOf begins a step of the mode, which has some number of steps of about the same length; done are over.
func (s *status) nextOf(done, of int, format string, args ...any) {
	s.next(format, args...)
	s.change(func() { s.steps.done, s.steps.of = done, of })
}

// send tells how many commands of a long pipeline have been sent.
func (s *status) send(done, of int) {
	s.change(func() {
		if done < s.sent.done || of != s.sent.of {
			s.sent.began = s.now()
		}
		s.sent.done, s.sent.of = done, of
	})
}

func (s *status) change(do func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	}
}

// show shows the status if it is time to.
func (s *status) show() { s.change(func() { s.line.Show("%s", s.text()) }) }

// print writes to a stream that may be the terminal of the status.
func (s *status) print(to io.Writer, text string) (err error) {
	if s == nil {
		_, err = io.WriteString(to, text)
		return err
	}
	s.change(func() { _, err = io.WriteString(s.line.Clearing(to), text) })
	return err
}

// text describes the status. mu must be held.
func (s *status) text() string {
	took := s.now() - s.steps.began
	parts := []string{s.mode}
	if s.steps.of > 0 {
		parts[0] += fmt.Sprintf(" %d of %d", s.steps.done+1, s.steps.of)
	}
	if s.step != "" {
		parts = append(parts, s.step)
	}
	if s.sent.done > 0 && s.sent.done < s.sent.of {
		text := chart.Count(int64(s.sent.done)) + " of " + chart.Count(int64(s.sent.of))
		if rate, left, known := progress.Rate(s.now()-s.sent.began, int64(s.sent.done), int64(s.sent.of)); known {
			text += fmt.Sprintf(" at %s, %s left", perSecond.format(rate), chart.Span(left))
		}
		parts = append(parts, text)
	}
	whole := chart.Span(int64(took.Seconds()))
	if _, left, known := progress.Rate(took, int64(s.steps.done), int64(s.steps.of)); known {
		whole += ", about " + chart.Span(left) + " left"
	}
	return strings.Join(parts, ": ") + "; " + whole
}

// watch shows the status from time to time until stop is called.
func (s *status) watch() (stop func()) {
	const interval = 200 * time.Millisecond
	ticker, stopped := time.NewTicker(interval), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				s.show()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(stopped)
		watching.Wait()
		s.change(s.line.Clear)
	}
}
