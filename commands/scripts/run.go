package scripts

import (
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"sync"

	"mayfly/commands/scripts/lua"
)

// DefaultMemory is the default of Limits.Memory in bytes.
const DefaultMemory = 64 << 20

// MemoryError ends a script that takes more memory than it may.
type MemoryError = lua.MemoryError

// ResultError ends a script whose reply is larger than it may be. Limit is in bytes.
type ResultError struct{ Limit int64 }

func (e *ResultError) Error() string {
	return fmt.Sprintf("ERR script stopped: its reply is larger than %d bytes", e.Limit)
}

// ArgError ends a script that calls a command with too large arguments. Limit is in bytes.
type ArgError struct{ Limit int64 }

func (e *ArgError) Error() string {
	return fmt.Sprintf("ERR script stopped: the arguments of a command are larger than %d bytes", e.Limit)
}

// InternalError ends a script that meets a fault of this package.
type InternalError struct {
	Cause any    // what was recovered
	Stack []byte // of the goroutine
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("ERR script stopped by an internal error: %v", e.Cause)
}

// runner is a machine with Redis' libraries, and the script that it runs.
type runner struct {
	m      *lua.Machine
	json   *cjson
	caller Caller
	limits Limits
	resp   int // of redis.setresp
}

// runners are those that no script uses.
var runners = sync.Pool{New: func() any {
	r := &runner{m: lua.New()}
	r.library()
	var t *lua.Table
	r.json, t = newCJSON(r.m)
	for name, t := range map[string]*lua.Table{
		"cjson": t, "cmsgpack": newCMsgpack(r.m), "struct": newStruct(r.m), "bit": newBit(r.m),
	} {
		r.m.Set(r.m.Globals, name, t)
	}
	r.m.SealGlobals(func(c *lua.Call) []lua.Value {
		if name, ok := c.Arg(2).(string); ok {
			c.Fail("Script attempted to access nonexistent global variable '%s'", name)
		}
		return nil
	})
	return r
}}

// Run runs a script. The reply is a Value, also if the script itself fails: then of Kind Error, with
// Redis' text. Its Int is 1 if the error came from a command that the Caller has run (and counted) already.
//
// The error is that of interrupt or of caller.Call, or a *MemoryError, *ResultError, *ArgError or
// *InternalError, whose texts are replies. Run is safe for concurrent use.
func Run(s *Script, interrupt Interrupt, caller Caller, keys, args []string, lim Limits) (v Value, err error) {
	if lim.Memory <= 0 {
		lim.Memory = DefaultMemory
	}
	if lim.Result <= 0 {
		lim.Result = lim.Memory
	}
	if lim.Arg <= 0 {
		lim.Arg = lim.Memory
	}
	r := runners.Get().(*runner)
	defer func() {
		if cause := recover(); cause != nil {
			if v, err = (Value{}), r.m.Ended(cause); err == nil {
				err = &InternalError{cause, debug.Stack()}
				return
			}
		}
		r.caller = nil
		r.m.Reset(math.MaxInt64, nil)
		r.m.Set(r.m.Globals, "KEYS", false)
		r.m.Set(r.m.Globals, "ARGV", false)
		r.json.reset()
		runners.Put(r)
	}()
	r.caller, r.limits, r.resp = caller, lim, 2
	r.m.Reset(lim.Memory, interrupt)
	r.setStrings("KEYS", keys)
	r.setStrings("ARGV", args)
	result, failed := r.m.Run(s.chunk)
	if failed {
		return r.failure(s, result), nil
	}
	out := reply{runner: r}
	return out.value(result, 0), nil
}

// setStrings sets a global to a list of strings.
func (r *runner) setStrings(name string, list []string) {
	t := r.m.NewTable(len(list))
	for i, s := range list {
		r.m.Charge(lua.StringSize + len(s))
		r.m.SetElement(t, i+1, s)
	}
	r.m.Set(r.m.Globals, name, t)
}

// failure returns the reply for an error that the script does not catch.
func (r *runner) failure(s *Script, v lua.Value) Value {
	out := Value{Kind: Error}
	text, ok := lua.ToText(v)
	if t, isTable := v.(*lua.Table); isTable {
		if text, ok = t.Get("err").(string); !ok {
			text = "ERR unknown error"
		}
		if lua.Truth(t.Get("ignore_error_stats_update")) {
			out.Int = 1
		}
	} else if text = "ERR " + text; !ok {
		text = "ERR " + lua.Text(v)
	}
	text = oneLine(text) + " script: " + s.sha
	if source, line, ok := r.m.Place(); ok {
		text += ", on " + oneLine(source) + ":" + strconv.Itoa(line)
	}
	out.Str = text + "."
	return out
}
