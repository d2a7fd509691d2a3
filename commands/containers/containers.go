package containers

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

var ContainerCommands = []engine.Command{
	{
		Name: "container.set", Syntax: "name [TTL <OFF | -1 | seconds>] [TTLMODE <STRICT | LENIENT>] [DEADLINE member] [LOG <OFF | seconds>] [MAXLEN count] [BODIES <YES | NO>] [DELETES <YES | NO>] [HOLD <reason | OFF>] [NUMBER number] [MAXKILL count] [IFMATCH etag]", Example: "orders TTL 3600",
		Summary: "Creates a container or changes its default TTL, which governs everything in it at once. Without TTL it changes the mode of an existing container. " +
			"LOG keeps each death for that time, MAXLEN of them at most, with the BODIES of the dead: see XREAD. DELETES keeps what clients delete, too. HOLD keeps everything in it from changes and death until HOLD OFF. MAXKILL refuses a change that would kill more at once. IFMATCH returns null and changes nothing if the container has another etag.",
		Touches: engine.TouchesNamed | engine.WritesUnnamed, Flags: engine.Write | engine.Frees | engine.MayGrow, Scope: engine.ScopeAll, Parse: parseContainerSet,
	},
	{
		Name: "container.create", Syntax: "name [TTL <OFF | -1 | seconds>] [TTLMODE <STRICT | LENIENT>] [DEADLINE member] [LOG <OFF | seconds>] [MAXLEN count] [BODIES <YES | NO>] [DELETES <YES | NO>] [NUMBER number]",
		Summary: "Creates a container, with TTL off by default. Fails if it exists. DEADLINE names the root member of documents that holds the latest moment at which they die. LOG, MAXLEN, BODIES and DELETES are as in CONTAINER.SET.",
		Flags:   engine.Write | engine.DenyOOM, Scope: engine.ScopeAll, Parse: parseContainerCreate,
	},
	{
		Name: "container.get", Syntax: "name", Summary: "Describes a container; null if it does not exist.",
		Flags: engine.ReadOnly, Scope: engine.ScopeSweep, Parse: parseContainerGet,
	},
	{
		Name: "container.list", Syntax: "[MATCH pattern] [WITHNUMBERS]", Summary: "Lists the names of containers in ascending order. WITHNUMBERS returns a map from names to the numbers for SELECT.",
		Touches: engine.TouchesVisible, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeNone, Parse: parseContainerList,
	},
	{
		Name: "container.drop", Syntax: "name",
		Summary: "Removes a container with everything in it, in a time that does not grow with its items. Returns 1, or 0 if it does not exist.",
		Touches: engine.TouchesNamed | engine.WritesUnnamed, Flags: engine.Write | engine.Frees | engine.Fast, Scope: engine.ScopeAll, Parse: parseContainerDrop,
	},
}

// containerName returns the container's name, the first argument of a command.
func containerName(in *engine.Input) (string, error) {
	name := in.Args[1]
	if !keyspace.ValidName(name) {
		return "", engine.InvalidName(name)
	}
	return name, nil
}

// containerSettings are the arguments of CONTAINER.SET and CONTAINER.CREATE. The defaults are TTL off and
// mode strict.
type containerSettings struct {
	name    string
	hasTTL  bool
	ttl     expiry.TTL
	hasMode bool
	mode    expiry.Mode
	number  uint32 // 0: not given
	maxKill int64  // the most items that may die at once; -1: not given
	when    engine.Precondition

	log      logChange
	deadline string // the member that has the deadline; "": not given
	hasHold  bool
	hold     string // the reason; "": OFF
}

