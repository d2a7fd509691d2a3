package commands

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// The name and library of a client are bounded: CLIENT LIST repeats them.
func TestClientInfoIsBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	longest := strings.Repeat("n", engine.MaxClientInfo)
	for _, command := range [][]string{{"CLIENT", "SETNAME"}, {"CLIENT", "SETINFO", "lib-name"}, {"CLIENT", "SETINFO", "lib-ver"}, {"HELLO", "2", "SETNAME"}} {
		if r := w.do(1, append(command, longest)...); r.Kind == engine.KindError {
			t.Errorf("%q: %s", command, r.Str)
		}
		what := command[len(command)-1]
		if what == "SETNAME" {
			what = "Client names"
		}
		w.expect("(error) ERR "+what+" cannot be longer than 1024 bytes.", append(command, longest+"n")...)
	}
	w.expect(fmt.Sprintf("%q", longest), "CLIENT", "GETNAME")
}

func TestClientListTakesEachIDOnce(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.session(1)
	w.session(2)
	var order []string
	for line := range strings.Lines(w.do(1, "CLIENT", "LIST", "ID", "2", "1", "2", "7", "1").Str) {
		id, _, _ := strings.Cut(line, " ")
		order = append(order, id)
	}
	if got, want := strings.Join(order, " "), "id=2 id=1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Repeated requests for the description of a command share one copy.
func TestDescriptionsAreShared(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	docs := w.do(1, "COMMAND", "DOCS", "client", "client").Elems
	infos := w.do(1, "COMMAND", "INFO", "client", "client").Elems
	if &docs[1].Elems[0] != &docs[3].Elems[0] || &infos[0].Elems[0] != &infos[1].Elems[0] {
		t.Error("every description is a new one")
	}
}

func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "SET", "k", "1")
	for _, command := range [][]string{
		{"KEYS"}, {"SCAN", "0", "MATCH"}, {"DOC.SCAN", "0", "0", "MATCH"}, {"CONTAINER.LIST", "MATCH"}, {"CONFIG", "GET"},
		{"COMMAND", "LIST", "FILTERBY", "PATTERN"}, {"PUBSUB", "CHANNELS"}, {"PUBSUB", "SHARDCHANNELS"}, {"PSUBSCRIBE"},
	} {
		for _, wild := range []string{"*", "["} {
			longest := wild + strings.Repeat("a", engine.MaxPattern-len(wild))
			w.expect("(error) ERR pattern of 1025 bytes is too long: legal are up to 1024", append(command, longest+"a")...)
			if r := w.do(1, append(command, longest)...); r.Kind == engine.KindError {
				t.Errorf("%q: %s", command, r.Str)
			}
			w.do(1, "PUNSUBSCRIBE")
		}
		if r := w.do(1, append(command, strings.Repeat("a", 2*engine.MaxPattern))...); r.Kind == engine.KindError {
			t.Errorf("%q of a long name: %s", command, r.Str)
		}
		w.do(1, "PUNSUBSCRIBE")
	}
}

func TestChannelsAreBounded(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	longest := strings.Repeat("c", admin.MaxChannel)
	for _, command := range []string{"SUBSCRIBE", "SSUBSCRIBE", "PSUBSCRIBE", "PUBLISH", "SPUBLISH"} {
		args := []string{command, longest}
		if strings.HasSuffix(command, "PUBLISH") {
			args = append(args, "text")
		}
		if r := w.do(1, args...); r.Kind == engine.KindError {
			t.Errorf("%s: %s", command, r.Str)
		}
		w.do(1, "RESET")
		args[1] += "c"
		w.expect("(error) ERR channel of 65537 bytes is too long: legal are up to 65536", args...)
	}
}

// A scan holds no lock while it matches, so other clients may write.
func TestScanVisitsWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const many = 2500 // more than a portion
	for i := range many {
		w.do(1, "SET", fmt.Sprint("k", i), "1")
	}
	s := w.session(1)
	s.Ctx = engine.Context{Tx: &s.Tx, Session: s, Engine: w.engine}
	w.engine.Keyspace().BeginSweep(&s.Tx)
	defer s.Tx.Close()
	c, err := s.Ctx.Database()
	drill.Check(t, err)
	for _, count := range []int{1, 1000, 1001, many, many + 1} {
		visited := make(map[string]bool)
		next := uint64(0)
		for turns := 0; turns == 0 || next != 0; turns++ {
			before := len(visited)
			next = items.Scan(&s.Ctx, c, next, count, func(id string, _ keyspace.Item) {
				if visited[id] {
					t.Errorf("%s is visited again", id)
				}
				visited[id] = true
				if len(visited) == 1 {
					w.do(2, "SET", id, "2") // waits for ever if the partition is locked
				}
			})
			if got := len(visited) - before; got > count {
				t.Errorf("%d visited at once, want %d at most", got, count)
			}
		}
		if len(visited) != many {
			t.Errorf("count %d: %d visited", count, len(visited))
		}
	}
}

// The replies of a transaction are bounded. Its writes are not, nor are their replies.
func TestRepliesOfATransactionAreBounded(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its values are large
	w := newHarness(t)
	const size = 16 << 20
	value := strings.Repeat("v", size)
	w.do(1, "SET", "big", value)
	w.do(1, "MULTI")
	const reads = engine.MinRepliesLimit/size + 2
	for range reads {
		w.do(1, "GET", "big")
	}
	w.do(1, "SELECT", "1")
	w.do(1, "SET", "k", "1")
	w.do(1, "COMMAND", "DOCS")
	w.do(1, "DBSIZE")
	replies := w.do(1, "EXEC").Elems
	const exceeded = "ERR the replies of this transaction exceed 268435456 bytes"
	for i := range reads {
		if got := replies[i].Str; (got == exceeded) != (i >= engine.MinRepliesLimit/size) {
			t.Errorf("GET %d: %.100s", i, got)
		}
	}
	for i, want := range []string{"OK", "OK", exceeded, exceeded} {
		if got := replies[reads+i].Str; got != want {
			t.Errorf("%d: got %.100s, want %s", i, got, want)
		}
	}
	w.expect(`"1"`, "GET", "k")
}

// CLIENT REPLY in a transaction counts from the command after EXEC on.
func TestClientReplyInTransaction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode       string // before EXEC
		queued     string
		exec, next engine.Kind
	}{
		{"ON", "SKIP", engine.KindArray, engine.KindStatus},
		{"ON", "OFF", engine.KindArray, engine.KindNone},
		{"OFF", "ON", engine.KindNone, engine.KindStatus},
		{"SKIP", "SKIP", engine.KindNone, engine.KindStatus},
		{"SKIP", "ON", engine.KindNone, engine.KindStatus},
		{"OFF", "SKIP", engine.KindNone, engine.KindNone},
	}
	for _, test := range tests {
		w := newHarness(t)
		w.do(1, "MULTI")
		w.do(1, "CLIENT", "REPLY", test.queued)
		s := w.session(1)
		s.Replies = engine.ReplyMode{Off: test.mode == "OFF", Skip: test.mode == "SKIP"}
		if got := w.do(1, "EXEC").Kind; got != test.exec {
			t.Errorf("%s, %s: EXEC has a reply of kind %d, want %d", test.mode, test.queued, got, test.exec)
		}
		if got := w.do(1, "PING").Kind; got != test.next {
			t.Errorf("%s, %s: PING has a reply of kind %d, want %d", test.mode, test.queued, got, test.next)
		}
	}
}
