package users

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// The flags of commands that change or show users, and of those that anybody may run.
const (
	ofAdmin = engine.Admin | ofAll
	ofAll   = engine.NoScript | engine.Loading | engine.Stale | engine.OnNode
)

// ACLCommand is the commands on users.
var ACLCommand = engine.Command{
	Name: "acl", Since: "6.0.0", Summary: "A container for Access List Control commands ",
	Sub: []engine.Command{
		{
			Name: "cat", Syntax: "[categoryname]", Summary: "List the ACL categories or the commands inside a category",
			Differs: "Names mayfly's categories and commands", Flags: ofAll, Parse: parseCat,
		},
		{
			Name: "deluser", Syntax: "username [username ...]", Summary: "Remove the specified ACL users and the associated rules",
			Flags: ofAdmin, Parse: engine.NoParse(runDelUser),
		},
		{
			Name: "dryrun", Syntax: "username command [arg [arg ...]]", Since: "7.0.0", Arity: -4,
			Summary: "Returns whether the user can execute the given command without executing the command.",
			Differs: "The container is that which the caller has selected", Flags: ofAdmin, Parse: engine.NoParse(runDryrun),
		},
		{
			Name: "genpass", Syntax: "[bits]", Summary: "Generate a pseudorandom secure password to use for ACL users",
			Flags: ofAll, Parse: parseGenPass,
		},
		{
			Name: "getuser", Syntax: "username", Summary: "Get the rules for a specific ACL user",
			Differs: "Has `databases` too, the containers of the rule `db=`. Flags have no `sanitize-payload`", Flags: ofAdmin, Parse: engine.NoParse(runGetUser),
		},
		engine.HelpRow("acl", "6.0.0"),
		{
			Name: "list", Summary: "List the current ACL rules in ACL config file format",
			Differs: "Shows the rules for commands in the order in which they were given, as Redis 7.2",
			Flags:   ofAdmin, Parse: engine.NoParse(runList),
		},
		{
			Name: "load", Summary: "Reload the ACLs from the configured ACL file",
			Differs: "Closes only connections of users that are gone or have lost a channel, as Redis 7.2, or the right to `MONITOR`",
			Flags:   ofAdmin, Parse: engine.NoParse(runLoad),
		},
		{
			Name: "log", Syntax: "[count | RESET]", Summary: "List latest events denied because of ACLs in place",
			Differs: "Entries have the id and the times of Redis 7.2, and `database` as a reason", Flags: ofAdmin, Parse: parseLog,
		},
		{
			Name: "save", Summary: "Save the current ACL rules in the configured ACL file",
			Flags: ofAdmin, Parse: engine.NoParse(runSave),
		},
		{
			Name: "setuser", Syntax: "username [rule [rule ...]]", Summary: "Modify or create the rules for a specific ACL user",
			Differs: "Has the rules `db=`, `alldbs` and `resetdbs` of Valkey, for names of containers. `sanitize-payload` has no effect. `acl-pubsub-default` is for users, not for selectors",
			Flags:   ofAdmin, Parse: parseSetUser, Secrets: setUserSecrets,
		},
		{
			Name: "users", Summary: "List the username of all the configured ACL rules", Flags: ofAdmin,
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
				var names []string
				for _, u := range x.Engine.Host.Users().Table().All() {
					names = append(names, u.Name)
				}
				return engine.Bulks(names...)
			}),
		},
		{
			Name: "whoami", Summary: "Return the name of the user associated to the current connection", Flags: ofAll,
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Bulk(x.Session.User()) }),
		},
	},
}

// shown returns what an error shows of a user's text.
func shown(text string) string { return strings.ToValidUTF8(engine.Shown(text), "?") }

// errNotSaved is the error of ACL SAVE, in the words of Redis.
const errNotSaved = engine.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")

// failure is the error of a change of users.
func failure(err error) engine.Reply {
	if rule, ok := errors.AsType[*access.RuleError](err); ok {
		return engine.Fail(engine.Errorf("ERR Error in ACL SETUSER modifier '%s': %s", shown(rule.Rule), rule.Why))
	}
	if open, ok := errors.AsType[*access.UnmatchedError](err); ok {
		err = &access.UnmatchedError{Rule: shown(open.Rule)}
	}
	return engine.Fail(engine.Error("ERR " + err.Error()))
}

