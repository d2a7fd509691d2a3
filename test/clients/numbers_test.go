package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// TestNumbersForClients opens a container by its number, as clients do that know only numbers, and loses
// connections.
func TestNumbersForClients(t *testing.T) {
	harness.Parallel(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir)
	p.CLI("CONTAINER.SET", "first", "TTL", "50")
	p.CLI("CONTAINER.SET", "orders", "TTL", "100")
	if got := p.CLI("CONFIG", "GET", "databases"); got != "databases\n18" {
		t.Errorf("CONFIG GET databases: %q", got)
	}

	t.Run("redis-cli", func(t *testing.T) {
		out, _ := p.CLIWith(strings.NewReader("SELECT 17\nSET cli 1\nTTL cli\n"))
		if left, ok := strings.CutPrefix(out, "OK\nOK\n"); !ok || left == "-1\n" || left == "-2\n" {
			t.Errorf("redis-cli prints %q", out)
		}
		if got, _ := p.CLIWith(nil, "-n", "17", "GET", "cli"); got != "1\n" {
			t.Errorf("redis-cli -n 17 finds %q", got)
		}
		if got, _ := p.CLIWith(nil, "-u", "redis://127.0.0.1:"+p.Port+"/17", "GET", "cli"); got != "1\n" {
			t.Errorf("redis-cli -u finds %q", got)
		}
		if got, _ := p.CLIWith(nil, "-n", "99", "GET", "cli"); !strings.Contains(got, "DB index is out of range") {
			t.Errorf("redis-cli -n 99 says %q", got)
		}
	})

	t.Run("go-redis", func(t *testing.T) {
		options, err := redis.ParseURL("redis://127.0.0.1:" + p.Port + "/17")
		drill.Check(t, err)
		options.ReadTimeout = harness.Patience
		c := redis.NewClient(options)
		defer c.Close()
		ctx := t.Context()
		for i := range 3 {
			drill.Check(t, c.Set(ctx, "go", i, 0).Err())
			p.CLI("CLIENT", "KILL", "TYPE", "normal")
		}
		if got := p.CLI("DBSIZE"); got != "0" {
			t.Errorf("database 0 has %s keys", got)
		}
		info, err := c.ClientInfo(ctx).Result()
		if err != nil || info.DB != 17 {
			t.Errorf("CLIENT INFO: %+v, %v", info, err)
		}
		c.ConfigSet(ctx, "notify-keyspace-events", "KEA")
		sub := c.PSubscribe(ctx, "__keyevent@17__:set")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		c.Set(ctx, "seen", 1, 0)
		if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "seen" || m.Channel != "__keyevent@17__:set" {
			t.Errorf("event %v, %v", m, err)
		}
	})

	t.Run("redis-py", func(t *testing.T) {
		interpreter := harness.Python(t)
		script := `
import sys, redis
port = int(sys.argv[1])
c = redis.Redis(port=port, db=17, decode_responses=True)
c.set("py", "1")
assert 70 < c.ttl("py") <= 100, c.ttl("py")
redis.Redis(port=port).client_kill_filter(_type="normal")
c.set("py", "2")
assert redis.Redis.from_url("redis://127.0.0.1:%d/17" % port, decode_responses=True).get("py") == "2"
assert c.dbsize() == redis.Redis(port=port).info("keyspace")["db17"]["keys"] > 0
assert any(e["db"] == "17" for e in c.client_list()), c.client_list()
assert c.config_get("databases") == {"databases": "18"}
with c.monitor() as m:
    redis.Redis(port=port, db=17).ping()
    for line in m.listen():
        if line["command"] == "PING":
            assert line["db"] == 17, line
            break
`
		if out, err := exec.Command(interpreter, "-c", script, p.Port).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})

	p.Terminate()
	p = harness.Start(t, dir)
	if got, _ := p.CLIWith(nil, "-n", "17", "GET", "cli"); got != "1\n" {
		t.Errorf("after a restart redis-cli -n 17 finds %q", got)
	}
}
