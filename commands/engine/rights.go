package engine

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/access"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// Catalogue is the commands of the table, as rules of users name them. Who installs the table sets it.
var Catalogue *access.Catalogue

// Touches says which containers and channels a command touches, and whether it needs keys that nobody names.
// The rights of users look at it. A row that does not say touches everything.
type Touches uint16

const (
	// TouchesNone: the right to run the command is enough.
	TouchesNone Touches = 1 << iota
	// TouchesSelected: the selected container. A command with keys touches it if a call has any.
	TouchesSelected
	// TouchesNamed: the container that the first argument names, and those of Databases, by name.
	TouchesNamed
	// TouchesOthers: those of Databases, by name or number.
	TouchesOthers
	// TouchesStreams: those whose logs of deaths the keys name, and the selected one for other keys.
	TouchesStreams
	// TouchesAll: all containers.
	TouchesAll
	// TouchesVisible: it answers for those that the user may see; see [Context.Sees].
	TouchesVisible
	// TouchesChannels: the channels of all arguments, or of the first if the row Publishes. Those of events
	// belong to containers.
	TouchesChannels
	// TouchesPatterns: patterns of channels, which must be those of the user as they are written.
	TouchesPatterns
	// ReadsUnnamed: it returns ids or documents that nobody has named, so it needs %R~*.
	ReadsUnnamed
	// WritesUnnamed: it changes or removes what nobody has named, so it needs %W~*.
	WritesUnnamed
)

// mayRun returns the error of a command that the session's user may not run or queue, or nil. It is called if
// the rights are not open.
func (e *Engine) mayRun(s *Session, r *Row, args []string) error {
	u, err := e.restricted(s, r)
	if u == nil {
		return err
	}
	if r.oneKey > 0 && !s.Multi.Open { // most calls: they need no Call
		container := s.Database
		if r.Touches == TouchesNamed {
			container = args[1]
		}
		if u.AllowsKey(r.Number, args, container, args[r.oneKey], r.need(0, args)) {
			return nil
		}
	}
	queued, in, database := s.Multi.Open && r.Flags&Immediate == 0, access.TopLevel, s.Database
	if s.Multi.Open {
		in = access.InMulti
	}
	if queued && s.Multi.database != "" {
		database = s.Multi.database
	}
	c := e.callOf(s, r, args, database)
	v := u.Judge(c)
	if queued && r.Name == "select" && len(c.Containers) > 0 && v.Reason == access.Allowed {
		s.Multi.database = strings.Clone(c.Containers[0])
	}
	if v.Reason != access.Allowed {
		s.noteCommand(r, e.Now())
	}
	return e.conclude(s, r, args, v, in)
}

// errUnknownHere is the error of a session that another node vouches for.
const errUnknownHere = Error("NOPERM the leader does not know the user, or it is off there: nodes need the same users")

// restricted returns the session's user if a call is to be judged, else nil. The error refuses the call.
func (e *Engine) restricted(s *Session, r *Row) (*access.User, error) {
	u, identified := s.rights.Refresh(e.Host.Users(), s.Authenticated.Load())
	switch {
	case r.Flags&NoAuth != 0 || identified && u.Open:
		return nil, nil
	case !identified && s.Proxied:
		return nil, errUnknownHere
	case !identified:
		return nil, ErrNoAuth
	}
	return u, nil
}

// mayForward is mayStillRun for the queued commands that the leader is to run.
func (e *Engine) mayForward(s *Session) error {
	database := s.Database
	for _, c := range s.Multi.Commands {
		if err := e.mayStillRun(s, c.row, c.in.Args, access.InMulti, database); err != nil {
			return err
		}
		if c.row.Name == "select" {
			database, _ = e.databaseName(s, c.in.Args[1])
		}
	}
	return nil
}

// mayStillRun is mayRun for a command that runs within EXEC or a script, with a selected container.
func (e *Engine) mayStillRun(s *Session, r *Row, args []string, in access.Context, database string) error {
	u, err := e.restricted(s, r)
	if u == nil {
		return err
	}
	v := u.Judge(e.callOf(s, r, args, database))
	err = e.conclude(s, r, args, v, in)
	if err != nil && in == access.InMulti {
		err = Error(v.ExecText())
	}
	return err
}

