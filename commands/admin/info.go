package admin

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"mayfly/cluster/topology"
	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/commands/latency"
	"mayfly/keyspace"
)

// infoSections are the sections of INFO, in Redis' order.
var infoSections = []struct {
	name  string
	write func(*InfoReport)
	long  bool // given only on request
	data  bool // needs an open keyspace
}{
	{"Server", serverSection, false, false},
	{"Clients", clientsSection, false, false},
	{"Memory", memorySection, false, true},
	{"Persistence", PersistenceSection, false, false},
	{"Stats", statsSection, false, false},
	{"Replication", replicationSection, false, false},
	{"CPU", cpuSection, false, false},
	{"Modules", modulesSection, false, false},
	{"Commandstats", commandStatsSection, true, false},
	{"Errorstats", errorStatsSection, false, false},
	{"Latencystats", latencyStatsSection, true, false},
	{"Cluster", clusterSection, false, false},
	{"Expiry", expirySection, false, true},
	{"Indexes", indexesSection, false, true},
	{"Deaths", deathsSection, false, true},
	{"Keyspace", keyspaceSection, false, true},
}

// parseInfo parses INFO. As in Redis, "all" is every section but Modules.
func parseInfo(in *engine.Input) (engine.Run, error) {
	wanted := map[string]bool{"default": len(in.Args) == 1}
	for _, name := range in.Args[1:] {
		wanted[strings.ToLower(name)] = true
	}
	return func(x *engine.Context) engine.Reply {
		report := newInfoReport(x)
		var out strings.Builder
		for _, s := range infoSections {
			name := strings.ToLower(s.name)
			if !wanted[name] && !wanted["everything"] && !(wanted["all"] && name != "modules") && !(wanted["default"] && !s.long) {
				continue
			}
			if s.data && !report.Loaded {
				continue
			}
			if out.Len() > 0 {
				out.WriteString("\r\n")
			}
			out.WriteString("# " + s.name + "\r\n")
			report.Fields = report.Fields[:0]
			s.write(report)
			for _, f := range report.Fields {
				fmt.Fprintf(&out, "%s:%v\r\n", f.Name, f.Value)
			}
		}
		return engine.Verbatim(out.String())
	}, nil
}

// Info returns all fields of INFO but those of its long sections.
func Info(e *engine.Engine) []InfoField {
	var tx keyspace.Tx
	var session engine.Session
	session.Service = engine.ServeDetached
	if e.Loaded() {
		session.Service = engine.ServeOnNode
		e.Keyspace().BeginSweep(&tx)
	} else {
		tx.BeginDetached(e.Now())
	}
	defer tx.Close()
	report := newInfoReport(&engine.Context{Tx: &tx, Engine: e, Session: &session})
	for _, s := range infoSections {
		if !s.long && (report.Loaded || !s.data) {
			s.write(report)
		}
	}
	return report.Fields
}

// modulesSection names the module whose commands are built in, as RedisJSON is named.
func modulesSection(r *InfoReport) {
	r.Fieldf("module", "name=ReJSON,ver=%d,api=1,filters=0,usedby=[],using=[],options=[]", moduleVersion)
}

func serverSection(r *InfoReport) {
	uptime := max(r.X.Now()-r.Host.StartedAt, 0) / 1000
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	r.Field("redis_version", r.Host.ReportedVersion)
	r.Field("redis_mode", r.X.Engine.Mode())
	r.Field("mayfly_version", r.Host.Version)
	r.Field("os", operatingSystem())
	r.Field("arch_bits", 32<<(^uint(0)>>63))
	r.Field("go_version", runtime.Version())
	r.Field("process_id", os.Getpid())
	r.Field("run_id", engine.RunID())
	r.Field("tcp_port", r.Host.TCPPort)
	if r.Loaded {
		r.Field("server_time_usec", r.X.Tx.Micros())
		r.Field("clock_ahead_ms", r.X.Engine.Keyspace().ClockAhead().Milliseconds()) // of the wall clock, which was set back
	}
	r.Field("clock", map[bool]string{false: "system", true: "manual"}[r.X.Engine.Clock != nil])
	r.FlagField("ephemeral", r.X.Engine.Ephemeral)
	r.Field("uptime_in_seconds", uptime)
	r.Field("uptime_in_days", uptime/(24*60*60))
	r.Field("executable", executable)
	r.Field("config_file", r.Host.ConfigFile)
}

