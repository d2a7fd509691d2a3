package entry

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
)

var (
	alice = Member{ID: 1 << 60, Name: "a", Addr: "h1:7001", Client: "h1:6379"}
	bob   = Member{ID: 2, Name: "b", Addr: "h2:7001"}
	carol = Member{ID: 3, Name: "c", Addr: "h3:7001", Leaving: true}
)

func TestEntries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data []byte
		want Entry
	}{
		{nil, Entry{}},
		{AppendBatch(nil, 5, 6, -7, []byte("set\r\n")), Entry{Kind: Batch, Session: 5, LSN: 6, Moment: -7, Batch: []byte("set\r\n")}},
		{AppendBatch(nil, 0, 0, 0, nil), Entry{Kind: Batch, Batch: []byte{}}},
		{AppendBegin([]byte{}, 1<<63, alice), Entry{Kind: Begin, Session: 1 << 63, Member: alice}},
		{AppendChange(nil, Leave, carol), Entry{Kind: Change, Op: Leave, Member: carol}},
		{AppendConf(nil, bob), Entry{Kind: Conf, Member: bob}},
	} {
		got, err := Decode(tt.data)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%x: %+v, %v, want %+v", tt.data, got, err, tt.want)
		}
		if tt.want.Kind == Batch {
			continue // any end is a batch
		}
		for n := 1; n < len(tt.data); n++ {
			if _, err := Decode(tt.data[:n]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d of %d bytes: %v", n, len(tt.data), err)
			}
		}
		if len(tt.data) > 0 {
			if _, err := Decode(append(slices.Clone(tt.data), 0)); !errors.Is(err, ErrDamaged) {
				t.Errorf("a byte more: %v", err)
			}
		}
	}
	for _, tt := range []struct {
		data []byte
		want error
	}{
		{[]byte{2, 1, 0}, ErrVersion},
		{[]byte{0}, ErrVersion},
		{[]byte{1}, ErrDamaged},
		{[]byte{1, 99}, ErrDamaged},
		{[]byte{1, byte(None)}, ErrDamaged},
		{AppendChange(nil, 0, bob), ErrDamaged},
		{AppendChange(nil, Leave+1, bob), ErrDamaged},
		{[]byte{1, byte(Batch), 0x80, 0, 0, 0}, ErrDamaged}, // a longer form of a number
	} {
		if _, err := Decode(tt.data); !errors.Is(err, tt.want) {
			t.Errorf("%x: %v, want %v", tt.data, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendBatch(nil, 5, 6, 7, []byte("*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n")))
	f.Add(AppendBegin(nil, 5, alice))
	f.Add(AppendChange(nil, Join, bob))
	f.Add(AppendConf(nil, carol))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Decode(data)
		if err != nil {
			return
		}
		var again []byte
		switch e.Kind {
		case Batch:
			again = AppendBatch(nil, e.Session, e.LSN, e.Moment, e.Batch)
		case Begin:
			again = AppendBegin(nil, e.Session, e.Member)
		case Change:
			again = AppendChange(nil, e.Op, e.Member)
		case Conf:
			again = AppendConf(nil, e.Member)
		}
		if !bytes.Equal(again, data) {
			t.Errorf("%x is encoded again as %x", data, again)
		}
	})
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte{})
	f.Add(FirstState([]Member{alice, bob, carol}).Encode())
	f.Add(State{Session: 9, Leader: 2, Members: []Member{bob, carol}, Announced: []Member{{Name: "d", Addr: "h4:1"}}, Voters: []uint64{2, 5}, Learners: []uint64{3}, Removed: []uint64{4, 1 << 50}}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeState(data)
		if err != nil || len(data) == 0 {
			return
		}
		if again := s.Encode(); !bytes.Equal(again, data) {
			t.Errorf("%x is encoded again as %x", data, again)
		}
		c := s.Clone()
		for op := Announce; op <= Leave; op++ {
			for _, m := range []Member{alice, bob, {Name: "z"}} {
				before := s.Encode()
				changed := s.Apply(&Entry{Kind: Change, Op: op, Member: m})
				if changed == bytes.Equal(before, s.Encode()) && op != Join && op != Announce {
					t.Errorf("%s of %s: changed %t", op, m.Name, changed)
				}
				if _, err := DecodeState(s.Encode()); err != nil {
					t.Errorf("%s of %s: %v", op, m.Name, err)
				}
			}
		}
		if !bytes.Equal(c.Encode(), data) {
			t.Error("a clone shares memory")
		}
	})
}

