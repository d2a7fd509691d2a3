package keyspace

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
	"github.com/tidwall/buntdb"
)

const (
	syncInterval  = time.Second     // of EverySec
	slowSync      = 2 * time.Second // a background fsync that takes longer holds commits up
	firstRetry    = 20 * time.Millisecond
	longestRetry  = 2 * time.Second
	keptBatchSize = 4 << 20 // bytes; greater buffers are not kept for reuse
)

var errJournalClosed = errors.New("the journal is closed")

// batch is what is committed together. The journal's mutex protects it; its value is used without by
// the one who commits it, when nothing is added any more.
type batch struct {
	ticket LSN
	value  []byte   // of the commit: room for its header, and the entries
	parked *parking // nil while nobody waits
}

// size is how many bytes of entries there are.
func (b *batch) size() int64 { return int64(len(b.value) - commitHeaderSize) }

// parking is where those wait who cannot do it themselves.
type parking struct {
	turn chan struct{} // hands one of them the right to commit
	done chan struct{} // closed when err is known
	err  error
}

// park gives the place to wait for a batch.
func (b *batch) park() *parking {
	if b.parked == nil {
		b.parked = &parking{turn: make(chan struct{}, 1), done: make(chan struct{})}
	}
	return b.parked
}

// settle tells those who wait for a batch what has become of it.
func (b *batch) settle(err error) {
	if b.parked != nil {
		b.parked.err = err
		close(b.parked.done)
		b.parked = nil
	}
}

// journal commits in groups. Safe for concurrent use, but for rotate, remove and close, which one
// goroutine calls.
//
// Whoever wants something committed and finds nobody committing does it, for everybody; the others
// park, and when he is done one of those whose work came too late goes on. The right to commit,
// busy, is held without the mutex.
type journal struct {
	dir    string
	log    zerolog.Logger
	db     *buntdb.DB // whoever has the right to commit uses it
	faults *faults
	policy atomic.Int32 // Fsync

	done   atomic.Uint64 // all up to this ticket is committed as the policy asks
	synced atomic.Uint64 // all up to this ticket is on disk
	slow   atomic.Bool   // a background fsync takes too long
	fault  atomic.Pointer[error]
	broken atomic.Pointer[error] // an fsync failed: for ever

	commits, fsyncs, written atomic.Int64 // written: bytes
	total                    atomic.Int64 // bytes of all files
	waiting                  atomic.Int64 // bytes that have been handed in and are not committed yet

	// full is called, without any lock, after a commit that has left more than limit bytes in the newest
	// file. Set before the first commit; nil: nobody is told.
	full  func()
	limit atomic.Int64

	mu       sync.Mutex // protects what follows; held for moments only
	next     LSN        // of the next batch
	pending  *batch     // takes in what is appended; nil while empty
	failed   *batch     // could not be written and is tried again, before pending
	flying   *batch     // is being committed
	spare    [][]byte   // buffers for the next batches, two at most: no more are in use at a time
	busy     bool       // somebody has the right to commit
	claims   []chan struct{}
	retrying bool
	closed   bool

	// file is the newest file. It is replaced with the right to commit and syncMu held: one of them
	// is enough to use it.
	file       *dbFile
	generation uint64
	mark       uint32
	cramped    bool         // no room is made in the newest file any more: the disk has none
	syncMu     sync.Mutex   // held during an fsync
	end        atomic.Int64 // bytes written to the newest file
	onDisk     atomic.Int64 // bytes of it that an fsync has forced to disk

	stop       chan struct{}
	background sync.WaitGroup
}

// openJournal starts a journal in a new file. firstTicket is one more than the last replayed.
func openJournal(dir string, firstGeneration uint64, firstTicket LSN, fsync Fsync, log zerolog.Logger) (*journal, error) {
	return openJournalWith(dir, firstGeneration, firstTicket, fsync, log, nil)
}

func openJournalWith(dir string, firstGeneration uint64, firstTicket LSN, fsync Fsync, log zerolog.Logger, faults *faults) (*journal, error) {
	db, err := buntdb.Open(":memory:")
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir, log: log, db: db, faults: faults, next: max(firstTicket, 1), stop: make(chan struct{})}
	j.policy.Store(int32(fsync))
	j.done.Store(uint64(j.next - 1))
	j.synced.Store(uint64(j.next - 1))
	if err := j.newFile(firstGeneration); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := j.countBytes(); err != nil {
		return nil, errors.Join(err, j.file.close(), db.Close())
	}
	j.background.Go(j.syncEachSecond)
	return j, nil
}

// append hands a group of entries in, which will be committed entirely or not at all, and returns
// the ticket to wait for. The group is copied. It never blocks on the disk.
func (j *journal) append(group []byte) LSN {
	j.mu.Lock()
	b := j.pending
	if b == nil {
		b = j.newBatch()
	}
	b.value = append(b.value, group...)
	j.waiting.Add(int64(len(group)))
	t := b.ticket
	j.mu.Unlock()
	return t
}