// parseSettings parses the arguments. guards are further legal options.
func parseSettings(in *engine.Input, guards ...string) (containerSettings, error) {
	name, err := containerName(in)
	set := containerSettings{name: name, maxKill: -1, log: logChange{seconds: -1}}
	o := items.NamedOptions{Args: in.Args[2:], Legal: append([]string{"TTL", "TTLMODE", "DEADLINE", "LOG", "MAXLEN", "BODIES", "DELETES", "NUMBER"}, guards...), Err: err}
	o.Meant = func(word string) string {
		option := ""
		if set.hold != "" { // a reason without quotes
			option, word = "HOLD", strconv.Quote(set.hold+" "+word)
		} else if _, err := expiry.ParseDefault(word); err == nil {
			option = "TTL"
		} else if _, err := parseMode(word); err == nil {
			option = "TTLMODE"
		} else {
			return ""
		}
		return strings.ToUpper(in.Args[0]) + " " + name + " " + option + " " + word
	}
	for o.Next() {
		switch o.Name {
		case "TTL":
			set.hasTTL = true
			set.ttl, err = expiry.ParseDefault(o.Value("off, -1 or seconds"))
		case "TTLMODE":
			set.hasMode = true
			set.mode, err = parseMode(o.Value("strict or lenient"))
		case "DEADLINE":
			set.deadline, err = parseDeadline(o.Value("the name of a member"))
		case "LOG":
			set.log.seconds, err = parseLog(o.Value("off or seconds"))
		case "MAXLEN":
			set.log.maxLen = o.Number(1, maxLogLength)
		case "BODIES":
			set.log.bodies, err = parseYesNo(o.Name, o.Value("yes or no"))
		case "DELETES":
			set.log.deletes, err = parseYesNo(o.Name, o.Value("yes or no"))
		case "HOLD":
			set.hasHold = true
			set.hold, err = parseHold(o.Value("a reason or off"))
		case "NUMBER":
			set.number, err = parseNumber(o.Value("a number"))
		case "MAXKILL":
			set.maxKill = o.Number(0, math.MaxInt64)
		case "IFMATCH":
			err = set.when.ParseMatch(o.Value("an etag or *"), engine.ContainerETags)
		}
		o.Fail(err)
	}
	return set, o.Err
}

func parseMode(s string) (expiry.Mode, error) {
	for _, mode := range []expiry.Mode{expiry.Strict, expiry.Lenient} {
		if redisfmt.EqualFold(s, mode.String()) {
			return mode, nil
		}
	}
	return 0, fmt.Errorf("invalid TTLMODE %s: legal are strict and lenient", expiry.Quote(s))
}

// parseDeadline reads the name of the member that has the deadline. It keeps a copy.
func parseDeadline(s string) (string, error) {
	return strings.Clone(s), expiry.CheckDeadlineName(s)
}

// parseHold reads the reason of a hold, "" for OFF. It keeps a copy.
func parseHold(s string) (string, error) {
	switch {
	case redisfmt.EqualFold(s, "OFF"):
		return "", nil
	case redisfmt.EqualFold(s, "NO"), redisfmt.EqualFold(s, "YES"):
		return "", fmt.Errorf("invalid HOLD %s: legal are a reason, such as 'case 4711', and OFF", expiry.Quote(s))
	}
	return strings.Clone(s), expiry.CheckHold(s)
}

// parseNumber parses the number of a new container. The databases have theirs.
func parseNumber(s string) (uint32, error) {
	n, ok := redisfmt.ParseInt(s)
	if !ok || n < keyspace.Databases || n > keyspace.MaxDB {
		return 0, fmt.Errorf("invalid NUMBER %s: legal are %d to %d", expiry.Quote(s), keyspace.Databases, keyspace.MaxDB)
	}
	return uint32(n), nil
}

// create creates the container.
func (set *containerSettings) create(x *engine.Context) engine.Reply {
	log, err := set.log.of(set.name, nil)
	if err != nil {
		return engine.Fail(err)
	}
	c, err := x.Tx.CreateRuled(set.name, set.number, expiry.Policy{Default: set.ttl, Mode: set.mode, Deadline: set.deadline})
	if err != nil {
		return engine.Fail(numberError(x, set.name, err))
	}
	if err := x.Tx.SetLog(c, log); err != nil {
		return engine.Fail(err)
	}
	return engine.OK
}

