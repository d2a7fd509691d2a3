package server

import (
	"regexp"
	"strings"
	"testing"
)

// MONITOR shows what Redis shows, and monitors may do what Redis allows, byte for byte except times and
// ports, in both protocols.
func TestMonitorLikeRedis(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"2", "3"} {
		redis, ours := watchSession(t, startRedis(t), proto), ""
		_, address := realServer(t)
		if ours = watchSession(t, address, proto); ours != redis {
			t.Errorf("RESP%s: got\n%s\nRedis has\n%s", proto, ours, redis)
		}
		if strings.Count(redis, "[3 127.0.0.1:") < 2 {
			t.Errorf("not much was compared:\n%s", redis)
		}
	}
}

// watchSession makes one client monitor another and then try commands itself. It returns all that the first
// one receives.
func watchSession(t *testing.T, address, proto string) string {
	t.Helper()
	watcher := dial(t, address)
	if proto == "3" {
		watcher.send("HELLO 3\r\n")
		for line := ""; !strings.HasPrefix(line, "*0"); { // the modules come last
			line, _ = watcher.r.ReadString('\n')
		}
	}
	watcher.send("MONITOR\r\nMONITOR\r\n")
	watcher.expect("+OK\r\n")
	actor := dial(t, address)
	actor.send(command("SET", "a", "x\"\\\n\r\t\a\b\x00\xff y'") + strings.ReplaceAll(`get a
AUTH secret
AUTH default secret
HELLO 2 AUTH default secret SETNAME me
CONFIG GET port
CONFIG SET requirepass ""
MULTI
INCR n
INCR a
MONITOR
EXEC
MULTI
nosuch
EXEC
MULTI
DISCARD
GET a b
SET a b zz
SLOWLOG GET
INFO server
SELECT 3
GET x
SUBSCRIBE c
UNSUBSCRIBE c
QUIT
`, "\n", "\r\n"))
	for { // the end of the connection is that of the replies
		if _, err := actor.r.ReadByte(); err != nil {
			break
		}
	}
	watcher.send("PING\r\nGET a\r\nSET a 1\r\nPUBLISH a 1\r\nTTL a\r\nECHO done\r\nRESET\r\nDEL a\r\nQUIT\r\n")
	var got strings.Builder
	if _, err := watcher.r.WriteTo(&got); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\+\d{10}\.\d{6} `).ReplaceAllString(got.String(), "+TIME ")
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "127.0.0.1:PORT")
}

// A monitor that does not keep up is disconnected, like a subscriber.
func TestSlowMonitor(t *testing.T) {
	t.Parallel()
	s, address := realServer(t, "--client-output-buffer-limit", "pubsub", "1mb", "0", "0")
	slow, actor := dial(t, address), dial(t, address)
	slow.send("MONITOR\r\n")
	slow.expect("+OK\r\n")
	text := strings.Repeat("x", 100_000)
	for sent := 0; s.Info().SlowSubscribers == 0; sent++ {
		if sent > 1000 { // 100 MB: more than the system's buffers take
			t.Fatal("it is never disconnected")
		}
		actor.send(command("SET", "k", text))
		actor.expect("+OK\r\n")
	}
	eventually(t, "it is gone", func() bool { return s.Info().Connected == 1 })
}

// A monitor waits for what others do. It is not idle.
func TestMonitorIsNotIdle(t *testing.T) {
	t.Parallel()
	s, address := realServer(t)
	watcher := dial(t, address)
	watcher.send("MONITOR\r\n")
	watcher.expect("+OK\r\n")
	must(t, s.set("timeout", "1"))
	watcher.send("MONITOR\r\n") // no reply; from here on it waits with the timeout
	for range 2 {               // clients that came later
		dial(t, address).expectEnd()
	}
	watcher.send("RESET\r\n")
	watcher.expect("+RESET\r\n")
	watcher.expectEnd() // now it is
}
