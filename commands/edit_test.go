package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// Writes of long values compute them without locks, and what others have written meanwhile is part of the
// result.
func TestLongValuesAreWrittenWithoutLocks(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name   string
		args   []string
		beside []string // by another client
		want   string
		check  []string
		result string
	}{
		{"append", []string{"APPEND", "k", "!"}, []string{"APPEND", "k", "?"}, "(integer) 100002", []string{"GETRANGE", "k", "-3", "-1"}, `"x?!"`},
		{"append to nothing any more", []string{"APPEND", "k", "!"}, []string{"DEL", "k"}, "(integer) 1", []string{"GET", "k"}, `"!"`},
		{"append a long tail", []string{"APPEND", "new", large}, []string{"SET", "new", "v"}, "(integer) 100001", []string{"GETRANGE", "new", "0", "2"}, `"vxx"`},
		{"setrange", []string{"SETRANGE", "k", "1", "y"}, []string{"SETRANGE", "k", "0", "zz"}, "(integer) 100000", []string{"GETRANGE", "k", "0", "2"}, `"zyx"`},
		{"settime", []string{"DOC.SETTTL", "c", "d", "50"}, []string{"DOC.PATCH", "c", "d", "INCR", "/n", "1"}, "(integer) 1", []string{"DOC.GET", "c", "d", "PATH", "/ttl", "/n"}, "1) \"50\"\n2) \"1\""},
		{"touch", []string{"DOC.TOUCH", "c", "d"}, []string{"DOC.SETTTL", "c", "d", "40"}, "(integer) 1", []string{"DOC.TTL", "c", "d"}, "(integer) 40"},
		{"touch a deleted one", []string{"DOC.TOUCH", "c", "d"}, []string{"DOC.DEL", "c", "d"}, "(integer) 0", []string{"DOC.EXISTS", "c", "d"}, "(integer) 0"},
		{"get and touch a deleted one", []string{"DOC.GETTOUCH", "c", "d"}, []string{"DOC.DEL", "c", "d"}, "(nil)", []string{"DOC.EXISTS", "c", "d"}, "(integer) 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t)
			w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
			w.expect("OK", "SET", "k", large)
			w.expect("OK", "DOC.PUT", "c", "d", longDocument())
			s, run, out := w.begun(tt.args...)
			r, err := s.Resolve(tt.args)
			drill.Check(t, err)
			w.do(2, tt.beside...)
			for s.Ctx.Outside != nil {
				outside := s.Ctx.Outside
				s.Ctx.Outside = nil
				if _, again := outside(); !again {
					t.Fatal("the write ends without a transaction")
				}
				drill.Check(t, w.engine.Run(s, r, tt.args, run, out))
			}
			if got := notation(out.Reply); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			w.expect(tt.result, tt.check...)
		})
	}
}

// DOC.GETTOUCH walks a long document without locks, once to touch it and once for its reply.
func TestGetTouchOfLongDocuments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	for _, touched := range []bool{false, true} {
		w.clock.Advance(20 * time.Second)
		args, left := []string{"DOC.GETTOUCH", "c", "d", "MINAGE", "30", "PATH", "/n", "/_ts"}, "(integer) 40"
		if touched {
			left = "(integer) 60"
		}
		s, run, out := w.begun(args...)
		r, err := s.Resolve(args)
		drill.Check(t, err)
		var reply engine.Reply
		turns := 0
		for again := true; s.Ctx.Outside != nil; turns++ {
			outside := s.Ctx.Outside
			s.Ctx.Outside = nil
			if reply, again = outside(); again {
				drill.Check(t, w.engine.Run(s, r, args, run, out))
			}
		}
		ts := int64(1767225600)
		if touched {
			ts += 40
		}
		if want := fmt.Sprintf("1) \"0\"\n2) \"%d\"", ts); notation(reply) != want || turns != 1+int(engine.Flag(touched).Int) {
			t.Errorf("touched %v: got %s after %d computations, want %s", touched, notation(reply), turns, want)
		}
		w.expect(left, "DOC.TTL", "c", "d")
	}
}

// The deadline of a long document is read without locks. If the container has another one afterwards, it is
// read again.
func TestDeadlinesOfLongDocuments(t *testing.T) {
	t.Parallel()
	for _, beside := range [][]string{nil, {"CONTAINER.SET", "c", "DEADLINE", "other"}, {"DOC.DEL", "c", "e"}} {
		w := newHarness(t)
		w.expect("OK", "CONTAINER.CREATE", "c", "TTL", "60", "DEADLINE", "end")
		want := testStart + 30_000
		if len(beside) == 4 {
			want += 10_000
		}
		json := fmt.Sprintf(`{"end":%d,"other":%d,%s`, testStart/1000+30, testStart/1000+40, longDocument()[1:])
		for i, args := range [][]string{{"DOC.PUT", "c", "d", json}, {"DOC.MERGE", "c", "d", json}, {"DOC.TOUCH", "c", "d"}, {"DOC.SETTTL", "c", "d", "null"}} {
			s, run, out := w.begun(args...)
			r, err := s.Resolve(args)
			drill.Check(t, err)
			if s.Ctx.Outside == nil {
				t.Fatalf("%s walks the document under locks", args[0])
			}
			if i == 0 && beside != nil {
				w.do(2, beside...)
			}
			for s.Ctx.Outside != nil {
				outside := s.Ctx.Outside
				s.Ctx.Outside = nil
				if _, again := outside(); !again {
					t.Fatal("the write ends without a transaction")
				}
				drill.Check(t, w.engine.Run(s, r, args, run, out))
			}
			w.expect(fmt.Sprintf("(integer) %d", want), "DOC.PEXPIRETIME", "c", "d")
		}
	}
}

// EXPIRE and PERSIST of a long document set its ttl.
func TestExpireOfLongDocuments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	w.expect("OK", "SELECT", "c")
	w.expect("(integer) 1", "EXPIRE", "d", "30")
	w.expect(`"30"`, "DOC.GET", "c", "d", "PATH", "/ttl")
	w.expect("(integer) 1", "PERSIST", "d")
	w.expect(`"-1"`, "DOC.GET", "c", "d", "PATH", "/ttl")
	w.expect("(integer) 0", "EXPIRE", "none", "30")
}
