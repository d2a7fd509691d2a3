package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// A session reserves memory for what it keeps and releases it, whatever its end.
func TestSessionsReserveMemory(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("v", 100<<10)
	keep := map[string][]string{
		"queue":         {"MULTI", "SET k " + big},
		"watch":         {"WATCH " + strings.Repeat("k", 60<<10)},
		"subscriptions": {"SUBSCRIBE " + strings.Repeat("c", 60<<10)},
		"patterns":      {"PSUBSCRIBE " + strings.Repeat("p", 60<<10)},
		"shards":        {"SSUBSCRIBE " + strings.Repeat("s", 60<<10)},
	}
	end := map[string][]string{
		"queue":         {"EXEC", "DISCARD", "RESET", ""},
		"watch":         {"UNWATCH", "RESET", ""},
		"subscriptions": {"UNSUBSCRIBE", "RESET", ""},
		"patterns":      {"PUNSUBSCRIBE", "RESET", ""},
		"shards":        {"SUNSUBSCRIBE", "RESET", ""},
	}
	for what, lines := range keep {
		for _, ending := range end[what] {
			t.Run(fmt.Sprint(what, "/", ending), func(t *testing.T) {
				w := newHarness(t)
				var m engine.ClientMemoryLimit
				s := w.session(1)
				s.Memory = m.Open(s)
				for _, line := range append(lines, lines[1:]...) {
					if r := w.do(1, strings.Fields(line)...); r.Kind == engine.KindError {
						t.Fatal(r.Str)
					}
				}
				if held := s.Memory.Size(); held < 60<<10 || held > 250<<10 {
					t.Errorf("%d bytes are accounted for", held)
				}
				if ending != "" {
					w.do(1, ending)
				} else {
					w.engine.CloseSession(s)
				}
				if held := s.Memory.Size(); held != 0 {
					t.Errorf("%d bytes are left after %q", held, ending)
				}
			})
		}
	}
}

// Over the limit the error says so, and the session keeps its state.
func TestClientMemoryErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var m engine.ClientMemoryLimit
	m.SetLimit(256 << 10)
	s := w.session(1)
	s.Memory = m.Open(s)
	big := strings.Repeat("v", 60<<10)
	const full = "(error) ERR all clients together hold too much memory: try again later, or raise maxmemory-clients"
	w.do(1, "HELLO", "3")
	w.do(1, "SUBSCRIBE", big)
	w.do(1, "WATCH", big)
	w.expect(full, "SUBSCRIBE", "1"+big, "2"+big, "3"+big)
	w.expect(full, "WATCH", "1"+big, "2"+big, "3"+big)
	w.do(1, "MULTI")
	w.expect(full, "SET", "k", strings.Repeat(big, 3))
	w.expect("(error) EXECABORT Transaction discarded because of previous errors.", "EXEC")
	w.expect("(integer) 1", "PUBLISH", big, "x")
	w.expect("(integer) 0", "PUBLISH", "1"+big, "x")
	w.do(1, "UNSUBSCRIBE")
	if held := s.Memory.Size(); held != 0 {
		t.Errorf("%d bytes are left", held)
	}
}

// A pop whose reply its client may not hold has popped nothing: alone, in a transaction and in a script.
func TestClientMemoryKeepsWhatIsPopped(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 4000 {
		id := fmt.Sprint(i)
		w.do(1, "RPUSH", "l", id)
		w.do(1, "SADD", "s", id)
		w.do(1, "ZADD", "z", id, id)
	}
	var m engine.ClientMemoryLimit
	s := w.session(1)
	s.Memory = m.Open(s)
	m.SetLimit(100 << 10)
	for _, args := range [][]string{
		{"LPOP", "l", "4000"}, {"RPOP", "l", "3000"}, {"LMPOP", "1", "l", "LEFT", "COUNT", "4000"},
		{"SPOP", "s", "4000"}, {"SPOP", "s", "3999"},
		{"ZPOPMIN", "z", "4000"}, {"ZPOPMAX", "z", "3000"},
	} {
		script := "redis.call('SET', 'mark', '1') return #redis.pcall(unpack(ARGV))"
		if r := w.do(1, args...); r.Kind != engine.KindError || r.Str != engine.ErrClientMemory.Error() {
			t.Errorf("%q: %.100s", args, notation(r))
		}
		if r := w.do(1, append([]string{"EVAL", script, "0"}, args...)...); r.Kind != engine.KindError || r.Str != engine.ErrClientMemory.Error() {
			t.Errorf("%q in a script: %.100s", args, notation(r))
		}
		w.do(1, "MULTI")
		w.do(1, "SET", "mark", "1")
		w.do(1, args...)
		w.expect("(error) EXECABORT Transaction discarded because of: "+engine.ClientMemoryText, "EXEC")
	}
	w.expect("(integer) 4000", "LLEN", "l")
	w.expect("(integer) 4000", "SCARD", "s")
	w.expect("(integer) 4000", "ZCARD", "z")
	w.expect("(integer) 0", "EXISTS", "mark")
}

