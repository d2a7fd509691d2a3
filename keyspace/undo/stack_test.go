package undo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// history returns the history of a container: entries such as "set 60 until 100", the n-th of the n-th ms and
// with etag n.
func history(entries ...string) (list []expiry.HistoryEntry) {
	list = []expiry.HistoryEntry{{What: expiry.Created, Policy: expiry.Policy{Default: expiry.Forever}, Kills: -1}}
	for i, text := range entries {
		e := list[len(list)-1]
		e.At, e.Etag, e.Undo, e.Undone = int64(i+1), uint64(i+1), 0, false
		var ttl int64
		switch n, _ := fmt.Sscanf(text, "set %d until %d", &ttl, &e.Undo); {
		case n == 2:
			e.What, e.Policy.Default = expiry.Set, expiry.TTL(ttl)
		default:
			if _, err := fmt.Sscanf(text, "%s until %d", &e.What, &e.Undo); err != nil {
				panic(err)
			}
		}
		list = append(list, e)
	}
	return list
}

func aside(what expiry.Action, until int64) *record.Aside {
	return &record.Aside{What: what, Until: until}
}

// text names the open windows by their container, entry and end.
func (s Stack[C]) text(now int64) string {
	var list []string
	for _, w := range s.Windows(now) {
		list = append(list, fmt.Sprintf("%v.%d:%d", w.Container, w.Entry, w.Until))
	}
	return strings.Join(list, " ")
}