func parseContainerSet(in *engine.Input) (engine.Run, error) {
	set, err := parseSettings(in, "HOLD", "MAXKILL", "IFMATCH")
	switch {
	case err != nil:
		return nil, err
	case set.hasTTL || set.hasMode || set.deadline != "" || set.hasHold || set.number != 0 || set.log.given():
	case set.maxKill >= 0 || set.when != engine.Precondition{}:
		return nil, engine.Errorf(errNothingToGuard, set.name)
	default:
		return nil, engine.Errorf(errNothingToSet, set.name)
	}
	return set.run, nil
}

// run is CONTAINER.SET.
func (set *containerSettings) run(x *engine.Context) engine.Reply {
	c := x.Tx.Container(set.name)
	switch {
	case !set.when.Holds(c != nil, etagOf(c)):
		return engine.Null
	case c == nil:
		return set.createByDefault(x)
	}
	return set.change(x, c)
}

// createByDefault is CONTAINER.SET for a container that does not exist.
func (set *containerSettings) createByDefault(x *engine.Context) engine.Reply {
	if !set.hasTTL {
		return engine.Fail(engine.Errorf(errContainerTTL, set.name))
	}
	if x.Engine.OverMemory() { // changes of an existing container stay legal
		return engine.Fail(engine.ErrOOM)
	}
	if limit, full := x.Tx.ContainersFull(); full {
		return engine.Fail(engine.Errorf(errContainersFull, set.name, limit))
	}
	if err := x.Engine.DiskRefusal(false); err != nil {
		return engine.Fail(err)
	}
	reply := set.create(x)
	if c := x.Tx.Container(set.name); c != nil {
		x.Tx.SetHold(c, set.hold) // "" changes nothing
	}
	return reply
}

// change is CONTAINER.SET for a container that exists. An error changes nothing.
func (set *containerSettings) change(x *engine.Context, c *keyspace.Container) engine.Reply {
	if set.number != 0 && set.number != c.DB() {
		return engine.Fail(engine.Errorf(errNumberStays, set.name, c.DB()))
	}
	was := c.Policy()
	release := set.hasHold && set.hold == ""
	if set.deadline != "" && (was.Hold == "" || release) && !x.Tx.DeadlineFree(c, set.deadline) {
		if x.Tx.Stats(c).Documents == 0 {
			return engine.Fail(engine.Errorf(errDeadlineKept, set.name))
		}
		return engine.Fail(engine.Errorf(errDeadlineStays, set.name))
	}
	log, err := set.log.of(set.name, c)
	if err != nil {
		return engine.Fail(err)
	}
	ttl, mode := was.Default, was.Mode
	if set.hasTTL {
		ttl = set.ttl
	}
	if set.hasMode {
		mode = set.mode
	}
	kills := int64(-1)
	if set.maxKill >= 0 {
		next := was.Change(ttl, mode, x.Now())
		if release {
			next = next.WithHold("", x.Now())
		}
		limit := int(min(set.maxKill, math.MaxInt64-1)) + 1
		if kills = int64(x.Tx.CountKills(c, next, limit)); kills > set.maxKill {
			return engine.Fail(set.tooManyKills(release && was.Hold != "", ttl))
		}
	}
	if release { // before the other settings, which a hold forbids
		x.Tx.Release(c, ttl, mode, kills)
	}
	if set.deadline != "" {
		x.Tx.SetDeadline(c, set.deadline)
	}
	if err := x.Tx.SetLog(c, log); err != nil {
		return engine.Fail(err)
	}
	x.Tx.SetCounted(c, ttl, mode, kills)
	if set.hold != "" {
		x.Tx.SetHold(c, set.hold)
	}
	return engine.OK
}

// tooManyKills is the error of a change that would kill more than MAXKILL allows, of the end of a hold or of
// a TTL.
func (set *containerSettings) tooManyKills(release bool, ttl expiry.TTL) error {
	what := "TTL " + ttl.String()
	if release {
		what = "HOLD OFF"
	}
	return engine.Errorf(errMaxKill, what, set.maxKill, set.name, ttl)
}

// etagOf returns the version of a container's settings, 0 of none.
func etagOf(c *keyspace.Container) uint64 {
	if c == nil {
		return 0
	}
	return c.Etag()
}