// newBatch begins the batch that takes in what is appended. j.mu must be held.
func (j *journal) newBatch() *batch {
	b := &batch{ticket: j.next}
	if last := len(j.spare) - 1; last >= 0 {
		b.value, j.spare = j.spare[last], j.spare[:last]
	}
	b.value = append(b.value[:0], make([]byte, commitHeaderSize)...)
	j.next++
	j.pending = b
	return b
}

// committed is the ticket up to which all is committed.
func (j *journal) committed() LSN { return LSN(j.done.Load()) }

// wait returns once all up to the ticket is committed as the policy asks, by this call or another.
// An error says why it is not; unless the disk refused an fsync it is tried again by and by.
//
// Those who can run now may have something to commit too, such as those whom the last commit has just
// released. Letting them go first makes groups of tens where there were twos and threes.
func (j *journal) wait(t LSN) error { return j.waitAfter(runtime.Gosched, t) }

// waitAfter is wait, but for what is done when nobody else is committing, before it is done here.
func (j *journal) waitAfter(before func(), t LSN) error {
	if j.committed() >= t {
		return nil
	}
	j.mu.Lock()
	if j.committed() >= t {
		j.mu.Unlock()
		return nil
	}
	if !j.busy {
		j.busy = true
		j.mu.Unlock()
		return j.commitAndRelease(before, t)
	}
	b := j.pending
	if j.flying != nil && t <= j.flying.ticket {
		b = j.flying
	} else if j.failed != nil && t <= j.failed.ticket {
		b = j.failed
	}
	if b == nil || t > b.ticket {
		j.mu.Unlock()
		return fmt.Errorf("ticket %d was never handed out", t)
	}
	p := b.park()
	j.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-p.turn:
		return j.commitAndRelease(before, t)
	}
}

// commitAll commits all that has been handed in.
func (j *journal) commitAll() error {
	j.claim()
	return j.commitAndRelease(runtime.Gosched, j.last())
}

// last is the last ticket that has been handed out.
func (j *journal) last() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next - 1
}

// claim waits for the right to commit.
func (j *journal) claim() {
	j.mu.Lock()
	if !j.busy {
		j.busy = true
		j.mu.Unlock()
		return
	}
	mine := make(chan struct{})
	j.claims = append(j.claims, mine)
	j.mu.Unlock()
	<-mine
}

// release passes the right to commit on, to a claim, to one who waits for what is pending, or to
// the next who comes.
func (j *journal) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case len(j.claims) > 0:
		close(j.claims[0])
		j.claims = j.claims[1:]
	case j.failed == nil && j.pending != nil && j.pending.parked != nil && !j.closed:
		j.pending.parked.turn <- struct{}{}
	default:
		j.busy = false
		// While nothing can be written everybody gets the error instead of trying it in turn.
		err := j.err()
		if j.closed {
			err = errJournalClosed
		}
		for _, b := range []*batch{j.failed, j.pending} {
			if b != nil {
				b.settle(err)
			}
		}
	}
}

func (j *journal) commitAndRelease(before func(), t LSN) error {
	defer j.release()
	before()
	return j.commitTo(t)
}

