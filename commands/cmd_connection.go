package commands

import (
	"strings"

	"mayfly/commands/redisfmt"
)

// connectionCommands are about the client's own connection.
var connectionCommands = []Command{
	{
		Name: "auth", Syntax: "[username] password", Since: "1.0.0", Summary: "Authenticate to the server",
		Differs: "The only user is `default`: there are no ACLs",
		Flags:   NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | OnNode, Parse: parseAuth, Secrets: authSecrets,
	},
	clientCommand,
	{
		Name: "echo", Syntax: "message", Since: "1.0.0", Summary: "Echo the given string",
		Flags: Loading | Stale | Fast | OnNode,
		Parse: func(in *Input) (Run, error) {
			message := in.Args[1]
			return func(*Context) Reply { return Bulk(message) }, nil
		},
	},
	{
		Name: "hello", Syntax: "[protover [AUTH username password] [SETNAME clientname]]", Since: "6.0.0", Summary: "Handshake with Redis",
		Differs: "All options are checked before one takes effect. Redis runs AUTH before it finds a wrong option behind it",
		Flags:   NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | OnNode, Parse: parseHello, Secrets: helloSecrets,
	},
	{
		Name: "ping", Syntax: "[message]", Since: "1.0.0", Summary: "Ping the server",
		Flags: Fast | AllowSubscribed | OnNode, Tips: "request_policy:all_shards response_policy:all_succeeded", Parse: parsePing,
	},
	{
		Name: "quit", Since: "1.0.0", Arity: -1, Summary: "Close the connection",
		Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | Immediate | AllowSubscribed | OnNode,
		Parse: noParse(func(x *Context) Reply {
			x.close = true
			return OK
		}),
	},
	{
		Name: "reset", Since: "6.2.0", Summary: "Reset the connection",
		Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | Immediate | AllowSubscribed | OnNode, Parse: noParse(runReset),
	},
	{
		Name: "select", Syntax: "<index | container>", Since: "1.0.0", Summary: "Change the selected database for the current connection",
		Differs: "Takes the number or the name of any container. A word that is neither a number nor such a name has an error of its own",
		Flags:   Loading | Stale | Fast | OnNode, Parse: parseSelect,
	},
}

// noParse returns the Parse of a command whose arguments need no parsing.
func noParse(run Run) func(*Input) (Run, error) {
	return func(*Input) (Run, error) { return run, nil }
}

func parsePing(in *Input) (Run, error) {
	if len(in.Args) > 2 {
		return nil, errorf(errWrongArity, "ping")
	}
	return runPing, nil
}

func runPing(x *Context) Reply {
	answer, message := Status("PONG"), ""
	if len(x.Input.Args) == 2 {
		message = x.Input.Args[1]
		answer = Bulk(message)
	}
	if x.Session.inSubscribedMode() { // in the form of a message
		return Bulks("pong", message)
	}
	return answer
}

func parseSelect(in *Input) (Run, error) {
	name := in.Args[1]
	return func(x *Context) Reply {
		if x.Session.service == serveDetached {
			if name != "0" {
				return Fail(x.Engine.notLoaded())
			}
			x.Session.update(func() { x.Session.database, x.Session.databaseNumber = "0", 0 })
			return OK
		}
		c, err := x.databaseByName(name)
		switch {
		case err == errNotInteger: // the name of a container
			return Fail(unknownContainer(name))
		case err != nil:
			return Fail(err)
		}
		x.Session.update(func() { x.Session.database, x.Session.databaseNumber = c.Name(), c.DB() })
		return OK
	}, nil
}

func runReset(x *Context) Reply {
	x.Engine.CloseSession(x.Session)
	x.Session.reset()
	x.Session.Authenticated.Store(!x.Engine.Host.PasswordSet())
	x.close = x.Session.deposed.Load() // see disconnectLed
	return Status("RESET")
}

// defaultUser is the name of the only user.
const defaultUser = "default"

func authSecrets(args []string) (secrets []int) {
	for i := range args[1:] {
		secrets = append(secrets, i+1)
	}
	return secrets
}

func helloSecrets(args []string) (secrets []int) {
	for i := 2; i < len(args); i++ {
		if redisfmt.EqualFold(args[i], "AUTH") {
			secrets = append(secrets, i+1, i+2)
			i += 2
		}
	}
	return secrets
}

// credentials are those of AUTH and HELLO AUTH.
type credentials struct{ user, password string }

// valid reports whether the credentials are right. Without a password any are right, as for a user of
// Redis with the rule nopass.
func (c *credentials) valid(host Host) bool {
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

// wrongPassword counts wrong credentials and returns their error.
func (x *Context) wrongPassword() error {
	x.Engine.auth.noteWrong(x.Session)
	x.Engine.logWrongPasswords()
	return errWrongPass
}

func authenticate(x *Context, given *credentials) Reply {
	if !given.valid(x.Engine.Host) {
		return Fail(x.wrongPassword())
	}
	x.Session.Authenticated.Store(true)
	x.Engine.auth.noteRight(x.Session)
	return OK
}

// hello is a parsed HELLO.
type hello struct {
	proto int // 0: unchanged
	auth  *credentials
	name  *string
}

// parseHello parses HELLO. It checks all options before one takes effect. Redis may have renamed the
// connection before it finds a wrong option.
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
			if err := checkClientInfo("Client names", rest[1]); err != nil {
				return nil, err
			}
			h.name = &rest[1]
			rest = rest[2:]
		default:
			return nil, errorf(errHelloOption, shown(option))
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
	if !s.Authenticated.Load() && x.Engine.Host.PasswordSet() {
		return Fail(errNoAuthHello)
	}
	s.update(func() {
		if h.proto != 0 {
			s.Proto = h.proto
		}
	})
	if h.name != nil {
		s.setName(strings.Clone(*h.name))
	}
	return Map(
		Bulk("server"), Bulk("redis"), // as clients expect
		Bulk("version"), Bulk(RedisVersion),
		Bulk("proto"), Count(s.Proto),
		Bulk("id"), Integer(s.ID),
		Bulk("mode"), Bulk(x.Engine.mode()),
		Bulk("role"), Bulk(x.Engine.role()),
		Bulk("modules"), modules(),
	)
}
