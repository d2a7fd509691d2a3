package commands

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"mayfly/keyspace"
)

// infoSections are the sections of INFO, in Redis' order.
var infoSections = []struct {
	name  string
	write func(*infoReport)
	long  bool // given only on request
	data  bool // needs an open keyspace
}{
	{"Server", (*infoReport).serverSection, false, false},
	{"Clients", (*infoReport).clientsSection, false, false},
	{"Memory", (*infoReport).memorySection, false, true},
	{"Persistence", (*infoReport).persistenceSection, false, false},
	{"Stats", (*infoReport).statsSection, false, false},
	{"Replication", (*infoReport).replicationSection, false, false},
	{"CPU", (*infoReport).cpuSection, false, false},
	{"Modules", (*infoReport).modulesSection, false, false},
	{"Commandstats", (*infoReport).commandStatsSection, true, false},
	{"Errorstats", (*infoReport).errorStatsSection, false, false},
	{"Latencystats", (*infoReport).latencyStatsSection, true, false},
	{"Cluster", (*infoReport).clusterSection, false, false},
	{"Expiry", (*infoReport).expirySection, false, true},
	{"Indexes", (*infoReport).indexesSection, false, true},
	{"Deaths", (*infoReport).deathsSection, false, true},
	{"Keyspace", (*infoReport).keyspaceSection, false, true},
}

// parseInfo parses INFO. As in Redis, "all" is every section but Modules.
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
			if s.data && !report.loaded {
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

// Info returns all fields of INFO but those of its long sections.
func (e *Engine) Info() []InfoField {
	var tx keyspace.Tx
	session := Session{service: serveDetached}
	if e.loaded() {
		session.service = serveOnNode
		e.Keyspace().BeginSweep(&tx)
	} else {
		tx.BeginDetached(e.Now())
	}
	defer tx.Close()
	report := newInfoReport(&Context{Tx: &tx, Engine: e, Session: &session})
	for _, s := range infoSections {
		if !s.long && (report.loaded || !s.data) {
			s.write(report)
		}
	}
	return report.fields
}

// infoReport is a reply of INFO under construction. Fields have the names and units of Redis where Redis
// has them. Figures that do not exist here are left out.
type infoReport struct {
	x             *Context
	host          ServerInfo
	loaded        bool // a keyspace is open
	keyspaceStats keyspace.Stats
	fields        []InfoField

	containerStats []*keyspace.ContainerStats // valid if hasStats; see readContainerStats
	oldestDeath    int64                      // likewise, ms; now if nothing is dead
	hasStats       bool
}

func newInfoReport(x *Context) *infoReport {
	return &infoReport{
		x: x, host: x.Engine.Host.Info(), keyspaceStats: x.Engine.keyspaceStats(), loaded: x.Session.service != serveDetached,
	}
}

// field writes a field.
func (r *infoReport) field(name string, value any) {
	r.fields = append(r.fields, InfoField{name, value})
}

// fieldf writes a formatted field.
func (r *infoReport) fieldf(name, format string, parts ...any) {
	r.field(name, fmt.Sprintf(format, parts...))
}

// bytesField writes an amount of memory twice, in bytes and readable.
func (r *infoReport) bytesField(name string, n uint64) {
	r.field(name, n)
	r.field(name+"_human", humanBytes(n))
}

// flagField writes 1 or 0.
func (r *infoReport) flagField(name string, on bool) { r.field(name, Flag(on).Int) }

// percentField writes a share as a percentage, as Redis does.
func (r *infoReport) percentField(name string, share float64) {
	r.field(name, fmt.Sprintf("%.2f%%", 100*share))
}

// statusField writes ok, or err if failure is not empty.
func (r *infoReport) statusField(name, failure string) {
	if failure != "" {
		r.field(name, "err")
	} else {
		r.field(name, "ok")
	}
}

// errorField writes the text of an error on one line; empty if there is none.
func (r *infoReport) errorField(name, failure string) { r.field(name, oneLine.Replace(failure)) }

// modulesSection names the module whose commands are built in, as RedisJSON is named.
func (r *infoReport) modulesSection() {
	r.fieldf("module", "name=ReJSON,ver=%d,api=1,filters=0,usedby=[],using=[],options=[]", moduleVersion)
}

func (r *infoReport) serverSection() {
	uptime := max(r.x.Now()-r.host.StartedAt, 0) / 1000
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	r.field("redis_version", RedisVersion)
	r.field("redis_mode", r.x.Engine.mode())
	r.field("mayfly_version", r.host.Version)
	r.field("os", operatingSystem())
	r.field("arch_bits", 32<<(^uint(0)>>63))
	r.field("go_version", runtime.Version())
	r.field("process_id", os.Getpid())
	r.field("run_id", runID())
	r.field("tcp_port", r.host.TCPPort)
	if r.loaded {
		r.field("server_time_usec", r.x.Tx.Micros())
		r.field("clock_ahead_ms", r.x.Engine.Keyspace().ClockAhead().Milliseconds()) // of the wall clock, which was set back
	}
	r.field("uptime_in_seconds", uptime)
	r.field("uptime_in_days", uptime/(24*60*60))
	r.field("executable", executable)
	r.field("config_file", r.host.ConfigFile)
}

// runID returns the identifier of this run of the server: 40 random hexadecimal digits.
var runID = sync.OnceValue(func() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
})