func parseCat(in *engine.Input) (engine.Run, error) {
	switch args := in.Args[2:]; len(args) {
	case 0:
		return func(*engine.Context) engine.Reply { return engine.Bulks(engine.Catalogue.Categories()...) }, nil
	case 1:
		names, ok := engine.Catalogue.Members(args[0])
		if !ok {
			return nil, engine.Errorf(errNoCategory, shown(args[0]))
		}
		return func(*engine.Context) engine.Reply { return engine.Bulks(names...) }, nil
	}
	return nil, engine.Errorf(engine.ErrSubcommandCall, shown(in.Args[1]), "ACL")
}

// setUserSecrets are all arguments of SETUSER: even the name tells whose password is set.
func setUserSecrets(args []string) (secrets []int) {
	for i := 2; i < len(args); i++ {
		secrets = append(secrets, i)
	}
	return secrets
}

func parseSetUser(in *engine.Input) (engine.Run, error) {
	name, rules := in.Args[2], in.Args[3:]
	return func(x *engine.Context) engine.Reply {
		was, is, err := x.Engine.Host.Users().Set(name, rules)
		if err != nil {
			return failure(err)
		}
		if was != nil {
			closeListeners(x, was, is)
			x.Engine.Broker.TellAll() // what a client has read it may not read any more
		}
		return engine.OK
	}, nil
}

// closeConnections closes the connections that pick accepts. The caller's own gets its reply first.
func closeConnections(x *engine.Context, pick func(s *engine.Session) bool) {
	x.Engine.Host.Disconnect(func(s *engine.Session) bool { return s != x.Session && pick(s) })
	x.Close = x.Close || pick(x.Session)
}

// closeListeners closes the connections of a user that get what the user has lost the right to.
func closeListeners(x *engine.Context, was, is *access.User) {
	closeConnections(x, func(s *engine.Session) bool { return s.User() == is.Name && hasLost(x, s, was, is) })
}

// hasLost reports whether a session subscribes to what its user has lost, or monitors and may not.
func hasLost(x *engine.Context, s *engine.Session, was, is *access.User) bool {
	monitors := false
	s.Update(func() { monitors = s.Monitoring })
	if monitors && x.Engine.Refusal(is.Name, "", []string{"monitor"}) != "" {
		return true
	}
	if is.KeepsChannels(was) {
		return false
	}
	for _, kind := range []engine.SubscriptionKind{engine.SubChannel, engine.SubPattern, engine.SubShard} {
		for _, name := range x.Engine.Broker.Names(s, kind) {
			if !is.AllowsChannel(name, kind == engine.SubPattern) {
				return true
			}
		}
	}
	return false
}

func runDelUser(x *engine.Context) engine.Reply {
	gone, err := x.Engine.Host.Users().Delete(x.Input.Args[2:])
	if err != nil {
		return failure(err)
	}
	if len(gone) > 0 {
		closeConnections(x, func(s *engine.Session) bool { return slices.Contains(gone, s.User()) })
	}
	return engine.Count(len(gone))
}

func runLoad(x *engine.Context) engine.Reply {
	was := x.Engine.Host.Users().Table()
	if err := x.Engine.Host.LoadUsers(); err != nil {
		return engine.Fail(err)
	}
	is := x.Engine.Host.Users().Table()
	closeConnections(x, func(s *engine.Session) bool {
		before, now := was.User(s.User()), is.User(s.User())
		return now == nil || before != nil && hasLost(x, s, before, now)
	})
	x.Engine.Broker.TellAll()
	return engine.OK
}

func runSave(x *engine.Context) engine.Reply {
	switch err := x.Engine.Host.SaveUsers(); err {
	case nil:
		return engine.OK
	case engine.ErrNoUserFile:
		return engine.Fail(err)
	default:
		x.Engine.Log.Error().Err(err).Msg("ACL SAVE failed")
		return engine.Fail(errNotSaved)
	}
}

func runList(x *engine.Context) engine.Reply {
	return engine.Bulks(x.Engine.Host.Users().Table().Lines()...)
}

func runGetUser(x *engine.Context) engine.Reply {
	u := x.Engine.Host.Users().Table().User(x.Input.Args[2])
	if u == nil {
		return engine.Null
	}
	sets := u.Sets()
	fields := []engine.Reply{
		engine.Bulk("flags"), engine.Set(engine.Bulks(u.Flags()...).Elems...),
		engine.Bulk("passwords"), engine.Bulks(u.Hashes()...),
	}
	fields = append(fields, described(sets[0])...)
	selectors := []engine.Reply{}
	for _, s := range sets[1:] {
		selectors = append(selectors, engine.Map(described(s)...))
	}
	return engine.Map(append(fields, engine.Bulk("selectors"), engine.Array(selectors...))...)
}

