package commands

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
)

// clientCommand is about the connections of all clients.
var clientCommand = Command{
	Name: "client", Since: "2.4.0", Summary: "A container for client connection commands",
	Sub: []Command{
		helpRow("client", "5.0.0"),
		{
			Name: "getname", Since: "2.6.9", Summary: "Get the current connection name",
			Flags: NoScript | Loading | Stale | OnNode, Parse: noParse(runClientGetName),
		},
		{
			Name: "getredir", Since: "6.0.0", Summary: "Get tracking notifications redirection client ID if any",
			Flags: NoScript | Loading | Stale | OnNode,
			Parse: noParse(func(*Context) Reply { return Integer(-1) }), // nothing is tracked
		},
		{
			Name: "id", Since: "5.0.0", Summary: "Returns the client ID for the current connection",
			Flags: NoScript | Loading | Stale | OnNode, Parse: noParse(func(x *Context) Reply { return Integer(x.Session.ID) }),
		},
		{
			Name: "info", Since: "6.2.0", Summary: "Returns information about the current client connection.",
			Differs: "As `CLIENT LIST`",
			Flags:   NoScript | Loading | Stale | OnNode, Tips: "nondeterministic_output", Parse: noParse(runClientInfo),
		},
		{
			Name: "kill", Syntax: "<ip:port | " + killOption + " [" + killOption + " ...]>", Arity: -3,
			Summary: "Kill the connection of a client",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Parse: parseClientKill,
		},
		{
			Name: "list", Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
			Summary: "Get the list of client connections",
			Differs: "A connection has no descriptor and no buffers of its own while it is idle: `fd`, `rbs`, `obl` and their like are -1 or 0. `qbuf`, `qbuf-free` and `argv-mem` of another client are those of a command that is half read or waits, else 0. `oll` and `omem` count what has 16 KiB or is for a subscriber. `db` may be a name; an id named twice is listed once",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Tips: "nondeterministic_output", Parse: parseClientList,
		},
		{
			Name: "no-evict", Syntax: "<ON | OFF>", Since: "7.0.0", Summary: "Set client eviction mode for the current connection",
			Differs: "A request of the client itself may still be refused",
			Flags:   Admin | NoScript | Loading | Stale | OnNode,
			Parse: func(in *Input) (Run, error) {
				return parseOnOff(in, func(x *Context, on bool) { x.Session.Memory.Protect(on) })
			},
		},
		{
			Name: "no-touch", Syntax: "<ON | OFF>", Since: "7.2.0",
			Summary: "Controls whether commands sent by the client will alter the LRU/LFU of the keys they access.",
			Flags:   NoScript | Loading | Stale | OnNode,
			Parse: func(in *Input) (Run, error) {
				return parseOnOff(in, func(x *Context, on bool) { x.Session.setNoTouch(on) })
			},
		},
		{
			Name: "pause", Syntax: "timeout [WRITE | ALL]", Since: "2.9.50",
			Summary: "Stop processing commands from clients for some time",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Parse: parseClientPause,
		},
		{
			Name: "reply", Syntax: "<ON | OFF | SKIP>", Since: "3.2.0", Summary: "Instruct the server whether to reply to commands",
			Differs: "In a transaction it counts from the next command on; Redis cuts the reply of EXEC short",
			Flags:   NoScript | Loading | Stale | OnNode, Parse: parseClientReply,
		},
		{
			Name: "setinfo", Syntax: "<LIB-NAME libname | LIB-VER libver>", Since: "7.2.0", Summary: "Set client or connection specific info",
			Flags: NoScript | Loading | Stale | OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: parseClientSetInfo,
		},
		{
			Name: "setname", Syntax: "connection-name", Since: "2.6.9", Summary: "Set the current connection name",
			Flags: NoScript | Loading | Stale | OnNode, Parse: parseClientSetName,
		},
		{
			Name: "trackinginfo", Since: "6.2.0",
			Summary: "Return information about server assisted client side caching for the current connection",
			Flags:   NoScript | Loading | Stale | OnNode,
			Parse: noParse(func(*Context) Reply {
				return Map(Bulk("flags"), Set(Bulk("off")), Bulk("redirect"), Integer(-1), Bulk("prefixes"), Array())
			}),
		},
		{
			Name: "unblock", Syntax: "client-id [TIMEOUT | ERROR]", Since: "5.0.0",
			Summary: "Unblock a client blocked in a blocking command from a different connection",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Parse: parseClientUnblock,
		},
		{
			Name: "unpause", Since: "6.2.0", Summary: "Resume processing of clients that were paused",
			Flags: Admin | NoScript | Loading | Stale | OnNode, Parse: noParse(runClientUnpause),
		},
	},
}

