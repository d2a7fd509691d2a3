package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"mayfly/commands/scripts/lua"
)

// Version is the version of Redis that scripts see as redis.REDIS_VERSION.
const Version = "7.0.15"

const versionNumber = 7<<16 | 0<<8 | 15

// library sets the global redis.
func (r *runner) library() {
	constant := func(v lua.Value) lua.Builtin { return func(c *lua.Call) []lua.Value { return c.Return(v) } }
	t := r.m.Library("redis", map[string]lua.Builtin{
		"call":               func(c *lua.Call) []lua.Value { return r.call(c, true) },
		"pcall":              func(c *lua.Call) []lua.Value { return r.call(c, false) },
		"error_reply":        func(c *lua.Call) []lua.Value { return oneText(c, "err") },
		"status_reply":       func(c *lua.Call) []lua.Value { return oneText(c, "ok") },
		"sha1hex":            r.sha1hex,
		"log":                r.log,
		"setresp":            r.setResp,
		"set_repl":           setRepl,
		"replicate_commands": constant(true),
		"breakpoint":         constant(false),
		"debug":              func(*lua.Call) []lua.Value { return nil },
		"acl_check_cmd":      r.aclCheck,
	})
	for name, v := range map[string]lua.Value{
		"LOG_DEBUG": 0.0, "LOG_VERBOSE": 1.0, "LOG_NOTICE": 2.0, "LOG_WARNING": 3.0,
		"REPL_NONE": 0.0, "REPL_AOF": 1.0, "REPL_REPLICA": 2.0, "REPL_SLAVE": 2.0, "REPL_ALL": 3.0,
		"REDIS_VERSION": Version, "REDIS_VERSION_NUM": float64(versionNumber),
	} {
		r.m.Set(t, name, v)
	}
}

// raise raises an error reply.
func raise(c *lua.Call, text string) { lua.Throw(errorTable(c.M, text)) }

// args returns the arguments of a command. ok is false if one is neither string nor number.
func (r *runner) args(c *lua.Call) (args []string, ok bool) {
	args = make([]string, c.N())
	size := int64(0)
	for i := range args {
		switch v := c.Arg(i + 1).(type) {
		case string:
			args[i] = v
		case float64:
			args[i] = string(lua.AppendNumber(nil, v, 17))
		default:
			return nil, false
		}
		if size += int64(len(args[i])); size > r.limits.Arg {
			r.m.End(&ArgError{r.limits.Arg})
		}
	}
	r.m.Work(int(size >> 6)) // commands copy them
	return args, true
}

func (r *runner) call(c *lua.Call, raising bool) []lua.Value {
	refuse := func(text string) []lua.Value {
		if raising {
			raise(c, text)
		}
		return c.Return(errorTable(c.M, text))
	}
	if c.N() == 0 {
		return refuse("Please specify at least one argument for this redis lib call")
	}
	args, ok := r.args(c)
	if !ok {
		return refuse("Lua redis lib command arguments must be strings or integers")
	}
	r.m.Work(100)
	v, err := r.caller.Call(args)
	if err != nil {
		r.m.End(err)
	}
	result := r.toLua(&v)
	if raising && v.Kind == Error {
		lua.Throw(result)
	}
	return c.Return(result)
}

// oneText is redis.error_reply and redis.status_reply.
func oneText(c *lua.Call, name string) []lua.Value {
	text, ok := c.Arg(1).(string)
	switch {
	case c.N() != 1 || !ok:
		return c.Return(errorTable(c.M, "wrong number or type of arguments"))
	case name == "err":
		return c.Return(errorTable(c.M, "-"+strings.TrimPrefix(text, "-")))
	}
	return c.Return(field(c.M, name, text))
}

func (r *runner) sha1hex(c *lua.Call) []lua.Value {
	if c.N() != 1 {
		raise(c, "wrong number of arguments")
	}
	text, _ := lua.ToText(c.Arg(1))
	r.m.Work(len(text) >> 3)
	r.m.Charge(lua.StringSize + 40)
	sum := sha1.Sum([]byte(text))
	return c.Return(hex.EncodeToString(sum[:]))
}

func (r *runner) log(c *lua.Call) []lua.Value {
	if c.N() < 2 {
		raise(c, "redis.log() requires two arguments or more.")
	}
	f, ok := c.Number(c.Arg(1))
	if !ok {
		raise(c, "First argument must be a number (log level).")
	}
	level := lua.Truncate(f)
	if level < 0 || level > 3 {
		raise(c, "Invalid debug level.")
	}
	out := r.m.NewBuffer()
	for i := 2; i <= c.N(); i++ {
		if s, ok := lua.ToText(c.Arg(i)); ok {
			if i > 2 {
				out.Add(" ")
			}
			out.Add(s)
		}
	}
	r.caller.Log(int(level), out.Text())
	return nil
}

func (r *runner) setResp(c *lua.Call) []lua.Value {
	if c.N() != 1 {
		raise(c, "redis.setresp() requires one argument.")
	}
	f, _ := c.Number(c.Arg(1))
	proto := int(lua.Truncate(f))
	if proto != 2 && proto != 3 {
		raise(c, "RESP version must be 2 or 3.")
	}
	r.resp = proto
	r.caller.SetProtocol(proto)
	return nil
}

// setRepl checks its argument as Redis does. It changes nothing: the journal has the changes of a script, and
// followers always get them.
func setRepl(c *lua.Call) []lua.Value {
	if c.N() != 1 {
		raise(c, "redis.set_repl() requires one argument.")
	}
	f, _ := c.Number(c.Arg(1))
	if flags := lua.Truncate(f); flags&^3 != 0 {
		raise(c, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return nil
}

func (r *runner) aclCheck(c *lua.Call) []lua.Value {
	if c.N() == 0 {
		raise(c, "Please specify at least one argument for this redis lib call")
	}
	args, ok := r.args(c)
	if !ok {
		raise(c, "Lua redis lib command arguments must be strings or integers")
	}
	allowed, known := r.caller.Allowed(args)
	if !known {
		raise(c, "Invalid command passed to redis.acl_check_cmd()")
	}
	return c.Return(allowed)
}
