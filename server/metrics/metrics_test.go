package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	_ "mayfly/commands" // fills the table of commands
	"mayfly/commands/access"
	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// The HTTP server is tested with a whole server in package server.

var check = drill.Check

// host has what INFO asks of a server.
type host struct{ engine.Host }

func (host) Info() engine.ServerInfo     { return engine.ServerInfo{} }
func (host) Sessions() []*engine.Session { return nil }
func (host) Users() *access.Users        { return users }

var users = access.NewUsers(engine.Catalogue)

// notMetrics are numeric fields of INFO that are no metrics: another field says the same, Prometheus computes
// it, or it never changes.
var notMetrics = []string{
	"arch_bits", "process_id", "tcp_port", "server_time_usec", "uptime_in_days", // of the Go and process collectors, or fixed
	"allocator_active", "allocator_resident", "mem_fragmentation_bytes", "gc_cycles",
	"rdb_saves", "aof_enabled", "aof_rewrite_scheduled", "aof_rewrites", "aof_current_size", "aof_last_bgrewrite_status",
	"instantaneous_input_kbps", "instantaneous_output_kbps", "expired_stale_perc", "expired_time_cap_reached_count",
	"expire_cycle_cpu_milliseconds", "used_cpu_sys_children", "used_cpu_user_children", "cluster_enabled",
	"lazyfree_pending_objects", "connected_slaves", "master_repl_offset", "second_repl_offset", "repl_backlog_active", "repl_backlog_histlen",
	"master_replid2", "repl_backlog_size", "repl_backlog_first_byte_offset",
}

// Every number of INFO is a metric unless it is named above, and every metric is in INFO.
func TestMetricsAreThoseOfInfo(t *testing.T) {
	t.Parallel()
	ks, err := keyspace.Open(keyspace.Options{Dir: t.TempDir(), Partitions: 1})
	drill.Check(t, err)
	defer ks.Close()
	e := engine.NewEngine(ks, host{}, zerolog.Nop())
	seen := map[string]bool{}
	for _, f := range admin.Info(e) {
		seen[f.Name] = true
		text := fmt.Sprint(f.Value)
		_, err := strconv.ParseFloat(text, 64)
		_, isMetric := metricsOfInfo[f.Name]
		if isNumber := err == nil || text == "ok" || text == "err" || text == "system"; isNumber != (isMetric || slices.Contains(notMetrics, f.Name)) {
			t.Errorf("%s:%s: it is a metric: %v", f.Name, text, isMetric)
		}
		if isMetric && slices.Contains(notMetrics, f.Name) {
			t.Errorf("%s is and is not a metric", f.Name)
		}
	}
	for _, name := range append(slices.Collect(maps.Keys(metricsOfInfo)), notMetrics...) {
		if !seen[name] {
			t.Errorf("INFO has no %s", name)
		}
	}
}
