package metrics

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"

	"mayfly/commands"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// The HTTP server is tested with a whole server in package server.

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host has what INFO asks of a server.
type host struct{ commands.Host }

func (host) Info() commands.ServerInfo     { return commands.ServerInfo{} }
func (host) Sessions() []*commands.Session { return nil }

// notMetrics are numeric fields of INFO that are no metrics: another field says the same, Prometheus computes it, or
// it never changes.
var notMetrics = []string{
	"arch_bits", "process_id", "tcp_port", "server_time_usec", "uptime_in_days", // of the Go and process collectors, or fixed
	"allocator_active", "allocator_resident", "mem_fragmentation_bytes", "gc_cycles",
	"rdb_saves", "aof_enabled", "aof_rewrite_scheduled", "aof_rewrites", "aof_current_size", "aof_last_bgrewrite_status",
	"instantaneous_input_kbps", "instantaneous_output_kbps", "expired_stale_perc", "expired_time_cap_reached_count",
	"expire_cycle_cpu_milliseconds", "used_cpu_sys_children", "used_cpu_user_children", "cluster_enabled",
	"lazyfree_pending_objects", "connected_slaves", "master_repl_offset", "second_repl_offset", "repl_backlog_active", "repl_backlog_histlen",
}

// Every number of INFO is a metric unless it is named above, and every metric is in INFO.
func TestMetricsAreThoseOfInfo(t *testing.T) {
	ks, err := keyspace.Open(keyspace.Options{Dir: t.TempDir(), Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ks.Close()
	e := &commands.Engine{Keyspace: ks, Host: host{}, Log: zerolog.Nop()}
	seen := map[string]bool{}
	for _, f := range e.Info() {
		seen[f.Name] = true
		text := fmt.Sprint(f.Value)
		_, err := strconv.ParseFloat(text, 64)
		_, isMetric := metricsOfInfo[f.Name]
		if isNumber := err == nil || text == "ok" || text == "err"; isNumber != (isMetric || slices.Contains(notMetrics, f.Name)) {
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

// Endless connections get a few slots.
func TestLimitListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	few := newLimitListener(ln, 2)
	defer few.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			nc, err := few.Accept()
			if err != nil {
				return
			}
			accepted <- nc
		}
	}()
	for range 3 {
		nc, err := net.Dial("tcp", ln.Addr().String())
		check(t, err)
		defer nc.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("a third one is accepted")
	default:
	}
	check(t, first.Close())
	_ = first.Close() // closing twice makes room once
	third := <-accepted
	if len(few.slots) != 2 {
		t.Errorf("%d connections are counted, not 2", len(few.slots))
	}
	check(t, second.Close())
	check(t, third.Close())
}
