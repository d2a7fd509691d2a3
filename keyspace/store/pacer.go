package store

import "time"

// Compactions and backups can wait, requests cannot. At full speed they keep a processor busy for
// milliseconds on end, as long as schedulers let them; with two processors under load, requests wait for
// it. So they work in short steps and rest after each, several times as long.

const (
	// DefaultPace is how many bytes a second a compaction or a backup writes at most, its rests counted.
	DefaultPace = 64 << 20
	// StepBytes are written between two rests.
	StepBytes = 128 << 10
	readShare = 4 // this many times as much is read in a step as written: it is less work
)

// Pacer makes work rest. Nil never rests. Not safe for concurrent use.
type Pacer struct {
	pace  int64           // bytes a second
	stop  <-chan struct{} // closed: no rests any more
	hurry func() bool     // true: no rests any more; nil: not asked
	done  int64           // bytes since the last rest
	over  bool            // there are no rests any more
}

// NewPacer returns a pacer for some bytes a second. It ends its rests when stop is closed or when hurry, which may
// be nil, returns true.
func NewPacer(pace int64, stop <-chan struct{}, hurry func() bool) *Pacer {
	return &Pacer{pace: pace, stop: stop, hurry: hurry}
}

// Wrote counts bytes that have been written, and rests if it is time.
func (p *Pacer) Wrote(bytes int64) {
	if p == nil || p.over {
		return
	}
	if p.done += bytes; p.done < StepBytes {
		return
	}
	p.rest(p.done)
	p.done = 0
}

// Read is Wrote for bytes that have been read.
func (p *Pacer) Read(bytes int64) { p.Wrote(bytes / readShare) }

func (p *Pacer) rest(bytes int64) {
	if p.hurry != nil && p.hurry() {
		p.over = true
		return
	}
	timer := time.NewTimer(time.Duration(bytes) * time.Second / time.Duration(p.pace))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.stop:
		p.over = true
	}
}
