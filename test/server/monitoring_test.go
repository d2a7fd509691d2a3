package server

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mayfly/test/harness"
)

// TestExporter asks what redis_exporter asks, and finds in the answers what it reads.
func TestExporter(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	p.CLI("SET", "k", "v", "EX", "1000")
	p.CLI("GET", "k")
	p.CLI("INCR", "k")
	p.CLI("CONFIG", "SET", "slowlog-log-slower-than", "0")
	fields := map[string]string{}
	for line := range strings.SplitSeq(p.CLI("INFO", "ALL"), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	const number = `\d+(\.\d+)?`
	for name, pattern := range map[string]string{
		"redis_version": `\d+\.\d+\.\d+`, "redis_mode": "standalone", "os": ".+", "role": "master", "process_id": number, "run_id": "[0-9a-f]{40}",
		"tcp_port": p.Port, "uptime_in_seconds": number, "server_time_usec": number, "clock_ahead_ms": "0", "mem_allocator": ".+", "maxmemory_policy": "noeviction",
		"connected_clients": "1", "blocked_clients": "0", "maxclients": number, "pubsub_clients": "0",
		"used_memory": number, "used_memory_rss": number, "used_memory_peak": number, "used_memory_overhead": number, "used_memory_dataset": number,
		"maxmemory": number, "total_system_memory": number, "mem_fragmentation_ratio": number, "allocator_allocated": number,
		"loading": "0", "rdb_bgsave_in_progress": "0", "rdb_last_save_time": number, "rdb_last_bgsave_status": "ok",
		"aof_enabled": "1", "aof_rewrite_in_progress": "0", "aof_last_bgrewrite_status": "ok", "aof_last_write_status": "ok", "disk_full": "0", "disk_reserve_bytes": number, "aof_current_size": number,
		"total_connections_received": number, "total_commands_processed": number, "instantaneous_ops_per_sec": number,
		"total_net_input_bytes": number, "total_net_output_bytes": number, "instantaneous_input_kbps": number, "instantaneous_output_kbps": number,
		"rejected_connections": "0", "expired_keys": "0", "expired_stale_perc": number, "expired_time_cap_reached_count": number, "evicted_keys": "0",
		"keyspace_hits": "1", "keyspace_misses": "0", "pubsub_channels": "0", "pubsub_patterns": "0", "total_error_replies": "1",
		"connected_slaves": "0", "cluster_enabled": "0", "used_cpu_sys": number, "used_cpu_user": number,
		"db0":                          `keys=1,expires=1,avg_ttl=\d+`,
		"cmdstat_get":                  `calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0`,
		"cmdstat_config|set":           `calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0`,
		"cmdstat_incr":                 `calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=1`,
		"latency_percentiles_usec_get": `p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}`,
		"errorstat_ERR":                "count=1",
	} {
		if value, ok := fields[name]; !ok || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(value) {
			t.Errorf("INFO has %s:%s, want %s", name, value, pattern)
		}
	}
	for _, tt := range []struct{ command, want string }{
		{"CONFIG GET *", `(?s).*maxclients\n10000\n.*`},
		{"SLOWLOG LEN", `[1-9]\d*`},
		{"SLOWLOG GET 1", `(?s)\d+\n\d{10}\n\d+\nSLOWLOG\nLEN\n127\.0\.0\.1:\d+`},
		{"LATENCY LATEST", ``},
		{"LATENCY HISTOGRAM get", `get\ncalls\n1\nhistogram_usec\n\d+\n1`},
		{"CLIENT LIST", `id=.*`},
	} {
		if got := p.CLI(strings.Fields(tt.command)...); !regexp.MustCompile("^(?:" + tt.want + ")$").MatchString(got) {
			t.Errorf("%s: %q, want %s", tt.command, got, tt.want)
		}
	}
}

// TestMetrics scrapes a running server and asks for its health.
func TestMetrics(t *testing.T) {
	harness.Parallel(t)
	address := harness.FreeAddress(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--metrics-addr", address)
	p.CLI("SET", "k", "v")
	if status, body := harness.Fetch(t, address, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	status, body := harness.Fetch(t, address, "/metrics")
	if status != 200 || !strings.Contains(body, "\nmayfly_command_duration_seconds_count{command=\"set\"} 1\n") {
		t.Errorf("/metrics: %d\n%s", status, body)
	}
	p.CLI("CONTAINER.CREATE", "carts", "TTL", "1", "LOG", "3600")
	p.CLI("XGROUP", "CREATE", "__keyevent@carts__:expired", "mailer", "0")
	p.CLI("DOC.PUT", "carts", "1", "{}")
	harness.WaitFor(t, "the death of a cart", func() bool { return p.CLI("XLEN", "__keyevent@carts__:expired") == "1" })
	_, body = harness.Fetch(t, address, "/metrics")
	for _, line := range []string{
		"mayfly_logs 1", "mayfly_log_entries 1", "mayfly_log_groups 1", "mayfly_log_max_lag_entries 1",
		`mayfly_container_log_entries{container="carts"} 1`, `mayfly_container_log_lag_entries{container="carts"} 1`,
		`mayfly_container_log_pending_entries{container="carts"} 0`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("/metrics lacks %s\n%s", line, body)
		}
	}
	// The same address again: one line and exit code 1, before any data are touched.
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--metrics-addr", address), "cannot listen on metrics-addr "+address, "in use")
	p.Terminate()
}

// TestSlowlogOptions shows that the options work from the command line and while running.
func TestSlowlogOptions(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--slowlog-log-slower-than", "0", "--slowlog-max-len", "2", "--latency-monitor-threshold", "1")
	for range 5 {
		p.CLI("PING")
	}
	if got := p.CLI("SLOWLOG", "LEN"); got != "2" {
		t.Errorf("%s entries are kept", got)
	}
	p.CLI("CONFIG", "SET", "slowlog-log-slower-than", "-1")
	p.CLI("SLOWLOG", "RESET")
	p.CLI("PING")
	if got := p.CLI("SLOWLOG", "LEN"); got != "0" {
		t.Errorf("switched off, it has %s entries", got)
	}
	for _, tt := range []struct{ option, value, want string }{
		{"latency-tracking", "no", "^$"},
		{"latency-tracking", "yes", `^p50=[\d.]+,p99=[\d.]+,p99\.9=[\d.]+$`},
		{"latency-tracking-info-percentiles", "0.0 50.0 100.0", `^p0=[\d.]+,p50=[\d.]+,p100=[\d.]+$`},
	} {
		p.CLI("CONFIG", "SET", tt.option, tt.value)
		_, after, _ := strings.Cut(p.CLI("INFO", "latencystats"), "latency_percentiles_usec_ping:")
		line, _, _ := strings.Cut(after, "\r\n")
		if !regexp.MustCompile(tt.want).MatchString(line) {
			t.Errorf("%s %s: %q", tt.option, tt.value, line)
		}
	}
	if got := p.CLI("LATENCY", "DOCTOR"); strings.Contains(got, "is off") {
		t.Errorf("latency-monitor-threshold has no effect: %s", got)
	}
	// The figures of the moment come by themselves.
	db := p.Client()
	harness.WaitFor(t, "commands a second in INFO", func() bool { return harness.Figure(t, db, "instantaneous_ops_per_sec") > 0 })
}
