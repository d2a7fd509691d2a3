package engine

import (
	"mayfly/commands/scripts"
	"mayfly/redisfmt"
)

// NumkeysAt is the position of the number of keys among the arguments of EVAL and its relatives. The keys
// follow it.
const NumkeysAt = 2

// The errors of scripts, in the words of Redis where Redis has the case.
const (
	errNumkeysNegative = Error("ERR Number of keys can't be negative")
	errNumkeysTooMany  = Error("ERR Number of keys can't be greater than number of args")
	ErrNoSuchScript    = Error("NOSCRIPT No matching script. Please use EVAL.")
	ErrBusy            = Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	ErrNotBusy         = Error("NOTBUSY No scripts in execution right now.")
	ErrUnkillable      = Error("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	ErrScriptFlush     = Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	ErrScriptDebug     = Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	ErrNoDebugger      = Error("ERR there is no debugger of scripts here: only SCRIPT DEBUG NO succeeds")
	ErrScriptsOff      = Error("ERR scripts are switched off (option scripts); CONFIG SET scripts yes switches them on")
	errScriptCommand   = Error("ERR Unknown Redis command called from script")
	errScriptArity     = Error("ERR Wrong number of args calling Redis command from script")
	errScriptNoScript  = Error("ERR This Redis command is not allowed from script")
	errScriptReadOnly  = Error("ERR Write commands are not allowed from read-only scripts.")
	errScriptWriteFlag = Error("ERR Can not execute a script with write flag using *_ro command.")
	errScriptNoCluster = Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
	errScriptOOM       = Error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")
	errScriptLongReply = "ERR the reply of %s has more than %d bytes, which are legal within a script"
	errScriptKilled    = "ERR Script killed by user with SCRIPT KILL. script: %s"
	ErrScriptStopped   = "ERR the server stops: the script has ended, and changed nothing. script: %s"
	errScriptDeposed   = "CLUSTERDOWN this node does not lead any more: the script has ended, and changed nothing. script: %s"
	errScriptTime      = "ERR the script has ended after %s, and changed nothing: see lua-time-limit. script: %s"
	errScriptWork      = "ERR the script has ended, and changed nothing: its commands walk and write more than %d bytes of values. script: %s"
	errScriptInternal  = "ERR the script has ended, and changed nothing: internal error; the server's log has the details. script: %s"
	errScriptRefused   = "MISCONF %s Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
)

// Numkeys returns the number of keys among the arguments of EVAL. The error has the words of Redis.
func Numkeys(args []string) (int, error) {
	n, ok := redisfmt.ParseInt(args[NumkeysAt])
	switch {
	case !ok:
		return 0, ErrNotInteger
	case n > int64(len(args)-NumkeysAt-1):
		return 0, errNumkeysTooMany
	case n < 0:
		return 0, errNumkeysNegative
	}
	return int(n), nil
}

// scriptKeys returns the keys among the arguments of EVAL; none if their number is invalid.
func scriptKeys(args []string) []string {
	n, err := Numkeys(args)
	if err != nil {
		return nil
	}
	first := NumkeysAt + 1
	return args[first : first+n : first+n]
}

// NamesScript reports whether the arguments of EVAL or a relative have the SHA1 of a script instead of its
// body.
func NamesScript(args []string) bool {
	const prefix = "evalsha"
	return len(args[0]) >= len(prefix) && redisfmt.EqualFold(args[0][:len(prefix)], prefix)
}

// loadScript returns the script that the arguments of EVAL or a relative name. It compiles and caches the
// body of EVAL.
func (e *Engine) loadScript(args []string) (*scripts.Script, error) {
	switch {
	case e.Scripts.Off.Load():
		return nil, ErrScriptsOff
	case NamesScript(args):
		if s, ok := e.Scripts.Cache.Get(args[1]); ok {
			return s, nil
		}
		return nil, ErrNoSuchScript
	}
	s, err := e.Scripts.Cache.Load(args[1], false)
	if err != nil {
		return nil, Error(err.Error())
	}
	return s, nil
}

// flagsOf returns the flags of a command with its arguments: a script whose first line says no-writes writes
// nothing.
func (e *Engine) flagsOf(r *Row, args []string) Flags {
	if r.Scope == ScopeScript && r.Flags&MayWrite != 0 {
		if script, err := e.loadScript(args); err == nil && script.Flags().NoWrites {
			return r.Flags &^ MayWrite
		}
	}
	return r.Flags
}
