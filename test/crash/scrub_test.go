package crash

import (
	"bytes"
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// flipBit changes a bit of a file of a running server, at a share of its size.
func flipBit(t *testing.T, path string, share float64) {
	t.Helper()
	content, err := os.ReadFile(path)
	drill.Check(t, err)
	at := int64(share * float64(len(bytes.TrimRight(content, "\x00"))))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	drill.Check(t, err)
	if _, err := f.WriteAt([]byte{content[at] ^ 8}, at); err != nil {
		t.Fatal(err)
	}
	drill.Check(t, f.Close())
}

// TestBitRot damages files of a running server. Clients notice nothing, a scrub has the files written anew, a
// backup is sound, and a restart after a kill serves everything.
func TestBitRot(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	dir, address := dataFolder(t), harness.FreeAddress(t)
	p := harness.Start(t, dir, "--metrics-addr", address, "--appendfsync", "always")
	c, ctx := p.Client(), t.Context()
	const keys = 2000
	value := func(n int) string { return strings.Repeat(fmt.Sprint("value ", n, " "), 10) }
	set := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			drill.Check(t, c.Set(ctx, fmt.Sprint("key-", n), value(n), 0).Err())
		}
	}
	set(0, keys-100)
	drill.Check(t, c.Save(ctx).Err())
	set(keys-100, keys)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // reads go on
		defer close(done)
		for n := 0; !drill.Done(stop); n = (n + 1) % keys {
			if got, err := c.Get(ctx, fmt.Sprint("key-", n)).Result(); err != nil || got != value(n) {
				t.Errorf("key-%d is %q: %v", n, got, err)
				return
			}
		}
	}()
	journals, err := filepath.Glob(filepath.Join(dir, "journal-*.db"))
	if err != nil || len(journals) == 0 {
		t.Fatal(journals, err)
	}
	files := []string{
		filepath.Join(dir, "partition-003.db"), filepath.Join(dir, "partition-011.db"), filepath.Join(dir, "catalogue.db"),
		filepath.Join(dir, "manifest"), journals[len(journals)-1],
	}
	for n, file := range files {
		flipBit(t, file, 0.3+float64(n)/10)
	}
	if got, err := c.Do(ctx, "SCRUB").Text(); got != "Background scrub started" {
		t.Fatal(got, err)
	}
	harness.WaitFor(t, "the scrub", func() bool { return harness.Figure(t, c, "scrubs") == 1 })
	info := c.Info(ctx, "persistence").Val()
	for _, want := range []string{"scrub_found_files:5", "scrub_repaired_files:5", "damaged_files:0"} {
		if !strings.Contains(info, want+"\r") {
			t.Errorf("INFO has no %s:\n%s", want, info)
		}
	}
	for _, file := range files {
		harness.WaitFor(t, "the log to tell of "+file, func() bool { return strings.Contains(p.Log.String(), file+" is damaged at bytes ") })
	}
	if _, body := harness.Fetch(t, address, "/metrics"); !strings.Contains(body, "\nmayfly_scrub_repaired_files_total 5\n") {
		t.Error("the metrics do not tell")
	}
	flipBit(t, files[1], 0.6)
	backup := filepath.Join(t.TempDir(), "backup")
	drill.Report(t, c.Do(ctx, "BACKUP", backup).Err())
	close(stop)
	<-done
	p.Signal(syscall.SIGKILL)
	p.Wait()
	for _, folder := range []string{backup, dir} {
		c = harness.Start(t, folder).Client()
		pipe, got := c.Pipeline(), make([]*redis.StringCmd, keys)
		for n := range got {
			got[n] = pipe.Get(ctx, fmt.Sprint("key-", n))
		}
		_, _ = pipe.Exec(ctx) // each reply is looked at
		for n := range got {
			if got[n].Err() != nil || got[n].Val() != value(n) {
				t.Fatalf("%s: key-%d is %q: %v", folder, n, got[n].Val(), got[n].Err())
			}
		}
	}
}
