package engine

import (
	"time"

	"mayfly/commands/latency"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
)

// Wait waits until an LSN is committed; see [keyspace.Keyspace.WaitUntil]. until is of [Engine.Deadline].
func (e *Engine) Wait(lsn keyspace.LSN, until time.Duration) error {
	return e.commit(lsn, until, false)
}

// WaitWritten is Wait for a command that has changed something; see [keyspace.Keyspace.WaitWritten].
func (e *Engine) WaitWritten(lsn keyspace.LSN, until time.Duration) error {
	ks := e.Keyspace()
	if ks == nil {
		return withoutKeyspace(lsn)
	}
	return ks.WaitWritten(lsn, until)
}

// CommitNow is Wait for a caller that serves many clients; see [keyspace.Keyspace.CommitNow]. In a cluster it
// fails with [ErrCommitting] if the commit takes long.
func (e *Engine) CommitNow(lsn keyspace.LSN, until time.Duration) error {
	if until == 0 {
		return e.commit(lsn, 0, true)
	}
	return e.commitBriefly(lsn, until)
}

// commit waits for a commit, and records a long wait.
func (e *Engine) commit(lsn keyspace.LSN, until time.Duration, now bool) error {
	ks := e.Keyspace()
	if ks == nil {
		return withoutKeyspace(lsn)
	}
	if e.Latency.Off() {
		return ks.WaitUntil(lsn, until, now)
	}
	start := clock.Monotonic()
	err := ks.WaitUntil(lsn, until, now)
	if took := clock.Monotonic() - start; e.Latency.Exceeds(took) {
		e.Latency.Record(latency.OfCommit, e.Now(), took)
	}
	return err
}

// withoutKeyspace ends a wait while there is no keyspace: a reply without an LSN has read nothing.
func withoutKeyspace(lsn keyspace.LSN) error {
	if lsn == 0 {
		return nil
	}
	return replica.ErrVoid
}
