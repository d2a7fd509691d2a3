package admin

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/latency"
)

// LatencyCommand reports how long commands take, and when something took too long.
var LatencyCommand = engine.Command{
	Name: "latency", Since: "2.8.13", Summary: "A container for latency diagnostics commands",
	Sub: []engine.Command{
		latencyRow(engine.Command{
			Name: "doctor", Summary: "Return a human readable latency analysis report.",
			Differs: "Gives other advice",
			Parse:   engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Verbatim(latencyDoctor(&x.Engine.Latency)) }),
		}),
		latencyRow(engine.Command{
			Name: "graph", Syntax: "event", Summary: "Return a latency graph for the event.",
			Parse: engine.NoParse(runLatencyGraph),
		}),
		engine.With(engine.HelpRow("latency", "2.8.13"), func(c *engine.Command) { c.Summary += "." }),
		latencyRow(engine.Command{
			Name: "histogram", Syntax: "[command [command ...]]", Since: "7.0.0",
			Summary: "Return the cumulative distribution of latencies of a subset of commands or all.",
			Parse:   parseLatencyHistogram,
		}),
		latencyRow(engine.Command{
			Name: "history", Syntax: "event", Summary: "Return timestamp-latency samples for the event.",
			Parse: engine.NoParse(runLatencyHistory),
		}),
		latencyRow(engine.Command{
			Name: "latest", Summary: "Return the latest latency samples for all events.",
			Differs: "The events are `command`, `fast-command` and `aof-write`, the wait for the commit",
			Parse:   engine.NoParse(runLatencyLatest),
		}),
		latencyRow(engine.Command{
			Name: "reset", Syntax: "[event [event ...]]", Summary: "Reset latency data for one or more events.",
			Tips:  "request_policy:all_nodes response_policy:all_succeeded",
			Parse: engine.NoParse(runLatencyReset),
		}),
	},
}

// latencyRow fills in what the subcommands of LATENCY have in common.
func latencyRow(c engine.Command) engine.Command {
	c.Flags = engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode
	c.Tips = cmp.Or(c.Tips, "nondeterministic_output request_policy:all_nodes response_policy:special")
	return c
}

func runLatencyLatest(x *engine.Context) engine.Reply {
	list := []engine.Reply{}
	x.Engine.Latency.Each(func(event string, s *latency.Series) {
		last := s.Samples[len(s.Samples)-1]
		list = append(list, engine.Array(engine.Bulk(event), engine.Integer(last.Second), engine.Integer(last.Took), engine.Integer(s.Worst)))
	})
	return engine.Array(list...)
}

func runLatencyHistory(x *engine.Context) engine.Reply {
	list := []engine.Reply{}
	x.Engine.Latency.Of(x.Input.Args[2], func(s *latency.Series) {
		if s == nil {
			return
		}
		for _, sample := range s.Samples {
			list = append(list, engine.Array(engine.Integer(sample.Second), engine.Integer(sample.Took)))
		}
	})
	return engine.Array(list...)
}

func runLatencyReset(x *engine.Context) engine.Reply {
	return engine.Count(x.Engine.Latency.Reset(x.Input.Args[2:]))
}

// parseLatencyHistogram parses LATENCY HISTOGRAM. As in Redis a command stands for all its subcommands,
// and unknown names are ignored.
func parseLatencyHistogram(in *engine.Input) (engine.Run, error) {
	var rows []*engine.Row
	for _, name := range in.Args[2:] {
		if r := FindByFullName(name); r != nil {
			rows = append(rows, r)
			rows = append(rows, r.SortedSubcommands...)
		}
	}
	if len(in.Args) == 2 {
		rows = slices.Clone(engine.AllRows)
		slices.SortFunc(rows, func(a, b *engine.Row) int { return cmp.Compare(a.FullName, b.FullName) })
	}
	return func(x *engine.Context) engine.Reply {
		var list []engine.Reply
		for _, r := range rows {
			if s := x.Engine.StatsOf(r); s.Durations.Count > 0 {
				list = append(list, engine.Bulk(r.FullName), Distribution(&s.Durations))
			}
		}
		return engine.Map(list...)
	}, nil
}

// Distribution is the histogram of calls in µs, in the form of Redis. The bounds are powers of two, and
// empty buckets are left out.
func Distribution(h *latency.Histogram) engine.Reply {
	var list []engine.Reply
	before := int64(0)
	for end, shorter := range h.Octaves {
		if shorter > before {
			// Redis shows the longest duration that its histogram cannot distinguish from the bound.
			bound := (end + end/128).Microseconds()
			list = append(list, engine.Integer(bound), engine.Integer(shorter))
		}
		before = shorter
	}
	return engine.Map(engine.Bulk("calls"), engine.Integer(h.Count), engine.Bulk("histogram_usec"), engine.Map(list...))
}

func runLatencyGraph(x *engine.Context) (reply engine.Reply) {
	event := x.Input.Args[2]
	x.Engine.Latency.Of(event, func(s *latency.Series) {
		if s == nil {
			reply = engine.Fail(engine.Errorf(errNoSamples, strings.ToValidUTF8(engine.Shown(event), "?")))
			return
		}
		reply = engine.Verbatim(latencyGraph(s, event, x.Now()/1000))
	})
	return reply
}
