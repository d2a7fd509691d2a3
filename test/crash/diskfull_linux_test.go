package crash

import (
	"bytes"
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestFullDisk fills the disk under a server that is being written to. Writes are refused with the
// cause, reads go on, and INFO tells. When there is room again, writes go on by themselves. Nothing
// acknowledged is lost, then or by a kill at the worst moment.
func TestFullDisk(t *testing.T) {
	drill.Slow(t)
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			const size = 8 << 20
			disk, metrics := harness.SmallDisk(t, size), harness.FreeAddress(t)
			dir := filepath.Join(disk, "data")
			p := harness.Start(t, dir, "--appendfsync", fsync, "--metrics-addr", metrics, "--disk-reserve", "0")
			c := p.Client()
			drill.Check(t, harness.Fill(disk))
			acknowledged, refusal := writeUntilRefused(t, c)
			t.Logf("%d writes were acknowledged before the disk was full", acknowledged)
			if !strings.HasPrefix(refusal, "MISCONF ") || !strings.Contains(refusal, "no space left on device") {
				t.Errorf("the refusal is %q", refusal)
			}
			checkKeys(t, c, acknowledged)
			info := c.Info(t.Context(), "persistence").Val()
			if !strings.Contains(info, "aof_last_write_status:err") || !strings.Contains(info, "no space left on device") {
				t.Errorf("INFO says nothing of it:\n%s", info)
			}
			harness.WaitFor(t, "the log to say so", func() bool { return strings.Contains(p.Log.String(), "no space left on device") })
			if status, body := harness.Fetch(t, metrics, "/healthz"); status != 503 || !strings.Contains(body, "no space left on device") {
				t.Errorf("/healthz: %d %s", status, body)
			}
			if _, body := harness.Fetch(t, metrics, "/metrics"); !strings.Contains(body, "\nmayfly_journal_write_ok 0\n") {
				t.Error("the metrics say nothing of it")
			}

			drill.Check(t, harness.Resize(disk, size))
			harness.WaitFor(t, "writing to resume", func() bool { return c.Set(t.Context(), "later", "v", 0).Err() == nil })
			if info := c.Info(t.Context(), "persistence").Val(); !strings.Contains(info, "aof_last_write_status:ok") {
				t.Errorf("INFO does not say that it works again:\n%s", info)
			}
			if status, body := harness.Fetch(t, metrics, "/healthz"); status != 200 {
				t.Errorf("/healthz after that: %d %s", status, body)
			}
			checkKeys(t, c, acknowledged)

			// And now a kill while the disk is full; it is still full at the next start, which may
			// refuse but must not harm anything.
			drill.Check(t, harness.Fill(disk))
			acknowledged, _ = writeUntilRefused(t, c)
			p.Signal(syscall.SIGKILL)
			p.Wait()
			killWhileStarting(t, dir, ready)
			drill.Check(t, harness.Resize(disk, size))
			p = harness.Start(t, dir)
			checkKeys(t, p.Client(), acknowledged)
			p.Terminate()
		})
	}
}

var thousandBytes = string(bytes.Repeat([]byte("x"), 1000))

// writeUntilRefused writes keys and gives the number of those that were acknowledged.
func writeUntilRefused(t *testing.T, c *redis.Client) (acknowledged int, refusal string) {
	t.Helper()
	for ; acknowledged < 20_000; acknowledged++ {
		if err := c.Set(t.Context(), fmt.Sprint("key-", acknowledged), thousandBytes, 0).Err(); err != nil {
			return acknowledged, err.Error()
		}
	}
	t.Fatal("the disk does not get full")
	return 0, ""
}

func checkKeys(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	pipe, values := c.Pipeline(), make([]*redis.StringCmd, n)
	for i := range values {
		values[i] = pipe.Get(t.Context(), fmt.Sprint("key-", i))
	}
	_, _ = pipe.Exec(t.Context()) // each reply is looked at
	for i, v := range values {
		if v.Err() != nil || v.Val() != thousandBytes {
			t.Fatalf("key %d of %d is %.20q, %v", i, n, v.Val(), v.Err())
		}
	}
}

// TestClientsShareFsyncs: at always, many clients that write at a time are acknowledged together.
func TestClientsShareFsyncs(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	const clients, each = 50, 40
	p := harness.Start(t, dataFolder(t), "--appendfsync", "always")
	before := journalFigures(t, p.Client())
	var all sync.WaitGroup
	for n := range clients {
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, PoolSize: 1, ReadTimeout: harness.Patience})
		defer c.Close()
		all.Go(func() {
			for i := range each {
				drill.Report(t, c.Set(t.Context(), fmt.Sprint(n, "-", i), "v", 0).Err())
			}
		})
	}
	all.Wait()
	after := journalFigures(t, p.Client())
	commits, fsyncs := after.commits-before.commits, after.fsyncs-before.fsyncs
	t.Logf("%d writes of %d clients took %d commits and %d fsyncs: %.1f writes an fsync",
		clients*each, clients, commits, fsyncs, float64(clients*each)/float64(fsyncs))
	if fsyncs < each || fsyncs > clients*each/3 {
		t.Errorf("%d fsyncs for %d writes", fsyncs, clients*each)
	}
}

type figures struct{ commits, fsyncs int }

func journalFigures(t *testing.T, c *redis.Client) (f figures) {
	t.Helper()
	for line := range strings.Lines(c.Info(t.Context(), "persistence").Val()) {
		_, _ = fmt.Sscanf(line, "journal_commits:%d", &f.commits) // not every line is one of these
		_, _ = fmt.Sscanf(line, "journal_fsyncs:%d", &f.fsyncs)
	}
	return f
}
