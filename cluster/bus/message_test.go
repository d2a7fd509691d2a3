package bus

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// body returns the body of the one frame in b.
func body(t *testing.T, b []byte) []byte {
	t.Helper()
	if n := int(binary.BigEndian.Uint32(b)); n != len(b)-frameHead {
		t.Fatalf("a frame of %d bytes says that it has %d", len(b)-frameHead, n)
	}
	return b[frameHead:]
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{
		{Kind: Channel}, {Kind: Channel, Channel: "news", Text: "x"}, {Kind: Shard, Channel: "\xff\x00", Text: strings.Repeat("y", 300)},
		{Kind: Event, Channel: "__keyspace@carts__:7", Numbered: "__keyspace@16__:7", Text: "expired"}, {Kind: Event, Channel: "__keyevent@0__:del", Text: "k"},
	} {
		f, err := decode(body(t, appendMessage(nil, &m)))
		if err != nil || f.kind != m.Kind || f.message != m {
			t.Errorf("%+v is read as %+v (%v)", m, f, err)
		}
	}
	for _, filter := range []Filter{{}, {All: true}, {Channels: []string{"a", ""}, Patterns: []string{"__key*"}}} {
		f, err := decode(body(t, appendInterest(nil, 1<<40, &filter)))
		if err != nil || f.kind != frameInterest || f.number != 1<<40 || !reflect.DeepEqual(f.filter, filter) {
			t.Errorf("%+v is read as %+v (%v)", filter, f, err)
		}
	}
	if f, err := decode(body(t, appendPing(nil))); err != nil || f.kind != framePing {
		t.Errorf("a ping is read as %+v (%v)", f, err)
	}
	if f, err := decode([]byte{99, 1, 2}); err != nil || f.kind != 99 {
		t.Errorf("a frame of a later version: %+v (%v)", f, err)
	}
}

// FuzzDecode: whatever comes, decode neither panics nor takes more memory than the frame; what it reads, it
// writes again.
func FuzzDecode(f *testing.F) {
	for _, m := range []Message{{Kind: Channel, Channel: "news", Text: "x"}, {Kind: Event, Channel: "__keyspace@carts__:7", Numbered: "__keyspace@16__:7", Text: "expired"}} {
		f.Add(appendMessage(nil, &m)[frameHead:])
	}
	f.Add(appendInterest(nil, 7, &Filter{Channels: []string{"a"}, Patterns: []string{"b", "c"}})[frameHead:])
	f.Add([]byte{byte(Channel), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{byte(frameInterest), 0, 0, 0, 0, 0, 0, 0, 1, 2})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := decode(b)
		if err != nil {
			return
		}
		var again []byte
		switch first.kind {
		case Channel, Shard, Event:
			again = appendMessage(nil, &first.message)
		case frameInterest:
			again = appendInterest(nil, first.number, &first.filter)
		default:
			return
		}
		second, err := decode(again[frameHead:])
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%x is read as %+v, then as %+v (%v)", b, first, second, err)
		}
	})
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"*": true, "": false, "_*": true, "__key*": true, "__keyspace@0__:?": true, "__keyevent@*:expired": true, "[_]_key*": true, `\__key*`: true,
		"news*": false, "__keyX*": false, "__keyspace@0__:k": true, "__keyspac": false, "+switch-master": false, "__sentinel__:hello": false,
	} {
		if MayMatchEvents(pattern) != want {
			t.Errorf("%q: %v", pattern, !want)
		}
	}
	m := newMatcher(&Filter{Channels: []string{"__keyspace@16__:7"}, Patterns: []string{"__keyevent@carts__:*"}})
	for _, c := range []struct {
		named, numbered string
		want            bool
	}{
		{"__keyspace@carts__:7", "__keyspace@16__:7", true},
		{"__keyspace@carts__:8", "__keyspace@16__:8", false},
		{"__keyevent@carts__:del", "__keyevent@16__:del", true},
		{"__keyspace@0__:7", "", false},
	} {
		if m.match(c.named, c.numbered) != c.want {
			t.Errorf("%s, %s: %v", c.named, c.numbered, !c.want)
		}
	}
}
