package scripting

import (
	"strings"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

const (
	scriptDiffers = "Locks the keys that it names, at its first command, and everything once it uses another; ends a script that runs far beyond `lua-time-limit`, and takes its changes back"
	keyUseUnknown = "We cannot tell how the keys will be used so we assume the worst, "
)

var ScriptCommands = []engine.Command{
	{
		Name: "eval", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]", Since: "2.6.0",
		Summary: "Execute a Lua script server side", Differs: scriptDiffers,
		Flags: engine.NoScript | engine.Stale | engine.MayWrite | engine.OnLeader, Scope: engine.ScopeScript, Touches: engine.TouchesSelected, Access: "RW access update",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseEval(in, false) },
	},
	{
		Name: "eval_ro", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]", Since: "7.0.0",
		Summary: "Execute a read-only Lua script server side", Differs: scriptDiffers,
		Flags: engine.ReadOnly | engine.NoScript | engine.Stale, Scope: engine.ScopeScript, Touches: engine.TouchesSelected, Access: "RO access",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseEval(in, true) },
	},
	{
		Name: "evalsha", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]", Since: "2.6.0",
		Summary: "Execute a Lua script server side", Differs: scriptDiffers,
		Flags: engine.NoScript | engine.Stale | engine.MayWrite | engine.OnLeader, Scope: engine.ScopeScript, Touches: engine.TouchesSelected, Access: "RW access update",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseEval(in, false) },
	},
	{
		Name: "evalsha_ro", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]", Since: "7.0.0",
		Summary: "Execute a read-only Lua script server side", Differs: scriptDiffers,
		Flags: engine.ReadOnly | engine.NoScript | engine.Stale, Scope: engine.ScopeScript, Touches: engine.TouchesSelected, Access: "RO access",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseEval(in, true) },
	},
	{
		Name: "script", Since: "2.6.0", Summary: "A container for Lua scripts management commands",
		Sub: []engine.Command{
			{
				Name: "debug", Syntax: "<YES | SYNC | NO>", Since: "3.2.0", Summary: "Set the debug mode for executed scripts.",
				Differs: "There is no debugger: only `NO` succeeds",
				Flags:   engine.NoScript | engine.OnNode, Parse: parseScriptDebug,
			},
			{
				Name: "exists", Syntax: "sha1 [sha1 ...]", Summary: "Check existence of scripts in the script cache.",
				Flags: engine.NoScript | engine.OnNode, Tips: "request_policy:all_shards response_policy:agg_logical_and", Parse: engine.NoParse(runScriptExists),
			},
			{
				Name: "flush", Syntax: "[ASYNC | SYNC]", Summary: "Remove all the scripts from the script cache.",
				Flags: engine.NoScript | engine.OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded", Parse: parseScriptFlush,
			},
			engine.HelpRow("script", "5.0.0"),
			{
				Name: "kill", Summary: "Kill the script currently in execution.",
				Differs: "Ends all scripts that run for longer than `lua-time-limit`, or else the one that has run for longest",
				Flags:   engine.NoScript | engine.AllowBusy | engine.OnNode, Tips: "request_policy:all_shards response_policy:one_succeeded", Parse: engine.NoParse(runScriptKill),
			},
			{
				Name: "load", Syntax: "script", Summary: "Load the specified Lua script into the script cache.",
				Flags: engine.NoScript | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded", Parse: engine.NoParse(runScriptLoad),
			},
		},
	},
}

// parseEval parses EVAL and its relatives. As in Redis, what cannot be a SHA1 comes before the other errors.
func parseEval(in *engine.Input, readOnly bool) (engine.Run, error) {
	const sha1Length = 40 // hexadecimal digits
	if engine.NamesScript(in.Args) && len(in.Args[1]) != sha1Length {
		return nil, engine.ErrNoSuchScript
	}
	if _, err := engine.Numkeys(in.Args); err != nil {
		return nil, err
	}
	if readOnly {
		return runEvalReadOnly, nil
	}
	return runEval, nil
}

func runEval(x *engine.Context) engine.Reply { return x.Eval(false) }

func runEvalReadOnly(x *engine.Context) engine.Reply { return x.Eval(true) }

func runScriptLoad(x *engine.Context) engine.Reply {
	if x.Engine.Scripts.Off.Load() {
		return engine.Fail(engine.ErrScriptsOff)
	}
	s, err := x.Engine.Scripts.Cache.Load(x.Input.Args[2], true)
	if err != nil {
		return engine.Fail(engine.Error(err.Error()))
	}
	return engine.Bulk(s.SHA1())
}

func runScriptExists(x *engine.Context) engine.Reply {
	list := make([]engine.Reply, len(x.Input.Args)-2)
	for i, sha := range x.Input.Args[2:] {
		_, ok := x.Engine.Scripts.Cache.Get(sha)
		list[i] = engine.Flag(ok)
	}
	return engine.Array(list...)
}

func parseScriptFlush(in *engine.Input) (engine.Run, error) {
	switch args := in.Args[2:]; {
	case len(args) == 0:
	case len(args) == 1 && (redisfmt.EqualFold(args[0], "ASYNC") || redisfmt.EqualFold(args[0], "SYNC")):
	default:
		return nil, engine.ErrScriptFlush
	}
	return func(x *engine.Context) engine.Reply {
		x.Engine.Scripts.Cache.Flush()
		return engine.OK
	}, nil
}

func parseScriptDebug(in *engine.Input) (engine.Run, error) {
	switch strings.ToUpper(in.Args[2]) {
	case "NO":
		return func(*engine.Context) engine.Reply { return engine.OK }, nil
	case "YES", "SYNC":
		return nil, engine.ErrNoDebugger
	}
	return nil, engine.ErrScriptDebug
}

func runScriptKill(x *engine.Context) engine.Reply {
	if err := x.Engine.Scripts.Kill(); err != nil {
		return engine.Fail(err)
	}
	return engine.OK
}
