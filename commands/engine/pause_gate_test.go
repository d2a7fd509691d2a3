package engine

import (
	"math"
	"testing"
	"time"

	"mayfly/test/drill"
)

const someTime = 1767225600000 // ms

func TestPauseEnds(t *testing.T) {
	drill.Bubble(t, func(t *testing.T) {
		var p pause
		p.Extend(someTime, 60000, false, func(int64) {})
		short := p.term.Load()
		p.Extend(someTime, 30000, true, func(int64) {})
		long := p.term.Load()
		if !drill.Done(short.over) {
			t.Error("a command that waits for the first does not notice the second")
		}
		drill.Pass(time.Minute - 1)
		if drill.Done(long.over) {
			t.Error("it has ended early")
		}
		drill.Pass(1)
		if !drill.Done(long.over) || p.term.Load() != nil {
			t.Error("it has not ended")
		}
	})
}

func TestPauseForever(t *testing.T) {
	drill.Bubble(t, func(t *testing.T) {
		var p pause
		p.Extend(someTime, math.MaxInt64, false, func(int64) {})
		term := p.term.Load()
		drill.Pass(100 * 365 * 24 * time.Hour)
		if drill.Done(term.over) {
			t.Error("it has ended")
		}
		p.Finish(nil)
	})
}