func (r *infoReport) clientsSection() {
	r.field("connected_clients", r.host.Connected)
	r.field("maxclients", r.host.MaxClients)
	r.field("blocked_clients", r.host.PausedClients) // that wait: in BLOCK, for CLIENT PAUSE, after wrong passwords
	r.field("pubsub_clients", r.x.Engine.Broker.subscribedSessions.Load())
	r.field("monitor_clients", r.x.Engine.Broker.monitoringSessions.Load())
}

func (r *infoReport) memorySection() {
	m := r.x.memoryFigures(r.readContainerStats())
	r.bytesField("used_memory", m.used) // of items and containers; maxmemory limits it
	if m.resident > 0 {
		r.bytesField("used_memory_rss", m.resident)
	}
	r.bytesField("used_memory_peak", m.peak)
	r.percentField("used_memory_peak_perc", fraction(m.used, m.peak))
	r.field("used_memory_overhead", m.overhead())
	r.field("used_memory_dataset", m.dataset) // ids and bodies of living items
	r.percentField("used_memory_dataset_perc", fraction(m.dataset, m.used))
	r.field("undo_memory", r.x.Engine.Keyspace().UndoMemory()) // of what CONTAINER.UNDO can bring back; part of used_memory
	r.field("allocator_allocated", m.allocated)
	r.field("allocator_active", m.active)
	r.field("allocator_resident", m.held)
	if system := systemBytes(); system > 0 {
		r.bytesField("total_system_memory", system)
	}
	cached := r.x.Engine.Scripts.Stats()
	r.field("used_memory_scripts_eval", cached.Bytes)
	r.field("number_of_cached_scripts", cached.Scripts)
	r.bytesField("maxmemory", m.limit)
	r.field("maxmemory_policy", r.x.Engine.Keyspace().Eviction().Policy)
	r.field("mem_clients_normal", r.host.ClientMemory) // held for clients besides items
	if m.resident > 0 {
		r.field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", fraction(m.resident, m.used)))
		r.field("mem_fragmentation_bytes", int64(m.resident)-int64(m.used))
	}
	r.field("mem_allocator", runtime.Version())
	r.field("lazyfree_pending_objects", 0) // drops take effect at once; the garbage collector returns the memory
	r.field("gc_cycles", garbageCycles())
}

