package crash

import (
	"context"
	"fmt"
	"mayfly/test/harness"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// longestDrainForStop is how long a server that stops waits for what its clients run.
const longestDrainForStop = 10 * time.Second

// TestStopDuringAnEndlessTransaction: SIGTERM comes while an EXEC would run for minutes. The server waits
// for it as long as it has promised, gives it up, commits what others have written, and ends. What was
// acknowledged is there afterwards, of the transaction nothing.
func TestStopDuringAnEndlessTransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes as long as a stop may")
	}
	t.Parallel() // it mostly waits
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir, "--io-threads", "0") // nobody waits for a lock in the place of others
	c := p.Client()
	long := strings.Repeat("abcdefgh", 240) // LCS takes as much as max-value-size allows
	for _, key := range []string{"long-1", "long-2"} {
		if err := c.Set(t.Context(), key, long, 0).Err(); err != nil {
			t.Fatal(err)
		}
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
	harness.WaitFor(t, "the transaction to begin", func() bool {
		return strings.Contains(c.ClientList(t.Context()).Val(), "cmd=exec")
	})
	acknowledged := writeBeside(t, p)

	began := time.Now()
	p.Signal(syscall.SIGTERM)
	code := p.Wait()
	took := time.Since(began)
	if code != 0 || took < longestDrainForStop { // the transaction would last for minutes, and wait has an end
		t.Errorf("exit code %d, %v after SIGTERM", code, took)
	}
	if !strings.Contains(p.Log.String(), "some clients were disconnected") {
		t.Errorf("the log does not say so:\n%s", p.Log.String())
	}
	if err := <-ended; err == nil {
		t.Error("the transaction has come to its end")
	}

	c = harness.Start(t, dir).Client()
	for _, key := range acknowledged {
		if err := c.Get(t.Context(), key).Err(); err != nil {
			t.Errorf("%s was acknowledged: %v", key, err)
		}
	}
	// The commands read values of the moment of EXEC, and compute their replies without its locks: by then it has happened.
	if n := c.Exists(t.Context(), "begun", "done").Val(); n != 2 {
		t.Errorf("%d of the 2 keys of the transaction are there", n)
	}
}

// writeBeside writes many keys, each in a connection of its own since those that lie beside what is
// locked have to wait, and gives those that were acknowledged.
func writeBeside(t *testing.T, p *harness.Process) (acknowledged []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	keys := make(chan string, 100)
	for n := range cap(keys) {
		go func() {
			key := fmt.Sprint("beside-", n)
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: 5 * time.Second})
			defer c.Close()
			if c.Set(ctx, key, "v", 0).Err() != nil {
				key = ""
			}
			keys <- key
		}()
	}
	for range cap(keys) {
		if key := <-keys; key != "" {
			acknowledged = append(acknowledged, key)
		}
	}
	if len(acknowledged) < cap(keys)/4 {
		t.Errorf("only %d of %d keys could be written beside a transaction", len(acknowledged), cap(keys))
	}
	return acknowledged
}
