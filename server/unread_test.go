package server

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// CLIENT LIST shows what other clients have sent of a command, and the arguments of one that waits.
func TestClientListShowsOthers(t *testing.T) {
	t.Parallel()
	for _, threads := range []string{"1", "0"} {
		t.Run("io-threads "+threads, func(t *testing.T) {
			t.Parallel()
			host := ownHost(t)
			s := newTestServer(t, "--io-threads", threads, "--port", strconv.Itoa(port), "--bind", host)
			must(t, s.Listen())
			e := &engine.Engine{Host: s, Log: zerolog.Nop()}
			ks, err := keyspace.Open(keyspace.Options{Dir: s.Settings().Dir, Partitions: 1})
			must(t, err)
			t.Cleanup(func() { must(t, ks.Close()) })
			e.SetKeyspace(ks)
			s.Start(e)
			defer func() { must(t, s.Stop(t.Context())) }()

			address := fmt.Sprint(host, ":", port)
			watcher := dial(t, address)
			watcher.send("CLIENT ID\r\n")
			watcher.expect(":1\r\n")
			field := func(name string) int {
				watcher.send("CLIENT LIST ID 2\r\n")
				head, err := watcher.r.ReadString('\n')
				must(t, err)
				size, err := strconv.Atoi(strings.TrimSpace(head[1:]))
				must(t, err)
				text := make([]byte, size+2)
				_, err = io.ReadFull(watcher.r, text)
				must(t, err)
				m := regexp.MustCompile(" " + name + "=([0-9]+)").FindSubmatch(text)
				if m == nil {
					t.Fatalf("no %s in %s", name, text)
				}
				value, err := strconv.Atoi(string(m[1]))
				must(t, err)
				return value
			}
			c := dial(t, address)
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			idle := field("tot-mem")
			if got := [3]int{field("qbuf"), field("qbuf-free"), field("argv-mem")}; got != [3]int{} || idle == 0 {
				t.Errorf("an idle client has %v, in all %d", got, idle)
			}
			c.send("*3\r\n$3\r\nSET\r\n$5\r\nabcde\r\n$1000000\r\n" + strings.Repeat("x", 400_000))
			eventually(t, "it is shown", func() bool { return field("qbuf") == 400_000 })
			if args, room, all := field("argv-mem"), field("qbuf-free"), field("tot-mem"); args != 8 || room == 0 || all < idle+400_000+room {
				t.Errorf("a half-read command has argv-mem %d, qbuf-free %d, tot-mem %d", args, room, all)
			}
			c.send(strings.Repeat("x", 600_000) + "\r\n")
			c.expect("+OK\r\n")
			eventually(t, "nothing is left", func() bool { return field("qbuf")+field("qbuf-free")+field("argv-mem") == 0 })

			watcher.send("CLIENT PAUSE 100000 WRITE\r\n")
			watcher.expect("+OK\r\n")
			c.send("SET a " + strings.Repeat("y", 500) + "\r\n")
			eventually(t, "the arguments are shown", func() bool { return field("argv-mem") == 504 })
			watcher.send("CLIENT UNPAUSE\r\n")
			watcher.expect("+OK\r\n")
			c.expect("+OK\r\n")
			eventually(t, "nothing is left", func() bool { return field("argv-mem") == 0 })
		})
	}
}
