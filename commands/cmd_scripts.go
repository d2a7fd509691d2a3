package commands

import (
	"strings"

	"mayfly/commands/redisfmt"
	"mayfly/commands/scripts"
)

// numkeysAt is the position of the number of keys among the arguments of EVAL and its relatives. The keys follow it.
const numkeysAt = 2

const (
	scriptDiffers = "Locks the keys that it names, at its first command, and everything once it uses another; ends a script that runs far beyond `lua-time-limit`, and takes its changes back"
	keyUseUnknown = "We cannot tell how the keys will be used so we assume the worst, "
)

var scriptCommands = []Command{
	{
		Name: "eval", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]", Since: "2.6.0",
		Summary: "Execute a Lua script server side", Differs: scriptDiffers,
		Flags: NoScript | Stale | MayWrite | OnLeader, Scope: ScopeScript, Access: "RW access update",
		Parse: func(in *Input) (Run, error) { return parseEval(in, false) },
	},
	{
		Name: "eval_ro", Syntax: "script numkeys [key [key ...]] [arg [arg ...]]", Since: "7.0.0",
		Summary: "Execute a read-only Lua script server side", Differs: scriptDiffers,
		Flags: ReadOnly | NoScript | Stale, Scope: ScopeScript, Access: "RO access",
		Parse: func(in *Input) (Run, error) { return parseEval(in, true) },
	},
	{
		Name: "evalsha", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]", Since: "2.6.0",
		Summary: "Execute a Lua script server side", Differs: scriptDiffers,
		Flags: NoScript | Stale | MayWrite | OnLeader, Scope: ScopeScript, Access: "RW access update",
		Parse: func(in *Input) (Run, error) { return parseEval(in, false) },
	},
	{
		Name: "evalsha_ro", Syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]", Since: "7.0.0",
		Summary: "Execute a read-only Lua script server side", Differs: scriptDiffers,
		Flags: ReadOnly | NoScript | Stale, Scope: ScopeScript, Access: "RO access",
		Parse: func(in *Input) (Run, error) { return parseEval(in, true) },
	},
	{
		Name: "script", Since: "2.6.0", Summary: "A container for Lua scripts management commands",
		Sub: []Command{
			{
				Name: "debug", Syntax: "<YES | SYNC | NO>", Since: "3.2.0", Summary: "Set the debug mode for executed scripts.",
				Differs: "There is no debugger: only `NO` succeeds",
				Flags:   NoScript | OnNode, Parse: parseScriptDebug,
			},
			{
				Name: "exists", Syntax: "sha1 [sha1 ...]", Summary: "Check existence of scripts in the script cache.",
				Flags: NoScript | OnNode, Tips: "request_policy:all_shards response_policy:agg_logical_and", Parse: noParse(runScriptExists),
			},
			{
				Name: "flush", Syntax: "[ASYNC | SYNC]", Summary: "Remove all the scripts from the script cache.",
				Flags: NoScript | OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded", Parse: parseScriptFlush,
			},
			helpRow("script", "5.0.0"),
			{
				Name: "kill", Summary: "Kill the script currently in execution.",
				Differs: "Ends all scripts that run for longer than `lua-time-limit`, or else the one that has run for longest",
				Flags:   NoScript | AllowBusy | OnNode, Tips: "request_policy:all_shards response_policy:one_succeeded", Parse: noParse(runScriptKill),
			},
			{
				Name: "load", Syntax: "script", Summary: "Load the specified Lua script into the script cache.",
				Flags: NoScript | Stale | OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded", Parse: noParse(runScriptLoad),
			},
		},
	},
}

