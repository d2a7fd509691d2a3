package crash

import (
	"context"
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"strings"
	"syscall"
	"testing"
	"time"
)

// drainTime is how long a server that stops waits for what its clients run.
const drainTime = 10 * time.Second

// TestStopDuringAnEndlessTransaction: SIGTERM comes while an EXEC would run for minutes. The server waits for
// it, gives it up, commits what others have written, and ends well. The transaction has taken place, as its
// commands read values of the moment of EXEC and compute their replies without its locks. But its client has
// no reply.
func TestStopDuringAnEndlessTransaction(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	dir := dataFolder(t)
	p := harness.Start(t, dir, "--io-threads", "0") // nobody waits for a lock in the place of others
	c := p.Client()
	long := strings.Repeat("abcdefgh", 240) // LCS takes as much as max-value-size allows
	for _, key := range []string{"long-1", "long-2"} {
		drill.Check(t, c.Set(t.Context(), key, long, 0).Err())
	}
	ended := make(chan error, 1)
	go func() {
		pipe := p.Client().TxPipeline()
		pipe.Set(t.Context(), "begun", "1", 0)
		for range 30_000 {
			pipe.Do(t.Context(), "LCS", "long-1", "long-2", "LEN")
		}
		pipe.Set(t.Context(), "done", "1", 0)
		_, err := pipe.Exec(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	keys := []string{"begun", "done"}
	harness.WaitFor(t, "the transaction to take place", func() bool { return c.Exists(t.Context(), keys...).Val() == 2 })
	for n := range 100 {
		key := fmt.Sprint("beside-", n)
		drill.Check(t, c.Set(t.Context(), key, "v", 0).Err())
		keys = append(keys, key)
	}

	p.Signal(syscall.SIGTERM)
	harness.WaitFor(t, "the server to stop", func() bool { return strings.Contains(p.Log.String(), "stopping") })
	p.Signal(syscall.SIGSTOP) // the transaction takes no time of the processor meanwhile
	time.Sleep(drainTime)     // a clock of another process
	p.Signal(syscall.SIGCONT)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if !strings.Contains(p.Log.String(), "some clients were disconnected") {
		t.Errorf("the log does not say so:\n%s", p.Log.String())
	}
	if err := <-ended; err == nil {
		t.Error("the transaction has come to its end")
	}
	if n := harness.Start(t, dir).Client().Exists(t.Context(), keys...).Val(); n != int64(len(keys)) {
		t.Errorf("%d of %d keys are there", n, len(keys))
	}
}
