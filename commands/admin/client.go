package admin

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/redisfmt"
)

// clientCommand is about the connections of all clients.
var clientCommand = engine.Command{
	Name: "client", Since: "2.4.0", Summary: "A container for client connection commands",
	Sub: append(trackingCommands, []engine.Command{
		engine.HelpRow("client", "5.0.0"),
		{
			Name: "getname", Since: "2.6.9", Summary: "Get the current connection name",
			Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(runClientGetName),
		},
		{
			Name: "id", Since: "5.0.0", Summary: "Returns the client ID for the current connection",
			Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Integer(x.Session.ID) }),
		},
		{
			Name: "info", Since: "6.2.0", Summary: "Returns information about the current client connection.",
			Differs: "As `CLIENT LIST`",
			Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Tips: "nondeterministic_output", Parse: engine.NoParse(runClientInfo),
		},
		{
			Name: "kill", Syntax: "<ip:port | " + killOption + " [" + killOption + " ...]>", Arity: -3,
			Summary: "Kill the connection of a client",
			Differs: clientFilters,
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Touches: engine.TouchesVisible | engine.TouchesOthers, Databases: clientDatabases, Parse: parseClientKill,
		},
		{
			Name: "list", Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] [USER username] [ADDR ip:port] [LADDR ip:port]" +
				" [SKIPME <YES | NO>] [MAXAGE maxage] [NAME name] [IDLE idle] [FLAGS flags] [LIB-NAME lib-name] [LIB-VER lib-ver] [DB db] [IP ip]",
			Summary: "Get the list of client connections",
			Differs: "A connection has no descriptor and no buffers of its own while it is idle: `fd`, `rbs`, `obl` and their like are -1 or 0. `qbuf`, `qbuf-free` and `argv-mem` of another client are those of a command that is half read or waits, else 0. `oll` and `omem` count what has 16 KiB or is for a subscriber. `db` may be a name; an id named twice is listed once. " + clientFilters,
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Tips: "nondeterministic_output", Touches: engine.TouchesVisible | engine.TouchesOthers, Databases: clientDatabases, Parse: parseClientList,
		},
		{
			Name: "no-evict", Syntax: "<ON | OFF>", Since: "7.0.0", Summary: "Set client eviction mode for the current connection",
			Differs: "A request of the client itself may still be refused",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode,
			Parse: func(in *engine.Input) (engine.Run, error) {
				return parseOnOff(in, func(x *engine.Context, on bool) { x.Session.Memory.Protect(on) })
			},
		},
		{
			Name: "no-touch", Syntax: "<ON | OFF>", Since: "7.2.0",
			Summary: "Controls whether commands sent by the client will alter the LRU/LFU of the keys they access.",
			Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.OnNode,
			Parse: func(in *engine.Input) (engine.Run, error) {
				return parseOnOff(in, func(x *engine.Context, on bool) { x.Session.SetNoTouch(on) })
			},
		},
		{
			Name: "pause", Syntax: "timeout [WRITE | ALL]", Since: "2.9.50",
			Summary: "Stop processing commands from clients for some time",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Touches: engine.TouchesAll, Parse: parseClientPause,
		},
		{
			Name: "reply", Syntax: "<ON | OFF | SKIP>", Since: "3.2.0", Summary: "Instruct the server whether to reply to commands",
			Differs: "In a transaction it counts from the next command on; Redis cuts the reply of EXEC short",
			Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: parseClientReply,
		},
		{
			Name: "setinfo", Syntax: "<LIB-NAME libname | LIB-VER libver>", Since: "7.2.0", Summary: "Set client or connection specific info",
			Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: parseClientSetInfo,
		},
		{
			Name: "setname", Syntax: "connection-name", Since: "2.6.9", Summary: "Set the current connection name",
			Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: parseClientSetName,
		},
		{
			Name: "unblock", Syntax: "client-id [TIMEOUT | ERROR]", Since: "5.0.0",
			Summary: "Unblock a client blocked in a blocking command from a different connection",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Touches: engine.TouchesVisible, Parse: parseClientUnblock,
		},
		{
			Name: "unpause", Since: "6.2.0", Summary: "Resume processing of clients that were paused",
			Flags: engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(runClientUnpause),
		},
	}...),
}

func runClientGetName(x *engine.Context) engine.Reply {
	if x.Session.Name == "" {
		return engine.Null
	}
	return engine.Bulk(x.Session.Name)
}

func parseClientSetName(in *engine.Input) (engine.Run, error) {
	name := in.Args[2]
	if err := engine.CheckClientInfo("Client names", name); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		x.Session.SetName(strings.Clone(name))
		return engine.OK
	}, nil
}

