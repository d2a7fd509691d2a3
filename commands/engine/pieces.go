package engine

import (
	"runtime"

	"mayfly/keyspace"
)

// InPieces does work in pieces, each a transaction of its own that begin begins, so that no lock is held for
// long. f does a piece and reports whether there is another. The reply reveals all of them. A piece is
// atomic, the whole is not. If a cluster cannot commit what the pieces have written so far, or the node does
// not lead any more, no other follows, and the reply is the error.
//
// It is for commands with [ScopeSweep]: their own transaction locks nothing, but all if it is that of EXEC,
// which then does all the work.
func (x *Context) InPieces(begin func(*keyspace.Keyspace, *keyspace.Tx), f func(tx *keyspace.Tx) (more bool)) {
	if x.Queued {
		for f(x.Tx) {
		}
		return
	}
	w := x.WatchClient()
	for x.piece(begin, f) {
		x.Session.giveWay()
		_ = w.Abandoned(workToLook) // others have their turn; f learns it from the watch of its reply
	}
}

// giveWay lets others have the locks before the session's next transaction. A loop does not wait for them.
func (s *Session) giveWay() {
	if !s.OnLoop && s.keyspace != nil {
		runtime.Gosched() // else who is parked may get them a ms later only
		s.keyspace.GiveWay()
	}
}

// piece does one piece. A panic takes it back.
func (x *Context) piece(begin func(*keyspace.Keyspace, *keyspace.Tx), f func(tx *keyspace.Tx) (more bool)) (more bool) {
	ks := x.Engine.Keyspace()
	if err := x.Engine.throttle(x.Session); err != nil {
		return x.refusePiece(err)
	}
	tx := keyspace.Tx{OnDeath: x.Tx.OnDeath, By: x.Tx.By, KeepAccesses: x.Tx.KeepAccesses}
	begin(ks, &tx)
	if x.Session.Service == serveLeads && tx.Follows() {
		tx.Rollback()
		return x.refusePiece(errNotLeading)
	}
	completed := false
	defer func() {
		end := tx.Close
		if !completed {
			end = tx.Rollback
		} else if tx.Writes() {
			x.changed = true
		}
		x.Pieces = max(x.Pieces, end())
	}()
	more = f(&tx)
	completed = true
	return more
}

// refusePiece ends the pieces with an error, which has another code if some of them have changed something.
func (x *Context) refusePiece(err error) (more bool) {
	if x.refusal = err; x.changed {
		x.refusal = errDoneInPart
	}
	return false
}
