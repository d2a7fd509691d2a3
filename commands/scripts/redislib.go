package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"mayfly/commands/scripts/lualib"

	lua "github.com/yuin/gopher-lua"
)

// Version is the version of Redis that scripts see as redis.REDIS_VERSION.
const Version = "7.0.15"

const versionNumber = 7<<16 | 0<<8 | 15

func (m *machine) redisTable(L *lua.LState) *lua.LTable {
	t := L.NewTable()
	for name, v := range map[string]lua.LValue{
		"LOG_DEBUG": lua.LNumber(0), "LOG_VERBOSE": lua.LNumber(1), "LOG_NOTICE": lua.LNumber(2), "LOG_WARNING": lua.LNumber(3),
		"REPL_NONE": lua.LNumber(0), "REPL_AOF": lua.LNumber(1), "REPL_REPLICA": lua.LNumber(2), "REPL_SLAVE": lua.LNumber(2), "REPL_ALL": lua.LNumber(3),
		"REDIS_VERSION": lua.LString(Version), "REDIS_VERSION_NUM": lua.LNumber(versionNumber),
	} {
		t.RawSetString(name, v)
	}
	for name, f := range map[string]lua.LGFunction{
		"call":               func(L *lua.LState) int { return m.redisCall(L, true) },
		"pcall":              func(L *lua.LState) int { return m.redisCall(L, false) },
		"error_reply":        redisErrorReply,
		"status_reply":       redisStatusReply,
		"sha1hex":            m.redisSHA1,
		"log":                m.redisLog,
		"setresp":            m.redisSetResp,
		"set_repl":           redisSetRepl,
		"replicate_commands": func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
		"breakpoint":         func(L *lua.LState) int { L.Push(lua.LFalse); return 1 },
		"debug":              func(L *lua.LState) int { return 0 },
		"acl_check_cmd":      m.redisACLCheck,
	} {
		t.RawSetString(name, L.NewFunction(f))
	}
	return t
}

// raiseReply raises an error reply of the redis library.
func raiseReply(L *lua.LState, text string) { throwValue(errorTable(L, text)) }

// commandArgs returns the arguments of a command. ok is false if one is neither string nor number.
func (m *machine) commandArgs(L *lua.LState) (args []string, ok bool) {
	args = make([]string, L.GetTop())
	size := int64(0)
	for i := range args {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			var buf [32]byte
			args[i] = string(lualib.AppendNumber(buf[:0], float64(v), 17))
		default:
			return nil, false
		}
		if size += int64(len(args[i])); size > m.limits.Arg {
			m.end(&ArgError{m.limits.Arg})
		}
	}
	return args, true
}

func (m *machine) redisCall(L *lua.LState, raising bool) int {
	refuse := func(text string) int {
		t := errorTable(L, text)
		if raising {
			throwValue(t)
		}
		L.Push(t)
		return 1
	}
	if L.GetTop() == 0 {
		return refuse("Please specify at least one argument for this redis lib call")
	}
	args, ok := m.commandArgs(L)
	if !ok {
		return refuse("Lua redis lib command arguments must be strings or integers")
	}
	m.Work(L, 100)
	v, err := m.caller.Call(args)
	if err != nil {
		m.end(err)
	}
	lv := m.toLua(L, &v)
	if raising && v.Kind == Error {
		throwValue(lv)
	}
	L.Push(lv)
	return 1
}

func redisErrorReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		L.Push(errorTable(L, "wrong number or type of arguments"))
		return 1
	}
	L.Push(errorTable(L, "-"+strings.TrimPrefix(string(text), "-")))
	return 1
}

func redisStatusReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		L.Push(errorTable(L, "wrong number or type of arguments"))
		return 1
	}
	L.Push(field(L, "ok", text))
	return 1
}

func (m *machine) redisSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "wrong number of arguments")
	}
	text := ""
	if lua.LVCanConvToString(L.Get(1)) {
		text = checkString(L, 1)
	}
	m.Work(L, len(text)>>3)
	sum := sha1.Sum([]byte(text))
	L.Push(lua.LString(hex.EncodeToString(sum[:])))
	return 1
}

func (m *machine) redisLog(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		raiseReply(L, "redis.log() requires two arguments or more.")
	}
	f, ok := lualib.ToNumber(L.Get(1))
	if !ok {
		raiseReply(L, "First argument must be a number (log level).")
	}
	level := lualib.Truncate(f)
	if level < 0 || level > 3 {
		raiseReply(L, "Invalid debug level.")
	}
	out := buffer{m: m, L: L}
	for i := 2; i <= n; i++ {
		if lua.LVCanConvToString(L.Get(i)) {
			if i > 2 {
				out.add(" ")
			}
			out.addValue(L.Get(i))
		}
	}
	m.caller.Log(int(level), string(out.b))
	return 0
}

func (m *machine) redisSetResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "redis.setresp() requires one argument.")
	}
	f, _ := lualib.ToNumber(L.Get(1))
	proto := int(lualib.Truncate(f))
	if proto != 2 && proto != 3 {
		raiseReply(L, "RESP version must be 2 or 3.")
	}
	m.resp = proto
	m.caller.SetProtocol(proto)
	return 0
}

// redisSetRepl checks its argument as Redis does. It changes nothing: the journal has the changes of a script,
// and followers always get them.
func redisSetRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "redis.set_repl() requires one argument.")
	}
	f, _ := lualib.ToNumber(L.Get(1))
	if flags := lualib.Truncate(f); flags&^3 != 0 {
		raiseReply(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

func (m *machine) redisACLCheck(L *lua.LState) int {
	if L.GetTop() == 0 {
		raiseReply(L, "Please specify at least one argument for this redis lib call")
	}
	args, ok := m.commandArgs(L)
	if !ok {
		raiseReply(L, "redis.acl_check_cmd() require a valid command")
	}
	allowed, known := m.caller.Allowed(args)
	if !known {
		raiseReply(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	L.Push(lua.LBool(allowed))
	return 1
}
