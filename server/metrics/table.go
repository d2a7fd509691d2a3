package metrics

import (
	"fmt"
	"strconv"
	"time"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/items"

	"github.com/prometheus/client_golang/prometheus"
)

// infoMetric is a field of INFO as a metric of Prometheus.
type infoMetric struct {
	kind  prometheus.ValueType
	scale float64 // to seconds, bytes or a share
	desc  *prometheus.Desc
}

// collect sends the metric, unless the field is no number now. The status ok is 1, err is 0; so are the
// clocks manual and system.
func (m *infoMetric) collect(out chan<- prometheus.Metric, value any) {
	text := fmt.Sprint(value)
	if flag, ok := map[string]string{"ok": "1", "err": "0", "manual": "1", "system": "0"}[text]; ok {
		text = flag
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, n*m.scale)
	}
}

func counter(name, help string, scale float64) infoMetric {
	return infoMetric{prometheus.CounterValue, scale, describe(name, help)}
}

func gauge(name, help string, scale float64) infoMetric {
	return infoMetric{prometheus.GaugeValue, scale, describe(name, help)}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mayfly_"+name, help, labels, nil)
}

// metricsOfInfo are the fields of INFO that are metrics, by name. CONFIG RESETSTAT resets counters, which
// Prometheus takes for a restart.
var metricsOfInfo = map[string]infoMetric{
	"uptime_in_seconds": gauge("uptime_seconds", "Time since the start.", 1),

	"clock_ahead_ms":    gauge("clock_ahead_seconds", "How far the time of the data is ahead of the wall clock, which was set back.", 0.001),
	"clock":             gauge("clock_manual", "Whether the time is moved by clients, as in tests.", 1),
	"ephemeral":         gauge("ephemeral", "Whether all data goes with the process, as in tests.", 1),
	"connected_clients": gauge("connected_clients", "Clients connected.", 1),
	"maxclients":        gauge("max_clients", "Most clients at a time.", 1),
	"blocked_clients":   gauge("blocked_clients", "Clients that wait in a command.", 1),
	"tracking_clients":  gauge("tracking_clients", "Clients that cache what they read.", 1),
	"pubsub_clients":    gauge("pubsub_clients", "Clients with a subscription.", 1),
	"monitor_clients":   gauge("monitor_clients", "Clients that monitor.", 1),

	"used_memory":              gauge("memory_used_bytes", "Memory that items take.", 1),
	"undo_memory":              gauge("memory_undo_bytes", "Memory of what CONTAINER.UNDO can bring back.", 1),
	"used_memory_scripts_eval": gauge("memory_scripts_bytes", "Memory of cached scripts.", 1),
	"number_of_cached_scripts": gauge("cached_scripts", "Scripts in the cache.", 1),
	"used_memory_rss":          gauge("memory_resident_bytes", "Physical memory of the process.", 1),
	"used_memory_peak":         gauge("memory_used_peak_bytes", "Most memory that items took.", 1),
	"used_memory_dataset":      gauge("memory_dataset_bytes", "Ids and values of living items.", 1),
	"used_memory_overhead":     gauge("memory_overhead_bytes", "Memory used besides the dataset.", 1),
	"maxmemory":                gauge("memory_max_bytes", "Most memory that items may take; 0: no limit.", 1),
	"total_system_memory":      gauge("memory_system_bytes", "Physical memory of the machine.", 1),
	"allocator_allocated":      gauge("memory_allocated_bytes", "Memory in objects of the runtime.", 1),
	"mem_clients_normal":       gauge("memory_clients_bytes", "Memory that the server holds for clients, besides items.", 1),
	"mem_fragmentation_ratio":  gauge("memory_fragmentation_ratio", "Resident to used memory.", 1),

	"loading":                 gauge("loading", "Whether data is being loaded.", 1),
	"rdb_bgsave_in_progress":  gauge("save_running", "Whether a save is under way.", 1),
	"rdb_last_save_time":      gauge("last_save_timestamp_seconds", "Time of the last checkpoint, since 1970.", 1),
	"rdb_last_bgsave_status":  gauge("last_save_ok", "Whether the last checkpoint worked.", 1),
	"aof_rewrite_in_progress": gauge("compaction_running", "Whether a compaction is under way.", 1),
	"aof_last_write_status":   gauge("journal_write_ok", "Whether the last write to the journal worked.", 1),
	"last_compaction_status":  gauge("last_compaction_ok", "Whether the last compaction worked.", 1),
	"partitions":              gauge("partitions", "Partitions of the keyspace.", 1),
	"disk_full":               gauge("disk_full", "Whether only commands that free space are served.", 1),
	"disk_reserve_bytes":      gauge("disk_reserve_bytes", "Room that is held for when the disk is full.", 1),
	"journal_bytes":           gauge("journal_bytes", "Size of the journal.", 1),
	"journal_commits":         counter("journal_commits_total", "Group commits.", 1),
	"journal_fsyncs":          counter("journal_fsyncs_total", "Times the journal was forced to disk.", 1),
	"commit_last_usec":        gauge("commit_last_seconds", "Time that the last group commit took.", 1e-6),
	"commit_p50_usec":         gauge("commit_median_seconds", "Median of the last 1024 group commits' times.", 1e-6),
	"commit_p99_usec":         gauge("commit_p99_seconds", "99th percentile of these times.", 1e-6),
	"store_bytes":             gauge("store_bytes", "Size of the partitions' files.", 1),
	"store_live_bytes":        gauge("store_live_bytes", "Of these, bytes that are not overwritten or deleted.", 1),
	"checkpoints":             counter("checkpoints_total", "Checkpoints.", 1),
	"compactions":             counter("compactions_total", "Compactions of stores.", 1),
	"oldest_waste_seconds":    gauge("oldest_waste_seconds", "How long the files may have held what is overwritten or deleted.", 1),
	"scrub_in_progress":       gauge("scrub_running", "Whether a scrub is under way.", 1),
	"scrub_last_time":         gauge("last_scrub_timestamp_seconds", "Time of the last scrub, since 1970.", 1),
	"scrubs":                  counter("scrubs_total", "Scrubs of all files on disk.", 1),
	"scrub_found_files":       counter("scrub_found_files_total", "Damaged files that were found on disk.", 1),
	"scrub_repaired_files":    counter("scrub_repaired_files_total", "Of these, files that were written anew from memory.", 1),
	"damaged_files":           gauge("damaged_files", "Damaged files that could not be written anew yet.", 1),
	"backups":                 counter("backups_total", "Backups made since the start.", 1),
	"last_backup_time":        gauge("last_backup_timestamp_seconds", "When the last backup since the start began, since 1970; 0 without one.", 1),
	"last_backup_status":      gauge("last_backup_ok", "Whether the last backup worked.", 1),
	"loaded_items":            gauge("loaded_items", "Items loaded at the start.", 1),
	"load_time_ms":            gauge("load_seconds", "Time to load them.", 1e-3),

	"total_connections_received":                counter("connections_total", "Connections accepted.", 1),
	"rejected_connections":                      counter("connections_rejected_total", "Connections refused.", 1),
	"total_commands_processed":                  counter("commands_processed_total", "Commands run.", 1),
	"total_net_input_bytes":                     counter("net_input_bytes_total", "Bytes read from clients.", 1),
	"total_net_output_bytes":                    counter("net_output_bytes_total", "Bytes written to clients.", 1),
	"total_error_replies":                       counter("error_replies_total", "Error replies.", 1),
	"instantaneous_ops_per_sec":                 gauge("commands_per_second", "Commands run a second, of late.", 1),
	"keyspace_hits":                             counter("keyspace_hits_total", "Lookups that found an item.", 1),
	"keyspace_misses":                           counter("keyspace_misses_total", "Lookups that found no item.", 1),
	"expired_keys":                              counter("expired_items_total", "Items that died and were removed.", 1),
	"expired_subkeys":                           counter("expired_fields_total", "Fields of hashes and members of sets that died by an end of their own and were removed.", 1),
	"evicted_keys":                              counter("evicted_items_total", "Items that were evicted because memory was short.", 1),
	"acl_access_denied_auth":                    counter("wrong_passwords_total", "Wrong passwords.", 1),
	"acl_access_denied_cmd":                     counter("denied_commands_total", "Calls of commands that the user may not run.", 1),
	"acl_unsaved":                               gauge("users_unsaved", "1 if a restart would lose changes of users.", 1),
	"acl_access_denied_key":                     counter("denied_keys_total", "Calls of commands with a key that the user may not access.", 1),
	"acl_access_denied_channel":                 counter("denied_channels_total", "Calls of commands with a channel that the user may not access.", 1),
	"acl_access_denied_db":                      counter("denied_containers_total", "Calls of commands in a container that the user may not access.", 1),
	"evicted_clients":                           counter("evicted_clients_total", "Clients disconnected because all clients together held too much memory.", 1),
	"evicted_scripts":                           counter("evicted_scripts_total", "Scripts that have left a full cache.", 1),
	"tracking_total_keys":                       gauge("tracking_keys", "Keys of which a client caches something.", 1),
	"tracking_total_items":                      gauge("tracking_items", "Pairs of such a key and a client.", 1),
	"tracking_total_prefixes":                   gauge("tracking_prefixes", "Prefixes of clients that are told of all changes under them.", 1),
	"pubsub_channels":                           gauge("pubsub_channels", "Channels subscribed to.", 1),
	"pubsub_patterns":                           gauge("pubsub_patterns", "Patterns subscribed to.", 1),
	"pubsubshard_channels":                      gauge("pubsub_shard_channels", "Shard channels subscribed to.", 1),
	"client_output_buffer_limit_disconnections": counter("slow_subscribers_disconnected_total", "Subscribers disconnected because they did not keep up.", 1),

	"used_cpu_sys":  counter("cpu_system_seconds_total", "Processor time in the system.", 1),
	"used_cpu_user": counter("cpu_user_seconds_total", "Processor time in the program.", 1),

	"expiry_removed_lazily":     counter("expiry_removed_lazily_total", "Dead items removed by commands that met them.", 1),
	"expiry_removed_actively":   counter("expiry_removed_actively_total", "Dead items removed by the purge.", 1),
	"expiry_sampled":            counter("expiry_sampled_total", "Items that the purge looked at.", 1),
	"expiry_stale_share":        gauge("expiry_stale_ratio", "Estimated share of the dead among items with an end.", 1),
	"expiry_cycles":             counter("expiry_cycles_total", "Cycles of the purge.", 1),
	"expiry_cycles_out_of_time": counter("expiry_cycles_out_of_time_total", "Cycles that ended because their time was up.", 1),
	"expiry_time_spent_usec":    counter("expiry_seconds_total", "Time that the purge worked.", 1e-6),
	"expiry_longest_cycle_usec": gauge("expiry_longest_cycle_seconds", "Longest cycle of the purge.", 1e-6),
	"oldest_dead_ms":            gauge("oldest_dead_seconds", "How long the oldest dead item that still takes memory has been dead; 0: there is none.", 1e-3),

	"indexes":       gauge("indexes", "Indexes of all containers.", 1),
	"index_entries": gauge("index_entries", "Entries of all indexes.", 1),
	"index_bytes":   gauge("index_bytes", "Memory of all indexes.", 1),

	"queries":             counter("queries_total", "Queries run.", 1),
	"query_scans":         counter("query_scans_total", "Queries that scanned a container.", 1),
	"query_examined":      counter("query_examined_total", "Documents and entries that queries examined.", 1),
	"query_dead_met":      counter("query_dead_met_total", "Dead items that queries met.", 1),
	"query_slices":        counter("query_slices_total", "Slices that queries read.", 1),
	"queries_over_budget": counter("queries_over_budget_total", "Queries that query-budget stopped.", 1),

	"logs":            gauge("logs", "Containers that log their deaths.", 1),
	"log_entries":     gauge("log_entries", "Entries of all logs of deaths.", 1),
	"log_bytes":       gauge("log_bytes", "Ids and bodies of these entries.", 1),
	"log_memory":      gauge("memory_log_bytes", "Memory of the logs of deaths and of their groups.", 1),
	"log_oldest_time": gauge("log_oldest_timestamp_seconds", "When the oldest entry was logged, since 1970; 0 without entries.", 1),
	"log_groups":      gauge("log_groups", "Consumer groups of all logs.", 1),
	"log_pending":     gauge("log_pending_entries", "Entries that were delivered to a group and not acknowledged.", 1),
	"log_max_lag":     gauge("log_max_lag_entries", "Most entries that were not delivered to a group.", 1),
}