func runClientGetName(x *Context) Reply {
	if x.Session.name == "" {
		return Null
	}
	return Bulk(x.Session.name)
}

func parseClientSetName(in *Input) (Run, error) {
	name := in.Args[2]
	if err := checkClientInfo("Client names", name); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Session.setName(strings.Clone(name))
		return OK
	}, nil
}

// parseOnOff parses ON or OFF and calls set with it.
func parseOnOff(in *Input, set func(x *Context, on bool)) (Run, error) {
	on := redisfmt.EqualFold(in.Args[2], "ON")
	if !on && !redisfmt.EqualFold(in.Args[2], "OFF") {
		return nil, errSyntax
	}
	return func(x *Context) Reply {
		set(x, on)
		return OK
	}, nil
}

func parseClientSetInfo(in *Input) (Run, error) {
	option, value := in.Args[2], in.Args[3]
	var field func(s *Session) *string
	switch {
	case redisfmt.EqualFold(option, "LIB-NAME"):
		field = func(s *Session) *string { return &s.libName }
	case redisfmt.EqualFold(option, "LIB-VER"):
		field = func(s *Session) *string { return &s.libVer }
	default:
		return nil, errorf(errSetInfoOption, shown(option))
	}
	if err := checkClientInfo(truncate(option), value); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Session.update(func() { *field(x.Session) = strings.Clone(value) })
		return OK
	}, nil
}

func runClientInfo(x *Context) Reply { return Verbatim(x.Session.clientLine(x.Now(), x.Input.Args)) }

// parseClientList parses CLIENT LIST. As in Redis, TYPE and ID exclude each other.
func parseClientList(in *Input) (Run, error) {
	args := in.Args
	list := func(pick func([]*Session) []*Session) (Run, error) {
		return func(x *Context) Reply {
			var out strings.Builder
			for _, s := range pick(x.Engine.Host.Sessions()) {
				var running []string
				if s == x.Session {
					running = args
				}
				out.WriteString(s.clientLine(x.Now(), running))
			}
			return Verbatim(out.String())
		}, nil
	}
	switch {
	case len(args) == 2:
		return list(func(all []*Session) []*Session { return all })
	case len(args) == 4 && redisfmt.EqualFold(args[2], "TYPE"):
		is, err := clientType(args[3])
		if err != nil {
			return nil, err
		}
		return list(func(all []*Session) []*Session {
			return slices.DeleteFunc(all, func(s *Session) bool { return !is(s) })
		})
	case len(args) > 3 && redisfmt.EqualFold(args[2], "ID"):
		ids := make([]int64, 0, len(args)-3)
		for _, arg := range args[3:] {
			id, ok := redisfmt.ParseInt(arg)
			if !ok {
				return nil, errClientID
			}
			ids = append(ids, id)
		}
		return list(func(all []*Session) []*Session { return sessionsByID(all, ids) })
	}
	return nil, errSyntax
}

// clientType returns the predicate of a type of sessions.
func clientType(name string) (func(*Session) bool, error) {
	switch strings.ToLower(name) {
	case "normal":
		return func(s *Session) bool { return !s.IsSubscriber() }, nil
	case "pubsub":
		return (*Session).IsSubscriber, nil
	case "master", "replica", "slave":
		return func(*Session) bool { return false }, nil
	}
	return nil, errorf(errClientType, shown(name))
}

// sessionsByID returns the sessions with the ids, in their order, each once. all is sorted by id. Redis
// repeats a session for a repeated id, so the client could make the reply as long as it likes.
func sessionsByID(all []*Session, ids []int64) []*Session {
	var picked []*Session
	has := make([]bool, len(all))
	for _, id := range ids {
		at, found := slices.BinarySearchFunc(all, id, func(s *Session, id int64) int { return cmp.Compare(s.ID, id) })
		if found && !has[at] {
			has[at] = true
			picked = append(picked, all[at])
		}
	}
	return picked
}

func parseClientPause(in *Input) (Run, error) {
	all := true
	switch len(in.Args) {
	case 3:
	case 4:
		all = redisfmt.EqualFold(in.Args[3], "ALL")
		if !all && !redisfmt.EqualFold(in.Args[3], "WRITE") {
			return nil, errPauseMode
		}
	default:
		return nil, errorf(errSubcommandCall, shown(in.Args[1]), "CLIENT")
	}
	ms, err := parseTimeout(in.Args[2])
	if err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Engine.pause.extend(x.Now(), ms, all, x.Engine.keepDeadUntil)
		return OK
	}, nil
}

func runClientUnpause(x *Context) Reply {
	x.Engine.pause.finish(nil)
	return OK
}

