package replica

import (
	"bytes"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// read applies commands to a tail.
func read(t *testing.T, tail *Tail, ops []aof.Op) {
	t.Helper()
	for _, o := range ops {
		if ok, err := tail.Read(o.Key, o.Rec, o.Del); !ok || err != nil {
			t.Fatalf("%q: %v %v", o.Key, ok, err)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	var got Tail
	for _, want := range []Tail{
		{Position: Position{1, 1, 0}, State: []byte{}}, {Position: Position{1<<63 + 5, 1<<63 + 7, 1700000000000}, State: []byte("a\r\nb\x00")}, {Position: Position{3, 9, 5}, State: nil},
	} {
		before := got.State
		read(t, &got, want.Ops())
		if want.State == nil {
			want.State = before
		}
		if got.Position != want.Position || !bytes.Equal(got.State, want.State) || (got.State == nil) != (want.State == nil) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	var text aof.Commands
	if text = got.AppendTo(text); string(text.Text) != string(aof.AppendOps(nil, got.Ops())) {
		t.Errorf("the commands are %q", text.Text)
	}
	read(t, &got, Removal())
	if got.Index != 0 || got.State != nil {
		t.Errorf("after the removal: %+v", got)
	}
	for key, item := range map[string]record.Item{
		record.PositionKey: {Kind: record.ClockKind, Body: "1"}, record.StateKey: {Kind: record.Plain}, "position ": {Kind: record.ReplicaKind},
	} {
		ok, err := got.Read(key, string(record.Append(nil, key, item)), false)
		if ours := key != "position "; ok != ours || (err != nil) != ours {
			t.Errorf("%q with kind %q: %v %v", key, item.Kind, ok, err)
		}
	}
}

// FuzzRead: what is read of a record is what a record of it says.
func FuzzRead(f *testing.F) {
	for _, t := range []Tail{{Position: Position{1, 1, 0}, State: []byte("s")}, {Position: Position{1 << 40, 7, 1700000000000}, State: nil}} {
		for _, o := range t.Ops() {
			f.Add(o.Key, o.Rec)
		}
	}
	f.Add(record.PositionKey, string(record.Append(nil, record.PositionKey, record.Item{Kind: record.ReplicaKind, Body: "-1"})))
	f.Add(record.PositionKey, string(record.Append(nil, record.PositionKey, record.Item{Kind: record.ReplicaKind, Body: "18446744073709551616"})))
	f.Fuzz(func(t *testing.T, key, rec string) {
		var got, again Tail
		ok, err := got.Read(key, rec, false)
		if !ok || err != nil {
			if got.Index != 0 || got.State != nil {
				t.Fatalf("%v %v: %+v", ok, err, got)
			}
			return
		}
		for _, o := range got.Ops() {
			if ok, err := again.Read(o.Key, o.Rec, false); !ok || err != nil {
				t.Fatalf("%q %q: %v", o.Key, o.Rec, err)
			}
		}
		if again.Position != got.Position || !bytes.Equal(again.State, got.State) {
			t.Fatalf("%+v is read as %+v", got, again)
		}
	})
}
