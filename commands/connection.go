package commands

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
)

// connectionCommands are what a client says about its own connection.
var connectionCommands = []Command{
	{
		Name: "auth", Syntax: "[username] password", Summary: "Authenticate to the server",
		Group: "connection", Since: "1.0.0", Arity: -2, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy,
		Differs: "The only user is `default`: there are no ACLs",
		Parse:   parseAuth,
	},
	{
		Name: "client", Summary: "A container for client connection commands",
		Group: "connection", Since: "2.4.0", Arity: -2,
		Sub: []Command{
			helpRow("client", "connection"),
			{
				Name: "getname", Summary: "Get the current connection name",
				Group: "connection", Since: "2.6.9", Arity: 2, Flags: NoScript | Loading | Stale,
				Parse: just(clientGetName),
			},
			{
				Name: "getredir", Summary: "Get tracking notifications redirection client ID if any",
				Group: "connection", Since: "6.0.0", Arity: 2, Flags: NoScript | Loading | Stale,
				Parse: just(func(*Context) Reply { return Integer(-1) }), // nothing is tracked
			},
			{
				Name: "id", Summary: "Returns the client ID for the current connection",
				Group: "connection", Since: "5.0.0", Arity: 2, Flags: NoScript | Loading | Stale,
				Parse: just(func(x *Context) Reply { return Integer(x.Session.ID) }),
			},
			{
				Name: "info", Summary: "Returns information about the current client connection.",
				Group: "connection", Since: "6.2.0", Arity: 2, Flags: NoScript | Loading | Stale,
				Tips:    "nondeterministic_output",
				Differs: "As `CLIENT LIST`",
				Parse:   parseClientInfo,
			},
			{
				Name: "kill", Syntax: "<ip:port | " + killOption + " [" + killOption + " ...]>",
				Summary: "Kill the connection of a client",
				Group:   "connection", Since: "2.4.0", Arity: -3, Flags: Admin | NoScript | Loading | Stale,
				Parse: parseClientKill,
			},
			{
				Name: "list", Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
				Summary: "Get the list of client connections",
				Group:   "connection", Since: "2.4.0", Arity: -2, Flags: Admin | NoScript | Loading | Stale,
				Tips:    "nondeterministic_output",
				Differs: "A connection has no descriptor and no buffers of its own while it is idle: `fd`, `qbuf-free`, `rbs`, `obl` and their like are -1 or 0, `qbuf` is that of the own connection. `oll` and `omem` count what has 16 KiB or is for a subscriber. `db` may be a name; an id named twice is listed once",
				Parse:   parseClientList,
			},
			{
				Name: "no-evict", Syntax: "<ON | OFF>", Summary: "Set client eviction mode for the current connection",
				Group: "connection", Since: "7.0.0", Arity: 3, Flags: Admin | NoScript | Loading | Stale,
				Differs: "A request of the client itself may still be refused",
				Parse: func(in *Input) (Run, error) {
					return parseOnOff(in, func(x *Context, on bool) { x.Session.Account.Exempt(on) })
				},
			},
			{
				Name: "no-touch", Syntax: "<ON | OFF>",
				Summary: "Controls whether commands sent by the client will alter the LRU/LFU of the keys they access.",
				Group:   "connection", Since: "7.2.0", Arity: 3, Flags: NoScript | Loading | Stale,
				Differs: "Accepted without effect: reads leave no trace",
				Parse:   func(in *Input) (Run, error) { return parseOnOff(in, func(*Context, bool) {}) },
			},
			{
				Name: "pause", Syntax: "timeout [WRITE | ALL]", Summary: "Stop processing commands from clients for some time",
				Group: "connection", Since: "2.9.50", Arity: -3, Flags: Admin | NoScript | Loading | Stale,
				Differs: "The purge of the dead goes on",
				Parse:   parseClientPause,
			},
			{
				Name: "reply", Syntax: "<ON | OFF | SKIP>", Summary: "Instruct the server whether to reply to commands",
				Group: "connection", Since: "3.2.0", Arity: 3, Flags: NoScript | Loading | Stale,
				Differs: "In a transaction it counts from the next command on; Redis cuts the reply of EXEC short",
				Parse:   parseClientReply,
			},
			{
				Name: "setinfo", Syntax: "<LIB-NAME libname | LIB-VER libver>",
				Summary: "Set client or connection specific info",
				Group:   "connection", Since: "7.2.0", Arity: 4, Flags: NoScript | Loading | Stale,
				Tips:  "request_policy:all_nodes response_policy:all_succeeded",
				Parse: parseClientSetInfo,
			},
			{
				Name: "setname", Syntax: "connection-name", Summary: "Set the current connection name",
				Group: "connection", Since: "2.6.9", Arity: 3, Flags: NoScript | Loading | Stale,
				Parse: parseClientSetName,
			},
			{
				Name: "trackinginfo", Summary: "Return information about server assisted client side caching for the current connection",
				Group: "connection", Since: "6.2.0", Arity: 2, Flags: NoScript | Loading | Stale,
				Parse: just(func(*Context) Reply {
					return Map(Bulk("flags"), Set(Bulk("off")), Bulk("redirect"), Integer(-1), Bulk("prefixes"), Array())
				}),
			},
			{
				Name: "unpause", Summary: "Resume processing of clients that were paused",
				Group: "connection", Since: "6.2.0", Arity: 2, Flags: Admin | NoScript | Loading | Stale,
				Parse: just(clientUnpause),
			},
		},
	},
	{
		Name: "echo", Syntax: "message", Summary: "Echo the given string",
		Group: "connection", Since: "1.0.0", Arity: 2, Flags: Loading | Stale | Fast,
		Parse: func(in *Input) (Run, error) {
			message := in.Args[1]
			return func(*Context) Reply { return Bulk(message) }, nil
		},
	},
	{
		Name: "hello", Syntax: "[protover [AUTH username password] [SETNAME clientname]]", Summary: "Handshake with Redis",
		Group: "connection", Since: "6.0.0", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy,
		Differs: "All options are checked before one takes effect. Redis runs AUTH before it finds a wrong option behind it",
		Parse:   parseHello,
	},
	{
		Name: "ping", Syntax: "[message]", Summary: "Ping the server",
		Group: "connection", Since: "1.0.0", Arity: -1, Flags: Fast | Listening,
		Tips:  "request_policy:all_shards response_policy:all_succeeded",
		Parse: parsePing,
	},
	{
		Name: "quit", Summary: "Close the connection",
		Group: "connection", Since: "1.0.0", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | AtOnce | Listening,
		Parse: just(func(x *Context) Reply {
			x.Session.Closing = true
			return OK
		}),
	},
	{
		Name: "reset", Summary: "Reset the connection",
		Group: "connection", Since: "6.2.0", Arity: 1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | AtOnce | Listening,
		Parse: just(reset),
	},
	{
		Name: "select", Syntax: "<index | container>", Summary: "Change the selected database for the current connection",
		Group: "connection", Since: "1.0.0", Arity: 2, Flags: Loading | Stale | Fast,
		Differs: "Takes the name of a container too. A word that is neither a number nor such a name has an error of its own",
		Parse:   parseSelect,
	},
}