func clientsSection(r *InfoReport) {
	r.Field("connected_clients", r.Host.Connected)
	r.Field("maxclients", r.Host.MaxClients)
	r.Field("blocked_clients", r.Host.PausedClients) // that wait: in BLOCK, for CLIENT PAUSE, after wrong passwords
	tracking, _ := r.X.Engine.Broker.Trackers()
	r.Field("tracking_clients", tracking)
	r.Field("pubsub_clients", r.X.Engine.Broker.SubscribedSessions.Load())
	r.Field("monitor_clients", r.X.Engine.Broker.MonitoringSessions.Load())
}

func memorySection(r *InfoReport) {
	m := memoryFiguresOf(r.X, r.ReadContainerStats())
	r.BytesField("used_memory", m.used) // of items and containers; maxmemory limits it
	if m.resident > 0 {
		r.BytesField("used_memory_rss", m.resident)
	}
	r.BytesField("used_memory_peak", m.peak)
	r.PercentField("used_memory_peak_perc", fraction(m.used, m.peak))
	r.Field("used_memory_overhead", m.overhead())
	r.Field("used_memory_dataset", m.dataset) // ids and bodies of living items
	r.PercentField("used_memory_dataset_perc", fraction(m.dataset, m.used))
	r.Field("undo_memory", r.X.Tx.UndoMemory()) // of what CONTAINER.UNDO can bring back; part of used_memory
	r.Field("allocator_allocated", m.allocated)
	r.Field("allocator_active", m.active)
	r.Field("allocator_resident", m.held)
	if system := systemBytes(); system > 0 {
		r.BytesField("total_system_memory", system)
	}
	cached := r.X.Engine.Scripts.Stats()
	r.Field("used_memory_scripts_eval", cached.Bytes)
	r.Field("number_of_cached_scripts", cached.Scripts)
	r.BytesField("maxmemory", m.limit)
	r.Field("maxmemory_policy", r.X.Engine.Keyspace().Eviction().Policy)
	r.Field("mem_clients_normal", r.Host.ClientMemory) // held for clients besides items
	if m.resident > 0 {
		r.Field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", fraction(m.resident, m.used)))
		r.Field("mem_fragmentation_bytes", int64(m.resident)-int64(m.used))
	}
	r.Field("mem_allocator", runtime.Version())
	r.Field("lazyfree_pending_objects", 0) // drops take effect at once; the garbage collector returns the memory
	r.Field("gc_cycles", garbageCycles())
}