// parseOnOff parses ON or OFF and calls set with it.
func parseOnOff(in *engine.Input, set func(x *engine.Context, on bool)) (engine.Run, error) {
	on := redisfmt.EqualFold(in.Args[2], "ON")
	if !on && !redisfmt.EqualFold(in.Args[2], "OFF") {
		return nil, engine.ErrSyntax
	}
	return func(x *engine.Context) engine.Reply {
		set(x, on)
		return engine.OK
	}, nil
}

func parseClientSetInfo(in *engine.Input) (engine.Run, error) {
	option, value := in.Args[2], in.Args[3]
	var field func(s *engine.Session) *string
	switch {
	case redisfmt.EqualFold(option, "LIB-NAME"):
		field = func(s *engine.Session) *string { return &s.LibName }
	case redisfmt.EqualFold(option, "LIB-VER"):
		field = func(s *engine.Session) *string { return &s.LibVer }
	default:
		return nil, engine.Errorf(errSetInfoOption, engine.Shown(option))
	}
	if err := engine.CheckClientInfo(engine.Truncate(option), value); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		x.Session.Update(func() { *field(x.Session) = strings.Clone(value) })
		return engine.OK
	}, nil
}

func runClientInfo(x *engine.Context) engine.Reply {
	return engine.Verbatim(x.Session.ClientLine(x.Now(), x.Input.Args))
}

// parseClientList parses CLIENT LIST.
func parseClientList(in *engine.Input) (engine.Run, error) {
	args := in.Args
	f := clientFilter{self: true}
	if err := f.parse(args[2:], errClientID); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		matches, err := f.matcher(x)
		if err != nil {
			return engine.Fail(err)
		}
		sessions := x.Engine.Host.Sessions()
		if f.ids != nil {
			sessions = sessionsByID(sessions, f.ids)
		}
		var out strings.Builder
		for _, s := range sessions {
			var running []string
			switch {
			case !matches(s):
				continue
			case s == x.Session:
				running = args
			}
			out.WriteString(s.ClientLine(x.Now(), running))
		}
		return engine.Verbatim(out.String())
	}, nil
}

// sessionsByID returns the sessions with the ids, in their order, each once. all is sorted by id. Redis
// repeats a session for a repeated id, so the client could make the reply as long as it likes.
func sessionsByID(all []*engine.Session, ids []int64) []*engine.Session {
	var picked []*engine.Session
	has := make([]bool, len(all))
	for _, id := range ids {
		at, found := slices.BinarySearchFunc(all, id, func(s *engine.Session, id int64) int { return cmp.Compare(s.ID, id) })
		if found && !has[at] {
			has[at] = true
			picked = append(picked, all[at])
		}
	}
	return picked
}

func parseClientPause(in *engine.Input) (engine.Run, error) {
	all := true
	switch len(in.Args) {
	case 3:
	case 4:
		all = redisfmt.EqualFold(in.Args[3], "ALL")
		if !all && !redisfmt.EqualFold(in.Args[3], "WRITE") {
			return nil, errPauseMode
		}
	default:
		return nil, engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "CLIENT")
	}
	ms, err := items.ParseTimeout(in.Args[2])
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		x.Engine.Pause.Extend(x.Engine.PauseTime(), ms, all, x.Engine.KeepDeadUntil)
		return engine.OK
	}, nil
}

func runClientUnpause(x *engine.Context) engine.Reply {
	x.Engine.Pause.Finish(nil)
	return engine.OK
}

func parseClientUnblock(in *engine.Input) (engine.Run, error) {
	withError := false
	switch {
	case len(in.Args) > 4:
		return nil, engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "CLIENT")
	case len(in.Args) == 3, redisfmt.EqualFold(in.Args[3], "TIMEOUT"):
	case redisfmt.EqualFold(in.Args[3], "ERROR"):
		withError = true
	default:
		return nil, errUnblockReason
	}
	id, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	return func(x *engine.Context) engine.Reply {
		theirs := func(s *engine.Session) bool { return s.ID == id && !mayTouch(x, s) }
		if !x.SeesAll() && slices.ContainsFunc(x.Engine.Host.Sessions(), theirs) {
			return engine.Flag(false)
		}
		return engine.Flag(x.Engine.Waiters.Unblock(id, withError))
	}, nil
}

// clientFilters says how the filters differ from those of Redis.
const clientFilters = "Has the filters of Valkey 9.0 but `CAPA`, most also as `NOT-…`: all must hold. `DB` takes the name of a container too"

const killOption = "<[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] |" +
	" [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no] | [MAXAGE maxage] | [NAME name] | [IDLE idle] | [FLAGS flags] |" +
	" [LIB-NAME lib-name] | [LIB-VER lib-ver] | [DB db] | [IP ip]>"

