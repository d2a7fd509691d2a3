package keyspace

import "time"

// Compactions and backups have time, requests have not. At full speed they keep a processor busy for some ms on
// end, as long as schedulers let them; where there are two, with a load on them, requests wait for it. So they
// work in short stretches and rest after each, several times as long.
//
// They do not rest when the keyspace is closed. A compaction does not while compactions do not keep up with the
// waste, nor once the journal has grown to twice the size at which a checkpoint is due, for which it is in the way.

const (
	compactionPace = 64 << 20  // bytes a second that a compaction or a backup writes at most, its rests counted
	stretchBytes   = 128 << 10 // are written, or read a few times over, between two rests
	readShare      = 4         // as many times as much is read in a stretch as written: it is less work
)

// rests is called when so many bytes have been written, and returns after a rest, false if there is to be
// no other; nil: there is none at all.
type rests func(bytes int64) (again bool)

// atPace gives the rests for so many bytes a second, until hurry is closed.
func atPace(pace int64, hurry <-chan struct{}) rests {
	return func(bytes int64) (again bool) {
		timer := time.NewTimer(time.Duration(bytes) * time.Second / time.Duration(pace))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-hurry:
			return false
		}
	}
}

// compactionRests gives the rests of the next compaction.
func (ks *Keyspace) compactionRests(when Compaction) rests {
	pace := ks.compacting.pace
	if pace == 0 || when.exceeded(ks.stores()) {
		return nil
	}
	rest := atPace(pace, ks.stop)
	return func(bytes int64) bool {
		return ks.journal.size() < 2*ks.journal.limit.Load() && rest(bytes)
	}
}

// stretch is work with rests; the zero value has none.
type stretch struct {
	rest rests
	done int64 // bytes written since the last rest
}

// wrote counts what has been written, and rests if it is time.
func (s *stretch) wrote(bytes int64) {
	if s.done += bytes; s.done < stretchBytes || s.rest == nil {
		return
	}
	if !s.rest(s.done) {
		s.rest = nil
	}
	s.done = 0
}

// read is wrote of what has been read.
func (s *stretch) read(bytes int64) { s.wrote(bytes / readShare) }
