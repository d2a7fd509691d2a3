package admin

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// trackingCommands are the subcommands of CLIENT with which clients cache what they read.
var trackingCommands = []engine.Command{
	{
		Name: "caching", Syntax: "<YES | NO>", Since: "6.0.0", Summary: "Instruct the server about tracking or not keys in the next request",
		Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: parseCaching,
	},
	{
		Name: "getredir", Since: "6.0.0", Summary: "Get tracking notifications redirection client ID if any",
		Flags: engine.NoScript | engine.Loading | engine.Stale | engine.OnNode,
		Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Integer(x.Session.Tracking.Redirection()) }),
	},
	{
		Name: "tracking", Syntax: "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]", Since: "6.0.0",
		Summary: "Enable or disable server assisted client side caching support",
		Differs: "A death is told in its millisecond. A changed default that kills something, a hold, `CONTAINER.DROP`, `CONTAINER.UNDO` and `SWAPDB` tell null, as `FLUSHDB` does. Of scripts the keys count that they read. See [caches of clients](caching.md)",
		Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.OnNode | engine.Receives, Parse: parseTracking,
	},
	{
		Name: "trackinginfo", Since: "6.2.0",
		Summary: "Return information about server assisted client side caching for the current connection",
		Flags:   engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(runTrackingInfo),
	},
}

