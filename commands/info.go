package commands

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mayfly/keyspace"
)

// redisVersion is the version of Redis whose semantics the commands have.
const redisVersion = "7.0.15"

// serverCommands are about the server as a whole.
var serverCommands = []Command{
	commandCommand,
	configCommand,
	{
		Name: "info", Syntax: "[section [section ...]]", Summary: "Get information and statistics about the server",
		Group: "server", Since: "1.0.0", Arity: -1, Flags: Loading | Stale, Scope: ScopeSweep,
		Categories: "dangerous", Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
		Differs: "Has only figures that apply, and more of them: containers that are not empty, the purge, the journal. Figures of missing features, such as replicas, are left out",
		Parse:   parseInfo,
	},
	{
		Name: "time", Summary: "Return the current server time", Group: "server", Since: "2.6.0",
		Arity: 1, Flags: Loading | Stale | Fast, Tips: "nondeterministic_output",
		Differs: "Never runs backwards",
		Parse:   just(tellTime),
	},
}

// infoSections are the sections of INFO in their order, which is Redis'.
var infoSections = []struct {
	name  string
	write func(*infoReport)
	long  bool // not given unless asked for
}{
	{"Server", (*infoReport).server, false},
	{"Clients", (*infoReport).clients, false},
	{"Memory", (*infoReport).memory, false},
	{"Persistence", (*infoReport).persistence, false},
	{"Stats", (*infoReport).statistics, false},
	{"Replication", (*infoReport).replication, false},
	{"CPU", (*infoReport).cpu, false},
	{"Modules", func(*infoReport) {}, false}, // there are none
	{"Commandstats", (*infoReport).commandStats, true},
	{"Errorstats", (*infoReport).errorStats, false},
	{"Latencystats", (*infoReport).latencyStats, true},
	{"Cluster", (*infoReport).cluster, false},
	{"Expiry", (*infoReport).expiry, false},
	{"Keyspace", (*infoReport).keyspace, false},
}

// parseInfo reads the names of sections; "all" is everything but the modules, as in Redis.
func parseInfo(in *Input) (Run, error) {
	wanted := map[string]bool{"default": len(in.Args) == 1}
	for _, name := range in.Args[1:] {
		wanted[strings.ToLower(name)] = true
	}
	return func(x *Context) Reply {
		report := newInfoReport(x)
		var out strings.Builder
		for _, s := range infoSections {
			name := strings.ToLower(s.name)
			if !wanted[name] && !wanted["everything"] && !(wanted["all"] && name != "modules") && !(wanted["default"] && !s.long) {
				continue
			}
			if out.Len() > 0 {
				out.WriteString("\r\n")
			}
			out.WriteString("# " + s.name + "\r\n")
			report.fields = report.fields[:0]
			s.write(report)
			for _, f := range report.fields {
				fmt.Fprintf(&out, "%s:%v\r\n", f.Name, f.Value)
			}
		}
		return Verbatim(out.String())
	}, nil
}

// InfoField is a line of INFO.
type InfoField struct {
	Name  string
	Value any
}

// Info gives all fields of INFO but those of its long sections.
func (e *Engine) Info() []InfoField {
	var tx keyspace.Tx
	e.Keyspace.BeginSweep(&tx)
	defer tx.Close()
	report := newInfoReport(&Context{Tx: &tx, Engine: e})
	for _, s := range infoSections {
		if !s.long {
			s.write(report)
		}
	}
	return report.fields
}

// tellTime is TIME: seconds, and microseconds within the second, by the clock by which items die. As in
// Redis it reads the clock, also within EXEC, where time stands still otherwise.
func tellTime(x *Context) Reply {
	now := x.Tx.Micros()
	return Bulks(strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
}

// infoReport is the reply of INFO while it is written. Fields have Redis' names and units where
// Redis has them; there are only figures that are true here.
type infoReport struct {
	x      *Context
	host   ServerInfo
	stored keyspace.Stats
	fields []InfoField

	counted []*keyspace.Populated // see census
	taken   bool
}

func newInfoReport(x *Context) *infoReport {
	return &infoReport{x: x, host: x.Engine.Host.Info(), stored: x.Engine.Keyspace.Stats()}
}

// put writes a field.
func (r *infoReport) put(name string, value any) { r.fields = append(r.fields, InfoField{name, value}) }

// putf writes a field of several parts.
func (r *infoReport) putf(name, format string, parts ...any) {
	r.put(name, fmt.Sprintf(format, parts...))
}

// putBytes writes an amount of memory, in bytes and readable.
func (r *infoReport) putBytes(name string, n uint64) {
	r.put(name, n)
	r.put(name+"_human", humanBytes(n))
}

// putFlag writes 1 or 0.
func (r *infoReport) putFlag(name string, on bool) { r.put(name, Flag(on).Int) }

// putPercent writes a share as Redis does.
func (r *infoReport) putPercent(name string, share float64) {
	r.put(name, fmt.Sprintf("%.2f%%", 100*share))
}

// putStatus writes ok, or err if there is an error.
func (r *infoReport) putStatus(name, failure string) {
	if failure != "" {
		r.put(name, "err")
	} else {
		r.put(name, "ok")
	}
}

// putError writes the text of an error, which may be of several lines; empty if there is none.
func (r *infoReport) putError(name, failure string) { r.put(name, oneLine.Replace(failure)) }

func (r *infoReport) server() {
	uptime := max(r.x.Now()-r.host.StartedAt, 0) / 1000
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	r.put("redis_version", redisVersion)
	r.put("redis_mode", "standalone")
	r.put("mayfly_version", r.host.Version)
	r.put("os", operatingSystem())
	r.put("arch_bits", 32<<(^uint(0)>>63))
	r.put("go_version", runtime.Version())
	r.put("process_id", os.Getpid())
	r.put("run_id", runID())
	r.put("tcp_port", r.host.TCPPort)
	r.put("server_time_usec", r.x.Tx.Micros())
	r.put("uptime_in_seconds", uptime)
	r.put("uptime_in_days", uptime/(24*60*60))
	r.put("executable", executable)
	r.put("config_file", r.host.ConfigFile)
}

// runID is what tells this run of the server from others: 40 random hexadecimal digits.
var runID = sync.OnceValue(func() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
})

