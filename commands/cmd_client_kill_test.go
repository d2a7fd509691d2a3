package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClientKill(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args   []string // after CLIENT KILL, from session 1
		reply  string
		killed []int
	}{
		{[]string{"127.0.0.1:50002"}, "OK", []int{2}},
		{[]string{"127.0.0.1:50001"}, "OK", []int{1}}, // the old form spares nobody
		{[]string{"127.0.0.1:50004"}, "(error) ERR No such client", nil},
		{[]string{"ID", "2"}, "(integer) 1", []int{2}},
		{[]string{"ID", "1"}, "(integer) 0", nil},
		{[]string{"ID", "1", "SKIPME", "no"}, "(integer) 1", []int{1}},
		{[]string{"ID", "2", "ID", "3"}, "(integer) 1", []int{3}},
		{[]string{"ID", "2", "ADDR", "127.0.0.1:50003"}, "(integer) 0", nil},
		{[]string{"addr", "127.0.0.1:50002"}, "(integer) 1", []int{2}},
		{[]string{"LADDR", "127.0.0.1:6379"}, "(integer) 2", []int{2, 3}},
		{[]string{"TYPE", "pubsub"}, "(integer) 1", []int{3}},
		{[]string{"TYPE", "normal", "SKIPME", "NO"}, "(integer) 2", []int{1, 2}},
		{[]string{"TYPE", "replica"}, "(integer) 0", nil},
		{[]string{"USER", "default"}, "(integer) 2", []int{2, 3}},
		{[]string{"SKIPME", "yes"}, "(integer) 2", []int{2, 3}},
		{[]string{"SKIPME", "no"}, "(integer) 3", []int{1, 2, 3}},
	}
	for _, test := range tests {
		w := newHarness(t)
		w.session(1)
		w.session(2)
		w.do(3, "SUBSCRIBE", "news")
		w.expect(test.reply, append([]string{"CLIENT", "KILL"}, test.args...)...)
		var killed []int
		for n := 1; n <= 3; n++ {
			if slices.Contains(w.host.disconnected, w.session(n)) || n == 1 && w.last.Close {
				killed = append(killed, n)
			}
		}
		if !slices.Equal(killed, test.killed) {
			t.Errorf("%q: killed %v, want %v", test.args, killed, test.killed)
		}
	}
}