// conclude ends the session's call. It logs a verdict that refuses it (ACL LOG), and returns its error.
func (e *Engine) conclude(s *Session, r *Row, args []string, v access.Verdict, in access.Context) error {
	defer s.rights.Call.Reset() // it has views of the read buffer
	if v.Reason == access.Allowed {
		return nil
	}
	now := e.Now()
	e.Host.Users().Log.Add(access.Entry{
		Reason: v.Reason, Context: in, Object: v.Object, User: s.rights.Name(), Updated: now,
		Client: strings.TrimSuffix(s.ClientLine(now, args), "\n"),
	})
	return Error(v.Text(r.FullName, in))
}

// Dryrun returns the verdict on a call of a user, with the session's selected container.
func (e *Engine) Dryrun(s *Session, u *access.User, r *Row, args []string) access.Verdict {
	if r.Flags&NoAuth != 0 {
		return access.Verdict{}
	}
	return u.Judge(e.callOf(s, r, args, s.Database))
}

// Refusal says why a user may not run a command in a container, as ACL DRYRUN does: "command", "database",
// "key" or "channel"; "": the user may. Words that the command lacks are empty. Safe for concurrent use.
func (e *Engine) Refusal(user, container string, words []string) string {
	u := e.Host.Users().Table().User(user)
	r, _ := Resolve(words)
	if u == nil || r == nil {
		return access.DeniedCommand.String()
	}
	words = r.filled(words)
	s := NewSession(0, "", "", e.Now())
	s.Database = cmp.Or(container, s.Database)
	return e.Dryrun(s, u, r, words).Reason.String()
}

// filled returns as many arguments as the command needs, empty ones for those that lack.
func (r *Row) filled(args []string) []string {
	return append(slices.Clone(args), make([]string, max(r.Arity, -r.Arity, len(args))-len(args))...)
}

// callOf says what a call touches. database is the selected container. The next call of the session replaces
// it.
func (e *Engine) callOf(s *Session, r *Row, args []string, database string) *access.Call {
	c := &s.rights.Call
	c.Reset()
	c.Number, c.Name, c.Args, c.Abandoned = r.right, r.FullName, args, s.Abandoned
	if r.Access != NotKeys {
		c.Words = r.appendKeys(c.Words[:0], args)
		for i, key := range c.Words {
			c.Keys = append(c.Keys, access.Key{Name: key, Need: r.need(i, args)})
		}
	}
	touch := func(name string) { c.Containers = append(c.Containers, name) }
	t := r.Touches
	c.All = t == 0 || t&TouchesAll != 0
	if t&TouchesSelected != 0 && (len(c.Keys) > 0 || !r.HasKeys()) {
		touch(database)
	}
	if t&TouchesStreams != 0 {
		for _, key := range c.Keys {
			if name, ok := access.LogName(key.Name); ok {
				touch(name)
			} else {
				touch(database)
			}
		}
	}
	if t&TouchesNamed != 0 && len(args) > 1 && (t&TouchesVisible == 0 || args[1] != "*") {
		touch(args[1])
	}
	if r.Databases != nil {
		for _, word := range r.Databases(args) {
			if name, ok := e.databaseName(s, word); ok && t&TouchesNamed == 0 {
				touch(name)
			} else if t&TouchesNamed != 0 {
				touch(word)
			}
		}
	}
	e.addChannels(s, c, r, args)
	if t&ReadsUnnamed != 0 {
		c.Unnamed |= access.Read
	}
	if t&WritesUnnamed != 0 {
		c.Unnamed |= access.Write
	}
	return c
}