// twice is a container that was changed, flushed, and changed again: its rules, the flush, its rules since.
func twice() Stack[string] {
	return Stack[string]{
		{Container: "old", History: history("set 10 until 100", "flushed until 110"), Aside: aside(expiry.Flushed, 110)},
		{Container: "now", History: history("set 10 until 100", "flushed until 110", "set 20 until 120")},
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    Stack[string]
		now  int64
		want string
	}{
		{nil, 50, ""},
		{twice(), 50, "old.1:100 old.2:110 now.3:120"},
		{twice(), 99, "old.1:100 old.2:110 now.3:120"},
		{twice(), 100, "old.2:110 now.3:120"},
		{twice(), 110, "now.3:120"},
		{twice(), 120, ""},
		// What was set aside and has ended keeps what is older from being taken back.
		{Stack[string]{
			{Container: "a", History: history("dropped until 200"), Aside: aside(expiry.Dropped, 200)},
			{Container: "b", History: history("dropped until 90"), Aside: aside(expiry.Dropped, 90)},
			{Container: "c", History: history("dropped until 300"), Aside: aside(expiry.Dropped, 300)},
		}, 100, "c.1:300"},
	} {
		if got := tt.s.text(tt.now); got != tt.want {
			t.Errorf("at %d: %q, want %q", tt.now, got, tt.want)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		until   int64
		want    string
		changed []bool
		ended   []bool
	}{
		{120, "old.1:100 old.2:110 now.3:120", []bool{false, false}, []bool{false, false}},
		{115, "old.1:100 old.2:110 now.3:115", []bool{false, true}, []bool{false, false}},
		{105, "old.1:100 old.2:105 now.3:105", []bool{true, true}, []bool{false, false}},
		{80, "old.1:80 old.2:80 now.3:80", []bool{true, true}, []bool{false, false}},
		{0, "", []bool{false, true}, []bool{true, false}},
	} {
		s, before := twice(), twice()
		why := s[0].Aside
		s.Limit(tt.until)
		if got := s.text(50); got != tt.want {
			t.Errorf("until %d: %q, want %q", tt.until, got, tt.want)
		}
		for i, l := range s {
			if l.Changed != tt.changed[i] || l.Ended != tt.ended[i] {
				t.Errorf("until %d: %s changed %v, ended %v", tt.until, l.Container, l.Changed, l.Ended)
			}
		}
		if *why != *before[0].Aside {
			t.Errorf("until %d: the aside that was passed has changed to %v", tt.until, why)
		}
	}
}

// TestOpen: of MostWindows windows the oldest ends before another opens, be it a rule of what is set aside,
// or a flush. The listed container's history says so too.
func TestOpen(t *testing.T) {
	t.Parallel()
	s := twice()
	rules := []string{"set 10 until 100", "flushed until 110"}
	for i := range expiry.MostWindows - 2 {
		rules = append(rules, fmt.Sprintf("set %d until 120", i+1))
	}
	s[1].History = history(rules...)
	s.Open(50, 200)
	list := s.Windows(50)
	if len(list) != expiry.MostWindows-1 || !s[0].Changed || s[0].Ended || s[0].History[1].Undo != expiry.EndedEarly || s[1].History[1].Undo != expiry.EndedEarly || s[1].History[2].Undo != 110 {
		t.Fatalf("after the first: %s; %+v", s.text(50), s[0])
	}
	s[1].History = append(s[1].History, history("set 77 until 120")[1])
	s.Open(50, 200)
	if list = s.Windows(50); len(list) != expiry.MostWindows-1 || !s[0].Ended || s[1].History[2].Undo != expiry.EndedEarly {
		t.Fatalf("after the second: %s; %+v", s.text(50), s[0])
	}
	s[1].History = append(s[1].History, history("set 78 until 120")[1])
	s.Open(50, 200)
	if list = s.Windows(50); len(list) != expiry.MostWindows-1 || list[0].Entry != 4 {
		t.Fatalf("after the third: %s", s.text(50))
	}

	s = twice()
	if s.Open(50, 0); s.text(50) != "" {
		t.Errorf("what cannot be taken back leaves %s", s.text(50))
	}
	s = twice()
	if s.Open(50, 90); s.text(50) != "old.1:90 old.2:90 now.3:90" {
		t.Errorf("a window until 90 leaves %s", s.text(50))
	}
}

func TestFlushIn(t *testing.T) {
	t.Parallel()
	s := twice()
	undone := slices.Clone(s[1].History)
	undone[2].Undone = true
	both := append(slices.Clone(s[1].History), s[1].History[2]) // two flushes of one ms
	for _, tt := range []struct {
		history []expiry.HistoryEntry
		want    int
	}{{s[1].History, 2}, {undone, -1}, {both, 4}, {history("set 10 until 100"), -1}} {
		if got := s[0].FlushIn(tt.history); got != tt.want {
			t.Errorf("the flush is entry %d, want %d", got, tt.want)
		}
	}
	s[0].History[2].What = expiry.Dropped
	if got := s[0].FlushIn(s[1].History); got != -1 {
		t.Errorf("a drop is the flush %d", got)
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	rule := Window[string]{Layer: &Layer[string]{}, Rule: true}
	flushed := Window[string]{Layer: &Layer[string]{Aside: aside(expiry.Flushed, 1)}}
	dropped := Window[string]{Layer: &Layer[string]{Aside: aside(expiry.Dropped, 1)}}
	for i, tt := range []struct {
		w                    Window[string]
		as                   string
		listed, lives, taken bool
		want                 Target
		err                  error
	}{
		{rule, "", true, true, false, Rule, nil},
		{rule, "x", true, true, false, 0, ErrRuleAs},
		{flushed, "", true, false, false, Listed, nil},
		{flushed, "", true, true, false, 0, ErrNotEmpty},
		{flushed, "", false, false, false, Free, nil},
		{flushed, "x", true, true, false, Free, nil},
		{flushed, "x", true, true, true, 0, ErrNameTaken},
		{dropped, "", false, false, false, Free, nil},
		{dropped, "", true, false, false, 0, ErrExists},
		{dropped, "", true, true, false, 0, ErrNotEmpty},
		{dropped, "x", true, true, false, Free, nil},
		{dropped, "x", false, false, true, 0, ErrNameTaken},
	} {
		got, err := tt.w.Target(tt.as, Names{Listed: tt.listed, Lives: func() bool { return tt.lives }, Taken: tt.taken})
		if got != tt.want || err != tt.err {
			t.Errorf("%d: %v, %v; want %v, %v", i, got, err, tt.want, tt.err)
		}
	}
}
