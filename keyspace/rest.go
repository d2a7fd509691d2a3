package keyspace

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/buntdb"
)

// A compaction has time, requests have not. At full speed it keeps a processor busy for some ms on end,
// as long as schedulers let it; where there are two, with a load on them, requests wait for it. So it
// works in short stretches and rests after each, several times as long.
//
// It does not rest when the server stops, nor while there is more waste than there should be, nor once the
// journal has grown to twice the size at which a checkpoint is due, for which it is in the way.

// compactionPace is how many bytes a second a compaction writes at most, its rests counted.
const compactionPace = 64 << 20

// rests is called when so many bytes have been written or, since that is less work, eight times as many
// been read, and returns after a rest, false if there is to be no other; nil: there is none at all.
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

// buntdb's Shrink writes so many items at a time, but not more than so many bytes.
const (
	shrinkPiece      = 1000
	shrinkPieceBytes = 64 << 20
)

// slowly calls f, which has buntdb shrink the file, and makes it rest. Shrink itself does not, but for
// each piece it takes the lock, and finds it taken for a while. Nobody else wants it: one goroutine at a
// time uses a store. size is that of the items together, in bytes.
func (d *dbFile) slowly(rest rests, size int64, f func() error) error {
	if rest == nil {
		return f()
	}
	var over atomic.Bool
	var pacer sync.WaitGroup
	pacer.Go(func() {
		for again := true; again && !over.Load(); {
			err := d.db.Update(func(tx *buntdb.Tx) error { // changes nothing
				n, err := tx.Len()
				again = err == nil && n > 0 && rest(min(size/int64(n)*shrinkPiece, size, shrinkPieceBytes))
				return err
			})
			again = again && err == nil
		}
	})
	defer pacer.Wait()
	defer over.Store(true)
	return f()
}