// addChannels adds the channels of a call, and the containers whose events they carry.
func (e *Engine) addChannels(s *Session, c *access.Call, r *Row, args []string) {
	if r.Touches&(TouchesChannels|TouchesPatterns) == 0 || len(args) < 2 {
		return
	}
	c.Patterns = r.Touches&TouchesPatterns != 0
	names := args[1:]
	if r.Flags&Publishes != 0 {
		names = names[:1]
	}
	c.Channels = append(c.Channels, names...)
	if c.Patterns || r.Access == NotKeys { // what a pattern receives is filtered; shard channels carry no events
		return
	}
	for _, channel := range names {
		for _, word := range access.ContainersOf(channel) {
			name, _ := e.databaseName(s, word)
			c.Containers = append(c.Containers, name)
		}
	}
}

// databaseName returns the name of the container that a word names where Redis has the number of a database.
// It returns false for a number that no container has. It reads in the session's transaction: a second one
// would wait for the locks of the first.
func (e *Engine) databaseName(s *Session, word string) (name string, ok bool) {
	n, isNumber := redisfmt.ParseInt(word)
	ks := e.Keyspace()
	if !isNumber || n < keyspace.Databases || ks == nil {
		return word, true
	}
	tx := &s.Tx
	if !tx.Open() {
		tx = new(keyspace.Tx)
		ks.BeginNone(tx)
		defer tx.Close()
	}
	if c := cmp.Or(tx.Container(word), tx.ContainerOfDB(uint32(min(n, keyspace.MaxDB+1)))); c != nil {
		return c.Name(), true
	}
	return word, false
}

// appendKeys appends the arguments that are keys in the terms of Redis.
func (r *Row) appendKeys(list, args []string) []string {
	switch {
	case r.KeysAfter.Word != "":
		return append(list, r.KeysAfter.keys(args)...)
	case r.Scope == ScopeScript:
		return append(list, scriptKeys(args)...)
	case r.Stores:
		list = append(list, args[1])
	}
	return r.Keys.ids(list, r.withoutOptions(args))
}

// need returns what a call needs of its key with an index.
func (r *Row) need(i int, args []string) access.Permission {
	switch {
	case r.Blind != nil && r.Blind(args):
		return access.Write
	case len(r.needs) > 0:
		return r.needs[min(i, len(r.needs)-1)]
	case r.Flags&Write != 0:
		return access.ReadWrite
	}
	return access.Read
}

// User returns the name of the session's user. Safe for concurrent use.
func (s *Session) User() string { return s.rights.Name() }

// SetUser makes the session one of a user.
func (s *Session) SetUser(name string) {
	s.rights.Become(name)
	s.SetName(s.Name)
}

// ServeFor makes the session run what another node passes on for a user. See [Session.Proxied].
func (s *Session) ServeFor(user string) {
	s.Proxied, s.rights.Vouched = true, true
	s.SetUser(user)
}

// Sees reports whether the session's user may see a container.
func (x *Context) Sees(container string) bool { return x.Session.rights.Sees(container) }

// SeesAll reports whether the session's user may see all containers.
func (x *Context) SeesAll() bool { return x.Session.rights.SeesAll() }

// SeesChannel reports whether the session's user may see the containers whose events a channel carries.
func (x *Context) SeesChannel(channel string) bool {
	for _, word := range access.ContainersOf(channel) {
		if name, _ := x.Engine.databaseName(x.Session, word); !x.Sees(name) {
			return false
		}
	}
	return true
}

// LogWrongPasswords logs the wrong passwords since the last line, unless that was a moment ago.
func (e *Engine) LogWrongPasswords() {
	r, ok := e.Auth.Report()
	if !ok {
		return
	}
	e.Log.Warn().Str("addr", r.Worst).Int("wrong_passwords", r.OfWorst).Int("of_all_addresses", r.Total).Int("other_addresses", r.Others).
		Msg("clients gave a wrong password; their next attempts are delayed")
}

// awaitsDelay reports whether a command is an attempt to authenticate that has to wait, and until when.
func (e *Engine) awaitsDelay(s *Session, r *Row, args []string) <-chan struct{} {
	if r.Secrets == nil || len(r.Secrets(args)) == 0 || !e.Host.Users().Table().Guarded() {
		return nil
	}
	return e.Auth.Wait(&s.Guesser)
}
