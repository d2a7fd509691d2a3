package admin

import (
	"strings"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/redisfmt"
)

// ConnectionCommands are about the client's own connection.
var ConnectionCommands = []engine.Command{
	{
		Name: "auth", Syntax: "[username] password", Since: "1.0.0", Summary: "Authenticate to the server",
		Flags: engine.NoScript | engine.Loading | engine.Stale | engine.Fast | engine.NoAuth | engine.AllowBusy | engine.OnNode, Parse: parseAuth, Secrets: authSecrets,
	},
	clientCommand,
	{
		Name: "echo", Syntax: "message", Since: "1.0.0", Summary: "Echo the given string",
		Flags: engine.Loading | engine.Stale | engine.Fast | engine.OnNode,
		Parse: func(in *engine.Input) (engine.Run, error) {
			message := in.Args[1]
			return func(*engine.Context) engine.Reply { return engine.Bulk(message) }, nil
		},
	},
	{
		Name: "hello", Syntax: "[protover [AUTH username password] [SETNAME clientname]]", Since: "6.0.0", Summary: "Handshake with Redis",
		Differs: "All options are checked before one takes effect. Redis runs AUTH before it finds a wrong option behind it",
		Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.Fast | engine.NoAuth | engine.AllowBusy | engine.OnNode, Parse: parseHello, Secrets: helloSecrets,
	},
	{
		Name: "ping", Syntax: "[message]", Since: "1.0.0", Summary: "Ping the server",
		Flags: engine.Fast | engine.AllowSubscribed | engine.OnNode, Tips: "request_policy:all_shards response_policy:all_succeeded", Parse: parsePing,
	},
	{
		Name: "quit", Since: "1.0.0", Arity: -1, Summary: "Close the connection",
		Flags: engine.NoScript | engine.Loading | engine.Stale | engine.Fast | engine.NoAuth | engine.AllowBusy | engine.Immediate | engine.AllowSubscribed | engine.OnNode,
		Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
			x.Close = true
			return engine.OK
		}),
	},
	{
		Name: "reset", Since: "6.2.0", Summary: "Reset the connection",
		Flags: engine.NoScript | engine.Loading | engine.Stale | engine.Fast | engine.NoAuth | engine.AllowBusy | engine.Immediate | engine.AllowSubscribed | engine.OnNode, Parse: engine.NoParse(runReset),
	},
	{
		Name: "select", Syntax: "<index | container>", Since: "1.0.0", Summary: "Change the selected database for the current connection",
		Differs: "Takes the number or the name of any container. A word that is neither a number nor such a name has an error of its own",
		Flags:   engine.Loading | engine.Stale | engine.Fast | engine.OnNode, Parse: parseSelect,
		Touches: engine.TouchesOthers, Databases: func(args []string) []string { return args[1:2] },
	},
}

func parsePing(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 2 {
		return nil, engine.Errorf(engine.ErrWrongArity, "ping")
	}
	return runPing, nil
}

func runPing(x *engine.Context) engine.Reply {
	answer, message := engine.Status("PONG"), ""
	if len(x.Input.Args) == 2 {
		message = x.Input.Args[1]
		answer = engine.Bulk(message)
	}
	if x.Session.InSubscribedMode() { // in the form of a message
		return engine.Bulks("pong", message)
	}
	return answer
}

func parseSelect(in *engine.Input) (engine.Run, error) {
	name := in.Args[1]
	return func(x *engine.Context) engine.Reply {
		if x.Session.Service == engine.ServeDetached {
			if name != "0" {
				return engine.Fail(x.Engine.NotLoaded())
			}
			x.Session.Update(func() { x.Session.Database, x.Session.DatabaseNumber = "0", 0 })
			return engine.OK
		}
		c, err := items.DatabaseByName(x, name)
		switch {
		case err == engine.ErrNotInteger: // the name of a container
			return engine.Fail(engine.UnknownContainer(name))
		case err != nil:
			return engine.Fail(err)
		}
		x.Session.Update(func() { x.Session.Database, x.Session.DatabaseNumber = c.Name(), c.DB() })
		return engine.OK
	}, nil
}

