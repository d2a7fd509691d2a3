package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestClientsThatHoard: what clients make the server keep is bounded for all of them together, in whatever
// way they hoard; others go on as if nothing was.
func TestClientsThatHoard(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, t.TempDir(), "--maxmemory-clients", "16mb")
	const size, most = 1 << 20, 20 // of clients that each make the server hold a megabyte
	clients := drill.Pick(0, most+8, 200)
	big := strings.Repeat("v", size)
	ways := map[string]string{
		"half-read command": fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s", size+1, big),
		"transaction":       words("MULTI") + words("SET", "k", big),
		"watched keys":      words(append([]string{"WATCH"}, slicesOf(big, 60_000)...)...),
		"subscriptions":     words(append([]string{"SUBSCRIBE"}, slicesOf(big, 1000)...)...),
	}
	db := p.Client()
	for way, text := range ways {
		t.Run(way, func(t *testing.T) {
			var lost atomic.Int32
			for range clients {
				c, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
				drill.Check(t, err)
				defer c.Close()
				go func() { // until it is refused or disconnected
					for lines := bufio.NewReader(c); ; {
						line, err := lines.ReadString('\n')
						if err != nil || strings.HasPrefix(line, "-ERR all clients together hold too much memory") {
							lost.Add(1)
							return
						}
					}
				}()
				_, _ = io.WriteString(c, text) // it may be cut off meanwhile
				drill.Check(t, db.Set(t.Context(), "other", "1", 0).Err())
			}
			harness.WaitFor(t, "the server to hold some of it", func() bool { return harness.Figure(t, db, "mem_clients_normal") >= 4<<20 })
			if held := harness.Figure(t, db, "mem_clients_normal"); held > most<<20 {
				t.Errorf("clients hold %d bytes", held)
			}
			harness.WaitFor(t, "the others to be refused or disconnected", func() bool { return int(lost.Load()) >= clients-most })
		})
	}
	if !strings.Contains(p.Log.String(), "see maxmemory-clients") {
		t.Error("the log does not tell of it")
	}
	if harness.Figure(t, db, "evicted_clients") == 0 {
		t.Error("nobody has been disconnected for the sake of others")
	}
	harness.WaitFor(t, "what they held to be released", func() bool { return harness.Figure(t, db, "mem_clients_normal") < 1<<20 })
}

// TestClientsThatTakeNoReplies: replies that clients do not take count, too. A client that takes them gets
// them, be they larger than the limit.
func TestClientsThatTakeNoReplies(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, t.TempDir(), "--maxmemory-clients", "16mb")
	const size = 1 << 20
	clients := drill.Pick(0, 40, 100)
	db := p.Client()
	for _, kind := range []string{"a", "b", "c"} {
		drill.Check(t, db.Set(t.Context(), kind, strings.Repeat(kind, size), 0).Err())
	}
	for range clients {
		c, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
		drill.Check(t, err)
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		for range 20 { // more than buffers on the way take
			_, _ = io.WriteString(c, words("MGET", "a", "b", "c"))
		}
	}
	var keys []string
	for range 40 {
		keys = append(keys, "a", "b", "c")
	}
	// While others still ask for more, the largest reply goes first: when all of them are stuck, it comes
	// through.
	harness.WaitFor(t, "a reply that is larger than the limit", func() bool {
		values, err := db.MGet(t.Context(), keys...).Result()
		return err == nil && len(values) == 120 && values[119] == strings.Repeat("c", size)
	})
	harness.WaitFor(t, "some to be disconnected", func() bool { return harness.Figure(t, db, "evicted_clients") > int64(clients/4) })
	if held := harness.Figure(t, db, "mem_clients_normal"); held > 17<<20 {
		t.Errorf("clients hold %d bytes", held)
	}
}

// TestClientsThatTakeNoSmallReplies is the same for replies of which each is small, which are sent many at a
// time. How much of them is left when the system takes no more depends on their size.
func TestClientsThatTakeNoSmallReplies(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, t.TempDir())
	db := p.Client()
	drill.Check(t, db.Set(t.Context(), "k", strings.Repeat("v", 30_000), 0).Err())
	clients := drill.Pick(0, 10, 40)
	for i := range clients {
		c, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
		drill.Check(t, err)
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		for range 20 { // more than buffers on the way take
			_, _ = io.WriteString(c, strings.Repeat(words("GETRANGE", "k", "0", strconv.Itoa(5000+24_000*i/clients)), 300))
		}
	}
	harness.WaitFor(t, "what they do not take to be counted", func() bool { return harness.Figure(t, db, "mem_clients_normal") > int64(clients)*100<<10 })
}

// words is a command as it goes over the wire.
func words(args ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out.String()
}

// slicesOf cuts a text into words of a size, each unlike the others.
func slicesOf(text string, size int) (list []string) {
	for ; len(text) > size; text = text[size:] {
		list = append(list, strconv.Itoa(len(list))+text[:size])
	}
	return list
}