// clientTest judges a session.
type clientTest func(s *engine.Session, f *engine.ClientFacts) bool

// clientFilter selects the connections that CLIENT LIST shows and CLIENT KILL closes: those that meet all its
// conditions.
type clientFilter struct {
	self  bool                  // includes the caller's connection
	ids   []int64               // of ID, in their order; nil: any
	tests map[string]clientTest // by their words
	// databases are the values of DB and NOT-DB, which the Run looks up.
	databases map[string]string
	users     []string // the values of USER and NOT-USER, which must exist
	fault     error    // of the words behind them; Redis looks for the users first
}

// parse reads the conditions. wrongID is the error of an id.
func (f *clientFilter) parse(args []string, wrongID error) error {
	if f.fault = f.parseAll(args, wrongID); len(f.users) == 0 {
		return f.fault
	}
	return nil
}

// parseAll reads the conditions. A repeated one replaces the first, as in Redis.
func (f *clientFilter) parseAll(args []string, wrongID error) error {
	f.tests, f.databases = map[string]clientTest{}, map[string]string{}
	for len(args) > 0 {
		word := strings.ToUpper(args[0])
		name, not := strings.CutPrefix(word, "NOT-")
		if len(args) == 1 {
			return engine.ErrSyntax
		}
		used := 2
		var test clientTest
		var err error
		switch {
		case name == "ID":
			var ids []int64
			if ids, err = parseClientIDs(args[1:], wrongID); err != nil {
				return err
			}
			used = 1 + len(ids)
			test = func(s *engine.Session, _ *engine.ClientFacts) bool { return slices.Contains(ids, s.ID) }
			if !not {
				f.ids = ids
			}
		case name == "DB":
			f.databases[word] = args[1]
		case word == "SKIPME":
			f.self = redisfmt.EqualFold(args[1], "NO")
			if !f.self && !redisfmt.EqualFold(args[1], "YES") {
				return engine.ErrSyntax
			}
		default:
			if name == "USER" {
				f.users = append(f.users, args[1])
			}
			if test, err = parseClientTest(name, args[1], not); err != nil {
				return err
			}
		}
		if not && test != nil {
			holds := test
			test = func(s *engine.Session, f *engine.ClientFacts) bool { return !holds(s, f) }
		}
		if test != nil {
			f.tests[word] = test
		}
		args = args[used:]
	}
	return nil
}