func runReset(x *engine.Context) engine.Reply {
	x.Engine.ReleaseSession(x.Session)
	x.Session.Reset()
	x.Session.Authenticated.Store(!x.Engine.Host.Users().Table().NeedsLogin())
	x.Close = x.Session.Deposed.Load() // see disconnectLed
	return engine.Status("RESET")
}

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

func parseAuth(in *engine.Input) (engine.Run, error) {
	given := credentials{user: access.DefaultName}
	switch len(in.Args) {
	case 2:
		given.password = in.Args[1]
		return func(x *engine.Context) engine.Reply {
			if x.Engine.Host.Users().Table().Default().NoPass() {
				return engine.Fail(errNoPassword)
			}
			return authenticate(x, &given)
		}, nil
	case 3:
		given.user, given.password = in.Args[1], in.Args[2]
		return func(x *engine.Context) engine.Reply { return authenticate(x, &given) }, nil
	}
	return nil, engine.ErrSyntax
}

// wrongPassword counts and logs wrong credentials and returns their error.
func wrongPassword(x *engine.Context, user string) error {
	in := access.TopLevel
	if x.Queued {
		in = access.InMulti
	}
	x.Engine.Host.Users().Log.Add(access.Entry{
		Reason: access.DeniedAuth, Context: in, Object: x.Input.Args[0], User: user, Updated: x.Now(),
		Client: strings.TrimSuffix(x.Session.ClientLine(x.Now(), x.Input.Args), "\n"),
	})
	x.Engine.Auth.NoteWrong(&x.Session.Guesser)
	x.Engine.LogWrongPasswords()
	return engine.ErrWrongPass
}

func authenticate(x *engine.Context, given *credentials) engine.Reply {
	if x.Engine.Host.Users().Authenticate(given.user, given.password) == nil {
		return engine.Fail(wrongPassword(x, given.user))
	}
	x.Session.Authenticated.Store(true)
	x.Session.SetUser(given.user)
	x.Engine.Auth.NoteRight(&x.Session.Guesser)
	return engine.OK
}

// hello is a parsed HELLO.
type hello struct {
	proto int // 0: unchanged
	auth  *credentials
	name  *string
}

// parseHello parses HELLO. It checks all options before one takes effect. Redis may have renamed the
// connection before it finds a wrong option.
func parseHello(in *engine.Input) (engine.Run, error) {
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
			if err := engine.CheckClientInfo("Client names", rest[1]); err != nil {
				return nil, err
			}
			h.name = &rest[1]
			rest = rest[2:]
		default:
			return nil, engine.Errorf(errHelloOption, engine.Shown(option))
		}
	}
	return h.run, nil
}

func (h *hello) run(x *engine.Context) engine.Reply {
	s := x.Session
	if h.auth != nil {
		if r := authenticate(x, h.auth); r.Kind == engine.KindError {
			return r
		}
	}
	if !s.Authenticated.Load() && x.Engine.Host.Users().Table().NeedsLogin() {
		return engine.Fail(errNoAuthHello)
	}
	s.Update(func() {
		if h.proto != 0 {
			s.Proto = h.proto
		}
	})
	if h.name != nil {
		s.SetName(strings.Clone(*h.name))
	}
	return engine.Map(
		engine.Bulk("server"), engine.Bulk("redis"), // as clients expect
		engine.Bulk("version"), engine.Bulk(x.Engine.Host.Info().ReportedVersion),
		engine.Bulk("proto"), engine.Count(s.Proto),
		engine.Bulk("id"), engine.Integer(s.ID),
		engine.Bulk("mode"), engine.Bulk(x.Engine.Mode()),
		engine.Bulk("role"), engine.Bulk(x.Engine.Role()),
		engine.Bulk("modules"), modules(),
	)
}
