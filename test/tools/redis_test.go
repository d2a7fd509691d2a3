package tools

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a redis-server that keeps nothing, and returns a client and its address.
func startRedis(t *testing.T) (*redis.Client, string) {
	t.Helper()
	host, port := harness.Host(t), harness.FreePort(t)
	cmd := exec.Command(harness.Need(t, "redis-server"), "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	drill.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := net.JoinHostPort(host, port)
	c := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: harness.Patience})
	t.Cleanup(func() { _ = c.Close() })
	harness.WaitFor(t, "redis-server", func() bool { return c.Ping(t.Context()).Err() == nil })
	return c, address
}

// TestImportFromRedis breaks an import of a real Redis and goes on.
func TestImportFromRedis(t *testing.T) {
	harness.Parallel(t)
	source, address := startRedis(t)
	const keys = 25_000
	pipe := source.Pipeline()
	for i := range keys {
		pipe.Set(t.Context(), fmt.Sprint("k:", i), strings.Repeat("v", 100), time.Duration(1000+i)*time.Second)
	}
	pipe.Set(t.Context(), "ever", "\x00\xff", 0)
	pipe.HSet(t.Context(), "hash", "a", 1, "b", "\x00\xff")
	pipe.Expire(t.Context(), "hash", 1000*time.Second)
	pipe.SAdd(t.Context(), "set", "a", "b", "c")
	pipe.ZAdd(t.Context(), "zset", redis.Z{Member: "a"})
	pipe.RPush(t.Context(), "list", "a", "b", "a")
	pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: "stream", Values: []string{"a", "b"}})
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The connection breaks when most of the values are through, once.
	var through atomic.Int64
	relay, err := net.Listen("tcp", net.JoinHostPort(harness.Host(t), "0"))
	drill.Check(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	go func() {
		for {
			in, err := relay.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() {
				defer in.Close()
				if left := 2_500_000 - through.Load(); left > 0 {
					n, _ := io.CopyN(in, out, left)
					through.Add(n)
					return
				}
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	target := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	progress := filepath.Join(t.TempDir(), "progress")
	from, to := "redis://"+relay.Addr().String()+"/0", "127.0.0.1:"+target.Port
	run := func(code int, args ...string) string {
		t.Helper()
		_, report := harness.Tool(t, code, "", append([]string{"import", from, to, "--container", "sessions", "--ttl", "-1"}, args...)...)
		return report
	}
	run(2, "--resume", progress)
	if _, err := os.Stat(progress); err != nil {
		t.Fatal(err)
	}
	report := run(1, "--resume", progress)
	for _, want := range []string{"the import goes on after ", "left out: 1 keys of type stream, such as stream: ", "1 keys are bad\n"} {
		if !strings.Contains(report, want) {
			t.Errorf("%s is not in %s", want, report)
		}
	}
	if strings.Contains(report, fmt.Sprintf(" and %d items", keys+5)) {
		t.Errorf("it has begun anew: %s", report)
	}
	if _, err := os.Stat(progress); err == nil {
		t.Error("the file of the progress is still there")
	}
	c := target.Client()
	drill.Check(t, c.Do(t.Context(), "SELECT", "sessions").Err())
	check := redis.NewClient(&redis.Options{Addr: to, DB: 16, ReadTimeout: harness.Patience})
	defer check.Close()
	if n, err := check.DBSize(t.Context()).Result(); n != keys+5 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	if v, err := check.Get(t.Context(), "ever").Result(); v != "\x00\xff" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if h, err := check.HGetAll(t.Context(), "hash").Result(); len(h) != 2 || h["b"] != "\x00\xff" || err != nil {
		t.Errorf("%q, %v", h, err)
	}
	if left, n := check.TTL(t.Context(), "hash").Val(), check.SCard(t.Context(), "set").Val(); left <= 0 || n != 3 {
		t.Errorf("the hash has %v left, the set has %d members", left, n)
	}
	if list := check.LRange(t.Context(), "list", 0, -1).Val(); !slices.Equal(list, []string{"a", "b", "a"}) {
		t.Errorf("the list has %q", list)
	}
	if all := check.ZRangeWithScores(t.Context(), "zset", 0, -1).Val(); len(all) == 0 {
		t.Error("the sorted set has nothing")
	}
	there, here := source.TTL(t.Context(), "k:77").Val(), check.TTL(t.Context(), "k:77").Val()
	if d := there - here; d < -time.Minute || d > time.Minute {
		t.Errorf("a key has %v left, and %v in the Redis", here, there)
	}

	// A dry run writes nothing, and an export says what to do.
	drill.Check(t, check.FlushDB(t.Context()).Err())
	if report := run(1, "--dry-run"); !strings.Contains(report, fmt.Sprintf("nothing is written; the import would be of 1 containers and %d items", keys+5)) {
		t.Error(report)
	}
	if n, err := check.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	if _, report := harness.Tool(t, 2, "", "export", address); !strings.Contains(report, "it is not mayfly, or an older one; mayfly import redis://"+address+"/0") {
		t.Error(report)
	}
}

// TestImportOfRedisJSON: a mayfly stands for a Redis with RedisJSON, whose commands it has.
func TestImportOfRedisJSON(t *testing.T) {
	harness.Parallel(t)
	a, b := harness.Start(t, filepath.Join(t.TempDir(), "a")), harness.Start(t, filepath.Join(t.TempDir(), "b"))
	c := a.Client()
	for _, args := range [][]any{
		{"JSON.SET", "ever", "$", `{"a":[1,2]}`}, {"JSON.SET", "own", "$", `{"ttl":300}`}, {"JSON.SET", "array", "$", `[1,"x"]`}, {"PEXPIRE", "array", 500_000},
		{"SET", "plain", "x", "PX", 500_000},
		{"HSET", "hash", "a", 1, "b", 2}, {"HEXPIRE", "hash", 500, "FIELDS", 1, "b"}, {"SADD", "set", "a"}, {"EXPIRE", "set", 500},
	} {
		drill.Check(t, c.Do(t.Context(), args...).Err())
	}
	_, report := harness.Tool(t, 1, "", "import", "redis://127.0.0.1:"+a.Port, "127.0.0.1:"+b.Port)
	if !strings.Contains(report, "key own: the document has a member ttl") || !strings.Contains(report, "5 items; 0 are dead") || !strings.Contains(report, "1 keys are bad\n") {
		t.Error(report)
	}
	d := b.Client()
	if ends, err := d.HPTTL(t.Context(), "hash", "a", "b").Result(); err != nil || ends[0] != -1 || ends[1] <= 400_000 || ends[1] > 500_000 {
		t.Errorf("the fields have %v left, %v", ends, err)
	}
	for _, id := range []string{"array", "plain", "set"} {
		if got, want := d.PExpireTime(t.Context(), id).Val(), c.PExpireTime(t.Context(), id).Val(); got != want || got < time.Second {
			t.Errorf("%s ends at %v, not at %v", id, got, want)
		}
	}
	for id, want := range map[string]string{"ever": `{"a":[1,2]}`, "array": `[1,"x"]`} {
		if got, err := d.Do(t.Context(), "JSON.GET", id).Text(); got != want {
			t.Errorf("%s is %s, %v", id, got, err)
		}
	}
}
