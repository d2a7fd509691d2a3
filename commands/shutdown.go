package commands

import "mayfly/commands/redisfmt"

// shutdownCommand ends the server as SIGTERM does: commands under way finish, and all data are forced
// to disk. There is nothing to be saved or not saved, and no replica to wait for, so most of Redis'
// words make no difference. But while the disk refuses what has been written the end would lose it:
// that takes FORCE or NOSAVE.
var shutdownCommand = Command{
	Name: "shutdown", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
	Summary: "Synchronously save the dataset to disk and then shut down the server",
	Group:   "server", Since: "1.0.0", Arity: -1,
	Flags:   Admin | NoScript | Loading | Stale | NoMulti | AllowBusy,
	Differs: "Loses nothing, whichever word follows; while the disk fails it takes FORCE or NOSAVE",
	Parse:   parseShutdown,
}

func parseShutdown(in *Input) (Run, error) {
	var save, nosave, now, force, abort bool
	for _, arg := range in.Args[1:] {
		switch {
		case redisfmt.EqualFold(arg, "SAVE"):
			save = true
		case redisfmt.EqualFold(arg, "NOSAVE"):
			nosave = true
		case redisfmt.EqualFold(arg, "NOW"):
			now = true
		case redisfmt.EqualFold(arg, "FORCE"):
			force = true
		case redisfmt.EqualFold(arg, "ABORT"):
			abort = true
		default:
			return nil, errSyntax
		}
	}
	if save && nosave || abort && (save || nosave || now || force) {
		return nil, errSyntax
	}
	return func(x *Context) Reply {
		if abort { // the end comes at once: nobody can come between
			return Fail(errNoShutdown)
		}
		if err := x.Engine.Keyspace.Writable(); err != nil && !force && !nosave {
			x.Engine.Log.Error().Err(err).Msg("SHUTDOWN refused: it would lose what could not be written; FORCE does it all the same")
			return Fail(errShutdown)
		}
		x.Engine.Log.Info().Int64("client", x.Session.ID).Str("addr", x.Session.Addr).Msg("SHUTDOWN")
		x.Engine.Host.Shutdown()
		x.Session.Closing = true
		return Reply{} // as in Redis: the client sees the connection end
	}, nil
}
