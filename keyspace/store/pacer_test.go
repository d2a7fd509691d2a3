package store

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRestsAreAsLongAsTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		p := NewPacer(1<<20, stop, nil)
		for _, c := range []struct {
			what string
			work func()
			want time.Duration
		}{
			{"3 MiB are written", func() { p.Wrote(3 << 20) }, 3 * time.Second},
			{"4 MiB are read", func() { p.Read(readShare << 20) }, time.Second},
			{"less than a step is written", func() { p.Wrote(StepBytes - 1) }, 0},
			{"a step is done", func() { p.Wrote(1) }, time.Second / (1 << 20 / StepBytes)},
			{"there are no rests any more", func() { close(stop); p.Wrote(3 << 20); p.Wrote(3 << 20) }, 0},
		} {
			start := time.Now()
			if c.work(); time.Since(start) != c.want {
				t.Errorf("%s: a rest of %v, want %v", c.what, time.Since(start), c.want)
			}
		}
	})
}

func TestHurryEndsTheRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := NewPacer(1<<20, nil, func() bool { asked++; return asked == 2 })
		start := time.Now()
		for range 4 {
			p.Wrote(1 << 20)
		}
		if time.Since(start) != time.Second || asked != 2 {
			t.Errorf("asked %d times, it rests for %v", asked, time.Since(start))
		}
	})
}

// A compaction does not rest while there is too much waste.
func TestTooMuchWasteIsExceeded(t *testing.T) {
	t.Parallel()
	when := Compaction{Percentage: 100, MinSize: 1000}
	for _, test := range []struct {
		live, size int64
		exceeded   bool
	}{{500, 999, false}, {800, 1300, false}, {800, 1301, true}, {400, 999, false}, {0, 1000, true}} {
		s := new(Store)
		s.live.Store(test.live)
		s.bytes.Store(test.size)
		if is := when.Exceeded([]*Store{s}); is != test.exceeded {
			t.Errorf("%d bytes of %d live: %t", test.live, test.size, is)
		}
	}
}
