package store

import "time"

// Compactions and backups can wait, requests cannot. At full speed they occupy a processor for milliseconds
// at a time, and requests on a small machine wait for it. So they work in short steps, each followed by a
// rest that is several times as long.

const (
	// DefaultPace is the most bytes a second that a compaction or a backup writes, rests included.
	DefaultPace = 64 << 20
	// StepBytes are written between two rests.
	StepBytes = 128 << 10
	readShare = 4 // reading a byte costs this much less than writing one
)

// Pacer slows background work down by rests. Nil never rests. Not safe for concurrent use.
type Pacer struct {
	pace  int64           // bytes a second
	stop  <-chan struct{} // closing it ends the rests
	hurry func() bool     // true ends the rests; may be nil
	done  int64           // bytes since the last rest
	over  bool            // the rests have ended
}

// NewPacer returns a pacer for this many bytes a second. Its rests end for good when stop is closed or hurry,
// which may be nil, returns true.
func NewPacer(pace int64, stop <-chan struct{}, hurry func() bool) *Pacer {
	return &Pacer{pace: pace, stop: stop, hurry: hurry}
}

// Wrote counts written bytes, and rests if a step is complete.
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

// Read is Wrote for bytes that were read.
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