// just is the Parse of a command whose arguments say nothing.
func just(run Run) func(*Input) (Run, error) {
	return func(*Input) (Run, error) { return run, nil }
}

func parsePing(in *Input) (Run, error) {
	if len(in.Args) > 2 {
		return nil, wrongArity("ping")
	}
	return ping, nil
}

func ping(x *Context) Reply {
	answer, message := Status("PONG"), ""
	if len(x.Input.Args) == 2 {
		message = x.Input.Args[1]
		answer = Bulk(message)
	}
	if x.Session.listening() { // to look like a message
		return Bulks("pong", message)
	}
	return answer
}

func parseSelect(in *Input) (Run, error) {
	name := in.Args[1]
	return func(x *Context) Reply {
		c, err := x.database(name)
		switch {
		case err == errNotInteger: // then it is the name of a container
			return Fail(unknownContainer(name))
		case err != nil:
			return Fail(err)
		}
		x.Session.change(func() { x.Session.database = c.Name() })
		return OK
	}, nil
}

func reset(x *Context) Reply {
	x.Engine.CloseSession(x.Session)
	x.Session.reset()
	x.Session.Authenticated = !x.Engine.Host.PasswordSet()
	return Status("RESET")
}

// defaultUser is the only user there is.
const defaultUser = "default"

// credentials are what AUTH and HELLO AUTH give.
type credentials struct{ user, password string }

// check tells whether the credentials are right. Without a password set any will do, as for a user
// of Redis with the rule nopass.
func (c *credentials) check(host Host) bool {
	return c.user == defaultUser && (!host.PasswordSet() || host.CheckPassword(c.password))
}

func parseAuth(in *Input) (Run, error) {
	given := credentials{user: defaultUser}
	switch len(in.Args) {
	case 2:
		given.password = in.Args[1]
		return func(x *Context) Reply {
			if !x.Engine.Host.PasswordSet() {
				return Fail(errNoPassword)
			}
			return authenticate(x, &given)
		}, nil
	case 3:
		given.user, given.password = in.Args[1], in.Args[2]
		return func(x *Context) Reply { return authenticate(x, &given) }, nil
	}
	return nil, errSyntax
}