func PersistenceSection(r *InfoReport) {
	r.FlagField("loading", !r.Loaded) // only clients of a node of a cluster connect before it has loaded
	if !r.Loaded {
		loadingFields(r)
		return
	}
	r.FlagField("rdb_bgsave_in_progress", r.KeyspaceStats.Saving)
	r.Field("rdb_last_save_time", r.X.Engine.Keyspace().LastSave()/1000)
	r.StatusField("rdb_last_bgsave_status", r.KeyspaceStats.LastSaveError)
	r.Field("rdb_saves", r.KeyspaceStats.Checkpoints)
	r.FlagField("aof_enabled", true)
	r.FlagField("aof_rewrite_in_progress", r.KeyspaceStats.Compacting)
	r.Field("aof_rewrite_scheduled", 0) // a request starts it at once
	r.StatusField("aof_last_bgrewrite_status", r.KeyspaceStats.LastCompactErr)
	r.Field("aof_rewrites", r.KeyspaceStats.Compactions)
	r.StatusField("aof_last_write_status", r.KeyspaceStats.LastWriteError)
	r.Field("aof_current_size", r.KeyspaceStats.JournalBytes)
	r.ErrorField("last_write_error", r.KeyspaceStats.LastWriteError)
	r.FlagField("disk_full", r.KeyspaceStats.DiskFull)
	r.Field("disk_reserve_bytes", r.KeyspaceStats.ReserveBytes) // 0 while it is released
	r.Field("partitions", r.KeyspaceStats.Partitions)
	r.Field("journal_bytes", r.KeyspaceStats.JournalBytes)
	r.Field("journal_commits", r.KeyspaceStats.Commits)
	r.Field("journal_fsyncs", r.KeyspaceStats.Fsyncs)
	r.Field("commit_last_usec", r.KeyspaceStats.LastCommit.Microseconds())
	r.Field("commit_p50_usec", r.KeyspaceStats.MedianCommit.Microseconds()) // of the last 1024 group commits
	r.Field("commit_p99_usec", r.KeyspaceStats.SlowCommit.Microseconds())
	r.Field("store_bytes", r.KeyspaceStats.StoreBytes)
	r.Field("store_live_bytes", r.KeyspaceStats.LiveBytes) // without overwritten and deleted items
	r.Field("checkpoints", r.KeyspaceStats.Checkpoints)
	r.ErrorField("last_checkpoint_error", r.KeyspaceStats.LastSaveError)
	r.Field("compactions", r.KeyspaceStats.Compactions)
	r.StatusField("last_compaction_status", r.KeyspaceStats.LastCompactErr)
	r.ErrorField("last_compaction_error", r.KeyspaceStats.LastCompactErr)
	r.Field("oldest_waste_seconds", int64(r.KeyspaceStats.OldestWaste.Seconds())) // of what is overwritten or deleted
	scrub := r.X.Engine.Keyspace().Scrubber().Stats()
	r.FlagField("scrub_in_progress", scrub.Running)
	r.Field("scrub_last_time", scrub.Last/1000)
	r.Field("scrubs", scrub.Scrubs)
	r.Field("scrub_found_files", scrub.Found)
	r.Field("scrub_repaired_files", scrub.Repaired)
	r.Field("damaged_files", scrub.Damaged) // that could not be written anew yet
	damage := ""
	if err := r.X.Engine.Keyspace().Damage(); err != nil {
		damage = err.Error()
	}
	r.ErrorField("damaged_files_error", damage)
	backups := &r.X.Engine.Backups
	r.Field("backups", backups.Made.Load())
	r.Field("last_backup_time", backups.Last.Load()/1000) // when it began; 0 before the first one
	r.StatusField("last_backup_status", backups.LastError())
	r.ErrorField("last_backup_error", backups.LastError())
	r.Field("loaded_items", r.KeyspaceStats.LoadedItems)
	r.Field("load_time_ms", r.KeyspaceStats.LoadTime)
}

func statsSection(r *InfoReport) {
	c := r.X.Engine.SinceReset()
	r.Field("total_connections_received", c.Connections)
	r.Field("total_commands_processed", c.Commands)
	r.Field("total_net_input_bytes", c.NetInput)
	r.Field("total_net_output_bytes", c.NetOutput)
	rates := r.X.Engine.Stats.Rates.Now()
	r.Field("instantaneous_ops_per_sec", int64(rates.Commands))
	r.Field("instantaneous_input_kbps", fmt.Sprintf("%.2f", rates.NetInput/1024))
	r.Field("instantaneous_output_kbps", fmt.Sprintf("%.2f", rates.NetOutput/1024))
	r.Field("rejected_connections", c.Rejected)
	r.Field("expired_keys", c.Expiry.RemovedLazily+c.Expiry.RemovedActively)
	r.Field("expired_subkeys", c.Elements)
	r.Field("expired_stale_perc", fmt.Sprintf("%.2f", 100*c.Expiry.StaleShare))
	r.Field("expired_time_cap_reached_count", c.Expiry.CapReached)
	r.Field("expire_cycle_cpu_milliseconds", c.Expiry.TimeSpent.Milliseconds())
	r.Field("evicted_keys", c.Evicted)
	r.Field("evicted_clients", r.Host.EvictedClients)
	r.Field("evicted_scripts", r.X.Engine.Scripts.Stats().Evicted)
	r.Field("keyspace_hits", c.Hits)
	r.Field("keyspace_misses", c.Misses)
	r.Field("pubsub_channels", r.X.Engine.Broker.CountNames(engine.SubChannel))
	r.Field("pubsub_patterns", r.X.Engine.Broker.CountNames(engine.SubPattern))
	r.Field("pubsubshard_channels", r.X.Engine.Broker.CountNames(engine.SubShard))
	r.Field("client_output_buffer_limit_disconnections", r.Host.SlowSubscribers)
	var noted, items int64
	if ks := r.X.Engine.Keyspace(); ks != nil {
		noted, items = ks.Noted()
	}
	_, prefixes := r.X.Engine.Broker.Trackers()
	r.Field("tracking_total_keys", noted)
	r.Field("tracking_total_items", items)
	r.Field("tracking_total_prefixes", prefixes)
	r.Field("total_error_replies", c.Errors)
	log := &r.X.Engine.Host.Users().Log
	r.Field("acl_access_denied_auth", c.Denied) // wrong passwords
	r.Field("acl_access_denied_cmd", log.Denied(access.DeniedCommand))
	r.Field("acl_access_denied_key", log.Denied(access.DeniedKey))
	r.Field("acl_access_denied_channel", log.Denied(access.DeniedChannel))
	r.Field("acl_access_denied_db", log.Denied(access.DeniedContainer))
	r.FlagField("acl_unsaved", r.X.Engine.Host.Users().Unsaved.Load()) // a restart loses changes of users
}

