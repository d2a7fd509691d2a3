package admin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// A save of Redis is here a checkpoint, which copies changes from the journal to the stores. A rewrite of
// the append-only file is a compaction, which rewrites the stores without waste. Data is safe without
// either: a reply leaves only after its changes are in the journal.

var PersistenceCommands = []engine.Command{
	{
		Name: "backup", Syntax: "path", Since: engine.SinceFirst,
		Summary: "Writes a consistent copy of the data folder to a new folder while other clients go on. A relative path starts beside the data folder.",
		Flags:   engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.NoMulti | engine.OnNode, Touches: engine.TouchesAll, Parse: parseBackup,
	},
	{
		Name: "bgrewriteaof", Since: "1.0.0", Summary: "Asynchronously rewrite the append-only file",
		Differs: "A compaction of the stores. Data is safe without it",
		Flags:   engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.OnNode,
		Parse:   engine.NoParse(func(x *engine.Context) engine.Reply { return compact(x, "Background append only file rewriting") }),
	},
	{
		Name: "bgsave", Syntax: "[SCHEDULE]", Since: "1.0.0", Summary: "Asynchronously save the dataset to disk",
		Differs: "A checkpoint of the journal. Data is safe without it",
		Flags:   engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.OnNode, Parse: parseBgsave,
	},
	{
		Name: "compact", Since: engine.SinceFirst, Summary: "Starts to rewrite the files of all partitions without overwritten and deleted items.",
		Flags: engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.OnNode,
		Parse: engine.NoParse(unlessEphemeral("COMPACT", func(x *engine.Context) engine.Reply { return compact(x, "Background compaction") })),
	},
	{
		Name: "lastsave", Since: "1.0.0", Summary: "Get the UNIX time stamp of the last successful save to disk",
		Differs: "The time of the last checkpoint",
		Flags:   engine.Loading | engine.Stale | engine.Fast | engine.OnNode, Categories: "admin dangerous", Tips: "nondeterministic_output",
		Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
			if x.Session.Service == engine.ServeDetached {
				return engine.Fail(x.Engine.NotLoaded())
			}
			return engine.Integer(x.Engine.Keyspace().LastSave() / 1000)
		}),
	},
	{
		Name: "save", Since: "1.0.0", Summary: "Synchronously save the dataset to disk",
		Differs: "A checkpoint. Only the client that asked waits for it, and data is safe without it",
		Flags:   engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.NoMulti | engine.OnNode, Parse: engine.NoParse(runSave),
	},
	{
		Name: "scrub", Since: engine.SinceFirst,
		Summary: "Starts to read and check all files on disk. Damaged ones are written anew from memory.",
		Flags:   engine.Admin | engine.NoScript | engine.NoAsyncLoading | engine.OnNode,
		Parse: engine.NoParse(unlessEphemeral("SCRUB", func(x *engine.Context) engine.Reply {
			if !x.Engine.Keyspace().Scrubber().Ask() {
				return engine.Fail(engine.Errorf(errInProgress, "Background scrub"))
			}
			return started(x, "Background scrub")
		})),
	},
}

// runSave is SAVE. Unlike in Redis only the caller waits, also for a running save.
func runSave(x *engine.Context) engine.Reply {
	ks := x.Engine.Keyspace()
	return okReply(ks.ForClients(inGoroutine(ks.Save)))
}

// inGoroutine runs work on the stores in a goroutine and waits for it. A panic there ends the process, as
// it must: the store is in an unknown state. A panic of a command is only an error.
func inGoroutine(work func() error) error {
	result := make(chan error, 1)
	go func() { result <- work() }()
	return <-result
}

// okReply is the reply of a command that succeeds or returns an error.
func okReply(err error) engine.Reply {
	if err != nil {
		return engine.Fail(err)
	}
	return engine.OK
}

func parseBgsave(in *engine.Input) (engine.Run, error) {
	switch {
	case len(in.Args) == 1:
	case len(in.Args) == 2 && redisfmt.EqualFold(in.Args[1], "SCHEDULE"): // no other work delays a save
	default:
		return nil, engine.ErrSyntax
	}
	return func(x *engine.Context) engine.Reply {
		if !x.Engine.Keyspace().SaveInBackground() {
			return engine.Fail(errSaving)
		}
		return started(x, "Background saving")
	}, nil
}

// compact starts a compaction. what is its name in the reply.
func compact(x *engine.Context, what string) engine.Reply {
	if !x.Engine.Keyspace().Compact() {
		return engine.Fail(engine.Errorf(errInProgress, what))
	}
	return started(x, what)
}

// errEphemeral is the error of a command that has no use without files.
const errEphemeral = "ERR %s does nothing for a server with ephemeral yes: its data is never to be read from disk"

// unlessEphemeral returns the Run of a command that a server refuses whose files nobody reads.
func unlessEphemeral(name string, run engine.Run) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if x.Engine.Ephemeral {
			return engine.Fail(engine.Errorf(errEphemeral, name))
		}
		return run(x)
	}
}

// started is the reply of a command that starts background work. In Redis EXEC only schedules it.
func started(x *engine.Context, what string) engine.Reply {
	if x.Session.Multi.Open {
		return engine.Status(what + " scheduled")
	}
	return engine.Status(what + " started")
}

func parseBackup(in *engine.Input) (engine.Run, error) {
	path := strings.Clone(in.Args[1])
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, errBackupPath
	}
	return unlessEphemeral("BACKUP", func(x *engine.Context) engine.Reply {
		ks := x.Engine.Keyspace()
		began := x.Now()
		to, err := backupFolder(ks.Dir(), path)
		if err == nil {
			err = inGoroutine(func() error { return ks.Backup(to) })
		}
		if _, exists := errors.AsType[*keyspace.ExistsError](err); !exists { // else the last backup is still the last one
			x.Engine.Backups.Note(began, err)
		}
		if err != nil {
			x.Engine.Log.Error().Err(err).Str("to", to).Msg("backup failed")
			return engine.Fail(backupFailed(ks, to, err))
		}
		x.Engine.Log.Info().Str("to", to).Msg("backup complete")
		return engine.OK
	}), nil
}

// backupFailed is the error of a failed backup. It leaves out the path of a file error, which is long and
// often internal.
func backupFailed(ks *keyspace.Keyspace, to string, err error) error {
	if _, ok := errors.AsType[engine.Error](err); ok {
		return err
	}
	if taken, ok := errors.AsType[*keyspace.InTheWayError](err); ok {
		return engine.Error("ERR cannot back up: " + strings.ToValidUTF8(taken.Error(), "?") +
			"; unless a backup to it is running, remove it, or choose another target")
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	if errors.Is(err, os.ErrExist) {
		err = errors.New("it exists, and a backup goes into a new folder")
	}
	return engine.Error("ERR cannot back up to " + strings.ToValidUTF8(engine.Truncate(to), "?") + ": " + ks.ForClients(err).Error())
}

// backupFolder returns the folder of a backup. A relative path starts beside the data folder dir,
// whatever the working directory. A folder within dir is returned with an error.
func backupFolder(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(dir), path)
	}
	path = filepath.Clean(path)
	if inside, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(inside) {
		return path, errBackupInside
	}
	return path, nil
}
