package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestLoadingIsReported: a long start says how far it is, and says nothing more once it is over.
func TestLoadingIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.db"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	var loaded atomic.Int64
	loaded.Store(3 << 20)
	stop := reportLoading(zerolog.New(&log), dir, &loaded, time.Millisecond)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(log.String(), `{"level":"info","mb":3,"of":5,"message":"loading"}`) {
		if time.Now().After(deadline) {
			t.Fatalf("the log is %q", log.String())
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	lines := strings.Count(log.String(), "\n")
	time.Sleep(5 * time.Millisecond)
	if n := strings.Count(log.String(), "\n"); n != lines {
		t.Errorf("%d lines came after the end", n-lines)
	}
}