// CLIENT NO-EVICT ON protects a client.
func TestClientNoEvict(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	var evicted []int64
	m := &engine.ClientMemoryLimit{Evicted: func(s *engine.Session, _ int) { evicted = append(evicted, s.ID) }}
	m.SetLimit(1 << 20)
	list := []*engine.ClientMemory{m.Open(w.session(1)), m.Open(w.session(2)), m.Open(w.session(3))}
	w.session(1).Memory = list[0]
	w.expect("OK", "CLIENT", "NO-EVICT", "on")
	if line := w.do(1, "CLIENT", "INFO").Str; !strings.Contains(line, " flags=e ") {
		t.Error(line)
	}
	if !list[0].Reserve(600<<10) || !list[1].Reserve(300<<10) || !list[2].Reserve(260<<10) || !slices.Equal(evicted, []int64{2}) {
		t.Errorf("disconnected: %v", evicted)
	}
	w.expect("RESET", "RESET") // like NO-EVICT off
	if !list[2].Reserve(200<<10) || !slices.Equal(evicted, []int64{2, 1}) {
		t.Errorf("disconnected: %v", evicted)
	}
	w.session(1).Memory = nil
	if m.Disconnected() != 2 {
		t.Error(m.Disconnected())
	}
}

// Lists are charged while they grow. A page without memory for it is an error as a whole: an error beside a
// cursor would pass for the end of a scan. A script is charged for its values.
func TestListsAreCharged(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 3000 {
		w.do(1, "DOC.PUT", "0", fmt.Sprint(i), "{}")
	}
	var m engine.ClientMemoryLimit
	s := w.session(1)
	s.Memory = m.Open(s)
	for _, limited := range []bool{false, true} {
		if limited {
			m.SetLimit(100 << 10)
		}
		for _, args := range [][]string{
			{"KEYS", "*"}, {"SCAN", "0", "COUNT", "5000"}, {"DOC.SCAN", "0", "0", "COUNT", "5000"},
			{"EVAL", "local t = {} for i = 1, 100000 do t[i] = i end return #t", "0"},
		} {
			r := w.do(1, args...)
			if refused := r.Kind == engine.KindError; refused != limited || refused && r.Str != engine.ErrClientMemory.Error() {
				t.Errorf("%q, limited %v: %.100s", args, limited, notation(r))
			}
			if held := s.Memory.Size(); held != 0 {
				t.Errorf("%q: %d bytes are held afterwards", args, held)
			}
		}
	}
	m.SetLimit(300 << 10) // enough for the reply, but not for the values of it that a script gets
	for _, tt := range []struct {
		args []string
		want engine.Kind
	}{{[]string{"KEYS", "*"}, engine.KindArray}, {[]string{"EVAL", "return #redis.call('KEYS', '*')", "0"}, engine.KindError}} {
		if r := w.do(1, tt.args...); r.Kind != tt.want || r.Kind == engine.KindError && r.Str != engine.ErrClientMemory.Error() {
			t.Errorf("%q: %.100s", tt.args, notation(r))
		}
		if held := s.Memory.Size(); held != 0 {
			t.Errorf("%q: %d bytes are held afterwards", tt.args, held)
		}
	}
	m.SetLimit(4 << 20)
	if r := w.do(1, "EVAL", "return {#redis.call('KEYS', '*'), #redis.call('KEYS', '1*')}", "0"); notation(r) != "1) (integer) 3000\n2) (integer) 1111" {
		t.Error(notation(r))
	}
	if held := s.Memory.Size(); held != 0 {
		t.Errorf("%d bytes are held afterwards", held)
	}
}
