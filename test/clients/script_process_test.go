package clients

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// running is the beginning of a script that says in the log when it has its locks and will run to its end:
// before that the server may take it from the loop of its connection and begin it anew.
const running = "for i = 1, 20000 do redis.call('EXISTS', KEYS[1]) end redis.log(redis.LOG_WARNING, KEYS[1], 'runs') "

// eval sends a script on a connection of its own. The channel gets its error.
func eval(p *harness.Process, script string, keys ...string) <-chan error {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: harness.Patience})
	ended := make(chan error, 1)
	go func() {
		defer c.Close()
		ended <- c.Eval(context.Background(), script, keys).Err()
	}()
	return ended
}

// waitForLog waits until the log has a text.
func waitForLog(p *harness.Process, text string) {
	p.T.Helper()
	harness.WaitFor(p.T, "the log to say: "+text, func() bool { return strings.Contains(p.Log.String(), text) })
}

// TestScriptBesideOthers: while a script loops, clients that need other partitions are served. After
// lua-time-limit all get BUSY, and SCRIPT KILL gets through, on a connection that the script keeps waiting
// too.
func TestScriptBesideOthers(t *testing.T) {
	harness.Parallel(t)
	for _, threads := range []string{"0", "1", "2"} {
		t.Run("io-threads "+threads, func(t *testing.T) {
			t.Parallel()
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--io-threads", threads, "--lua-time-limit", "600000")
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: harness.Patience, PoolSize: 100})
			defer c.Close()
			ended := eval(p, running+harness.Endless, "k")
			waitForLog(p, "k runs")

			const keys = 64 // 1 of 16 partitions is locked; it has some of them
			var served atomic.Int32
			errs := make(chan error, keys+1)
			set := func(key string) {
				err := c.Set(context.Background(), key, "v", 0).Err()
				if err == nil {
					served.Add(1)
				}
				errs <- err
			}
			go set("k")
			for i := range keys {
				go set(fmt.Sprint("key", i))
			}
			harness.WaitFor(t, "two thirds of the clients to be served beside the script", func() bool { return served.Load() > keys*2/3 })
			drill.Check(t, c.ConfigSet(t.Context(), "lua-time-limit", "1").Err())
			late := 0
			for range keys + 1 {
				if err := <-errs; isBusy(err) {
					late++
				} else if err != nil {
					t.Error(err)
				}
			}
			if late == 0 {
				t.Error("nobody has waited for the script")
			}
			if err := c.Get(t.Context(), "other").Err(); !isBusy(err) {
				t.Errorf("GET beside a script that exceeds lua-time-limit: %v", err)
			}
			if err := c.ScriptKill(t.Context()).Err(); err != nil {
				t.Errorf("SCRIPT KILL: %v", err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "Script killed by user") {
				t.Errorf("the script: %v", err)
			}
			drill.Report(t, c.Set(t.Context(), "k", "v", 0).Err())
			p.Terminate()
		})
	}
}

func isBusy(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "BUSY ") }

// TestStopDuringAScript: SIGTERM and SHUTDOWN NOSAVE end a script at once, and what it has written is taken
// back.
func TestStopDuringAScript(t *testing.T) {
	harness.Parallel(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir, "--lua-time-limit", "1")
	c := p.Client()
	drill.Check(t, c.Set(t.Context(), "k", "before", 0).Err())
	for _, stop := range []func(){
		func() { p.Signal(syscall.SIGTERM) },
		func() { c.Do(t.Context(), "SHUTDOWN", "NOSAVE") },
	} {
		ended := eval(p, "redis.call('SET', KEYS[1], 'half') "+harness.Endless, "k")
		harness.WaitFor(t, "BUSY", func() bool { return isBusy(c.Get(t.Context(), "other").Err()) })
		if err := c.ScriptKill(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "UNKILLABLE ") {
			t.Errorf("SCRIPT KILL: %v", err)
		}
		stop()
		if code := p.Wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		// A script that the stop does not end costs its client the connection.
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "the server stops: the script has ended, and changed nothing") {
			t.Errorf("the script: %v", err)
		}
		p = harness.Start(t, dir, "--lua-time-limit", "1")
		c = p.Client()
		if value, err := c.Get(t.Context(), "k").Result(); err != nil || value != "before" {
			t.Errorf("after the restart the key is %q, %v", value, err)
		}
	}
	p.Terminate()
}

// TestClientLeavesDuringAScript: what a script writes is there, although its client has left. The script goes
// on until another client subscribes, so it ends after the first has left, however slow the machine is.
func TestClientLeavesDuringAScript(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--lua-time-limit", "600000")
	c := p.Client()
	conn, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
	drill.Check(t, err)
	script := running + "repeat until redis.call('PUBSUB', 'NUMSUB', 'end')[2] > 0 redis.call('SET', KEYS[1], 'v')"
	if _, err := fmt.Fprintf(conn, "*4\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n1\r\n$1\r\nk\r\n", len(script), script); err != nil {
		t.Fatal(err)
	}
	waitForLog(p, "k runs")
	drill.Check(t, conn.Close())
	sub := c.Subscribe(t.Context(), "end")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "what the script writes", func() bool { return c.Get(t.Context(), "k").Val() == "v" })
	p.Terminate()
}
