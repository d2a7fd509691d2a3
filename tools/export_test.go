package tools

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/test/drill"
	"mayfly/tools/progress"

	"github.com/gomodule/redigo/redis"
)

// exported notes the items of an export.
type exported []string

func (e *exported) container(keyspace.ContainerRecord) error { return nil }

func (e *exported) item(_, id string, it keyspace.Item) error {
	*e = append(*e, fmt.Sprintf("%s %c %s", id, it.Kind, it.Body))
	return nil
}

// TestExportOfWhatChanges: a key that gets another type while an export runs comes with the one that it has,
// once, and a transaction that the server refuses is asked in halves.
func TestExportOfWhatChanges(t *testing.T) {
	t.Parallel()
	type dialogue [][2]string // what the server is asked, and what it replies
	const queued, wrongType = "+QUEUED\r\n", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	scan := func(kind string, ids ...string) [2]string {
		page := fmt.Sprintf("*2\r\n$1\r\n0\r\n*%d\r\n", len(ids))
		for _, id := range ids {
			page += fmt.Sprintf("$%d\r\n%s\r\n", len(id), id)
		}
		return [2]string{"SCAN 0 COUNT 500 TYPE " + kind, page}
	}
	asks := func(get string, answers ...string) (d dialogue) {
		d = dialogue{{"MULTI", "+OK\r\n"}}
		exec := fmt.Sprintf("*%d\r\n", 2*len(answers))
		for i, id := range strings.Fields(get)[1 : 1+len(answers)] {
			rest := strings.Fields(get)[1+len(answers):]
			d = append(d, [2]string{strings.Join(append([]string{strings.Fields(get)[0], id}, rest...), " "), queued}, [2]string{"PEXPIRETIME " + id, queued})
			exec += answers[i] + ":-1\r\n"
		}
		return append(d, [2]string{"EXEC", exec})
	}
	for name, tt := range map[string]struct {
		talk []dialogue
		want []string
	}{
		"a hash becomes a string": {
			[]dialogue{{scan("hash", "k")}, asks("HGETALL k", wrongType), {{"TYPE k", "+string\r\n"}, scan("list"), scan("set"), scan("string", "k")}, asks("GET k", "$1\r\nv\r\n"), {scan("zset")}},
			[]string{"k p v"},
		},
		"a hash becomes a string before its ends are asked for": {
			[]dialogue{{scan("hash", "k")}, asks("HGETALL k", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"), {{"HPEXPIRETIME k FIELDS 1 a", wrongType}},
				{{"TYPE k", "+string\r\n"}, scan("list"), scan("set"), scan("string", "k")}, asks("GET k", "$1\r\nv\r\n"), {scan("zset")}},
			[]string{"k p v"},
		},
		"a string becomes a list": {
			[]dialogue{{scan("hash"), scan("list"), scan("set"), scan("string", "k", "l")}, asks("GET k l", wrongType, "$1\r\nv\r\n"),
				{{"TYPE k", "+list\r\n"}}, asks("LRANGE k 0 -1", "*1\r\n$1\r\na\r\n"), {scan("zset")}},
			[]string{"l p v", "k l 1:a0:"},
		},
		"too long replies": {
			[]dialogue{{scan("hash"), scan("list"), scan("set"), scan("string", "k", "l")}, asks("GET k l", "$1\r\nv\r\n", "-ERR too long\r\n"),
				asks("GET k", "$1\r\nv\r\n"), asks("GET l", "$1\r\nw\r\n"), {scan("zset")}},
			[]string{"k p v", "l p w"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			t.Cleanup(func() { here.Close() })
			commands := make(chan string, 100)
			go func() {
				asked := redis.NewConn(there, 0, 0)
				for {
					words, err := redis.Strings(asked.Receive())
					if err != nil {
						close(commands)
						return
					}
					commands <- strings.Join(words, " ")
				}
			}()
			go func() {
				for _, d := range append([]dialogue{{{"SELECT c", "+OK\r\n"}}}, tt.talk...) {
					for _, line := range d {
						if got, ok := <-commands; !ok {
							return
						} else if got != line[0] {
							t.Errorf("the server is asked %q, want %q", got, line[0])
						}
						_, _ = io.WriteString(there, line[1])
					}
				}
			}()
			var got exported
			s := source{exporter: &exporter{call: &call{status: progress.New(io.Discard, false, clock.Monotonic)}, to: &got}, conn: &client{conn: redis.NewConn(here, 0, 0)}, portion: 500}
			s.state.Name = "c"
			drill.Check(t, s.keys())
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