// The errors of CLIENT TRACKING and CLIENT CACHING, in the words of Redis.
const (
	errOneRedirect    = engine.Error("ERR A client can only redirect to a single other client")
	errNoRedirect     = engine.Error("ERR The client ID you want redirect to does not exist")
	errPrefixMode     = engine.Error("ERR PREFIX option requires BCAST mode to be enabled")
	errSwitchBcast    = engine.Error("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
	errBcastAndOpt    = engine.Error("ERR OPTIN and OPTOUT are not compatible with BCAST")
	errBothOpt        = engine.Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	errSwitchOpt      = engine.Error("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
	errPrefixExists   = "ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap."
	errPrefixTwice    = "ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap."
	errLongPrefix     = "ERR prefix has %d bytes: legal are up to %d"
	errCachingMode    = engine.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	errCachingWithout = "ERR CLIENT CACHING %s is only valid when tracking is enabled in %s mode."
)

func parseCaching(in *engine.Input) (engine.Run, error) {
	yes := redisfmt.EqualFold(in.Args[2], "YES")
	word := in.Args[2]
	return func(x *engine.Context) engine.Reply {
		t := &x.Session.Tracking
		switch {
		case !t.On:
			return engine.Fail(errCachingMode)
		case !yes && !redisfmt.EqualFold(word, "NO"):
			return engine.Fail(engine.ErrSyntax)
		case yes && !t.OptIn:
			return engine.Fail(engine.Errorf(errCachingWithout, "YES", "OPTIN"))
		case !yes && !t.OptOut:
			return engine.Fail(engine.Errorf(errCachingWithout, "NO", "OPTOUT"))
		}
		x.Session.SetCaching(true)
		return engine.OK
	}, nil
}

// trackingOptions are those of CLIENT TRACKING, in the order in which Redis looks at them.
type trackingOptions struct {
	on        bool
	tracking  engine.Tracking // with new prefixes
	redirects []int64
	fault     error // of the words behind them; Redis looks for the clients first
}

func parseTracking(in *engine.Input) (engine.Run, error) {
	o := trackingOptions{on: redisfmt.EqualFold(in.Args[2], "ON")}
	if o.fault = o.parse(in.Args[3:]); o.fault == nil && !o.on && !redisfmt.EqualFold(in.Args[2], "OFF") {
		o.fault = engine.ErrSyntax
	}
	if o.fault != nil && len(o.redirects) == 0 {
		return nil, o.fault
	}
	return o.run, nil
}

func (o *trackingOptions) parse(args []string) error {
	t := &o.tracking
	for ; len(args) > 0; args = args[1:] {
		more := len(args) > 1
		switch word := strings.ToUpper(args[0]); {
		case word == "REDIRECT" && more:
			id, ok := redisfmt.ParseInt(args[1])
			if !ok {
				return engine.ErrNotInteger
			}
			o.redirects, args = append(o.redirects, id), args[1:]
		case word == "PREFIX" && more:
			t.Prefixes, args = append(t.Prefixes, strings.Clone(args[1])), args[1:]
		case word == "BCAST":
			t.Bcast = true
		case word == "OPTIN":
			t.OptIn = true
		case word == "OPTOUT":
			t.OptOut = true
		case word == "NOLOOP":
			t.NoLoop = true
		default:
			return engine.ErrSyntax
		}
	}
	return nil
}

func (o *trackingOptions) run(x *engine.Context) engine.Reply {
	s, next := x.Session, o.tracking
	for i, id := range o.redirects {
		if i > 0 && o.redirects[0] != 0 {
			return engine.Fail(errOneRedirect)
		}
		if next.Target = sessionByID(x.Engine.Host.Sessions(), id); next.Target == nil || !mayTouch(x, next.Target) {
			return engine.Fail(errNoRedirect)
		}
		next.Redirect = id
	}
	if o.fault != nil {
		return engine.Fail(o.fault)
	}
	if next.On = o.on; o.on {
		if err := o.conflict(&s.Tracking); err != nil {
			return engine.Fail(err)
		}
		if next.Bcast && len(next.Prefixes) == 0 && !slices.Contains(s.Tracking.Prefixes, "") {
			next.Prefixes = []string{""}
		}
		next.Caching = s.Tracking.Caching && s.Tracking.OptIn == next.OptIn && s.Tracking.OptOut == next.OptOut
	} else {
		next = engine.Tracking{}
	}
	if err := x.Engine.Track(s, next); err != nil {
		return engine.Fail(err)
	}
	return engine.OK
}

// sessionByID returns the session of a client, nil if there is none.
func sessionByID(all []*engine.Session, id int64) *engine.Session {
	if list := sessionsByID(all, []int64{id}); len(list) > 0 && !list[0].Disconnected.Load() {
		return list[0]
	}
	return nil
}

// conflict returns the error of options that contradict each other, or what the client does already.
func (o *trackingOptions) conflict(now *engine.Tracking) error {
	t := &o.tracking
	switch {
	case !t.Bcast && len(t.Prefixes) > 0:
		return errPrefixMode
	case now.On && now.Bcast != t.Bcast:
		return errSwitchBcast
	case t.Bcast && (t.OptIn || t.OptOut):
		return errBcastAndOpt
	case t.OptIn && t.OptOut:
		return errBothOpt
	case t.OptIn && now.OptOut, t.OptOut && now.OptIn:
		return errSwitchOpt
	}
	return overlap(t.Prefixes, now.Prefixes)
}

// overlap returns the error of new prefixes that overlap with each other or with those that there are. Both
// are compared in their order, in which an overlap is between neighbours.
func overlap(list, existing []string) error {
	type entry struct {
		prefix string
		at     int // in list; -1: it exists
	}
	if len(list) > 0 && slices.Contains(existing, "") {
		return engine.Errorf(errPrefixExists, engine.Shown(list[0]), "")
	}
	var all []entry
	for i, p := range list {
		if len(p) > engine.MaxPrefix {
			return engine.Errorf(errLongPrefix, len(p), engine.MaxPrefix)
		}
		all = append(all, entry{p, i})
	}
	for _, p := range existing {
		all = append(all, entry{p, -1})
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.prefix, b.prefix), cmp.Compare(a.at, b.at))
	})
	for i := range all[min(len(all), 1):] {
		a, b := all[i], all[i+1]
		if !strings.HasPrefix(b.prefix, a.prefix) {
			continue
		}
		if a.at > b.at {
			a, b = b, a
		}
		if a.at < 0 {
			return engine.Errorf(errPrefixExists, engine.Shown(b.prefix), engine.Shown(a.prefix))
		}
		return engine.Errorf(errPrefixTwice, engine.Shown(a.prefix), engine.Shown(b.prefix))
	}
	return nil
}

func runTrackingInfo(x *engine.Context) engine.Reply {
	var t engine.Tracking
	x.Session.Update(func() { t = x.Session.Tracking })
	flags := []engine.Reply{engine.Bulk("off")}
	if t.On {
		flags[0] = engine.Bulk("on")
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"bcast", t.Bcast}, {"optin", t.OptIn}, {"caching-yes", t.OptIn && t.Caching}, {"optout", t.OptOut},
		{"caching-no", t.OptOut && t.Caching}, {"noloop", t.NoLoop}, {"broken_redirect", t.Broken},
	} {
		if f.set {
			flags = append(flags, engine.Bulk(f.name))
		}
	}
	return engine.Map(
		engine.Bulk("flags"), engine.Set(flags...),
		engine.Bulk("redirect"), engine.Integer(t.Redirection()),
		engine.Bulk("prefixes"), engine.Bulks(t.Prefixes...),
	)
}