// TestState plays the changes of a cluster: a fourth node, a lost disk, a node that leaves.
func TestState(t *testing.T) {
	t.Parallel()
	s := FirstState([]Member{bob, alice})
	step := func(e Entry, changed bool) {
		t.Helper()
		if got := s.Apply(&e); got != changed {
			t.Errorf("%s %s of %+v: changed %t", e.Kind, e.Op, e.Member, got)
		}
		again, err := DecodeState(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Errorf("%+v is decoded as %+v, %v", s, again, err)
		}
	}
	change := func(op Op, m Member, changed bool) {
		t.Helper()
		step(Entry{Kind: Change, Op: op, Member: m}, changed)
	}
	step(Entry{Kind: Begin, Session: 4, Member: Member{ID: alice.ID, Client: "new:1"}}, true)
	if m := s.Named("a"); s.Session != 4 || s.Leader != alice.ID || m.Client != "new:1" || m.Addr != alice.Addr {
		t.Errorf("after begin %+v", s)
	}
	step(Entry{Kind: Batch}, false)
	dave := Member{ID: 4, Name: "d", Addr: "h4:1"}
	change(Join, dave, false) // not announced
	change(Announce, Member{Name: "b", Addr: "x"}, false)
	change(Announce, Member{Name: "d", Addr: "h4:1"}, true)
	if !s.Expected("d") || s.Expected("e") || !s.Expected("a") {
		t.Error("Expected is wrong")
	}
	change(Join, Member{ID: 2, Name: "d"}, false) // the id of b
	change(Join, dave, true)
	if len(s.Announced) != 0 || s.Named("d").ID != 4 || s.Voter(4) || s.Learner(4) {
		t.Errorf("after join %+v", s)
	}
	s.Configure([]uint64{alice.ID, 2}, []uint64{4}, 0)
	if !s.Learner(4) || !slices.Equal(s.Voters, []uint64{2, alice.ID}) {
		t.Errorf("after a learner has come %+v", s)
	}
	bob2 := Member{ID: 22, Name: "b", Addr: "h2:7002"}
	change(Join, bob2, true)
	s.Configure([]uint64{alice.ID}, []uint64{4}, 2)
	if s.Named("b").ID != 22 || s.WithID(2) != nil {
		t.Errorf("after a disk was lost %+v", s)
	}
	change(Leave, Member{Name: "d"}, true)
	change(Leave, Member{Name: "d"}, false)
	change(Join, Member{ID: 44, Name: "d", Addr: "h4:1"}, false) // it leaves
	change(Announce, Member{Name: "d", Addr: "h4:1"}, true)
	change(Join, dave, false)              // with the id that leaves
	change(Leave, Member{Name: "d"}, true) // takes the announcement back
	s.Configure([]uint64{alice.ID}, nil, 4)
	if s.Named("d") != nil {
		t.Errorf("after a node has left %+v", s)
	}
	if !slices.Equal(s.Removed, []uint64{2, 4}) || !s.Left(4) || s.Left(22) {
		t.Errorf("after two ids have left %+v", s)
	}
	change(Announce, Member{Name: "d", Addr: "h4:1"}, true)
	change(Join, dave, false) // with an id that has left
	change(Leave, Member{Name: "d"}, true)
	change(Leave, Member{Name: "b"}, true) // in no configuration yet: gone at once
	if s.Named("b") != nil {
		t.Errorf("after a node that never came has left %+v", s)
	}
}

func TestDecodeState(t *testing.T) {
	t.Parallel()
	whole := FirstState([]Member{alice, bob, carol}).Encode()
	for n := 1; n < len(whole); n++ {
		if _, err := DecodeState(whole[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := DecodeState([]byte{9}); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	if s, err := DecodeState(nil); err != nil || !reflect.DeepEqual(s, State{}) {
		t.Error(s, err)
	}
	if _, err := DecodeState(State{Members: []Member{bob, alice}}.Encode()); !errors.Is(err, ErrDamaged) {
		t.Error("members out of order:", err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"none": None.String(), "batch": Batch.String(), "begin": Begin.String(), "change": Change.String(), "conf": Conf.String(), "kind 9": Kind(9).String(),
		"announce": Announce.String(), "join": Join.String(), "leave": Leave.String(), "op 9": Op(9).String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
