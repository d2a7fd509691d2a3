package clients

import (
	"context"
	"fmt"
	"io"
	"mayfly/test/harness"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// longestDrain is how long a server that stops waits for what its clients run.
const longestDrain = 10 * time.Second

// eval sends a script on a connection of its own. The channel gets its error.
func eval(t *testing.T, p *harness.Process, script string, keys ...string) <-chan error {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: harness.Patience})
	ended := make(chan error, 1)
	go func() {
		defer c.Close()
		ended <- c.Eval(context.Background(), script, keys).Err()
	}()
	return ended
}

// waitForScript waits until a client runs a script.
func waitForScript(t *testing.T, c *redis.Client) {
	t.Helper()
	harness.WaitFor(t, "the script to begin", func() bool { return strings.Contains(c.ClientList(t.Context()).Val(), "cmd=eval") })
	time.Sleep(100 * time.Millisecond) // it takes its locks and begins to run
}

// TestScriptBesideOthers: while a script loops, clients that need other partitions are served. After lua-time-limit all get
// BUSY, and SCRIPT KILL gets through, on a connection that the script keeps waiting too.
func TestScriptBesideOthers(t *testing.T) {
	for _, threads := range []string{"0", "1", "2"} {
		t.Run("io-threads "+threads, func(t *testing.T) {
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--io-threads", threads, "--lua-time-limit", "5000") // time enough for those who do not wait
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, ReadTimeout: harness.Patience, PoolSize: 100})
			defer c.Close()
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			ended := eval(t, p, harness.Endless, "k")
			waitForScript(t, c)
			const keys = 64
			refused := make(chan bool, keys)
			for i := range keys {
				go func() {
					err := c.Set(context.Background(), fmt.Sprint("key", i), "v", 0).Err()
					busy := err != nil && strings.HasPrefix(err.Error(), "BUSY ")
					if err != nil && !busy {
						t.Error(err)
					}
					refused <- busy
				}()
			}
			var late int
			for range keys {
				if <-refused {
					late++
				}
			}
			if late == 0 || late > keys/3 { // 1 of 16 partitions is locked; it has some of the keys
				t.Errorf("%d of %d keys waited for the script", late, keys)
			}
			if err := c.Get(t.Context(), "other").Err(); err == nil || !strings.HasPrefix(err.Error(), "BUSY ") {
				t.Errorf("GET beside a script that exceeds lua-time-limit: %v", err)
			}
			if err := c.ScriptKill(t.Context()).Err(); err != nil {
				t.Errorf("SCRIPT KILL: %v", err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "Script killed by user") {
				t.Errorf("the script: %v", err)
			}
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Error(err)
			}
			p.Terminate()
		})
	}
}

// TestStopDuringAScript: SIGTERM and SHUTDOWN NOSAVE end a script at once, and what it has written is taken back.
func TestStopDuringAScript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir, "--lua-time-limit", "200")
	c := p.Client()
	if err := c.Set(t.Context(), "k", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, stop := range []func(){
		func() { p.Signal(syscall.SIGTERM) },
		func() { c.Do(t.Context(), "SHUTDOWN", "NOSAVE") },
	} {
		ended := eval(t, p, "redis.call('SET', KEYS[1], 'half') "+harness.Endless, "k")
		harness.WaitFor(t, "BUSY", func() bool {
			err := c.Get(t.Context(), "other").Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
		})
		if err := c.ScriptKill(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "UNKILLABLE ") {
			t.Errorf("SCRIPT KILL: %v", err)
		}
		began := time.Now()
		stop()
		code := p.Wait()
		if took := time.Since(began); code != 0 || took > longestDrain { // as long as it would wait for a script that it does not end
			t.Errorf("exit code %d after %s", code, took)
		}
		if err := <-ended; err == nil {
			t.Error("the script has come to its end")
		}
		p = harness.Start(t, dir, "--lua-time-limit", "200")
		c = p.Client()
		if value, err := c.Get(t.Context(), "k").Result(); err != nil || value != "before" {
			t.Errorf("after the restart the key is %q, %v", value, err)
		}
	}
	p.Terminate()
}

// TestClientLeavesDuringAScript: what a script writes is there, although its client has left.
func TestClientLeavesDuringAScript(t *testing.T) {
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	conn, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
	if err != nil {
		t.Fatal(err)
	}
	script := "local t = redis.call('TIME')[1] redis.call('SET', KEYS[1], 'v') for i = 1, 300000 do redis.call('EXISTS', KEYS[1]) end redis.call('SET', KEYS[2], 'v')"
	if _, err := io.WriteString(conn, fmt.Sprintf("*5\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\nb\r\n", len(script), script)); err != nil {
		t.Fatal(err)
	}
	c := p.Client()
	waitForScript(t, c)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the script to end", func() bool { return c.Get(t.Context(), "b").Val() == "v" })
	p.Terminate()
}
