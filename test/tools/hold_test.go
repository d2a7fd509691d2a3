package tools

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// TestHoldsBetweenRunningServers: a container with a deadline and a hold moves from one server to another,
// and a kill of the process loses neither.
func TestHoldsBetweenRunningServers(t *testing.T) {
	harness.Parallel(t)
	ctx := context.Background()
	a := harness.Start(t, filepath.Join(t.TempDir(), "a"))
	run := func(conn *redis.Client, want string, args ...any) {
		t.Helper()
		reply, err := conn.Do(ctx, args...).Text()
		if err != nil {
			reply = err.Error()
		}
		if reply != want {
			t.Errorf("%v: %s, want %s", args, reply, want)
		}
	}
	conn := a.Client()
	run(conn, "OK", "CONTAINER.CREATE", "logins", "TTL", "1", "DEADLINE", "expiresAt")
	run(conn, "OK", "DOC.PUT", "logins", "s", `{"expiresAt":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	run(conn, "OK", "CONTAINER.SET", "0", "TTL", "1", "HOLD", "case 4711")
	run(conn, "OK", "SET", "plain", "x")
	run(conn, "OK", "DOC.PUT", "0", "d", `{"ttl":1}`)
	lines, _ := harness.Tool(t, 0, "", "export", "127.0.0.1:"+a.Port)
	for _, want := range []string{`"mode":"strict","deadline":"expiresAt"`, `{"container":"0","default":"1","mode":"strict","hold":"case 4711"`, `"id":"plain"`, `"id":"d"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("%s is not in %s", want, lines)
		}
	}
	dir := filepath.Join(t.TempDir(), "b")
	b := harness.Start(t, dir)
	harness.Tool(t, 0, lines+`{"container":"0","id":"never","end":-1,"value":"x"}`+"\n"+`{"container":"0","id":"overdue","end":5,"value":"x"}`+"\n"+
		`{"container":"0","id":"list","end":-1,"doc":[1]}`+"\n"+`{"container":"0","id":"number","end":5,"doc":1}`+"\n", "import", "127.0.0.1:"+b.Port)
	b.Signal(syscall.SIGKILL)
	b.Wait()
	b = harness.Start(t, dir)
	conn = b.Client()
	run(conn, "HELD container '0' is on hold: case 4711", "DEL", "plain")
	run(conn, "HELD container '0' is on hold: case 4711", "FLUSHALL")
	for _, key := range []string{"plain", "d", "never", "overdue", "list", "number"} {
		if n, err := conn.Exists(ctx, key).Result(); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", key, n, err)
		}
	}
	run(conn, "ERR invalid expiresAt 5: legal are moments that have not passed", "DOC.PUT", "logins", "t", `{"expiresAt":5}`)
	// A dry run says what the import then does with what is on hold or recorded.
	run(conn, "OK", "CONTAINER.CREATE", "terms", "TTL", "1000", "DEADLINE", "end")
	run(conn, "OK", "DOC.PUT", "terms", "s", `{}`)
	settings := `{"container":"0","default":"2"}` + "\n" + `{"container":"terms","default":"1000","deadline":"until"}` + "\n"
	later := fmt.Sprintf(`{"container":"0","id":"d","ts":%d,"doc":{}}`, time.Now().UnixMilli()) + "\n"
	items := ""
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, `{"container":"0","id":`) {
			items += line
		}
	}
	count := func(newer, bad int) string {
		return fmt.Sprintf(" 0 items; 0 are dead, %d are older than the target's, %d lines are bad", newer, bad)
	}
	for _, step := range []struct {
		input, count string
		options      []string
	}{
		{items, count(0, 2), nil},
		{items + later, count(1, 2), []string{"--keep-times"}},
		{settings, count(0, 2), []string{"--apply-settings", "--max-kill", "9"}},
	} {
		for _, rehearsal := range []string{"--dry-run=true", "--dry-run=false"} {
			_, report := harness.Tool(t, 1, step.input, append([]string{"import", "127.0.0.1:" + b.Port, rehearsal}, step.options...)...)
			if !strings.Contains(report, "container '0' is on hold: case 4711") || !strings.Contains(report, step.count) {
				t.Errorf("%s %v: %s, want %s", rehearsal, step.options, report, step.count)
			}
		}
	}
	run(conn, "OK", "CONTAINER.SET", "0", "HOLD", "off")
	harness.WaitFor(t, "the dead to go, and never and list to stay", func() bool {
		n, err := conn.Exists(ctx, "plain", "d", "never", "overdue", "list", "number").Result()
		return n == 2 && err == nil
	})
}