// Metrics with a label.
var (
	commandDurations = describe("command_duration_seconds",
		"Time that commands took, without the wait for the disk.", "command")
	commandsFailed   = describe("command_failed_total", "Commands answered by an error.", "command")
	commandsRejected = describe("command_rejected_total", "Commands that were refused before they ran.", "command")
	errorsByCode     = describe("errors_total", "Error replies by code.", "code")

	containerItems    = describe("container_items", "Living items of a container.", "container")
	containerExpiring = describe("container_expiring_items", "Of these, items that will die.", "container")
	containerTTL      = describe("container_ttl_seconds", "Estimated mean time that these have left; 0 if there are none.", "container")

	containerLogEntries = describe("container_log_entries", "Entries of a container's log of deaths.", "container")
	containerLogBytes   = describe("container_log_bytes", "Ids and bodies of these entries.", "container")
	containerLogPending = describe("container_log_pending_entries", "Entries that were delivered to a group of a container's log and not acknowledged, of all groups.", "container")
	containerLogLag     = describe("container_log_lag_entries", "Entries that were not delivered to the group of a container's log that is the furthest behind.", "container")
)

// durationBounds are the bounds of the histograms, from a microsecond to 17 seconds, each four times the
// last. They are exact, because the engine counts in octaves of 1024 ns.
var durationBounds = func() (list []time.Duration) {
	for bound := 1024 * time.Nanosecond; bound < 20*time.Second; bound *= 4 {
		list = append(list, bound)
	}
	return list
}()