// parseClientIDs reads the ids at the head of args, at least one. As in Valkey another word ends them.
func parseClientIDs(args []string, wrong error) (ids []int64, err error) {
	for _, arg := range args {
		id, ok := redisfmt.ParseInt(arg)
		switch {
		case wrong == errKillID && ok && id < 1:
			return nil, wrong
		case !ok && len(ids) == 0:
			return nil, wrong
		case !ok:
			return ids, nil
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// parseClientTest reads a condition with one value. A time has no opposite.
func parseClientTest(name, value string, not bool) (clientTest, error) {
	text := func(of func(s *engine.Session, f *engine.ClientFacts) string) (clientTest, error) {
		return func(s *engine.Session, f *engine.ClientFacts) bool { return of(s, f) == value }, nil
	}
	switch name {
	case "ADDR":
		return text(func(s *engine.Session, _ *engine.ClientFacts) string { return s.Addr })
	case "LADDR":
		return text(func(s *engine.Session, _ *engine.ClientFacts) string { return s.LAddr })
	case "IP":
		return text(func(s *engine.Session, _ *engine.ClientFacts) string { return ipOf(s.Addr) })
	case "NAME":
		return text(func(_ *engine.Session, f *engine.ClientFacts) string { return f.Name })
	case "LIB-NAME":
		return text(func(_ *engine.Session, f *engine.ClientFacts) string { return f.LibName })
	case "LIB-VER":
		return text(func(_ *engine.Session, f *engine.ClientFacts) string { return f.LibVer })
	case "FLAGS":
		if strings.Trim(value, clientFlags) != "" {
			return nil, engine.Errorf(errClientFlags, engine.Shown(value))
		}
		return func(_ *engine.Session, f *engine.ClientFacts) bool {
			return !strings.ContainsFunc(value, func(letter rune) bool { return !strings.ContainsRune(f.Flags, letter) })
		}, nil
	case "TYPE":
		return clientType(value)
	case "USER":
		return text(func(s *engine.Session, _ *engine.ClientFacts) string { return s.User() })
	case "MAXAGE", "IDLE":
		if not {
			return nil, engine.ErrSyntax
		}
		seconds, ok := redisfmt.ParseInt(value)
		switch {
		case !ok:
			return nil, engine.Errorf(errClientAge, strings.ToLower(name))
		case seconds <= 0:
			return nil, engine.Errorf(errClientAgeZero, strings.ToLower(name))
		case name == "IDLE":
			return func(_ *engine.Session, f *engine.ClientFacts) bool { return f.Idle >= seconds }, nil
		}
		return func(_ *engine.Session, f *engine.ClientFacts) bool { return f.Age >= seconds }, nil
	}
	return nil, engine.ErrSyntax
}

// clientFlags are the letters that FLAGS may name, those of Valkey. Some belong to no connection here.
const clientFlags = "OSMPxbtRBdcuAUreTIN"

// ipOf returns the address of a connection without its port; empty: it has none.
func ipOf(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" { // a Unix socket
		return ""
	}
	return host
}

// clientType returns the test of a type of sessions.
func clientType(name string) (clientTest, error) {
	switch strings.ToLower(name) {
	case "normal":
		return func(_ *engine.Session, f *engine.ClientFacts) bool { return !f.Subscriber }, nil
	case "pubsub":
		return func(_ *engine.Session, f *engine.ClientFacts) bool { return f.Subscriber }, nil
	case "master", "replica", "slave":
		return func(*engine.Session, *engine.ClientFacts) bool { return false }, nil
	}
	return nil, engine.Errorf(errClientType, engine.Shown(name))
}

// matcher returns the predicate of the filter, with its databases looked up.
func (f *clientFilter) matcher(x *engine.Context) (func(s *engine.Session) bool, error) {
	for word, name := range f.databases {
		c, err := items.DatabaseByName(x, name)
		if err != nil {
			return nil, err
		}
		number, is := c.DB(), word == "DB"
		f.tests[word] = func(_ *engine.Session, f *engine.ClientFacts) bool { return (f.DatabaseNumber == number) == is }
	}
	table := x.Engine.Host.Users().Table()
	for _, name := range f.users {
		if table.User(name) == nil {
			return nil, engine.Errorf(errNoSuchUser, engine.Shown(name))
		}
	}
	if f.fault != nil {
		return nil, f.fault
	}
	self, now := x.Session, x.Now()
	return func(s *engine.Session) bool {
		if s == self && !f.self || !mayTouch(x, s) {
			return false
		}
		facts := s.Facts(now)
		for _, test := range f.tests {
			if !test(s, &facts) {
				return false
			}
		}
		return true
	}, nil
}

// mayTouch reports whether the user may list or end a session: who does not see all containers may do so only
// with those of the same user.
func mayTouch(x *engine.Context, s *engine.Session) bool {
	return x.SeesAll() || s.User() == x.Session.User()
}

// clientDatabases returns the databases that the filters of CLIENT LIST and CLIENT KILL name.
func clientDatabases(args []string) (names []string) {
	for i := 2; i < len(args)-1; i++ {
		if redisfmt.EqualFold(args[i], "DB") || redisfmt.EqualFold(args[i], "NOT-DB") {
			names = append(names, args[i+1])
		}
	}
	return names
}

// parseClientKill parses both forms of CLIENT KILL. The old form has an address and replies whether there
// was such a client. The new form has options and replies the number of clients.
func parseClientKill(in *engine.Input) (engine.Run, error) {
	var f clientFilter
	old := len(in.Args) == 3
	options := in.Args[2:]
	if old {
		options = []string{"ADDR", in.Args[2], "SKIPME", "NO"}
	}
	if err := f.parse(options, errKillID); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		matches, err := f.matcher(x)
		if err != nil {
			return engine.Fail(err)
		}
		killed := x.Engine.Host.Disconnect(func(s *engine.Session) bool { return s != x.Session && matches(s) })
		if matches(x.Session) { // it gets its reply first
			x.Close = true
			killed++
		}
		switch {
		case !old:
			return engine.Count(killed)
		case killed == 0:
			return engine.Fail(errNoSuchClient)
		}
		return engine.OK
	}, nil
}

func parseClientReply(in *engine.Input) (engine.Run, error) {
	word := in.Args[2]
	set := map[string]func(*engine.ReplyMode){
		"ON":   func(m *engine.ReplyMode) { *m = engine.ReplyMode{} },
		"OFF":  func(m *engine.ReplyMode) { m.Off = true },
		"SKIP": func(m *engine.ReplyMode) { m.SkipNext = !m.Off },
	}
	for name, apply := range set {
		if redisfmt.EqualFold(word, name) {
			return func(x *engine.Context) engine.Reply {
				apply(&x.Session.Replies)
				return engine.OK
			}, nil
		}
	}
	return nil, engine.ErrSyntax
}
