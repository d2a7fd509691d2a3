package crash

import (
	"mayfly/test/drill"
	"mayfly/test/harness"
	"strings"
	"syscall"
	"testing"
)

// TestFailedFsync lets the disk of a server fail to force data down: writes are refused with the cause,
// reads go on, INFO and the log tell. That the disk works again changes nothing, as nobody knows what of
// the earlier has arrived; a restart does, and what was acknowledged before is there.
func TestFailedFsync(t *testing.T) {
	drill.Slow(t)
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			dir := dataFolder(t)
			p := harness.Start(t, dir, "--appendfsync", fsync)
			c := p.Client()
			drill.Check(t, c.Set(t.Context(), "before", "v", 0).Err())
			works := harness.InjectFsyncs(t, p.Cmd.Process.Pid, "error=EIO")
			refused := func() bool {
				err := c.Set(t.Context(), "during", "v", 0).Err()
				return err != nil && strings.HasPrefix(err.Error(), "MISCONF ") && strings.Contains(err.Error(), "input/output error")
			}
			if fsync == "always" && !refused() {
				t.Error("a write was acknowledged that is not on disk")
			}
			harness.WaitFor(t, "writes to be refused", refused) // at everysec within the second
			if v, err := c.Get(t.Context(), "before").Result(); v != "v" || err != nil {
				t.Errorf("reading: %q, %v", v, err)
			}
			info := c.Info(t.Context(), "persistence").Val()
			if !strings.Contains(info, "aof_last_write_status:err") || !strings.Contains(info, "input/output error") {
				t.Errorf("INFO says nothing of it:\n%s", info)
			}
			harness.WaitFor(t, "the log to say so", func() bool {
				return strings.Contains(p.Log.String(), "writes are refused until the server is started again")
			})
			works()
			if !refused() {
				t.Error("a write was accepted after a failed fsync")
			}
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(); code != 1 {
				t.Errorf("exit code %d: not all is on disk, and it says nothing", code)
			}
			c = harness.Start(t, dir).Client()
			if v, err := c.Get(t.Context(), "before").Result(); v != "v" || err != nil {
				t.Errorf("after a restart: %q, %v", v, err)
			}
			drill.Report(t, c.Set(t.Context(), "after", "v", 0).Err())
		})
	}
}