func replicationSection(r *InfoReport) {
	if c := r.X.Engine.Cluster; c != nil {
		r.Fields = append(r.Fields, replicationFields(c.View())...)
		return
	}
	// There is no replication. The fields are those of a Redis without replicas, for programs that expect
	// them.
	r.Field("role", "master")
	r.Field("connected_slaves", 0)
	r.Field("master_failover_state", "no-failover")
	r.Field("master_replid", engine.RunID())
	r.Field("master_replid2", strings.Repeat("0", 40))
	r.Field("master_repl_offset", 0)
	r.Field("second_repl_offset", -1)
	r.Field("repl_backlog_active", 0)
	r.Field("repl_backlog_size", 0)
	r.Field("repl_backlog_first_byte_offset", 0)
	r.Field("repl_backlog_histlen", 0)
}

func cpuSection(r *InfoReport) {
	system, user := cpuSeconds(false)
	childSystem, childUser := cpuSeconds(true)
	r.Field("used_cpu_sys", fmt.Sprintf("%.6f", system))
	r.Field("used_cpu_user", fmt.Sprintf("%.6f", user))
	r.Field("used_cpu_sys_children", fmt.Sprintf("%.6f", childSystem))
	r.Field("used_cpu_user_children", fmt.Sprintf("%.6f", childUser))
}

func clusterSection(r *InfoReport) {
	c := r.X.Engine.Cluster
	r.FlagField("cluster_enabled", c != nil)
	if c != nil {
		r.Fields = append(r.Fields, clusterFields(c.View())...)
		r.Fields = append(r.Fields, InfoField{Name: "cluster_messages_dropped", Value: r.X.Engine.DroppedMessages()})
	}
}

func expirySection(r *InfoReport) {
	e := r.X.Engine.SinceReset().Expiry
	r.ReadContainerStats()
	r.Field("expiry_removed_lazily", e.RemovedLazily)
	r.Field("expiry_removed_actively", e.RemovedActively)
	r.Field("expiry_sampled", e.Sampled)
	r.Field("expiry_stale_share", fmt.Sprintf("%.4f", e.StaleShare)) // an estimate: dead items of those that can die, 0 to 1
	r.Field("expiry_cycles", e.Cycles)
	r.Field("expiry_cycles_out_of_time", e.CapReached)
	r.Field("expiry_time_spent_usec", e.TimeSpent.Microseconds())
	r.Field("expiry_longest_cycle_usec", e.LongestCycle.Microseconds())
	r.Field("oldest_dead_ms", r.X.Now()-r.OldestDeath) // how long the oldest dead item that still takes memory has been dead
}

// indexesSection tells of indexes and of the queries since the last CONFIG RESETSTAT.
func indexesSection(r *InfoReport) {
	indexes, entries, bytes := 0, 0, int64(0)
	for _, c := range r.X.Tx.Containers() {
		indexes += len(c.Indexes())
	}
	for _, s := range r.ReadContainerStats() {
		entries += s.IndexEntries
		bytes += s.IndexBytes
	}
	q := r.X.Engine.SinceReset().Queries
	r.Field("indexes", indexes)
	r.Field("index_entries", entries)
	r.Field("index_bytes", bytes)
	r.Field("queries", q.Queries)
	r.Field("query_scans", q.Scans)
	r.Field("query_examined", q.Examined)
	r.Field("query_dead_met", q.Dead)
	r.Field("query_slices", q.Slices)
	r.Field("queries_over_budget", q.OverBudget)
}

