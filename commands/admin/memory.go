package admin

import (
	"fmt"
	"runtime/debug"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// MemoryCommand reports the use of memory. "Used memory" is the size of the items and containers, the figure
// that maxmemory limits. The allocator is Go's runtime.
var MemoryCommand = engine.Command{
	Name: "memory", Since: "4.0.0", Summary: "A container for memory diagnostics commands",
	Sub: []engine.Command{
		{
			Name: "doctor", Summary: "Outputs memory problems report",
			Differs: "Finds other issues",
			Flags:   engine.OnNode, Scope: engine.ScopeSweep, Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Verbatim(memoryDoctor(memoryOfItems(x))) }),
		},
		engine.HelpRow("memory", "4.0.0"),
		{
			Name: "malloc-stats", Summary: "Show allocator internal stats",
			Differs: "The statistics of Go's runtime",
			Flags:   engine.OnNode, Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Parse: engine.NoParse(func(*engine.Context) engine.Reply { return engine.Verbatim(allocatorReport()) }),
		},
		{
			Name: "purge", Summary: "Ask the allocator to release memory",
			Differs: "Moves items closer together, collects garbage and returns what is free",
			Flags:   engine.Slow | engine.OnNode, Tips: "request_policy:all_shards response_policy:all_succeeded",
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
				x.Tx.Clean()
				debug.FreeOSMemory()
				return engine.OK
			}),
		},
		{
			Name: "stats", Summary: "Show memory usage details",
			Differs: "The figures of Go's runtime: no caches, and no backlogs by kind of client",
			Flags:   engine.OnNode, Scope: engine.ScopeSweep, Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Touches: engine.TouchesVisible, Parse: engine.NoParse(runMemoryStats),
		},
		{
			Name: "usage", Syntax: "key [SAMPLES count]", Summary: "Estimate the memory usage of a key",
			Differs: "Counts by the server's own account",
			Flags:   engine.ReadOnly, Keys: engine.Keys{First: 2, Last: 2, Step: 1}, Access: "RO", Touches: engine.TouchesSelected, Parse: parseMemoryUsage,
		},
	},
}

// parseMemoryUsage parses MEMORY USAGE. Its samples are elements of aggregate types, which do not exist
// here.
func parseMemoryUsage(in *engine.Input) (engine.Run, error) {
	key := in.Args[2]
	for args := in.Args[3:]; len(args) > 0; args = args[2:] {
		if !redisfmt.EqualFold(args[0], "SAMPLES") || len(args) < 2 {
			return nil, engine.ErrSyntax
		}
		samples, ok := redisfmt.ParseInt(args[1])
		switch {
		case !ok:
			return nil, engine.ErrNotInteger
		case samples < 0:
			return nil, engine.ErrSyntax
		}
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		bytes, found := x.Tx.Memory(c, key)
		if !found {
			return engine.Null
		}
		return engine.Integer(bytes)
	}), nil
}

// memoryFigures are the figures of memory at one time, in bytes.
type memoryFigures struct {
	used    uint64 // of items and containers; maxmemory limits it
	peak    uint64 // the largest use seen
	limit   uint64 // maxmemory; 0: none
	dataset uint64 // the part of used for ids and bodies of living items
	items   int    // the number of living items

	allocated uint64 // objects of the runtime, garbage included
	active    uint64 // the heap that holds these objects
	held      uint64 // memory that the runtime holds from the system
	resident  uint64 // physical memory of the process; 0: unknown
}

// memoryOfItems reads the figures with the statistics of all containers.
func memoryOfItems(x *engine.Context) memoryFigures {
	stats, _ := x.Tx.AllStats()
	return memoryFiguresOf(x, stats)
}