// commitTo commits batch after batch until the ticket is covered. The right to commit is held.
func (j *journal) commitTo(t LSN) error {
	for j.committed() < t {
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return errJournalClosed
		}
		b := j.failed
		if b == nil {
			b, j.pending = j.pending, nil
		}
		if b == nil {
			j.mu.Unlock()
			return fmt.Errorf("ticket %d was never handed out", t)
		}
		j.failed, j.flying = nil, b
		j.mu.Unlock()

		err := j.write(b)

		j.mu.Lock()
		j.flying = nil
		if err == nil {
			j.done.Store(uint64(b.ticket))
			j.waiting.Add(-b.size())
			if cap(b.value) <= keptBatchSize {
				j.spare = append(j.spare, b.value)
			}
		} else {
			j.failed = b
		}
		b.settle(err)
		j.mu.Unlock()
		j.report(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes a batch as one item and, if the policy asks for it, forces it to disk. The right to
// commit is held.
func (j *journal) write(b *batch) error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.slow.Load() && j.fsyncPolicy() == EverySec {
		// The disk does not keep up. Let it, as Redis does: what is lost in a power cut must not
		// grow beyond the last two seconds or so.
		j.syncMu.Lock()
		j.slow.Store(false)
		j.syncMu.Unlock()
	}
	key, err := encodeCommit(b.value, b.ticket, j.mark, j.onDisk.Load())
	if err != nil {
		return err
	}
	if err := j.file.append(func(w io.Writer) error { return j.save(w, key, record.View(b.value)) }); err != nil {
		err = fmt.Errorf("writing the journal: %w", err)
		if errors.Is(err, errTorn) {
			j.broken.Store(&err)
		}
		return err
	}
	size := commandSize(len(key), len(b.value))
	j.commits.Add(1)
	j.written.Add(size)
	j.total.Add(size)
	if j.end.Add(size) >= j.limit.Load() && j.full != nil {
		j.full()
	}
	if j.fsyncPolicy() == Always {
		j.makeRoom(size)
		return j.syncTo(b.ticket)
	}
	return nil
}

// save has buntdb write an item. It is the only one in a database in memory, of which nothing is ever
// read: the value may change once it has been written.
//
// A panic of buntdb's may leave its lock held: nothing may recover from it, not even the handler that keeps
// a faulty command from ending the server.
func (j *journal) save(w io.Writer, key, value string) error {
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
	err := j.db.Update(func(tx *buntdb.Tx) error {
		if err := tx.DeleteAll(); err != nil {
			return err
		}
		_, _, err := tx.Set(key, value, nil)
		return err
	})
	if err != nil {
		return err
	}
	return j.db.Save(w)
}

// report notes whether writing works, and has it tried again if it does not.
func (j *journal) report(err error) {
	if err == nil {
		if j.fault.Load() != nil && j.fault.Swap(nil) != nil {
			j.log.Info().Msg("writing works again")
		}
		return
	}
	if j.fault.Swap(&err) == nil {
		j.log.Error().Err(err).Msg("cannot write: writes are refused until it succeeds")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.retrying && !j.closed && j.broken.Load() == nil {
		j.retrying = true
		j.background.Go(j.retry)
	}
}

// retry tries again to write what could not be written, with growing pauses.
func (j *journal) retry() {
	for pause := firstRetry; j.broken.Load() == nil; pause = min(2*pause, longestRetry) {
		select {
		case <-j.stop:
			return
		case <-time.After(pause):
		}
		if j.commitAll() == nil && j.retried() {
			return
		}
	}
}

// retried ends the retrying unless something has failed again since: whoever it was that it failed for
// has found that a retry is under way.
func (j *journal) retried() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retrying = j.failed != nil
	return !j.retrying
}

// err is nil, or why writes must be refused: the last write failed, or ever an fsync.
func (j *journal) err() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if err := j.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// sync forces all that is committed to disk.
func (j *journal) sync() error { return j.syncTo(j.committed()) }

// syncTo forces all up to a ticket that has been written to disk. A failed fsync is final: the
// system may have dropped what it could not write, and would report success the next time.
func (j *journal) syncTo(t LSN) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	return j.syncLocked(t)
}

// syncLocked: syncMu must be held.
func (j *journal) syncLocked(t LSN) error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.synced.Load() >= uint64(t) {
		return nil
	}
	end := j.end.Load()
	slow := time.AfterFunc(slowSync, func() { j.slow.Store(true) })
	err := j.file.fdatasync()
	slow.Stop()
	j.fsyncs.Add(1)
	if err != nil {
		return j.breakLocked(err)
	}
	j.synced.Store(uint64(t))
	j.onDisk.Store(end)
	return nil
}

// breakLocked refuses writes for ever because of an fsync that failed. syncMu must be held.
func (j *journal) breakLocked(err error) error {
	err = fmt.Errorf("forcing the journal to disk: %w", err)
	j.broken.Store(&err)
	j.log.Error().Err(err).Msg("the disk failed: writes are refused until the server is started again")
	return err
}

// syncEachSecond is EverySec's work. It holds nobody up: commits go on during the fsync.
func (j *journal) syncEachSecond() {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-ticker.C:
			if j.fsyncPolicy() == EverySec {
				j.sync() // a failure is noted and logged there
			}
		}
	}
}

func (j *journal) fsyncPolicy() Fsync { return Fsync(j.policy.Load()) }

// setFsync changes the policy. What is committed already is forced to disk first if the new one is
// Always.
func (j *journal) setFsync(f Fsync) {
	j.claim() // a commit under way ends under the policy under which it began
	defer j.release()
	j.policy.Store(int32(f))
	if f == Always {
		j.sync()
		return
	}
	// Commits that are not forced to disk one by one do not go over zeros: the system may write one to the
	// disk while the next is being put beside it.
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.file.room > 0 {
		j.endFile()
	}
}

// close commits what is pending, forces it to disk and closes the file.
func (j *journal) close() error {
	close(j.stop)
	j.background.Wait()
	j.claim()
	defer j.release()
	err := j.commitTo(j.last())
	j.syncMu.Lock()
	err = errors.Join(err, j.endFile())
	j.syncMu.Unlock()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	return errors.Join(err, j.file.close(), j.db.Close())
}