// keyspaceSection writes a line for every container that holds items, as Redis does for databases, with its
// number for SELECT.
func keyspaceSection(r *InfoReport) {
	for _, c := range sortedContainers(r) {
		if !r.X.Sees(c.Container.Name()) {
			continue
		}
		r.Field(fmt.Sprintf("db%d", c.Container.DB()), ContainerInfo{c.Container.Name(), c.Documents, c.Expiring(), c.AverageTTL, c.SubExpiry})
	}
}

// ContainerInfo is the value of a container's line in INFO.
type ContainerInfo struct {
	Name       string
	Items      int
	Expiring   int   // items that will die
	AverageTTL int64 // of expiring items, an estimate, ms; 0 without any
	SubExpiry  int   // keys with fields that will die; shown if there are any
}

func (c ContainerInfo) String() string {
	text := fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", c.Items, c.Expiring, c.AverageTTL)
	if c.SubExpiry > 0 {
		text += fmt.Sprintf(",subexpiry=%d", c.SubExpiry)
	}
	return text
}

// sortedContainers returns the containers that hold items, sorted by number.
func sortedContainers(r *InfoReport) []*keyspace.ContainerStats {
	list := slices.Clone(r.ReadContainerStats())
	slices.SortFunc(list, func(a, b *keyspace.ContainerStats) int { return cmp.Compare(a.Container.DB(), b.Container.DB()) })
	return list
}

// deathsSection tells of the logs of deaths: the sums, and a line for each log with the number of its
// container for SELECT.
func deathsSection(r *InfoReport) {
	var logs []items.LogStats
	for _, name := range items.Logged(r.X) {
		if s, ok := items.LogStatsOf(r.X, name); ok && r.X.Sees(name) {
			logs = append(logs, s)
		}
	}
	slices.SortFunc(logs, func(a, b items.LogStats) int { return cmp.Compare(a.DB, b.DB) })
	var sum items.LogInfo
	memory := int64(0)
	for i := range logs {
		sum.Add(logs[i].Info())
		memory += logs[i].Memory
	}
	r.Field("logs", len(logs))
	r.Field("log_entries", sum.Entries)
	r.Field("log_bytes", sum.Bytes)
	r.Field("log_memory", memory) // of entries and groups; part of used_memory
	r.Field("log_oldest_time", sum.Oldest)
	r.Field("log_groups", sum.Groups)
	r.Field("log_pending", sum.Pending)
	r.Field("log_max_lag", sum.Lag)
	for i := range logs {
		r.Field(fmt.Sprintf("log%d", logs[i].DB), logs[i].Info())
	}
}

// replicationFields are the fields of INFO that Redis shows of a node of a replication.
func replicationFields(v *topology.View) []InfoField {
	var list []InfoField
	field := func(name string, value any) { list = append(list, InfoField{Name: name, Value: value}) }
	if v.Leads() {
		field("role", "master")
	} else {
		host, port, contact := "", "0", int64(-1)
		if m := v.Master(); m != nil && !m.Self {
			host, port = m.Split()
			contact = m.Contact()
		}
		link := "down"
		if v.State() == "ok" {
			link = "up"
		}
		field("role", "slave")
		field("master_host", host)
		field("master_port", port)
		field("master_link_status", link)
		field("master_last_io_seconds_ago", max(contact, -1000)/1000)
		field("master_sync_in_progress", engine.Flag(v.Role == topology.Loading).Int)
		field("slave_read_repl_offset", v.Applied)
		field("slave_repl_offset", v.Applied)
		if link == "down" {
			field("master_link_down_since_seconds", max(contact, -1000)/1000)
		}
		field("slave_priority", 100)
		field("slave_read_only", 1)
		field("replica_announced", 1)
	}
	up := 0
	for _, m := range v.Replicas() {
		if m.Up() {
			up++
		}
	}
	if !v.Leads() {
		up = 0
	}
	field("connected_slaves", up)
	if v.Leads() {
		n := 0
		for _, m := range v.Replicas() {
			if !m.Up() {
				continue
			}
			host, port := m.Split()
			state := "online"
			if !m.Voter || m.Stores {
				state = "send_bulk"
			}
			field(fmt.Sprintf("slave%d", n), fmt.Sprintf("ip=%s,port=%s,state=%s,offset=%d,lag=%d",
				host, port, state, v.Offset(m), max(m.Contact(), m.Behind.Milliseconds(), 0)/1000))
			n++
		}
	}
	field("master_failover_state", "no-failover")
	field("master_replid", v.ShardID())
	field("master_replid2", strings.Repeat("0", 40))
	field("master_repl_offset", v.Applied)
	field("second_repl_offset", -1)
	field("repl_backlog_active", 1)
	field("repl_backlog_size", v.LogBytes)
	field("repl_backlog_first_byte_offset", max(int64(v.Applied)-v.LogBytes+1, 1))
	field("repl_backlog_histlen", v.LogBytes)
	return list
}