// memoryFigures reads the figures; those of the items come from the statistics of all containers.
func memoryFiguresOf(x *engine.Context, stats []*keyspace.ContainerStats) memoryFigures {
	m := memoryFigures{
		limit:     uint64(x.Engine.Memory.Bytes.Load()),
		allocated: readMetric(heapObjects),
		held:      readMetric("/memory/classes/total:bytes") - readMetric("/memory/classes/heap/released:bytes"),
		resident:  residentBytes(),
	}
	m.active = m.allocated + readMetric("/memory/classes/heap/unused:bytes")
	for _, c := range stats {
		if x.Sees(c.Container.Name()) {
			m.dataset += uint64(c.Bytes)
			m.items += c.Documents
		}
	}
	m.used = uint64(x.Engine.Keyspace().Used()) // after reading the statistics, which removes dead items
	m.peak = x.Engine.Stats.NotePeak(m.used)
	return m
}

func (m *memoryFigures) overhead() uint64 { return m.used - min(m.used, m.dataset) }

// fraction returns a/b; 0 if b is 0.
func fraction(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// runMemoryStats is MEMORY STATS: the figures of Redis that exist here.
func runMemoryStats(x *engine.Context) engine.Reply {
	m := memoryOfItems(x)
	if !x.SeesAll() {
		m.used, m.peak = m.dataset, m.dataset
	}
	perItem := uint64(0)
	if m.items > 0 {
		perItem = m.used / uint64(m.items)
	}
	var stats []engine.Reply
	number := func(name string, n uint64) { stats = append(stats, engine.Bulk(name), engine.Integer(int64(n))) }
	ratio := func(name string, f float64) { stats = append(stats, engine.Bulk(name), engine.Double(f)) }
	number("peak.allocated", m.peak)
	number("total.allocated", m.used)
	number("overhead.total", m.overhead())
	number("keys.count", uint64(m.items))
	number("keys.bytes-per-key", perItem)
	number("dataset.bytes", m.dataset)
	ratio("dataset.percentage", 100*fraction(m.dataset, m.used))
	ratio("peak.percentage", 100*fraction(m.used, m.peak))
	number("allocator.allocated", m.allocated)
	number("allocator.active", m.active)
	number("allocator.resident", m.held)
	ratio("allocator-fragmentation.ratio", fraction(m.active, m.allocated))
	number("allocator-fragmentation.bytes", m.active-m.allocated)
	if m.resident > 0 {
		ratio("fragmentation", fraction(m.resident, m.used))
		stats = append(stats, engine.Bulk("fragmentation.bytes"), engine.Integer(int64(m.resident)-int64(m.used)))
	}
	return engine.Map(stats...)
}

// fewBytes is the size of items below which a diagnosis means nothing, as in Redis.
const fewBytes = 5 << 20

// memoryDoctor is the report of MEMORY DOCTOR: issues and remedies. Without issues, or with too little
// data, it has the words of Redis.
func memoryDoctor(m memoryFigures) string {
	if m.used < fewBytes {
		return "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these conditions. " +
			"Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to our programming as soon as I finished rebooting.\n"
	}
	var issues []string
	if m.limit > 0 && fraction(m.used, m.limit) > 0.9 {
		issues = append(issues, fmt.Sprintf("Near the limit: items take %s of the %s of maxmemory. Raise it, delete, shorten times to live, or let maxmemory-policy volatile-ttl evict.",
			humanBytes(m.used), humanBytes(m.limit)))
	}
	if fraction(m.peak, m.used) > 1.5 {
		issues = append(issues, fmt.Sprintf("Peak memory: items took %s once and take %s now. Unused memory returns to the system gradually; MEMORY PURGE returns it at once.",
			humanBytes(m.peak), humanBytes(m.used)))
	}
	if fraction(m.resident, m.used) > 3 {
		issues = append(issues, fmt.Sprintf("High overhead: the process takes %s for items of %s. Part of that is garbage and the newest journal. MEMORY PURGE collects garbage, BGSAVE releases the journal.",
			humanBytes(m.resident), humanBytes(m.used)))
	}
	if len(issues) == 0 {
		return "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n"
	}
	return "Sam, I detected a few issues in this instance's memory:\n\n * " + strings.Join(issues, "\n\n * ") + "\n"
}