func (r *infoReport) clients() {
	r.put("connected_clients", r.host.Connected)
	r.put("maxclients", r.host.MaxClients)
	r.put("blocked_clients", r.host.Held) // no command blocks, but CLIENT PAUSE does
	r.put("pubsub_clients", r.x.Engine.Hub.subscribers.Load())
	r.put("monitor_clients", r.x.Engine.Hub.monitoring.Load())
}

func (r *infoReport) memory() {
	m := r.x.memoryFigures(r.census())
	r.putBytes("used_memory", m.used) // by items: what maxmemory limits
	if m.resident > 0 {
		r.putBytes("used_memory_rss", m.resident)
	}
	r.putBytes("used_memory_peak", m.peak)
	r.putPercent("used_memory_peak_perc", share(m.used, m.peak))
	r.put("used_memory_overhead", m.overhead())
	r.put("used_memory_dataset", m.dataset) // ids and values of what lives
	r.putPercent("used_memory_dataset_perc", share(m.dataset, m.used))
	r.put("allocator_allocated", m.allocated)
	r.put("allocator_active", m.active)
	r.put("allocator_resident", m.held)
	if system := systemBytes(); system > 0 {
		r.putBytes("total_system_memory", system)
	}
	r.putBytes("maxmemory", m.limit)
	r.put("maxmemory_policy", Eviction(r.x.Engine.memory.policy.Load()))
	r.put("mem_clients_normal", r.host.ClientMemory) // what clients make the server keep besides items
	if m.resident > 0 {
		r.put("mem_fragmentation_ratio", fmt.Sprintf("%.2f", share(m.resident, m.used)))
		r.put("mem_fragmentation_bytes", int64(m.resident)-int64(m.used))
	}
	r.put("mem_allocator", runtime.Version())
	r.put("lazyfree_pending_objects", 0) // what is dropped is gone at once; the garbage collector returns the memory
	r.put("gc_cycles", garbageCycles())
}

func (r *infoReport) persistence() {
	r.put("loading", 0) // clients are let in when it is done
	r.putFlag("rdb_bgsave_in_progress", r.stored.Saving)
	r.put("rdb_last_save_time", r.x.Engine.Keyspace.LastSave()/1000)
	r.putStatus("rdb_last_bgsave_status", r.stored.LastSaveError)
	r.put("rdb_saves", r.stored.Checkpoints)
	r.putFlag("aof_enabled", true)
	r.putFlag("aof_rewrite_in_progress", r.stored.Compacting)
	r.put("aof_rewrite_scheduled", 0) // it is begun when it is asked for
	r.putStatus("aof_last_bgrewrite_status", r.stored.LastCompactErr)
	r.put("aof_rewrites", r.stored.Compactions)
	r.putStatus("aof_last_write_status", r.stored.LastWriteError)
	r.put("aof_current_size", r.stored.JournalBytes)
	r.putError("last_write_error", r.stored.LastWriteError)
	r.put("partitions", r.stored.Partitions)
	r.put("journal_bytes", r.stored.JournalBytes)
	r.put("journal_commits", r.stored.Commits)
	r.put("journal_fsyncs", r.stored.Fsyncs)
	r.put("store_bytes", r.stored.StoreBytes)
	r.put("store_live_bytes", r.stored.LiveBytes) // of these, what is not overwritten or deleted
	r.put("checkpoints", r.stored.Checkpoints)
	r.putError("last_checkpoint_error", r.stored.LastSaveError)
	r.put("compactions", r.stored.Compactions)
	r.putStatus("last_compaction_status", r.stored.LastCompactErr)
	r.putError("last_compaction_error", r.stored.LastCompactErr)
	r.put("loaded_items", r.stored.LoadedItems)
	r.put("load_time_ms", r.stored.LoadTime)
}