func (r *infoReport) persistenceSection() {
	r.flagField("loading", !r.loaded) // only clients of a node of a cluster connect before it has loaded
	if !r.loaded {
		r.loadingFields()
		return
	}
	r.flagField("rdb_bgsave_in_progress", r.keyspaceStats.Saving)
	r.field("rdb_last_save_time", r.x.Engine.Keyspace().LastSave()/1000)
	r.statusField("rdb_last_bgsave_status", r.keyspaceStats.LastSaveError)
	r.field("rdb_saves", r.keyspaceStats.Checkpoints)
	r.flagField("aof_enabled", true)
	r.flagField("aof_rewrite_in_progress", r.keyspaceStats.Compacting)
	r.field("aof_rewrite_scheduled", 0) // a request starts it at once
	r.statusField("aof_last_bgrewrite_status", r.keyspaceStats.LastCompactErr)
	r.field("aof_rewrites", r.keyspaceStats.Compactions)
	r.statusField("aof_last_write_status", r.keyspaceStats.LastWriteError)
	r.field("aof_current_size", r.keyspaceStats.JournalBytes)
	r.errorField("last_write_error", r.keyspaceStats.LastWriteError)
	r.flagField("disk_full", r.keyspaceStats.DiskFull)
	r.field("disk_reserve_bytes", r.keyspaceStats.ReserveBytes) // 0 while it is released
	r.field("partitions", r.keyspaceStats.Partitions)
	r.field("journal_bytes", r.keyspaceStats.JournalBytes)
	r.field("journal_commits", r.keyspaceStats.Commits)
	r.field("journal_fsyncs", r.keyspaceStats.Fsyncs)
	r.field("commit_last_usec", r.keyspaceStats.LastCommit.Microseconds())
	r.field("commit_p50_usec", r.keyspaceStats.MedianCommit.Microseconds()) // of the last 1024 group commits
	r.field("commit_p99_usec", r.keyspaceStats.SlowCommit.Microseconds())
	r.field("store_bytes", r.keyspaceStats.StoreBytes)
	r.field("store_live_bytes", r.keyspaceStats.LiveBytes) // without overwritten and deleted items
	r.field("checkpoints", r.keyspaceStats.Checkpoints)
	r.errorField("last_checkpoint_error", r.keyspaceStats.LastSaveError)
	r.field("compactions", r.keyspaceStats.Compactions)
	r.statusField("last_compaction_status", r.keyspaceStats.LastCompactErr)
	r.errorField("last_compaction_error", r.keyspaceStats.LastCompactErr)
	r.field("oldest_waste_seconds", int64(r.keyspaceStats.OldestWaste.Seconds())) // of what is overwritten or deleted
	scrub := r.x.Engine.Keyspace().Scrubber().Stats()
	r.flagField("scrub_in_progress", scrub.Running)
	r.field("scrub_last_time", scrub.Last/1000)
	r.field("scrubs", scrub.Scrubs)
	r.field("scrub_found_files", scrub.Found)
	r.field("scrub_repaired_files", scrub.Repaired)
	r.field("damaged_files", scrub.Damaged) // that could not be written anew yet
	damage := ""
	if err := r.x.Engine.Keyspace().Damage(); err != nil {
		damage = err.Error()
	}
	r.errorField("damaged_files_error", damage)
	backups := &r.x.Engine.backups
	r.field("backups", backups.made.Load())
	r.field("last_backup_time", backups.last.Load()/1000) // when it began; 0 before the first one
	r.statusField("last_backup_status", backups.lastError())
	r.errorField("last_backup_error", backups.lastError())
	r.field("loaded_items", r.keyspaceStats.LoadedItems)
	r.field("load_time_ms", r.keyspaceStats.LoadTime)
}

func (r *infoReport) statsSection() {
	c := r.x.Engine.sinceReset()
	r.field("total_connections_received", c.connections)
	r.field("total_commands_processed", c.commands)
	r.field("total_net_input_bytes", c.netInput)
	r.field("total_net_output_bytes", c.netOutput)
	rates := r.x.Engine.stats.rates.now()
	r.field("instantaneous_ops_per_sec", int64(rates.commands))
	r.field("instantaneous_input_kbps", fmt.Sprintf("%.2f", rates.netInput/1024))
	r.field("instantaneous_output_kbps", fmt.Sprintf("%.2f", rates.netOutput/1024))
	r.field("rejected_connections", c.rejected)
	r.field("expired_keys", c.expiry.RemovedLazily+c.expiry.RemovedActively)
	r.field("expired_stale_perc", fmt.Sprintf("%.2f", 100*c.expiry.StaleShare))
	r.field("expired_time_cap_reached_count", c.expiry.CapReached)
	r.field("expire_cycle_cpu_milliseconds", c.expiry.TimeSpent.Milliseconds())
	r.field("evicted_keys", c.evicted)
	r.field("evicted_clients", r.host.EvictedClients)
	r.field("evicted_scripts", r.x.Engine.Scripts.Stats().Evicted)
	r.field("keyspace_hits", c.hits)
	r.field("keyspace_misses", c.misses)
	r.field("pubsub_channels", r.x.Engine.Broker.countNames(subChannel))
	r.field("pubsub_patterns", r.x.Engine.Broker.countNames(subPattern))
	r.field("pubsubshard_channels", r.x.Engine.Broker.countNames(subShard))
	r.field("client_output_buffer_limit_disconnections", r.host.SlowSubscribers)
	r.field("total_error_replies", c.errors)
	r.field("acl_access_denied_auth", c.denied) // wrong passwords
}