// refuse is the error of wrong credentials; the log learns of it.
func (x *Context) refuse() error {
	if yes, skipped := x.Engine.wrongPassword.Now(); yes {
		x.Engine.Log.Warn().Str("addr", x.Session.Addr).Int("others_like_it", skipped).Msg("a client gave a wrong password")
	}
	return errWrongPass
}

func authenticate(x *Context, given *credentials) Reply {
	if !given.check(x.Engine.Host) {
		return Fail(x.refuse())
	}
	x.Session.Authenticated = true
	return OK
}

// hello is a parsed HELLO.
type hello struct {
	proto int // 0: as it is
	auth  *credentials
	name  *string
}

// parseHello checks all options before one takes effect, unlike Redis, which may have renamed the
// connection when it finds the next option wrong.
func parseHello(in *Input) (Run, error) {
	var h hello
	if len(in.Args) > 1 {
		proto, ok := redisfmt.ParseInt(in.Args[1])
		if !ok {
			return nil, errProtoVersion
		}
		if proto < 2 || proto > 3 {
			return nil, errNoProto
		}
		h.proto = int(proto)
	}
	for rest := in.Args[min(len(in.Args), 2):]; len(rest) > 0; {
		switch option := rest[0]; {
		case redisfmt.EqualFold(option, "AUTH") && len(rest) > 2:
			h.auth = &credentials{user: rest[1], password: rest[2]}
			rest = rest[3:]
		case redisfmt.EqualFold(option, "SETNAME") && len(rest) > 1:
			if err := checkSelfDescription("Client names", rest[1]); err != nil {
				return nil, err
			}
			h.name = &rest[1]
			rest = rest[2:]
		default:
			return nil, Error("ERR Syntax error in HELLO option '" + cut(redisfmt.CString(option)) + "'")
		}
	}
	return h.run, nil
}

func (h *hello) run(x *Context) Reply {
	s := x.Session
	if h.auth != nil {
		if r := authenticate(x, h.auth); r.Kind == KindError {
			return r
		}
	}
	if !s.Authenticated && x.Engine.Host.PasswordSet() {
		return Fail(errNoAuthHello)
	}
	s.change(func() {
		if h.proto != 0 {
			s.Proto = h.proto
		}
		if h.name != nil {
			s.name = strings.Clone(*h.name)
		}
	})
	return Map(
		Bulk("server"), Bulk("redis"), // what clients look for
		Bulk("version"), Bulk(redisVersion),
		Bulk("proto"), Count(s.Proto),
		Bulk("id"), Integer(s.ID),
		Bulk("mode"), Bulk("standalone"),
		Bulk("role"), Bulk("master"),
		Bulk("modules"), Array(),
	)
}

func clientGetName(x *Context) Reply {
	if x.Session.name == "" {
		return Null
	}
	return Bulk(x.Session.name)
}

func parseClientSetName(in *Input) (Run, error) {
	name := in.Args[2]
	if err := checkSelfDescription("Client names", name); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Session.change(func() { x.Session.name = strings.Clone(name) })
		return OK
	}, nil
}

// parseOnOff is for CLIENT NO-EVICT, and for NO-TOUCH, which does nothing: reads leave no trace.
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
		return nil, Error("ERR Unrecognized option '" + cut(redisfmt.CString(option)) + "'")
	}
	if err := checkSelfDescription(cut(option), value); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Session.change(func() { *field(x.Session) = strings.Clone(value) })
		return OK
	}, nil
}

func parseClientInfo(in *Input) (Run, error) {
	args := in.Args
	return func(x *Context) Reply { return Verbatim(x.Session.describe(x.Now(), args)) }, nil
}

// parseClientList reads CLIENT LIST. As in Redis, TYPE and ID cannot be combined.
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
				out.WriteString(s.describe(x.Now(), running))
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

// clientType gives what tells whether a session is of the type with this name.
func clientType(name string) (func(*Session) bool, error) {
	switch strings.ToLower(name) {
	case "normal":
		return func(s *Session) bool { return !s.IsSubscriber() }, nil
	case "pubsub":
		return (*Session).IsSubscriber, nil
	case "master", "replica", "slave":
		return func(*Session) bool { return false }, nil
	}
	return nil, Error("ERR Unknown client type '" + cut(redisfmt.CString(name)) + "'")
}

// sessionsByID picks the sessions with these ids, in their order and each once, from all by ascending
// id. Redis repeats a session whose id is repeated, which would make the reply as long as a client likes.
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
