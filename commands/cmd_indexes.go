package commands

import (
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
	"mayfly/keyspace/index"
)

// indexCommands keep members of documents in order for DOC.QUERY. An index has no name: it is what it is over.
var indexCommands = []Command{
	{
		Name: "index.create", Syntax: "container path [path ...] [GEO]", Example: "orders /status /total",
		Summary: "Creates an index over members of documents; GEO over points in GeoJSON. It is built in the background.",
		Flags:   Write | DenyOOM, Scope: ScopeAll, Parse: parseIndexCreate,
	},
	{
		Name: "index.drop", Syntax: "container path [path ...] [GEO]", Example: "orders /status /total",
		Summary: "Drops an index. Returns 1, or 0 if it does not exist. One over points is named with GEO.",
		Flags:   Write | Fast, Scope: ScopeAll, Parse: parseIndexDrop,
	},
	{
		Name: "index.list", Syntax: "container", Summary: "Describes the indexes of a container.",
		Flags: ReadOnly, Scope: ScopeSweep, Parse: parseIndexList,
	},
}

// parseDefinition reads the paths of an index.
func parseDefinition(in *Input) (index.Definition, error) {
	paths := in.Args[2:]
	geo := len(paths) > 1 && redisfmt.EqualFold(paths[len(paths)-1], "GEO")
	if geo {
		paths = paths[:len(paths)-1]
	}
	for _, path := range paths {
		if _, err := parsePaths("DOC.GET", []string{path}); err != nil {
			return index.Definition{}, err
		}
	}
	return index.Define(paths, geo)
}

// onIndex returns a command on the index of a container that its arguments define.
func onIndex(in *Input, run func(x *Context, c *keyspace.Container, d index.Definition) Reply) (Run, error) {
	d, err := parseDefinition(in)
	if err != nil {
		return nil, err
	}
	container := in.Args[1]
	return func(x *Context) Reply {
		c, err := x.Container(container)
		if err != nil {
			return Fail(err)
		}
		return run(x, c, d)
	}, nil
}

func parseIndexCreate(in *Input) (Run, error) {
	return onIndex(in, func(x *Context, c *keyspace.Container, d index.Definition) Reply {
		if n := len(c.Indexes()); n >= index.MaxIndexes && !c.HasIndex(d) {
			return Fail(errorf(errIndexesFull, n, index.MaxIndexes))
		}
		if !x.Tx.CreateIndex(c, d) {
			return Fail(errorf(errIndexExists, shown(d.String())))
		}
		return OK
	})
}

func parseIndexDrop(in *Input) (Run, error) {
	return onIndex(in, func(x *Context, c *keyspace.Container, d index.Definition) Reply {
		if x.Tx.DropIndex(c, d) {
			return Integer(1)
		}
		if other, err := index.Define(d.Pointers(), !d.Geo()); err == nil && c.HasIndex(other) {
			return Fail(errorf(errIndexOther, shown(d.String()), shown(other.String())))
		}
		return Integer(0)
	})
}

func parseIndexList(in *Input) (Run, error) {
	container := in.Args[1]
	return func(x *Context) Reply {
		c, err := x.Container(container)
		if err != nil {
			return Fail(err)
		}
		list := []Reply{}
		for _, s := range x.Tx.IndexStats(c) {
			list = append(list, describeIndex(&s))
		}
		return Array(list...)
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
func describeIndex(s *keyspace.IndexStats) Reply {
	paths := []Reply{}
	for _, pointer := range s.Definition.Pointers() {
		paths = append(paths, Bulk(pointer))
	}
	state := "building"
	if s.Ready {
		state = "ready"
	}
	return Map(
		Bulk("paths"), Array(paths...),
		Bulk("geo"), Flag(s.Definition.Geo()),
		Bulk("state"), Bulk(state),
		Bulk("percent"), Count(s.Percent),
		Bulk("entries"), Count(s.Entries),
		Bulk("bytes"), Integer(s.Bytes),
		Bulk("uses"), Integer(s.Uses),
	)
}