// The errors of scripts, in the words of Redis where Redis has the case.
const (
	errNumkeysNegative = Error("ERR Number of keys can't be negative")
	errNumkeysTooMany  = Error("ERR Number of keys can't be greater than number of args")
	errNoSuchScript    = Error("NOSCRIPT No matching script. Please use EVAL.")
	errBusy            = Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	errNotBusy         = Error("NOTBUSY No scripts in execution right now.")
	errUnkillable      = Error("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	errScriptFlush     = Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	errScriptDebug     = Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	errNoDebugger      = Error("ERR there is no debugger of scripts here: only SCRIPT DEBUG NO succeeds")
	errScriptsOff      = Error("ERR scripts are switched off (option scripts); CONFIG SET scripts yes switches them on")
	errScriptCommand   = Error("ERR Unknown Redis command called from script")
	errScriptArity     = Error("ERR Wrong number of args calling Redis command from script")
	errScriptNoScript  = Error("ERR This Redis command is not allowed from script")
	errScriptReadOnly  = Error("ERR Write commands are not allowed from read-only scripts.")
	errScriptWriteFlag = Error("ERR Can not execute a script with write flag using *_ro command.")
	errScriptNoCluster = Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
	errScriptOOM       = Error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")
	errScriptLongReply = "ERR the reply of %s has more than %d bytes, which are legal within a script"
	errScriptKilled    = "ERR Script killed by user with SCRIPT KILL. script: %s"
	errScriptStopped   = "ERR the server stops: the script has ended, and changed nothing. script: %s"
	errScriptDeposed   = "CLUSTERDOWN this node does not lead any more: the script has ended, and changed nothing. script: %s"
	errScriptTime      = "ERR the script has ended after %s, and changed nothing: see lua-time-limit. script: %s"
	errScriptWork      = "ERR the script has ended, and changed nothing: its commands walk and write more than %d bytes of values. script: %s"
	errScriptInternal  = "ERR the script has ended, and changed nothing: internal error; the server's log has the details. script: %s"
	errScriptRefused   = "MISCONF %s Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
)

// numkeys returns the number of keys among the arguments of EVAL. The error has the words of Redis.
func numkeys(args []string) (int, error) {
	n, ok := redisfmt.ParseInt(args[numkeysAt])
	switch {
	case !ok:
		return 0, errNotInteger
	case n > int64(len(args)-numkeysAt-1):
		return 0, errNumkeysTooMany
	case n < 0:
		return 0, errNumkeysNegative
	}
	return int(n), nil
}

// scriptKeys returns the keys among the arguments of EVAL; none if their number is invalid.
func scriptKeys(args []string) []string {
	n, err := numkeys(args)
	if err != nil {
		return nil
	}
	first := numkeysAt + 1
	return args[first : first+n : first+n]
}

// parseEval parses EVAL and its relatives. As in Redis, what cannot be a SHA1 comes before the other errors.
func parseEval(in *Input, readOnly bool) (Run, error) {
	const sha1Length = 40 // hexadecimal digits
	if namesScript(in.Args) && len(in.Args[1]) != sha1Length {
		return nil, errNoSuchScript
	}
	if _, err := numkeys(in.Args); err != nil {
		return nil, err
	}
	if readOnly {
		return runEvalReadOnly, nil
	}
	return runEval, nil
}

func runEval(x *Context) Reply { return x.eval(false) }

func runEvalReadOnly(x *Context) Reply { return x.eval(true) }

// namesScript reports whether the arguments of EVAL or a relative have the SHA1 of a script instead of its body.
func namesScript(args []string) bool {
	const prefix = "evalsha"
	return len(args[0]) >= len(prefix) && redisfmt.EqualFold(args[0][:len(prefix)], prefix)
}

// loadScript returns the script that the arguments of EVAL or a relative name. It compiles and caches the body of EVAL.
func (e *Engine) loadScript(args []string) (*scripts.Script, error) {
	switch {
	case e.Scripts.off.Load():
		return nil, errScriptsOff
	case namesScript(args):
		if s, ok := e.Scripts.cache.Get(args[1]); ok {
			return s, nil
		}
		return nil, errNoSuchScript
	}
	s, err := e.Scripts.cache.Load(args[1], false)
	if err != nil {
		return nil, Error(err.Error())
	}
	return s, nil
}

// flagsOf returns the flags of a command with its arguments: a script whose first line says no-writes writes nothing.
func (e *Engine) flagsOf(r *row, args []string) Flags {
	if r.Scope == ScopeScript && r.Flags&MayWrite != 0 {
		if script, err := e.loadScript(args); err == nil && script.Flags().NoWrites {
			return r.Flags &^ MayWrite
		}
	}
	return r.Flags
}

func runScriptLoad(x *Context) Reply {
	if x.Engine.Scripts.off.Load() {
		return Fail(errScriptsOff)
	}
	s, err := x.Engine.Scripts.cache.Load(x.Input.Args[2], true)
	if err != nil {
		return Fail(Error(err.Error()))
	}
	return Bulk(s.SHA1())
}

func runScriptExists(x *Context) Reply {
	list := make([]Reply, len(x.Input.Args)-2)
	for i, sha := range x.Input.Args[2:] {
		_, ok := x.Engine.Scripts.cache.Get(sha)
		list[i] = Flag(ok)
	}
	return Array(list...)
}

func parseScriptFlush(in *Input) (Run, error) {
	switch args := in.Args[2:]; {
	case len(args) == 0:
	case len(args) == 1 && (redisfmt.EqualFold(args[0], "ASYNC") || redisfmt.EqualFold(args[0], "SYNC")):
	default:
		return nil, errScriptFlush
	}
	return func(x *Context) Reply {
		x.Engine.Scripts.cache.Flush()
		return OK
	}, nil
}

func parseScriptDebug(in *Input) (Run, error) {
	switch strings.ToUpper(in.Args[2]) {
	case "NO":
		return func(*Context) Reply { return OK }, nil
	case "YES", "SYNC":
		return nil, errNoDebugger
	}
	return nil, errScriptDebug
}

func runScriptKill(x *Context) Reply {
	if err := x.Engine.Scripts.kill(); err != nil {
		return Fail(err)
	}
	return OK
}