// Every filter of CLIENT LIST and CLIENT KILL, and its opposite, selects the clients that it names; several
// are joined by AND.
func TestClientFilters(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "orders", "TTL", "60")
	w.do(1, "PING")
	w.clock.Advance(10 * time.Second)
	w.do(2, "CLIENT", "SETNAME", "worker")
	w.do(2, "CLIENT", "SETINFO", "LIB-NAME", "lib")
	w.do(2, "CLIENT", "SETINFO", "LIB-VER", "1.2")
	w.do(2, "SELECT", "orders")
	w.do(3, "SUBSCRIBE", "news")
	w.do(4, "CLIENT", "NO-TOUCH", "ON")
	w.do(4, "MULTI")
	w.clock.Advance(5 * time.Second)
	for _, c := range []struct{ filter, want string }{
		{"", "1 2 3 4"},
		{"ID 2", "2"}, {"ID 4 2 9 2", "4 2"}, {"NOT-ID 2 3", "1 4"}, {"ID 4 3 NOT-ID 3", "4"}, {"ID 1 ID 2", "2"},
		{"TYPE pubsub", "3"}, {"NOT-TYPE pubsub", "1 2 4"}, {"type NORMAL", "1 2 4"}, {"TYPE master", ""}, {"NOT-TYPE replica", "1 2 3 4"},
		{"USER default", "1 2 3 4"}, {"NOT-USER default", ""},
		{"ADDR 127.0.0.1:50002", "2"}, {"NOT-ADDR 127.0.0.1:50002", "1 3 4"}, {"ADDR 127.0.0.1", ""},
		{"LADDR 127.0.0.1:6379", "1 2 3 4"}, {"NOT-LADDR 127.0.0.1:6379", ""},
		{"SKIPME yes", "2 3 4"}, {"SKIPME NO", "1 2 3 4"}, {"SKIPME YES NOT-ID 4", "2 3"},
		{"MAXAGE 5", "1 2 3 4"}, {"MAXAGE 6", "1"}, {"MAXAGE 16", ""},
		{"IDLE 5", "2 3 4"}, {"IDLE 6", ""}, // 1 asks
		{"NAME worker", "2"}, {"NOT-NAME worker", "1 3 4"}, {"NAME Worker", ""},
		{"LIB-NAME lib", "2"}, {"NOT-LIB-NAME lib", "1 3 4"}, {"LIB-VER 1.2", "2"}, {"NOT-LIB-VER 1.2", "1 3 4"},
		{"FLAGS P", "3"}, {"FLAGS xT", "4"}, {"FLAGS Tx", "4"}, {"FLAGS xP", ""}, {"NOT-FLAGS x", "1 2 3"}, {"FLAGS N", "1 2"}, {"FLAGS S", ""},
		{"DB orders", "2"}, {"NOT-DB orders", "1 3 4"}, {"DB 0", "1 3 4"}, {"NOT-DB 0", "2"}, {"DB 3", ""},
		{"IP 127.0.0.1", "1 2 3 4"}, {"NOT-IP 127.0.0.1", ""}, {"IP 127.0.0", ""},
		{"TYPE normal NOT-NAME worker FLAGS x", "4"}, {"NAME worker DB 0", ""},
	} {
		args := append([]string{"CLIENT", "LIST"}, strings.Fields(c.filter)...)
		var got []string
		for line := range strings.Lines(w.do(1, args...).Str) {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			got = append(got, id)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("CLIENT LIST %s: %q, not %q", c.filter, got, c.want)
		}
		if c.filter == "" {
			continue
		}
		w.host.disconnected = nil
		want := 0
		for id := range strings.FieldsSeq(c.want) {
			if id != "1" || strings.Contains(c.filter, "SKIPME NO") {
				want++
			}
		}
		w.expect(fmt.Sprintf("(integer) %d", want), append([]string{"CLIENT", "KILL"}, args[2:]...)...)
	}
	for _, c := range []struct{ filter, want string }{
		{"ID", "ERR syntax error"}, {"ID 1 x", "ERR syntax error"}, {"NAME", "ERR syntax error"}, {"CAPA r", "ERR syntax error"}, {"NOT-CAPA r", "ERR syntax error"},
		{"NOT-SKIPME yes", "ERR syntax error"}, {"SKIPME maybe", "ERR syntax error"}, {"NOT-IDLE 1", "ERR syntax error"}, {"NOT-MAXAGE 1", "ERR syntax error"},
		{"NOT-NOT-ID 1", "ERR syntax error"}, {"TYPE x", "ERR Unknown client type 'x'"}, {"USER x", "ERR No such user 'x'"}, {"USER x junk", "ERR No such user 'x'"}, {"USER default junk", "ERR syntax error"}, {"NOT-USER x", "ERR No such user 'x'"},
		{"MAXAGE x", "ERR maxage is not an integer or out of range"}, {"MAXAGE 0", "ERR maxage should be greater than 0"},
		{"IDLE 1.5", "ERR idle is not an integer or out of range"}, {"IDLE -1", "ERR idle should be greater than 0"},
		{"FLAGS z", "ERR Unknown flags found in the provided filter: z"}, {"FLAGS PzP", "ERR Unknown flags found in the provided filter: PzP"},
		{"DB nosuch", "ERR value is not an integer or out of range"}, {"NOT-DB -1", "ERR DB index is out of range"},
	} {
		for _, command := range []string{"LIST", "KILL"} {
			if command == "KILL" && !strings.Contains(c.filter, " ") {
				continue // the old form: an address
			}
			w.expect("(error) "+c.want, append([]string{"CLIENT", command}, strings.Fields(c.filter)...)...)
		}
	}
	w.expect("(error) ERR Invalid client ID", "CLIENT", "LIST", "NOT-ID", "x")
	w.expect("(error) ERR client-id should be greater than 0", "CLIENT", "KILL", "NOT-ID", "0")
}
