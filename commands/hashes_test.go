package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"

	"github.com/anishathalye/porcupine"
)

// TestFolderOfOlderBuilds: only the first hash raises the format of the folder.
func TestFolderOfOlderBuilds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "s", "v")
	for _, args := range [][]string{
		{"HDEL", "h", "f"}, {"HGETDEL", "h", "FIELDS", "1", "f"}, {"HPEXPIRE", "h", "10", "FIELDS", "1", "f"},
		{"HSET", "s", "f", "v"}, {"HINCRBY", "s", "f", "1"}, {"EVAL", "return redis.pcall('HSET', KEYS[1], 'f', 'v')", "1", "s"},
	} {
		w.do(1, args...)
		if w.engine.Keyspace().CollectionsAllowed() {
			t.Errorf("%q raises the format", args)
		}
	}
	w.expect("(integer) 1", "HSET", "h", "f", "v")
	if !w.engine.Keyspace().CollectionsAllowed() {
		t.Error("there is a hash, but the format is the old one")
	}
}

// hashAction is one command of a history on hashes. Its key is empty for commands on all keys.
type hashAction struct {
	verb  string // hset, hget, hdel, hlen, hincrby, hpexpire, hpersist, fnx, del, expire, default, advance
	key   string
	field int   // 0 or 1
	n     int64 // a value, ms, seconds or a policy
}

func (in hashAction) args() []string {
	f, n := fmt.Sprint("f", in.field), strconv.FormatInt(in.n, 10)
	switch in.verb {
	case "hset", "hincrby":
		return []string{in.verb, in.key, f, n}
	case "hget", "hdel":
		return []string{in.verb, in.key, f}
	case "hlen", "del":
		return []string{in.verb, in.key}
	case "hpexpire":
		return []string{in.verb, in.key, n, "FIELDS", "1", f}
	case "hpersist":
		return []string{in.verb, in.key, "FIELDS", "1", f}
	case "fnx":
		return []string{"hsetex", in.key, "FNX", "FIELDS", "1", f, n}
	case "expire":
		return []string{in.verb, in.key, n}
	case "default":
		return []string{"CONTAINER.SET", "0", "TTL", expiry.TTL(in.n).String()}
	}
	panic(in.verb)
}

func (in hashAction) advance() time.Duration {
	if in.verb != "advance" {
		return 0
	}
	return time.Duration(in.n) * time.Millisecond
}

func (in hashAction) of() string { return in.key }

// simpleHash is the state of one hash of two fields and its policy, in the simplest form.
type simpleHash struct {
	now    int64
	def    expiry.TTL
	fields [2]simpleField
	ts     int64
	end    int64 // the key's own; 0 none
}

type simpleField struct {
	there bool
	value int64
	end   int64 // 0 none
}

func (s simpleHash) settle() simpleHash {
	end := s.end
	if end == 0 && s.def > 0 {
		end = s.ts + int64(s.def)*1000
	}
	for i, f := range s.fields {
		if s.def != expiry.Off && (f.end != 0 && f.end <= s.now || end != 0 && end <= s.now) {
			s.fields[i] = simpleField{}
		}
	}
	if s.len() == 0 {
		s.ts, s.end = 0, 0
	}
	return s
}

func (s simpleHash) len() (n int) {
	for _, f := range s.fields {
		if f.there {
			n++
		}
	}
	return n
}

