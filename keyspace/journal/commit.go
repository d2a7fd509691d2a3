package journal

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/vfs"
)

// batch holds the commands that are committed together. The journal's mutex protects it. The leader writes
// the commands without the mutex, once nothing is appended any more.
type batch struct {
	lsn      LSN
	commands aof.Commands
	waiters  *waiters // nil while there are none

	replicated // with Options.Replication
}

// waiters are the goroutines that wait for one batch.
type waiters struct {
	n    int           // how many; protected by the journal's mutex
	lead chan struct{} // makes one of them the leader; sent to with the journal's mutex held, while there are any
	done chan struct{} // closed when err is known
	err  error
}

// wait returns the waiters of the batch, which the caller joins.
func (b *batch) wait() *waiters {
	if b.waiters == nil {
		b.waiters = &waiters{lead: make(chan struct{}, 1), done: make(chan struct{})}
	}
	b.waiters.n++
	return b.waiters
}

// leaveLocked takes the caller out of the waiters of a batch, and reports whether it was the last of them.
// j.mu must be held.
func (j *Journal) leaveLocked(b *batch, w *waiters) (last bool) {
	w.n--
	if last = w.n == 0 && b.waiters == w; last {
		b.waiters = nil // the lead is not offered to none
	}
	return last
}

// settle reports the result to the waiters of the batch.
func (b *batch) settle(err error) {
	if b.waiters != nil {
		b.waiters.err = err
		close(b.waiters.done)
		b.waiters = nil
	}
}

// Wait returns once everything up to the LSN is committed as the policy asks, by this call or another. After
// an error the journal tries again, unless an fsync failed.
//
// Runnable goroutines may have changes too, such as those that the last commit has released. Yielding to them
// first makes groups of tens instead of twos and threes.
func (j *Journal) Wait(lsn LSN) error { return j.WaitUntil(lsn, 0, false) }

// WaitUntil is Wait. With now it does not yield, for a goroutine that has gathered the work of many itself.
// With a [Replication] it fails with [replica.ErrNoMajority] at a time, as clock.Monotonic says; 0: as soon
// as Replicate gives up by itself.
func (j *Journal) WaitUntil(lsn LSN, until time.Duration, now bool) error {
	if j.Committed() >= lsn {
		return nil
	}
	j.mu.Lock()
	if j.Committed() >= lsn {
		j.mu.Unlock()
		return nil
	}
	if !j.leading {
		j.leading = true
		j.mu.Unlock()
		return j.commitAndResign(lsn, until, now)
	}
	b := j.pending
	if j.inFlight != nil && lsn <= j.inFlight.lsn {
		b = j.inFlight
	} else if j.failed != nil && lsn <= j.failed.lsn {
		b = j.failed
	}
	if b == nil || lsn > b.lsn {
		j.mu.Unlock()
		return errUnknown(lsn)
	}
	w := b.wait()
	j.mu.Unlock()
	timer := j.timer(until)
	select {
	case <-w.done:
		return w.err
	case <-w.lead:
		j.mu.Lock()
		j.leaveLocked(b, w)
		j.mu.Unlock()
		return j.commitAndResign(lsn, until, now)
	case <-timer:
		return j.giveUp(b, w)
	}
}

func errUnknown(lsn LSN) error { return fmt.Errorf("commit %d does not exist", lsn) }

// CommitAll commits everything that was appended before the call.
func (j *Journal) CommitAll() error {
	j.lead()
	return j.commitAndResign(j.Last(), 0, false)
}

// lead waits for the lead.
func (j *Journal) lead() {
	j.mu.Lock()
	if !j.leading {
		j.leading = true
		j.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	j.queue = append(j.queue, turn)
	j.mu.Unlock()
	<-turn
}

// resign passes the lead to the queue, to a waiter of the pending batch, or to the next caller.
func (j *Journal) resign() {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case len(j.queue) > 0:
		close(j.queue[0])
		j.queue = j.queue[1:]
	case j.failed == nil && j.pending != nil && j.pending.waiters != nil && !j.closed:
		j.pending.waiters.lead <- struct{}{}
	default:
		j.leading = false
		// After a failure all waiters get the error instead of trying in turn.
		err := j.Err()
		if j.closed {
			err = errClosed
		}
		for _, b := range []*batch{j.failed, j.pending} {
			if b != nil {
				b.settle(err)
			}
		}
	}
}

func (j *Journal) commitAndResign(lsn LSN, until time.Duration, now bool) error {
	defer j.resign()
	if !now {
		runtime.Gosched()
	}
	return j.commitTo(lsn, until)
}

