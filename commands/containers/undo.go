package containers

import (
	"cmp"
	"errors"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/undo"
	"mayfly/redisfmt"
)

var UndoCommands = []engine.Command{
	{
		Name: "container.undo", Syntax: "name [AS newname]", Example: "orders",
		Summary: "Takes back the newest change of a container within undo-window, in constant time: a default TTL or mode, FLUSHDB, FLUSHALL or CONTAINER.DROP. Repeated, the one before it. If nothing can be taken back, the error says why. AS gives what was flushed or dropped another name.",
		Touches: engine.TouchesNamed | engine.WritesUnnamed, Databases: undoNames, Flags: engine.Write, Scope: engine.ScopeAll, Parse: parseContainerUndo,
	},
}

// undoNames returns the name after AS.
func undoNames(args []string) []string {
	for i := 2; i < len(args)-1; i++ {
		if redisfmt.EqualFold(args[i], "AS") {
			return args[i+1 : i+2]
		}
	}
	return nil
}

// parseContainerUndo replies with a map. If there is nothing to take back, an error says why:
//
//	what  set, flushed or dropped
//	at    when the change was made, ms since 1970
//	by    the address and name of the client that made it; null if it was the server
func parseContainerUndo(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	as := ""
	o := items.NamedOptions{Args: in.Args[2:], Legal: []string{"AS"}, Err: err}
	o.Meant = func(word string) string { return "CONTAINER.UNDO " + name + " AS " + word }
	for o.Next() {
		if as = o.Value("a name"); !keyspace.ValidName(as) {
			o.Fail(engine.InvalidName(as))
		}
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		done, err := x.Tx.Undo(name, as)
		if err != nil {
			return engine.Fail(undoError(x, name, as, err))
		}
		if done == nil {
			return engine.Null
		}
		x.Engine.Waiters.FilledAll(cmp.Or(as, name))
		return engine.Map(engine.Bulk("what"), engine.Bulk(string(done.What)), engine.Bulk("at"), engine.Integer(done.At), engine.Bulk("by"), engine.TextOrNull(done.By))
	}, nil
}

// undoError returns the error for a client.
func undoError(x *engine.Context, name, as string, err error) error {
	nothing, isNothing := errors.AsType[*undo.NothingError](err)
	switch {
	case isNothing:
		return nothingToUndo(name, nothing, x.Now())
	case errors.Is(err, undo.ErrNotEmpty):
		return engine.Errorf(errUndoNotEmpty, name)
	case errors.Is(err, undo.ErrExists):
		return engine.Errorf(errUndoExists, name)
	case errors.Is(err, undo.ErrRuleAs):
		return engine.Errorf(errUndoRuleAs, name)
	case errors.Is(err, undo.ErrNameTaken):
		return engine.Errorf(errUndoNameTaken, name, as)
	}
	if as == "" {
		as = name
	}
	if errors.Is(err, undo.ErrFullOfName) {
		limit, _ := x.Tx.ContainersFull()
		return engine.Errorf(errContainersFull, as, limit)
	}
	return numberError(x, as, err)
}

// numberError returns the error for a container that cannot have a number. It does not name one that the user
// may not see.
func numberError(x *engine.Context, name string, err error) error {
	if taken, ok := errors.AsType[*keyspace.TakenError](err); ok && !x.Sees(taken.By) {
		err = &keyspace.TakenError{Number: taken.Number}
	}
	return engine.Errorf(errNumber, name, err)
}

// nothingToUndo says why nothing can be taken back at a moment in ms.
func nothingToUndo(name string, e *undo.NothingError, now int64) error {
	change := &e.Change
	switch {
	case e.Unknown:
		return engine.Errorf(errUndoUnknown, name)
	case change.What == "":
		return engine.Errorf(errUndoNothing, name)
	case change.What == expiry.Swapped || change.What == expiry.Restored:
		return engine.Errorf(errUndoNever, name, change.What, utc(change.At))
	case change.Undo == 0 && change.What == expiry.Flushed:
		return engine.Errorf(errUndoFlush, name, utc(change.At))
	case change.Undo == 0:
		return engine.Errorf(errUndoNoWindow, name, change.What, utc(change.At))
	case change.Undo == expiry.EndedEarly || change.Undo > now:
		return engine.Errorf(errUndoEarly, name, change.What, utc(change.At))
	}
	return engine.Errorf(errUndoOver, name, change.What, utc(change.At), utc(change.Undo))
}
