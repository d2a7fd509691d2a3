package commands

import (
	"errors"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/undo"
)

var undoCommands = []Command{
	{
		Name: "container.undo", Syntax: "name [AS newname]", Example: "orders",
		Summary: "Takes back the newest change of a container within undo-window, in constant time: a default TTL or mode, FLUSHDB, FLUSHALL or CONTAINER.DROP. Repeated, the one before it. If nothing can be taken back, the error says why. AS gives what was flushed or dropped another name.",
		Flags:   Write, Scope: ScopeAll, Parse: parseContainerUndo,
	},
}

// parseContainerUndo replies with a map. If there is nothing to take back, an error says why:
//
//	what  set, flushed or dropped
//	at    when the change was made, ms since 1970
//	by    the address and name of the client that made it; null if it was the server
func parseContainerUndo(in *Input) (Run, error) {
	name, err := containerName(in)
	as := ""
	o := namedOptions{args: in.Args[2:], legal: []string{"AS"}, err: err}
	o.meant = func(word string) string { return "CONTAINER.UNDO " + name + " AS " + word }
	for o.next() {
		if as = o.value("a name"); !keyspace.ValidName(as) {
			o.fail(invalidName(as))
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return func(x *Context) Reply {
		done, err := x.Tx.Undo(name, as)
		if err != nil {
			return Fail(undoError(x, name, as, err))
		}
		if done == nil {
			return Null
		}
		return Map(Bulk("what"), Bulk(string(done.What)), Bulk("at"), Integer(done.At), Bulk("by"), textOrNull(done.By))
	}, nil
}

// undoError returns the error for a client.
func undoError(x *Context, name, as string, err error) error {
	nothing, isNothing := errors.AsType[*undo.NothingError](err)
	switch {
	case isNothing:
		return nothingToUndo(name, nothing, x.Now())
	case errors.Is(err, undo.ErrNotEmpty):
		return errorf(errUndoNotEmpty, name)
	case errors.Is(err, undo.ErrExists):
		return errorf(errUndoExists, name)
	case errors.Is(err, undo.ErrRuleAs):
		return errorf(errUndoRuleAs, name)
	case errors.Is(err, undo.ErrNameTaken):
		return errorf(errUndoNameTaken, name, as)
	}
	if as == "" {
		as = name
	}
	if errors.Is(err, undo.ErrFullOfName) {
		limit, _ := x.Tx.ContainersFull()
		return errorf(errContainersFull, as, limit)
	}
	return errorf(errNumber, as, err)
}

// nothingToUndo says why nothing can be taken back at a moment in ms.
func nothingToUndo(name string, e *undo.NothingError, now int64) error {
	change := &e.Change
	switch {
	case e.Unknown:
		return errorf(errUndoUnknown, name)
	case change.What == "":
		return errorf(errUndoNothing, name)
	case change.What == expiry.Swapped || change.What == expiry.Restored:
		return errorf(errUndoNever, name, change.What, utc(change.At))
	case change.Undo == 0 && change.What == expiry.Flushed:
		return errorf(errUndoFlush, name, utc(change.At))
	case change.Undo == 0:
		return errorf(errUndoNoWindow, name, change.What, utc(change.At))
	case change.Undo == expiry.EndedEarly || change.Undo > now:
		return errorf(errUndoEarly, name, change.What, utc(change.At))
	}
	return errorf(errUndoOver, name, change.What, utc(change.At), utc(change.Undo))
}

// endWindows ends all windows of CONTAINER.UNDO if memory is over its limit, and frees what they have kept down to a
// target in bytes. It reports whether that is enough. The outcome learns what to wait for.
func (e *Engine) endWindows(target int64, out *Outcome) bool {
	lsn, open := e.Keyspace().EndAllWindows()
	out.LSN = max(out.LSN, lsn)
	if open {
		e.Log.Warn().Int64("maxmemory", e.memory.bytes.Load()).
			Msg("memory is full: CONTAINER.UNDO cannot take earlier changes back any more")
	}
	return e.Keyspace().Reclaim(target)
}