// commitTo commits batch after batch until the LSN is covered, or until a time as WaitUntil says. The lead is
// held.
func (j *Journal) commitTo(lsn LSN, until time.Duration) error {
	if err := j.begin(); err != nil {
		return err
	}
	for j.Committed() < lsn {
		moment := j.moment()
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return errClosed
		}
		b := j.failed
		if b == nil {
			b, j.pending = j.pending, nil
		}
		if b == nil {
			j.mu.Unlock()
			return errUnknown(lsn)
		}
		j.failed, j.inFlight = nil, b
		j.mu.Unlock()

		start := clock.Monotonic()
		err := j.replicate(b, moment, until)
		if err == nil {
			// It may wait for an fsync of all that is written.
			j.step.Begin(clock.Monotonic(), j.end.Load()-j.onDisk.Load()+b.commands.Size())
			err = j.writeMakingRoom(b)
			j.step.End()
		}
		if err == nil {
			j.times.add(clock.Monotonic() - start)
			j.settled(b)
		}
		j.mu.Lock()
		j.inFlight = nil
		if err == nil {
			j.done.Store(uint64(b.lsn))
			j.waiting.Add(-b.commands.Size())
			if text := b.commands.Text; cap(text) <= keptBatchSize {
				j.spare = append(j.spare, text)
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

// writeMakingRoom is write, and repeats it at once if the disk is full and there is room to be made.
func (j *Journal) writeMakingRoom(b *batch) error {
	if j.room == nil {
		return j.write(b)
	}
	since := j.room.Releases()
	err := j.write(b)
	if vfs.IsFull(err) && j.broken.Load() == nil && j.room.MakeRoom(since) {
		err = j.write(b)
	}
	return err
}

// write writes a batch and its seal. With the policy Always it forces them to disk. The lead is held.
func (j *Journal) write(b *batch) error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.slow.Load() && j.policyNow() == EverySec {
		// The disk does not keep up. Wait for it, as Redis does: a power cut must not take more than about
		// two seconds.
		j.syncMu.Lock()
		j.slow.Store(false)
		j.syncMu.Unlock()
	}
	size := b.commands.Size()
	from := j.end.Load()
	seal := aof.Seal{
		Mark: j.mark, From: from, At: from + size, LSN: uint64(b.lsn), OnDisk: j.onDisk.Load(),
		Sum: b.commands.Sum(),
	}
	commit := seal.Append(b.commands.Text)
	b.commands.Text = commit[:len(b.commands.Text)]
	if err := j.append(&b.commands, commit); err != nil {
		err = fmt.Errorf("writing the journal: %w", err)
		if errors.Is(err, aof.ErrTorn) {
			j.broken.Store(&err)
		}
		return err
	}
	written := size + aof.SealSize
	j.commits.Add(1)
	j.total.Add(written)
	if j.end.Add(written) >= j.limit.Load() && j.full != nil {
		j.full()
	}
	if j.policyNow() == Always {
		j.preallocate(written)
	} else if !j.force {
		return nil
	}
	if err := j.syncTo(b.lsn); err != nil {
		return err
	}
	j.force = false
	return nil
}

// append writes commands to the newest file. text is theirs with the seal behind it.
func (j *Journal) append(commands *aof.Commands, text []byte) error {
	if !commands.Large() {
		return j.file.Append(text)
	}
	return j.file.AppendParts(commands.Parts(text))
}

// report records whether the last write worked, and starts the retries if not.
func (j *Journal) report(err error) {
	if err == nil {
		if j.fault.Load() != nil && j.fault.Swap(nil) != nil {
			j.log.Info().Msg("writing works again")
		}
		return
	}
	if j.fault.Swap(&err) == nil && !ended(err) {
		j.log.Error().Err(err).Msg("cannot write: writes are refused until it succeeds")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.retrying && !j.closed && j.broken.Load() == nil {
		j.retrying = true
		j.background.Go(j.retry)
	}
}

// retry repeats the failed write, with growing pauses.
func (j *Journal) retry() {
	for pause := firstRetry; j.broken.Load() == nil; pause = min(2*pause, j.longestPause()) {
		select {
		case <-j.stop:
			return
		case <-time.After(pause):
		}
		if j.CommitAll() == nil && j.retried() {
			return
		}
	}
}

// retried ends the retries and reports true, unless a batch has failed again meanwhile.
func (j *Journal) retried() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retrying = j.failed != nil
	return !j.retrying
}