func parseContainerCreate(in *engine.Input) (engine.Run, error) {
	set, err := parseSettings(in)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		if x.Tx.Container(set.name) != nil {
			return engine.Fail(engine.Errorf(errContainerExists, set.name))
		}
		if limit, full := x.Tx.ContainersFull(); full {
			return engine.Fail(engine.Errorf(errContainersFull, set.name, limit))
		}
		return set.create(x)
	}, nil
}

func parseContainerGet(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		c := x.Tx.Container(name)
		if c == nil {
			return engine.Null
		}
		return describeContainer(x, c)
	}, nil
}

// describeContainer is the reply of CONTAINER.GET:
//
//	name       of the container
//	ttl        the default: off, -1 or seconds, as text for CONTAINER.SET
//	ttlmode    strict or lenient
//	documents  the number of living documents
//	keys       the number of living plain keys
//	bytes      of the ids and bodies of living items
//	memory     their estimated size in memory, bytes; maxmemory limits the sum
//	created    the time of its creation, ms since 1970
//	number     for SELECT
//	indexes    the number of indexes
//	indexbytes of their memory, which memory includes
//	deadline   the member of documents that has an absolute end; null for none
//	etag       of the settings, for IFMATCH; changes with them
//	hold       the reason of the hold; null for none
//	log        see describeLog
func describeContainer(x *engine.Context, c *keyspace.Container) engine.Reply {
	s := x.Tx.Stats(c)
	p := &s.Policy
	return engine.Map(
		engine.Bulk("name"), engine.Bulk(c.Name()),
		engine.Bulk("ttl"), engine.Bulk(p.Default.String()),
		engine.Bulk("ttlmode"), engine.Bulk(p.Mode.String()),
		engine.Bulk("documents"), engine.Count(items.Documents(s)),
		engine.Bulk("keys"), engine.Count(s.Plain),
		engine.Bulk("bytes"), engine.Integer(s.Bytes),
		engine.Bulk("memory"), engine.Integer(s.Memory),
		engine.Bulk("created"), engine.Integer(s.Created),
		engine.Bulk("number"), engine.Integer(int64(c.DB())),
		engine.Bulk("indexes"), engine.Count(len(c.Indexes())),
		engine.Bulk("indexbytes"), engine.Integer(s.IndexBytes),
		engine.Bulk("deadline"), engine.TextOrNull(p.Deadline),
		engine.Bulk("etag"), engine.Bulk(engine.ETag(s.Etag)),
		engine.Bulk("hold"), engine.TextOrNull(p.Hold),
		engine.Bulk("log"), describeLog(x, c),
	)
}

func parseContainerList(in *engine.Input) (engine.Run, error) {
	pattern, numbers := redisfmt.Compile("*"), false
	o := items.NamedOptions{Args: in.Args[1:], Legal: []string{"MATCH", "WITHNUMBERS"}}
	o.Meant = func(word string) string { return "MATCH " + word }
	for o.Next() {
		if o.Name == "WITHNUMBERS" {
			numbers = true
			continue
		}
		text := o.Value("a pattern")
		o.Fail(engine.CheckPattern(text))
		pattern = redisfmt.Compile(text)
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		names := []engine.Reply{}
		watch := x.WatchClient()
		for _, c := range x.Tx.Containers() {
			if watch.Abandoned(len(c.Name())) {
				return engine.Fail(engine.ErrAbandoned)
			}
			if !pattern.Match(c.Name()) || !x.Sees(c.Name()) {
				continue
			}
			names = append(names, engine.Bulk(c.Name()))
			if numbers {
				names = append(names, engine.Integer(int64(c.DB())))
			}
		}
		if numbers {
			return engine.Map(names...)
		}
		return engine.Array(names...)
	}, nil
}

func parseContainerDrop(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		c := x.Tx.Container(name)
		if c == nil {
			return engine.Flag(false)
		}
		if c.IsDatabase() {
			return engine.Fail(engine.Errorf(errDropDatabase, name))
		}
		x.Tx.Drop(c)
		return engine.Flag(true)
	}, nil
}
