package journal

import (
	"errors"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/replica"
)

// Replication has the log of a cluster commit each batch before the journal writes it. The commands of a
// batch then end with the records of its place in the log.
type Replication struct {
	// Replicate is that of a [replica.Replicator].
	Replicate func(lsn uint64, moment int64, batch []byte, until time.Duration) (replica.Tail, error)

	// Moment returns a time in ms for a batch that ends after the call: every transaction with an earlier
	// time is in it or in one before.
	Moment func() int64

	// Settled is called when the journal has a batch, before Wait returns for it, with an LSN up to which all
	// is on disk.
	Settled func(lsn LSN, tail replica.Tail, synced LSN)
}

// ErrUnsettled is the error of [Journal.AppendReplicated] while changes wait that the log may not have.
var ErrUnsettled = errors.New("memory has changes that are not committed")

// replicated is what a batch has with a [Replication]. The journal's mutex or the lead protects it.
type replicated struct {
	done   bool // the log has the batch, and the commands have the records of the tail
	asked  bool
	moment int64 // ms; set before the batch is replicated for the first time
	tail   replica.Tail
}

// ended reports whether the journal refuses because its use ends, and not because something fails.
func ended(err error) bool { return errors.Is(err, errClosed) || errors.Is(err, replica.ErrVoid) }

// moment returns a time in ms for the next batch.
func (j *Journal) moment() int64 {
	if j.repl == nil {
		return 0
	}
	return j.repl.Moment()
}

// timer returns a channel that gets a value at a time, as WaitUntil says; nil: there is no limit.
func (j *Journal) timer(until time.Duration) <-chan time.Time {
	if j.repl == nil || until == 0 {
		return nil
	}
	return time.After(until - clock.Monotonic())
}

// giveUp ends the wait of a goroutine for a batch, whose time is over. If it is the last that can take an
// offered lead, it passes the lead on.
func (j *Journal) giveUp(b *batch, w *waiters) error {
	j.mu.Lock()
	offered := j.leaveLocked(b, w) && len(w.lead) > 0
	j.mu.Unlock()
	select {
	case <-w.done: // the result came at the same time
		return w.err
	default:
	}
	if offered {
		j.resign()
	}
	return replica.ErrNoMajority
}

// replicate has the log commit a batch, unless it has. The lead is held.
func (j *Journal) replicate(b *batch, moment int64, until time.Duration) error {
	if j.repl == nil || b.done {
		return nil
	}
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if !b.asked {
		b.asked, b.moment = true, moment
		b.commands.Flatten()
	}
	tail, err := j.repl.Replicate(uint64(b.lsn), b.moment, b.commands.Text, until)
	if errors.Is(err, replica.ErrVoid) {
		j.broken.Store(&err)
	}
	if err != nil {
		return err
	}
	j.logged.Store(uint64(b.lsn))
	j.mu.Lock()
	defer j.mu.Unlock()
	b.done = true
	j.endLocked(b, tail)
	return nil
}

// endLocked adds the records of a tail to a batch. j.mu must be held.
func (j *Journal) endLocked(b *batch, tail replica.Tail) {
	before := b.commands.Size()
	b.commands = tail.AppendTo(b.commands)
	j.waiting.Add(b.commands.Size() - before)
	if tail.State == nil {
		tail.State = b.tail.State
	}
	b.tail = tail
}

// settled reports a batch that the files have.
func (j *Journal) settled(b *batch) {
	if j.repl != nil && b.tail.Index > 0 {
		j.repl.Settled(b.lsn, b.tail, j.Synced())
	}
}

// longestPause returns the longest pause between two attempts to commit.
func (j *Journal) longestPause() time.Duration {
	if j.repl != nil {
		return longestRetry / 10 // Replicate waits by itself
	}
	return longestRetry
}

// AppendReplicated is Append for changes that the log has, with their place in it; none: they change nothing.
func (j *Journal) AppendReplicated(c Changes, tail replica.Tail) (LSN, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unsettledLocked() {
		return 0, ErrUnsettled
	}
	b := j.pending
	if b == nil {
		b = j.newBatchLocked()
		b.done = true
	}
	before := b.commands.Size()
	b.commands = c.AppendTo(b.commands)
	j.waiting.Add(b.commands.Size() - before)
	if tail.Index > 0 {
		j.endLocked(b, tail)
	}
	return b.lsn, nil
}

// Unsettled reports whether changes wait that the log may not have.
func (j *Journal) Unsettled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unsettledLocked()
}

func (j *Journal) unsettledLocked() bool {
	for _, b := range []*batch{j.failed, j.inFlight, j.pending} {
		if b != nil && !b.done {
			return true
		}
	}
	return false
}

// Replicated returns the LSN up to which the log has everything of this node as the leader. The files may
// lack a part of it while writing them fails.
func (j *Journal) Replicated() LSN { return LSN(j.logged.Load()) }

// Synced returns the LSN up to which everything is on disk.
func (j *Journal) Synced() LSN { return LSN(j.synced.Load()) }

// Refuse has the journal commit nothing more. What is being committed may still fail or succeed.
func (j *Journal) Refuse() {
	err := errClosed
	j.broken.Store(&err)
}

// Abandon closes the file and commits nothing. Refuse has been called, and no goroutine calls Rotate.
func (j *Journal) Abandon() error {
	close(j.stop)
	j.background.Wait()
	j.lead()
	defer j.resign()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