func (r *infoReport) statistics() {
	c := r.x.Engine.sinceReset()
	r.put("total_connections_received", c.connections)
	r.put("total_commands_processed", c.commands)
	r.put("total_net_input_bytes", c.netInput)
	r.put("total_net_output_bytes", c.netOutput)
	rates := r.x.Engine.stats.rates.now()
	r.put("instantaneous_ops_per_sec", int64(rates.commands))
	r.put("instantaneous_input_kbps", fmt.Sprintf("%.2f", rates.netInput/1024))
	r.put("instantaneous_output_kbps", fmt.Sprintf("%.2f", rates.netOutput/1024))
	r.put("rejected_connections", c.rejected)
	r.put("expired_keys", c.expiry.RemovedLazily+c.expiry.RemovedActively)
	r.put("expired_stale_perc", fmt.Sprintf("%.2f", 100*c.expiry.StaleShare))
	r.put("expired_time_cap_reached_count", c.expiry.CapReached)
	r.put("expire_cycle_cpu_milliseconds", c.expiry.TimeSpent.Milliseconds())
	r.put("evicted_keys", c.evicted)
	r.put("evicted_clients", r.host.EvictedClients)
	r.put("keyspace_hits", c.hits)
	r.put("keyspace_misses", c.misses)
	r.put("pubsub_channels", r.x.Engine.Hub.size(toChannel))
	r.put("pubsub_patterns", r.x.Engine.Hub.size(toPattern))
	r.put("pubsubshard_channels", r.x.Engine.Hub.size(toShard))
	r.put("client_output_buffer_limit_disconnections", r.host.Laggards)
	r.put("total_error_replies", c.errors)
}

func (r *infoReport) replication() {
	// There is nothing to replicate to: what programs that look for it find is Redis' state before any
	// replica has come.
	r.put("role", "master")
	r.put("connected_slaves", 0)
	r.put("master_failover_state", "no-failover")
	r.put("master_replid", runID())
	r.put("master_repl_offset", 0)
	r.put("second_repl_offset", -1)
	r.put("repl_backlog_active", 0)
	r.put("repl_backlog_histlen", 0)
}

func (r *infoReport) cpu() {
	system, user := cpuSeconds(false)
	childSystem, childUser := cpuSeconds(true)
	r.put("used_cpu_sys", fmt.Sprintf("%.6f", system))
	r.put("used_cpu_user", fmt.Sprintf("%.6f", user))
	r.put("used_cpu_sys_children", fmt.Sprintf("%.6f", childSystem))
	r.put("used_cpu_user_children", fmt.Sprintf("%.6f", childUser))
}

func (r *infoReport) cluster() { r.putFlag("cluster_enabled", false) }

func (r *infoReport) expiry() {
	e := r.x.Engine.sinceReset().expiry
	r.put("expiry_removed_lazily", e.RemovedLazily)
	r.put("expiry_removed_actively", e.RemovedActively)
	r.put("expiry_sampled", e.Sampled)
	r.put("expiry_stale_share", fmt.Sprintf("%.4f", e.StaleShare)) // estimated; of what can die, 0 to 1
	r.put("expiry_cycles", e.Cycles)
	r.put("expiry_cycles_out_of_time", e.CapReached)
	r.put("expiry_time_spent_usec", e.TimeSpent.Microseconds())
	r.put("expiry_longest_cycle_usec", e.LongestCycle.Microseconds())
}

// keyspace writes a line for every container that holds something, as Redis does for its databases.
// Its name follows "db"; a colon in it is written %3A, since the first colon ends a field's name.
func (r *infoReport) keyspace() {
	for _, c := range r.containers() {
		r.put("db"+strings.ReplaceAll(c.Container.Name(), ":", "%3A"), ContainerInfo{c.Container.Name(), c.Documents, c.Dying(), c.AverageTTL})
	}
}

// ContainerInfo is what INFO tells of a container.
type ContainerInfo struct {
	Name       string
	Items      int
	Expiring   int   // those that will die
	AverageTTL int64 // of these, estimated, ms; 0 if there are none
}

func (c ContainerInfo) String() string {
	return fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", c.Items, c.Expiring, c.AverageTTL)
}

// census counts what the containers hold, once for all sections.
func (r *infoReport) census() []*keyspace.Populated {
	if !r.taken {
		r.counted, r.taken = r.x.Tx.Census(), true
	}
	return r.counted
}

// containers are those that hold something, databases first, in the order of their numbers.
func (r *infoReport) containers() []*keyspace.Populated {
	list := slices.Clone(r.census())
	slices.SortStableFunc(list, func(a, b *keyspace.Populated) int { return cmp.Compare(rank(a.Container), rank(b.Container)) })
	return list
}

// rank puts databases in the order of their numbers, and what is named after them.
func rank(c *keyspace.Container) int {
	n, err := strconv.Atoi(c.Name())
	if err != nil || !c.IsDatabase() {
		return math.MaxInt
	}
	return n
}

// humanBytes writes an amount as Redis' bytesToHuman does.
func humanBytes(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f, unit := float64(n), -1
	for f >= 1024 && unit < len("KMGTP")-1 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%c", f, "KMGTP"[unit])
}