func parseClientUnblock(in *Input) (Run, error) {
	why := waitTimeout
	switch {
	case len(in.Args) > 4:
		return nil, errorf(errSubcommandCall, shown(in.Args[1]), "CLIENT")
	case len(in.Args) == 3, redisfmt.EqualFold(in.Args[3], "TIMEOUT"):
	case redisfmt.EqualFold(in.Args[3], "ERROR"):
		why = waitError
	default:
		return nil, errUnblockReason
	}
	id, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, errNotInteger
	}
	return func(x *Context) Reply { return Flag(x.Engine.waiters.unblock(id, why)) }, nil
}

const killOption = "<[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] |" +
	" [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]>"

// killFilter selects the connections that CLIENT KILL closes: those that meet all its conditions.
type killFilter struct {
	id          int64 // 0 for any
	addr, laddr *string
	kind        func(*Session) bool
	self        bool // includes the caller's connection
}

// parseClientKill parses both forms of CLIENT KILL. The old form has an address and replies whether there
// was such a client. The new form has options and replies the number of clients.
func parseClientKill(in *Input) (Run, error) {
	if len(in.Args) == 3 {
		f := killFilter{addr: &in.Args[2], self: true}
		return func(x *Context) Reply {
			if f.kill(x) == 0 {
				return Fail(errNoSuchClient)
			}
			return OK
		}, nil
	}
	var f killFilter
	for rest := in.Args[2:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 {
			return nil, errSyntax
		}
		if err := f.addOption(rest[0], &rest[1]); err != nil {
			return nil, err
		}
	}
	return func(x *Context) Reply { return Count(f.kill(x)) }, nil
}

// addOption adds a condition. A repeated condition replaces the first, as in Redis.
func (f *killFilter) addOption(name string, value *string) (err error) {
	switch strings.ToUpper(name) {
	case "ID":
		id, ok := redisfmt.ParseInt(*value)
		if !ok || id < 1 {
			return errKillID
		}
		f.id = id
	case "ADDR":
		f.addr = value
	case "LADDR":
		f.laddr = value
	case "TYPE":
		f.kind, err = clientType(*value)
	case "USER":
		if *value != defaultUser {
			return errorf(errNoSuchUser, shown(*value))
		}
	case "SKIPME":
		switch {
		case redisfmt.EqualFold(*value, "YES"):
			f.self = false
		case redisfmt.EqualFold(*value, "NO"):
			f.self = true
		default:
			return errSyntax
		}
	default:
		return errSyntax
	}
	return err
}

func (f *killFilter) matches(s *Session) bool {
	return (f.id == 0 || f.id == s.ID) &&
		(f.addr == nil || *f.addr == s.Addr) &&
		(f.laddr == nil || *f.laddr == s.LAddr) &&
		(f.kind == nil || f.kind(s))
}

// kill closes the connections and returns their number. The caller gets its reply first.
func (f *killFilter) kill(x *Context) int {
	self := x.Session
	killed := x.Engine.Host.Disconnect(func(s *Session) bool { return s != self && f.matches(s) })
	if f.self && f.matches(self) {
		x.close = true
		killed++
	}
	return killed
}

// replyMode is the set of replies that a client wants (CLIENT REPLY). The zero value is all replies.
type replyMode struct {
	off      bool
	skip     bool // skip the reply of the running command
	skipNext bool // skip the reply of the next command
}

// filter drops the reply if the client does not want it. The replies of subscriptions are messages and
// always sent, as in Redis.
func (m *replyMode) filter(r *Reply) {
	silent := m.off || m.skip || m.skipNext
	m.skip, m.skipNext = m.skipNext, false
	if silent && r.Kind != KindSeveral {
		*r = Reply{}
	}
}

// filterExec is filter for the single reply of EXEC. before is the mode before EXEC. An ON or OFF within
// the transaction counts from the next command on. A SKIP has no effect: the reply after it is part of
// the array.
func (m *replyMode) filterExec(before replyMode, r *Reply) {
	off := m.off
	*m = before
	m.filter(r)
	m.off = off
}

// reset is the effect of RESET. A running skip drops its reply.
func (m *replyMode) reset() { m.off, m.skipNext = false, false }

func parseClientReply(in *Input) (Run, error) {
	word := in.Args[2]
	set := map[string]func(*replyMode){
		"ON":   func(m *replyMode) { *m = replyMode{} },
		"OFF":  func(m *replyMode) { m.off = true },
		"SKIP": func(m *replyMode) { m.skipNext = !m.off },
	}
	for name, apply := range set {
		if redisfmt.EqualFold(word, name) {
			return func(x *Context) Reply {
				apply(&x.Session.replies)
				return OK
			}, nil
		}
	}
	return nil, errSyntax
}
