package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStuckRedisBenchmark puts a program that goes round for ever in the place of redis-benchmark, and
// one that does nothing in the place of the server.
func TestStuckRedisBenchmark(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two seconds until a program counts as stuck")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, redisBenchmark), []byte("#!/bin/sh\nwhile :; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	idle := exec.CommandContext(t.Context(), "sleep", "60")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Process.Kill(); _ = idle.Wait() }()
	t.Setenv("PATH", dir)
	s := &server{cmd: idle, addr: "127.0.0.1:1"}
	if _, err := runRedisBenchmark(t.Context(), s, 1, 1, 1, get); !errors.Is(err, errStuck) {
		t.Errorf("error %v, want %v", err, errStuck)
	}
}

func TestParseRedisBenchmark(t *testing.T) {
	const names = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	for _, tt := range []struct {
		name, out string
		want      float64 // 0: an error
	}{
		{"one word", names + `"GET","81234.50","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 81234.5},
		{"a command with JSON in it", names + `"SET key:__rand_int__ {"id":1,"a":"b","c":[1,"x"]}","512820.50","1.213","0.344","0.951","4.239","6.407","6.583"` + "\n", 512820.5},
		{"a command that looks like figures", names + `"SET "1","2","3","7.00","1.213","0.344","0.951","4.239","6.407","6.583"` + "\n", 7},
		{"names only", names, 0},
		{"nothing", "", 0},
		{"an error", "Error from server: ERR unknown command\n", 0},
		{"figures missing", names + `"GET","81234.50"` + "\n", 0},
		{"not a number", names + `"GET","fast","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"no requests", names + `"GET","0.00","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"divided by no time", names + `"GET","-nan","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"other columns", strings.Replace(names, "rps", "spr", 1) + `"GET","1.00","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
	} {
		got, err := parseRedisBenchmark(tt.out)
		if got != tt.want && tt.want != 0 || (err != nil) != (tt.want == 0) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