// described are the fields of a set of rights in GETUSER.
func described(s *access.Set) []engine.Reply {
	d := s.Describe()
	return engine.Bulks("commands", d.Commands, "keys", d.Keys, "channels", d.Channels, "databases", d.Databases).Elems
}

const mostPassBits = 4096

func parseGenPass(in *engine.Input) (engine.Run, error) {
	bits := int64(256)
	switch args := in.Args[2:]; len(args) {
	case 0:
	case 1:
		var ok bool
		if bits, ok = redisfmt.ParseInt(args[0]); !ok {
			return nil, engine.ErrNotInteger
		}
		if bits <= 0 || bits > mostPassBits {
			return nil, engine.Errorf("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d", mostPassBits)
		}
	default:
		return nil, engine.Errorf(engine.ErrSubcommandCall, shown(in.Args[1]), "ACL")
	}
	return func(*engine.Context) engine.Reply {
		digits := int(bits+3) / 4
		random := make([]byte, (digits+1)/2)
		_, _ = rand.Read(random) // never fails
		return engine.Bulk(hex.EncodeToString(random)[:digits])
	}, nil
}

func parseLog(in *engine.Input) (engine.Run, error) {
	count := int64(10)
	switch args := in.Args[2:]; {
	case len(args) > 1:
		return nil, engine.Errorf(engine.ErrSubcommandCall, shown(in.Args[1]), "ACL")
	case len(args) == 1 && redisfmt.EqualFold(args[0], "RESET"):
		return func(x *engine.Context) engine.Reply {
			x.Engine.Host.Users().Log.Reset()
			return engine.OK
		}, nil
	case len(args) == 1:
		var ok bool
		if count, ok = redisfmt.ParseInt(args[0]); !ok {
			return nil, engine.ErrNotInteger
		}
	}
	return func(x *engine.Context) engine.Reply {
		entries := x.Engine.Host.Users().Log.Entries(int(max(min(count, access.MostLogged), 0)))
		list := make([]engine.Reply, len(entries))
		for i := range entries {
			list[i] = logEntry(&entries[i], x.Now())
		}
		return engine.Array(list...)
	}, nil
}

// logEntry is an entry of ACL LOG at a time in ms.
func logEntry(e *access.Entry, now int64) engine.Reply {
	return engine.Map(
		engine.Bulk("count"), engine.Integer(e.Count),
		engine.Bulk("reason"), engine.Bulk(e.Reason.String()),
		engine.Bulk("context"), engine.Bulk(e.Context.String()),
		engine.Bulk("object"), engine.Bulk(e.Object),
		engine.Bulk("username"), engine.Bulk(e.User),
		engine.Bulk("age-seconds"), engine.Double(float64(now-e.Updated)/1000),
		engine.Bulk("client-info"), engine.Bulk(e.Client),
		engine.Bulk("entry-id"), engine.Integer(e.ID),
		engine.Bulk("timestamp-created"), engine.Integer(e.Created),
		engine.Bulk("timestamp-last-updated"), engine.Integer(e.Updated),
	)
}

func runDryrun(x *engine.Context) engine.Reply {
	name, args := x.Input.Args[2], x.Input.Args[3:]
	u := x.Engine.Host.Users().Table().User(name)
	if u == nil {
		return engine.Fail(engine.Errorf("ERR User '%s' not found", shown(name)))
	}
	r, err := engine.Resolve(args)
	switch {
	case r == nil:
		return engine.Fail(engine.Errorf("ERR Command '%s' not found", shown(args[0])))
	case err != nil:
		return engine.Fail(err)
	}
	v := x.Engine.Dryrun(x.Session, u, r, args)
	switch v.Reason {
	case access.Allowed:
		return engine.OK
	case access.DeniedCommand:
		return engine.Bulk(fmt.Sprintf("This user has no permissions to run the '%s' command", r.FullName))
	}
	return engine.Bulk(fmt.Sprintf("This user has no permissions to access the '%s' %s", strings.Clone(v.Object), v.Reason))
}
