package admin

import (
	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// SlowlogCommand lists slow commands.
var SlowlogCommand = engine.Command{
	Name: "slowlog", Since: "2.2.12", Summary: "A container for slow log commands",
	Sub: []engine.Command{
		{
			Name: "get", Syntax: "[count]", Summary: "Get the slow log's entries",
			Flags: engine.Admin | engine.Loading | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes nondeterministic_output", Touches: engine.TouchesAll, Parse: parseSlowlogGet,
		},
		engine.HelpRow("slowlog", "6.2.0"),
		{
			Name: "len", Summary: "Get the slow log's length",
			Flags: engine.Admin | engine.Loading | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Count(x.Engine.Slowlog.Length()) }),
		},
		{
			Name: "reset", Summary: "Clear all entries from the slow log",
			Flags: engine.Admin | engine.Loading | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
				x.Engine.Slowlog.Reset()
				return engine.OK
			}),
		},
	},
}

func parseSlowlogGet(in *engine.Input) (engine.Run, error) {
	count := int64(10)
	switch len(in.Args) {
	case 2:
	case 3:
		n, ok := redisfmt.ParseInt(in.Args[2])
		if !ok || n < -1 {
			return nil, errSlowlogCount
		}
		count = n
	default:
		return nil, engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "SLOWLOG")
	}
	return func(x *engine.Context) engine.Reply {
		entries := []engine.Reply{}
		for _, e := range x.Engine.Slowlog.Newest(count) {
			entries = append(entries, engine.Array(
				engine.Integer(e.ID), engine.Integer(e.At/1000), engine.Integer(e.Took.Microseconds()), engine.Bulks(e.Args...), engine.Bulk(e.Addr), engine.Bulk(e.Name)))
		}
		return engine.Array(entries...)
	}, nil
}
