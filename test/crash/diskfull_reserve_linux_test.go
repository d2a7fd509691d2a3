package crash

import (
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fillWhole writes a file that takes all of the disk, and returns how many bytes it could take.
func fillWhole(t *testing.T, path string) (took int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	drill.Check(t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; {
		n, err := f.Write(make([]byte, size))
		if took += n; err != nil {
			size /= 2
		}
	}
	return took
}

// TestDeletesOnFullDisk: on a full disk, commands that free space work and give room back, so that others
// work again, without anything outside the server.
func TestDeletesOnFullDisk(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	disk, metrics := harness.SmallDisk(t, 16<<20), harness.FreeAddress(t)
	dir := filepath.Join(disk, "data")
	p := harness.Start(t, dir, "--metrics-addr", metrics)
	c := p.Client()
	ctx := t.Context()
	do := func(args ...any) (any, error) { return c.Do(ctx, args...).Result() }
	if _, err := do("CONTAINER.SET", "docs", "TTL", "-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := do("DOC.PUT", "docs", "d", "{}"); err != nil {
		t.Fatal(err)
	}
	fill := func() (took int) { // by another program, at once: so the server keeps the last part of its reserve
		p.Signal(syscall.SIGSTOP)
		defer p.Signal(syscall.SIGCONT)
		return fillWhole(t, filepath.Join(disk, "filler"))
	}
	filled := false
	for n := 0; n < 100 && !filled; n++ { // until no checkpoint finds room any more
		for i := range 400 {
			err := c.Set(ctx, fmt.Sprint("key-", n, "-", i), thousandBytes, 0).Err()
			if filled = err != nil; filled {
				break
			}
		}
		if filled {
			fill()
			for back := 1; back > 0; back = fill() { // what a checkpoint that fails gives back goes, too
				_ = c.Save(ctx).Err()
			}
			filled = c.Set(ctx, "probe", thousandBytes, 0).Err() != nil
		}
	}
	if !filled {
		t.Fatal("the disk does not get full")
	}
	harness.WaitFor(t, "INFO to say so", func() bool { return harness.Figure(t, c, "disk_full") == 1 })
	if status, body := harness.Fetch(t, metrics, "/healthz"); status != 503 || !strings.Contains(body, "no space left on device") {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if _, body := harness.Fetch(t, metrics, "/metrics"); !strings.Contains(body, "\nmayfly_disk_full 1\n") || !strings.Contains(body, "\nmayfly_journal_write_ok 0\n") {
		t.Error("the metrics say nothing of it")
	}
	before := c.DBSize(ctx).Val()
	for _, args := range [][]any{
		{"DEL", "key-0-0"}, {"UNLINK", "key-0-1"}, {"EXPIRE", "key-0-2", "0"}, {"PEXPIREAT", "key-0-3", "1"}, {"GETDEL", "key-0-4"},
		{"DOC.DEL", "docs", "d"}, {"CONTAINER.SET", "docs", "TTL", "1"}, {"CONTAINER.DROP", "docs"},
	} {
		if reply, err := do(args...); err != nil || reply == int64(0) {
			t.Errorf("%v: %v, %v", args, reply, err)
		}
	}
	if got := c.DBSize(ctx).Val(); got != before-5 {
		t.Errorf("%d keys are there, not %d", got, before-5)
	}
	tx := c.TxPipeline()
	tx.Del(ctx, "key-0-5")
	tx.Del(ctx, "key-0-6")
	if _, err := tx.Exec(ctx); err != nil {
		t.Errorf("a transaction of deletes: %v", err)
	}
	tx = c.TxPipeline()
	tx.Del(ctx, "key-0-7")
	tx.Set(ctx, "key-0-7", "v", 0)
	if _, err := tx.Exec(ctx); err == nil || c.Exists(ctx, "key-0-7").Val() != 1 {
		t.Errorf("a transaction that also writes: %v", err)
	}
	for _, args := range [][]any{
		{"SET", "k", "v"}, {"EXPIRE", "key-0-8", "100"}, {"CONTAINER.SET", "more", "TTL", "1"}, {"CONTAINER.CREATE", "more"}, {"APPEND", "key-0-8", "x"},
	} {
		if reply, err := do(args...); err == nil || !strings.HasPrefix(err.Error(), "MISCONF Errors writing to the journal: no space left on device") {
			t.Errorf("%v: %v, %v", args, reply, err)
		}
	}
	if _, err := do("FLUSHALL"); err != nil {
		t.Error("FLUSHALL: ", err)
	}
	// Its room comes back by itself, though the filler stays.
	harness.WaitFor(t, "room", func() bool { return harness.Figure(t, c, "disk_full") == 0 })
	if err := c.Set(ctx, "k", thousandBytes, 0).Err(); err != nil {
		t.Error("after FLUSHALL: ", err)
	}
	p.Signal(syscall.SIGKILL)
	p.Wait()
	p = harness.Start(t, dir)
	if n := p.Client().DBSize(ctx).Val(); n != 1 {
		t.Errorf("%d keys are there after a kill, not 1", n)
	}
	p.Terminate()
}

// TestStartOnFullDisk: a server starts on a full disk, serves reads, and writes again when there is room.
// With its reserve it also serves what frees space.
func TestStartOnFullDisk(t *testing.T) {
	drill.Slow(t)
	for _, reserve := range []string{"128mb", "0"} {
		t.Run("reserve "+reserve, func(t *testing.T) {
			t.Parallel()
			disk := harness.SmallDisk(t, 8<<20)
			dir, filler := filepath.Join(disk, "data"), filepath.Join(disk, "filler")
			p := harness.Start(t, dir, "--disk-reserve", reserve)
			for i := range 100 {
				drill.Check(t, p.Client().Set(t.Context(), fmt.Sprint("key-", i), thousandBytes, 0).Err())
			}
			for n, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
				p.Signal(end)
				p.Wait()
				fillWhole(t, filler)
				p = harness.Start(t, dir, "--disk-reserve", reserve)
				c := p.Client()
				checkKeys(t, c, 100)
				if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") || !strings.Contains(err.Error(), "no space left on device") {
					t.Errorf("a write: %v", err)
				}
				// The other program takes the released room, too: the last part of the reserve is for one
				// more start.
				if err := c.Del(t.Context(), "none").Err(); (err == nil) != (reserve != "0" && n < 2) {
					t.Errorf("a delete: %v", err)
				}
				if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil {
					t.Error("a second write works")
				}
			}
			drill.Check(t, os.Remove(filler))
			c := p.Client()
			harness.WaitFor(t, "writing to resume", func() bool { return c.Set(t.Context(), "later", "v", 0).Err() == nil })
			p.Signal(syscall.SIGKILL)
			p.Wait()
			p = harness.Start(t, dir, "--disk-reserve", reserve)
			checkKeys(t, p.Client(), 100)
			if v := p.Client().Get(t.Context(), "later").Val(); v != "v" {
				t.Errorf("what was written later is %q", v)
			}
			p.Terminate()
		})
	}
}