func collectCommand(out chan<- prometheus.Metric, c *engine.CommandStats) {
	shorter := make(map[float64]uint64, len(durationBounds))
	for _, bound := range durationBounds {
		shorter[bound.Seconds()] = uint64(c.Durations.Shorter(bound))
	}
	out <- prometheus.MustNewConstHistogram(commandDurations, uint64(c.Calls), c.Time.Seconds(), shorter, c.Name)
	out <- prometheus.MustNewConstMetric(commandsFailed, prometheus.CounterValue, float64(c.Failed), c.Name)
	out <- prometheus.MustNewConstMetric(commandsRejected, prometheus.CounterValue, float64(c.Rejected), c.Name)
}

func collectContainer(out chan<- prometheus.Metric, c admin.ContainerInfo) {
	for desc, n := range map[*prometheus.Desc]float64{
		containerItems: float64(c.Items), containerExpiring: float64(c.Expiring), containerTTL: float64(c.AverageTTL) / 1000,
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, c.Name)
	}
}

func collectLog(out chan<- prometheus.Metric, l items.LogInfo) {
	for desc, n := range map[*prometheus.Desc]float64{
		containerLogEntries: float64(l.Entries), containerLogBytes: float64(l.Bytes),
		containerLogPending: float64(l.Pending), containerLogLag: float64(l.Lag),
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, l.Name)
	}
}
