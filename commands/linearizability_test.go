package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry"
	"mayfly/test/drill"

	"github.com/anishathalye/porcupine"
)

// Concurrent clients write histories while the clock and a default TTL change. The checker porcupine,
// which knows nothing of mayfly, looks for a sequential order of the commands. The order must agree with
// the times of calls and replies. In it a simple server with the rules of docs/ttl.md must give the same
// replies.

// action is one command of a history. Its id is empty for commands on all documents.
type action struct {
	verb string // get, put, putnx, putxx, del, touch, incr, merge, ttl, default, advance
	id   string
	n    int64 // of put, merge: the value written; of incr: what is added; of ttl: the seconds; of default: the policy; of advance: ms
	ttl  int64 // of put, merge: the member; 0 none
}

// sequential is the state of one document and its policy, in the simplest form.
type sequential struct {
	now   int64
	def   expiry.TTL
	there bool
	value int64
	ttl   int64 // the member; 0 none
	ts    int64
}

// settle removes the document if it is dead under the current rules. Dead stays dead.
func (s sequential) settle() sequential {
	ttl := s.ttl
	if ttl == 0 {
		ttl = int64(s.def)
	}
	if s.there && s.def != expiry.Off && ttl > 0 && s.ts+ttl*1000 <= s.now {
		s.there, s.value, s.ttl, s.ts = false, 0, 0, 0
	}
	return s
}

func (s sequential) apply(in action) (output string, next sequential) {
	write := func(value, ttl int64) {
		s.there, s.value, s.ttl, s.ts = true, value, ttl, s.now
	}
	flag := map[bool]string{true: "(integer) 1", false: "(integer) 0"}
	switch in.verb {
	case "advance":
		s.now += in.n
		return "OK", s.settle()
	case "default":
		s.def = expiry.TTL(in.n)
		return "OK", s.settle()
	case "get":
		if !s.there {
			return "(nil)", s
		}
		return strconv.Quote(document(s.value, s.ttl)), s
	case "put", "putnx", "putxx":
		if in.verb == "putnx" && s.there || in.verb == "putxx" && !s.there {
			return "(nil)", s
		}
		write(in.n, in.ttl)
		return "OK", s
	case "del":
		was := s.there
		s.there, s.value, s.ttl, s.ts = false, 0, 0, 0
		return flag[was], s
	case "touch":
		if s.there {
			write(s.value, s.ttl)
		}
		return flag[s.there], s
	case "incr":
		if !s.there {
			return "(nil)", s
		}
		write(s.value+in.n, s.ttl)
		return "OK", s
	case "merge":
		ttl := in.ttl
		if s.there && ttl == 0 {
			ttl = s.ttl
		}
		write(in.n, ttl)
		return "OK", s
	case "ttl":
		if s.there {
			write(s.value, in.n)
		}
		return flag[s.there], s
	}
	panic(in.verb)
}

func document(value, ttl int64) string {
	if ttl == 0 {
		return fmt.Sprintf(`{"v":%d}`, value)
	}
	return fmt.Sprintf(`{"v":%d,"ttl":%d}`, value, ttl)
}

// args returns the command of an action.
func (in action) args() []string {
	switch in.verb {
	case "get":
		return []string{"DOC.GET", "c", in.id}
	case "put":
		return []string{"DOC.PUT", "c", in.id, document(in.n, in.ttl)}
	case "putnx":
		return []string{"DOC.PUT", "c", in.id, document(in.n, in.ttl), "NX"}
	case "putxx":
		return []string{"DOC.PUT", "c", in.id, document(in.n, in.ttl), "XX"}
	case "del":
		return []string{"DOC.DEL", "c", in.id}
	case "touch":
		return []string{"DOC.TOUCH", "c", in.id}
	case "incr":
		return []string{"DOC.PATCH", "c", in.id, "INCR", "/v", strconv.FormatInt(in.n, 10)}
	case "merge":
		return []string{"DOC.MERGE", "c", in.id, document(in.n, in.ttl)}
	case "ttl":
		return []string{"DOC.SETTTL", "c", in.id, strconv.FormatInt(in.n, 10)}
	case "default":
		return []string{"CONTAINER.SET", "c", "TTL", expiry.TTL(in.n).String()}
	}
	panic(in.verb)
}

