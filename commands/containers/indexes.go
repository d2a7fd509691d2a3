package containers

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/index"
	"mayfly/redisfmt"
)

// IndexCommands keep members of documents in order for DOC.QUERY. An index has no name: it is what it is
// over.
var IndexCommands = []engine.Command{
	{
		Name: "index.create", Syntax: "container path [path ...] [GEO]", Example: "orders /status /total",
		Summary: "Creates an index over members of documents; GEO over points in GeoJSON. It is built in the background.",
		Touches: engine.TouchesNamed | engine.WritesUnnamed, Flags: engine.Write | engine.DenyOOM, Scope: engine.ScopeAll, Parse: parseIndexCreate,
	},
	{
		Name: "index.drop", Syntax: "container path [path ...] [GEO]", Example: "orders /status /total",
		Summary: "Drops an index. Returns 1, or 0 if it does not exist. One over points is named with GEO.",
		Touches: engine.TouchesNamed | engine.WritesUnnamed, Flags: engine.Write | engine.Fast, Scope: engine.ScopeAll, Parse: parseIndexDrop,
	},
	{
		Name: "index.list", Syntax: "container", Summary: "Describes the indexes of a container.",
		Flags: engine.ReadOnly, Scope: engine.ScopeSweep, Parse: parseIndexList,
	},
}

// parseDefinition reads the paths of an index.
func parseDefinition(in *engine.Input) (index.Definition, error) {
	paths := in.Args[2:]
	geo := len(paths) > 1 && redisfmt.EqualFold(paths[len(paths)-1], "GEO")
	if geo {
		paths = paths[:len(paths)-1]
	}
	for _, path := range paths {
		if _, err := items.ParsePaths("DOC.GET", []string{path}); err != nil {
			return index.Definition{}, err
		}
	}
	return index.Define(paths, geo)
}

// onIndex returns a command on the index of a container that its arguments define.
func onIndex(in *engine.Input, run func(x *engine.Context, c *keyspace.Container, d index.Definition) engine.Reply) (engine.Run, error) {
	d, err := parseDefinition(in)
	if err != nil {
		return nil, err
	}
	container := in.Args[1]
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(container)
		if err != nil {
			return engine.Fail(err)
		}
		return run(x, c, d)
	}, nil
}

func parseIndexCreate(in *engine.Input) (engine.Run, error) {
	return onIndex(in, func(x *engine.Context, c *keyspace.Container, d index.Definition) engine.Reply {
		if n := len(c.Indexes()); n >= index.MaxIndexes && !c.HasIndex(d) {
			return engine.Fail(engine.Errorf(errIndexesFull, n, index.MaxIndexes))
		}
		if !x.Tx.CreateIndex(c, d) {
			return engine.Fail(engine.Errorf(errIndexExists, engine.Shown(d.String())))
		}
		return engine.OK
	})
}

func parseIndexDrop(in *engine.Input) (engine.Run, error) {
	return onIndex(in, func(x *engine.Context, c *keyspace.Container, d index.Definition) engine.Reply {
		if x.Tx.DropIndex(c, d) {
			return engine.Integer(1)
		}
		if other, err := index.Define(d.Pointers(), !d.Geo()); err == nil && c.HasIndex(other) {
			return engine.Fail(engine.Errorf(errIndexOther, engine.Shown(d.String()), engine.Shown(other.String())))
		}
		return engine.Integer(0)
	})
}

func parseIndexList(in *engine.Input) (engine.Run, error) {
	container := in.Args[1]
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(container)
		if err != nil {
			return engine.Fail(err)
		}
		list := []engine.Reply{}
		for _, s := range x.Tx.IndexStats(c) {
			list = append(list, describeIndex(&s))
		}
		return engine.Array(list...)
	}, nil
}

// describeIndex is an element of the reply of INDEX.LIST:
//
//	paths    JSON Pointers
//	geo      1 if it is over points
//	state    ready or building
//	percent  of the building
//	entries  keys in it
//	bytes    of memory, an estimate
//	uses     by queries since the start
func describeIndex(s *keyspace.IndexStats) engine.Reply {
	paths := []engine.Reply{}
	for _, pointer := range s.Definition.Pointers() {
		paths = append(paths, engine.Bulk(pointer))
	}
	state := "building"
	if s.Ready {
		state = "ready"
	}
	return engine.Map(
		engine.Bulk("paths"), engine.Array(paths...),
		engine.Bulk("geo"), engine.Flag(s.Definition.Geo()),
		engine.Bulk("state"), engine.Bulk(state),
		engine.Bulk("percent"), engine.Count(s.Percent),
		engine.Bulk("entries"), engine.Count(s.Entries),
		engine.Bulk("bytes"), engine.Integer(s.Bytes),
		engine.Bulk("uses"), engine.Integer(s.Uses),
	)
}
