package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mayfly/server/config"
	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/rs/zerolog"
)

// newTestLoading returns a load of a data folder of 5 MB that began some seconds ago.
func newTestLoading(t *testing.T, log io.Writer, loaded int64, seconds int, options ...string) *loading {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "[a-") // the name is no pattern
	drill.Check(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "a.db"), make([]byte, 5<<20), 0o600))
	c, err := config.Load(append([]string{"--dir", dir}, options...))
	drill.Check(t, err)
	l := newLoading(c.Settings(), zerolog.New(log))
	l.now = func() time.Duration { return l.began + time.Duration(seconds)*time.Second }
	l.loaded.Store(loaded)
	return l
}

// TestLoadingIsReported: a long start says how far it is, and how long the rest takes.
func TestLoadingIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		options []string
		loaded  int64
		seconds int // since the start
		want    string
	}{
		"at once":       {nil, 3 << 20, 0, `{"level":"info","mb":3,"of":5,"message":"loading"}` + "\n"},
		"half":          {nil, 4 << 20, 2, `{"level":"info","mb":4,"of":5,"mb_per_second":2,"seconds_left":1,"message":"loading"}` + "\n"},
		"nothing":       {nil, 0, 2, `{"level":"info","mb":0,"of":5,"message":"loading"}` + "\n"},
		"all":           {nil, 5 << 20, 2, `{"level":"info","mb":5,"of":5,"message":"loading"}` + "\n"},
		"half, a node":  {clusterOptions, 4 << 20, 2, `{"level":"info","mb":4,"of":5,"mb_per_second":2,"seconds_left":1,"message":"loading"}` + "\n"},
		"it is waiting": {clusterOptions, 5 << 20, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			newTestLoading(t, &log, tt.loaded, tt.seconds, tt.options...).report()
			if got := log.String(); got != tt.want {
				t.Errorf("the log is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEvery: calls come at intervals, and none after the end.
func TestEvery(t *testing.T) {
	drill.Bubble(t, func(t *testing.T) {
		calls := 0
		stop := every(time.Second, func() { calls++ })
		drill.Pass(3500 * time.Millisecond)
		stop()
		drill.Pass(time.Hour)
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
	})
}

// clusterOptions make a server a node.
var clusterOptions = []string{"--cluster-id", "a", "--cluster-addr", "127.0.0.1:1", "--cluster-peers", "a=127.0.0.1:1"}

// TestStartIsExtended: while data is loaded or a leader is awaited, systemd is asked for more time.
func TestStartIsExtended(t *testing.T) {
	systemd := harness.NewNotifySocket(t)
	for _, tt := range []struct {
		options []string
		loaded  int64
		seconds int
		want    string
	}{
		{nil, 3 << 20, 0, "loading: 3 of 5 MB"},
		{nil, 4 << 20, 2, "loading: 4 of 5 MB, 2 MB/s, 1 s left"},
		{nil, 5 << 20, 2, "loading"},
		{clusterOptions, 3 << 20, 0, "loading: 3 of 5 MB"},
		{clusterOptions, 5 << 20, 2, "waiting for a leader of the cluster"},
	} {
		newTestLoading(t, io.Discard, tt.loaded, tt.seconds, append(tt.options, "--supervised", "systemd")...).notify()
		if got, want := systemd.Next(), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS="+tt.want; got != want {
			t.Errorf("%v, %d bytes loaded: systemd is told %q, want %q", tt.options, tt.loaded, got, want)
		}
	}
}
