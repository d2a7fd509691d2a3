package commands

import (
	"slices"
	"testing"
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