func (r *infoReport) replicationSection() {
	if c := r.x.Engine.Cluster; c != nil {
		r.fields = append(r.fields, replicationFields(c.View())...)
		return
	}
	// There is no replication. The fields are those of a Redis without replicas, for programs that expect
	// them.
	r.field("role", "master")
	r.field("connected_slaves", 0)
	r.field("master_failover_state", "no-failover")
	r.field("master_replid", runID())
	r.field("master_replid2", strings.Repeat("0", 40))
	r.field("master_repl_offset", 0)
	r.field("second_repl_offset", -1)
	r.field("repl_backlog_active", 0)
	r.field("repl_backlog_size", 0)
	r.field("repl_backlog_first_byte_offset", 0)
	r.field("repl_backlog_histlen", 0)
}

func (r *infoReport) cpuSection() {
	system, user := cpuSeconds(false)
	childSystem, childUser := cpuSeconds(true)
	r.field("used_cpu_sys", fmt.Sprintf("%.6f", system))
	r.field("used_cpu_user", fmt.Sprintf("%.6f", user))
	r.field("used_cpu_sys_children", fmt.Sprintf("%.6f", childSystem))
	r.field("used_cpu_user_children", fmt.Sprintf("%.6f", childUser))
}

func (r *infoReport) clusterSection() {
	c := r.x.Engine.Cluster
	r.flagField("cluster_enabled", c != nil)
	if c != nil {
		r.fields = append(r.fields, clusterFields(c.View())...)
		r.fields = append(r.fields, InfoField{"cluster_messages_dropped", r.x.Engine.DroppedMessages()})
	}
}

func (r *infoReport) expirySection() {
	e := r.x.Engine.sinceReset().expiry
	r.readContainerStats()
	r.field("expiry_removed_lazily", e.RemovedLazily)
	r.field("expiry_removed_actively", e.RemovedActively)
	r.field("expiry_sampled", e.Sampled)
	r.field("expiry_stale_share", fmt.Sprintf("%.4f", e.StaleShare)) // an estimate: dead items of those that can die, 0 to 1
	r.field("expiry_cycles", e.Cycles)
	r.field("expiry_cycles_out_of_time", e.CapReached)
	r.field("expiry_time_spent_usec", e.TimeSpent.Microseconds())
	r.field("expiry_longest_cycle_usec", e.LongestCycle.Microseconds())
	r.field("oldest_dead_ms", r.x.Now()-r.oldestDeath) // how long the oldest dead item that still takes memory has been dead
}

// indexesSection tells of indexes and of the queries since the last CONFIG RESETSTAT.
func (r *infoReport) indexesSection() {
	indexes, entries, bytes := 0, 0, int64(0)
	for _, c := range r.x.Tx.Containers() {
		indexes += len(c.Indexes())
	}
	for _, s := range r.readContainerStats() {
		entries += s.IndexEntries
		bytes += s.IndexBytes
	}
	q := r.x.Engine.sinceReset().queries
	r.field("indexes", indexes)
	r.field("index_entries", entries)
	r.field("index_bytes", bytes)
	r.field("queries", q.queries)
	r.field("query_scans", q.scans)
	r.field("query_examined", q.examined)
	r.field("query_dead_met", q.dead)
	r.field("query_slices", q.slices)
	r.field("queries_over_budget", q.overBudget)
}

// keyspaceSection writes a line for every container that holds items, as Redis does for databases, with its
// number for SELECT.
func (r *infoReport) keyspaceSection() {
	for _, c := range r.sortedContainers() {
		r.field(fmt.Sprintf("db%d", c.Container.DB()), ContainerInfo{c.Container.Name(), c.Documents, c.Expiring(), c.AverageTTL})
	}
}

// ContainerInfo is the value of a container's line in INFO.
type ContainerInfo struct {
	Name       string
	Items      int
	Expiring   int   // items that will die
	AverageTTL int64 // of expiring items, an estimate, ms; 0 without any
}

func (c ContainerInfo) String() string {
	return fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", c.Items, c.Expiring, c.AverageTTL)
}

// readContainerStats returns the statistics of all containers, read once for all sections.
func (r *infoReport) readContainerStats() []*keyspace.ContainerStats {
	if !r.hasStats {
		r.hasStats = true
		r.containerStats, r.oldestDeath = r.x.Tx.AllStats()
	}
	return r.containerStats
}

// sortedContainers returns the containers that hold items, sorted by number.
func (r *infoReport) sortedContainers() []*keyspace.ContainerStats {
	list := slices.Clone(r.readContainerStats())
	slices.SortFunc(list, func(a, b *keyspace.ContainerStats) int { return cmp.Compare(a.Container.DB(), b.Container.DB()) })
	return list
}

// humanBytes formats an amount as Redis' bytesToHuman does.
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