var linearizable = porcupine.Model{
	Partition: byKey,
	Init:      func() any { return sequential{now: testStart, def: expiry.Forever} },
	Step: func(state, input, output any) (bool, any) {
		want, next := state.(sequential).apply(input.(action))
		return want == output.(string), next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %s", input, output) },
}

// operation is one step of a client: a command, or the clock is moved.
type operation interface {
	of() string             // the key or id; "" if it concerns all
	advance() time.Duration // 0 if it is a command
	args() []string
}

func (in action) of() string { return in.id }

func (in action) advance() time.Duration {
	if in.verb != "advance" {
		return 0
	}
	return time.Duration(in.n) * time.Millisecond
}

// byKey divides a history: items are independent but for the clock and the default, which every part gets a
// copy of.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	keys := make(map[string]bool)
	for _, op := range history {
		if key := op.Input.(operation).of(); key != "" {
			keys[key] = true
		}
	}
	for key := range keys {
		var part []porcupine.Operation
		for _, op := range history {
			if of := op.Input.(operation).of(); of == key || of == "" {
				part = append(part, op)
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// randomAction returns a random command.
func randomAction(r *rand.Rand, value *atomic.Int64) operation {
	in := action{id: fmt.Sprint("id-", r.IntN(5))}
	switch r.IntN(18) {
	case 0, 1, 2, 3, 4, 5:
		in.verb = "get"
	case 6, 7, 8, 9:
		in.verb = [...]string{"put", "put", "putnx", "putxx"}[r.IntN(4)]
		in.n = value.Add(1)
		in.ttl = [...]int64{0, 0, -1, 1, 2, 3}[r.IntN(6)]
	case 10, 11:
		in.verb = "del"
	case 12:
		in.verb = "touch"
	case 13:
		in.verb, in.n = "ttl", [...]int64{-1, 1, 2, 5}[r.IntN(4)]
	case 14:
		in = action{verb: "default", n: [...]int64{0, -1, 1, 2, 4}[r.IntN(5)]}
	case 15:
		in = action{verb: "advance", n: 1 + int64(r.IntN(1500))}
	case 16:
		in.verb, in.n = "incr", value.Add(1)
	case 17:
		in.verb, in.n = "merge", value.Add(1)
		in.ttl = [...]int64{0, 0, -1, 1, 2}[r.IntN(5)]
	}
	return in
}

// record runs concurrent clients and records their calls and replies with their times.
func record(w *harness, seed uint64, clients, steps int, random func(*rand.Rand, *atomic.Int64) operation) []porcupine.Operation {
	var tick, value atomic.Int64 // tick orders calls and returns
	histories := make([][]porcupine.Operation, clients)
	sessions := make([]*engine.Session, clients)
	for i := range sessions {
		sessions[i] = w.session(i + 1)
	}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range steps {
				in := random(r, &value)
				op := porcupine.Operation{ClientId: i, Input: in, Call: tick.Add(1), Output: "OK"}
				if by := in.advance(); by > 0 {
					w.clock.Advance(by)
				} else {
					op.Output = notation(w.engine.Execute(sessions[i], in.args()).Reply)
				}
				op.Return = tick.Add(1)
				histories[i] = append(histories[i], op)
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 5, 400, func(t *testing.T, seed uint64) {
		w := newHarness(t)
		w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
		history := record(w, seed, 4, 60, randomAction)
		result, _ := porcupine.CheckOperationsVerbose(linearizable, history, time.Minute)
		if result != porcupine.Ok {
			t.Fatalf("seed %d: the history of %d commands is not linearizable: %v", seed, len(history), result)
		}
	})
}

// TestLinearizabilityCheckerRejects: the checker rejects a history with one false reply.
func TestLinearizabilityCheckerRejects(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	history := record(w, 1, 4, 60, randomAction)
	for i := range history {
		if history[i].Input.(action).verb == "get" {
			history[i].Output = `"{\"v\":-1}"`
			break
		}
	}
	if porcupine.CheckOperations(linearizable, history) {
		t.Fatal("a reply that no server could have given was not noticed")
	}
}
