package replica

import (
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// set returns the command that sets an item.
func set(key string, it record.Item) string {
	return string(aof.AppendSet(nil, key, string(record.Append(nil, key, it))))
}

// container returns the command that sets a container.
func container(c record.Container) string {
	return string(aof.AppendSet(nil, record.ContainerKey(c.Number), string(c.Append(nil))))
}

func del(key string) string { return string(aof.AppendDel(nil, key)) }

var document = record.Item{Kind: record.Document, Body: `{"n":1}`, TS: 5, Version: 9}

// someBatch has a change of each kind.
func someBatch() string {
	touch := record.TouchItem(record.Item{TS: 7, ExpireAt: -1, Version: 0x30}, 0x20)
	return set("3:a", document) + del("3:b") + set(record.TouchKey("4:c"), touch) +
		set(record.ClockKey, record.Item{Kind: record.ClockKind, TS: 100, Version: 2}) +
		container(record.Container{Number: 3, Name: "x", DB: 20, Etag: 0x40}) + del(record.ContainerKey(4)) +
		container(record.Container{Number: 4, Name: "y", DB: 21, Etag: 0x10, Aside: &record.Aside{What: "dropped", Until: 1, Order: 0x50}})
}

func TestReadBatch(t *testing.T) {
	t.Parallel()
	var b Batch
	for range 2 { // it is used again
		drill.Check(t, b.Read(someBatch()))
		if len(b.Items) != 3 || b.Items[0].Change != ItemPut || b.Items[1].Change != ItemRemoved || b.Items[2].Change != ItemTouched {
			t.Fatalf("the items are %+v", b.Items)
		}
		if it := b.Items[0]; it.ID != "a" || it.Container != 3 || it.Item != document || !strings.HasSuffix(it.Text, document.Body) {
			t.Errorf("the first item is %+v", it)
		}
		if it := b.Items[2]; it.ID != "c" || it.Container != 4 || it.Base != 0x20 || it.Version != 0x30 || it.ExpireAt != -1 {
			t.Errorf("the touch is %+v", it)
		}
		if n := b.Numbers(); len(n) != 2 || n[0] != 3 || n[1] != 4 || b.Records[3].Name != "x" || b.Records[4].Name != "y" {
			t.Errorf("the records are %v", b.Records)
		}
		if b.Clock.TS != 100 || b.Clock.Version != 2 || b.Version != 0x50 || !b.Undo || b.Logs || b.Deletes {
			t.Errorf("the clock is %+v, the version %x, undo %v, logs %v, deletes %v", b.Clock, b.Version, b.Undo, b.Logs, b.Deletes)
		}
	}
	drill.Check(t, b.Read(container(record.Container{Number: 3, Name: "x", Log: &record.Log{Number: 9, Deletes: true}})+del(record.ContainerKey(3))))
	if rec, ok := b.Records[3]; rec != nil || !ok || !b.Logs || !b.Deletes || len(b.Items) != 0 || b.Clock.TS != 0 || b.Version != 0 {
		t.Errorf("the batch is %+v", b)
	}
}

func TestReadBatchRefuses(t *testing.T) {
	t.Parallel()
	damaged := strings.Replace(set("3:a", document), `{"n":1}`, `{"n":2}`, 1)
	for _, tt := range []struct{ text, want string }{
		{"SET a b", "at byte 0"},
		{set("3:a", document) + damaged, "checksum"},
		{set("3:a", document)[:30], "no command"},
		{set("a", document), `key "a"`},
		{del(record.TouchKey("3:a")), "a touch is deleted"},
		{set(record.TouchKey("3:a"), document), "not a touch"},
		{set(record.ContainerKey(3), document), "container/3"},
		{del("container/x"), "not a container's number"},
		{set(record.WasteKey, document), "waste"},
	} {
		var b Batch
		if err := b.Read(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// FuzzBatch: what can be read is made of commands, and each item has a key and a record that fit.
func FuzzBatch(f *testing.F) {
	f.Add(someBatch())
	f.Add(set("3:a", document) + set("4~0000019b76dacf1100000003:a", record.Item{Kind: record.Entry, Body: "{}", TS: 1, Version: 1}))
	f.Add(set(record.PositionKey, record.Item{Kind: record.ReplicaKind, Body: "1", TS: 1, Version: 1}))
	f.Fuzz(func(t *testing.T, text string) {
		var b Batch
		if b.Read(text) != nil {
			return
		}
		for _, it := range b.Items {
			key := string(record.AppendKey(nil, it.Container, it.ID))
			if it.Log {
				key = string(record.AppendLogKey(nil, it.Container, it.ID))
			}
			if is, _, err := record.Decode(key, it.Text); it.Change == ItemPut && (err != nil || is != it.Item) {
				t.Errorf("%q is %+v, %v", it.Text, it.Item, err)
			}
			it.Partition(16)
		}
		for number, c := range b.Records {
			if c != nil && c.Number != number {
				t.Errorf("container %d has the number %d", c.Number, number)
			}
		}
	})
}