func (s simpleHash) apply(in hashAction) (output string, next simpleHash) {
	number := func(n int64) string { return fmt.Sprintf("(integer) %d", n) }
	one := func(n int64) string { return "1) " + number(n) }
	f := &s.fields[in.field]
	switch in.verb {
	case "advance":
		s.now += in.n
		return "OK", s.settle()
	case "default":
		s.def = expiry.TTL(in.n)
		return "OK", s.settle()
	case "hget":
		if !f.there {
			return "(nil)", s
		}
		return strconv.Quote(strconv.FormatInt(f.value, 10)), s
	case "hlen":
		return number(int64(s.len())), s
	case "hset", "fnx":
		isNew := !f.there
		if in.verb == "fnx" && !isNew {
			return number(0), s
		}
		*f, s.ts = simpleField{there: true, value: in.n}, s.now
		if in.verb == "hset" && !isNew {
			return number(0), s
		}
		return number(1), s
	case "hincrby":
		f.there, f.value, s.ts = true, f.value+in.n, s.now
		return number(f.value), s
	case "hdel":
		if !f.there {
			return number(0), s
		}
		*f, s.ts = simpleField{}, s.now
		return number(1), s.settle()
	case "hpexpire":
		if !f.there {
			return one(-2), s
		}
		f.end, s.ts = s.now+in.n, s.now
		return one(1), s
	case "hpersist":
		switch {
		case !f.there:
			return one(-2), s
		case f.end == 0:
			return one(-1), s
		}
		f.end, s.ts = 0, s.now
		return one(1), s
	case "expire":
		if s.len() == 0 {
			return number(0), s
		}
		s.end, s.ts = s.now+in.n*1000, s.now
		return number(1), s
	case "del":
		was := min(s.len(), 1)
		s.fields, s.ts, s.end = [2]simpleField{}, 0, 0
		return number(int64(was)), s
	}
	panic(in.verb)
}

func randomHashAction(r *rand.Rand, value *atomic.Int64) operation {
	in := hashAction{key: fmt.Sprint("key-", r.IntN(3)), field: r.IntN(2)}
	verbs := []string{
		"hset", "hset", "hset", "hget", "hget", "hget", "hget", "hlen", "hlen", "hdel", "hincrby", "hpexpire", "hpexpire",
		"hpersist", "fnx", "del", "expire", "default", "advance", "advance",
	}
	in.verb = verbs[r.IntN(len(verbs))]
	switch in.verb {
	case "hpexpire", "advance":
		in.n = 1 + int64(r.IntN(1500))
	case "expire":
		in.n = 1 + int64(r.IntN(3))
	case "default":
		in.n = [...]int64{0, -1, 1, 2, 4}[r.IntN(5)]
	default:
		in.n = value.Add(1)
	}
	if in.verb == "default" || in.verb == "advance" {
		in.key, in.field = "", 0
	}
	return in
}

func TestHashesLinearizable(t *testing.T) {
	t.Parallel()
	model := porcupine.Model{
		Partition: byKey,
		Init:      func() any { return simpleHash{now: testStart, def: expiry.Forever} },
		Step: func(state, input, output any) (bool, any) {
			want, next := state.(simpleHash).apply(input.(hashAction))
			return want == output.(string), next
		},
	}
	drill.Seeds(t, 2, 5, 400, func(t *testing.T, seed uint64) {
		w := newHarness(t)
		w.do(1, "CONTAINER.SET", "0", "TTL", "-1")
		history := record(w, seed, 4, 60, randomHashAction)
		if result, _ := porcupine.CheckOperationsVerbose(model, history, time.Minute); result != porcupine.Ok {
			t.Fatalf("seed %d: the history of %d commands is not linearizable: %v", seed, len(history), result)
		}
	})
}

// TestManyRandomFields: a large number of random fields comes whole, also from transactions and scripts.
func TestManyRandomFields(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "HSET", "h", "a", "1", "b", "2")
	w.do(1, "MULTI")
	w.do(1, "HRANDFIELD", "h", "-5000")
	w.do(1, "SRANDMEMBER", "none", "-5000")
	r := w.do(1, "EXEC")
	if len(r.Elems) != 2 || r.Elems[0].Int != 5000 || len(r.Elems[1].Elems) != 0 {
		t.Errorf("EXEC returns %.100s", notation(r))
	}
	w.expect("(integer) 10000", "EVAL", "return #redis.call('HRANDFIELD', 'h', -5000, 'WITHVALUES')", "0")
	if fields := w.do(1, "HRANDFIELD", "h", "5000").Elems; len(fields) != 2 || fields[0].Str == fields[1].Str {
		t.Errorf("different fields: %+v", fields)
	}
}