// clusterFields are mayfly's fields of INFO about the cluster.
func clusterFields(v *topology.View) []InfoField {
	name, leader, lag := "", "", int64(-1)
	if self := v.Self(); self != nil {
		name, lag = self.Name, self.Lag
	}
	if v.Leader != nil {
		leader = v.Leader.Name
	}
	up := 0
	for i := range v.Members {
		if v.Members[i].Up() {
			up++
		}
	}
	list := []InfoField{
		{Name: "cluster_state", Value: v.State()},
		{Name: "cluster_node", Value: name},
		{Name: "cluster_role", Value: v.Role.String()},
		{Name: "cluster_leader", Value: leader},
		{Name: "cluster_is_leader", Value: engine.Flag(v.Leads()).Int},
		{Name: "cluster_has_quorum", Value: engine.Flag(v.Quorum).Int},
		{Name: "cluster_members", Value: len(v.Members)},
		{Name: "cluster_members_up", Value: up},
		{Name: "cluster_term", Value: v.Term},
		{Name: "cluster_index", Value: v.Index},
		{Name: "cluster_commit_index", Value: v.Commit},
		{Name: "cluster_applied_index", Value: v.Applied},
		{Name: "cluster_lag_entries", Value: lag},
		{Name: "cluster_log_bytes", Value: v.LogBytes},
		{Name: "cluster_users_differ", Value: v.OthersUsers()},
		{Name: "cluster_cause", Value: engine.OneLine.Replace(v.Cause)},
	}
	return list
}

func commandStatsSection(r *InfoReport) {
	for _, c := range r.X.Engine.CommandStats() {
		usec := c.Time.Microseconds()
		r.Fieldf("cmdstat_"+c.Name, "calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			c.Calls, usec, float64(c.Time)/float64(time.Microsecond)/float64(max(c.Calls, 1)), c.Rejected, c.Failed)
	}
}

func errorStatsSection(r *InfoReport) {
	counts := r.X.Engine.ErrorStats()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		r.Fieldf("errorstat_"+code, "count=%d", counts[code])
	}
}

// latencyStatsSection writes nothing while latency-tracking is off, as Redis does.
func latencyStatsSection(r *InfoReport) {
	percentiles, on := r.X.Engine.LatencyPercentiles()
	if !on {
		return
	}
	for _, c := range r.X.Engine.CommandStats() {
		if c.Durations.Count > 0 {
			r.Field("latency_percentiles_usec_"+c.Name, percentilesOf(&c.Durations, percentiles))
		}
	}
}

// percentilesOf returns percentiles in µs, "p50=1.007,p99.9=12.031".
func percentilesOf(h *latency.Histogram, percentiles []float64) string {
	list := make([]string, len(percentiles))
	for i, p := range percentiles {
		list[i] = fmt.Sprintf("p%s=%.3f", engine.FormatPercentile(p), float64(h.Percentile(p))/float64(time.Microsecond))
	}
	return strings.Join(list, ",")
}

// loadingFields writes the fields that Redis has while it loads. They are left out once all is loaded, and if
// they are not known.
func loadingFields(r *InfoReport) {
	if r.X.Engine.Loading == nil {
		return
	}
	p := r.X.Engine.Loading()
	if p.Loaded >= p.Total {
		return
	}
	elapsed := max(r.X.Now()-r.Host.StartedAt, 0) / 1000
	r.Field("loading_start_time", r.Host.StartedAt/1000)
	r.Field("loading_total_bytes", p.Total)
	r.Field("loading_loaded_bytes", p.Loaded)
	r.Fieldf("loading_loaded_perc", "%.2f", 100*float64(p.Loaded)/float64(p.Total))
	r.Field("loading_eta_seconds", max(int64(float64(elapsed)*float64(p.Total-p.Loaded)/float64(p.Loaded+1)), 1))
}
