package record

import (
	"reflect"
	"strings"
	"testing"

	"mayfly/expiry"
)

// TestHistoryRoundTrip writes and reads a record with every field of a history, from cached texts and without.
func TestHistoryRoundTrip(t *testing.T) {
	h := &History{}
	for _, e := range []expiry.HistoryEntry{
		{At: 1, What: expiry.Created, Policy: expiry.Policy{Default: 60}, Etag: 1, Kills: -1},
		{At: 2, What: expiry.Set, Policy: expiry.Policy{Default: expiry.Forever, Mode: expiry.Lenient, InheritDeadTo: 7, Deadline: "é\n"}, Etag: 1 << 63, By: `127.0.0.1:5001 ("ops"\)`, Kills: 0, Undo: 9, Undone: true},
		{At: 3, What: expiry.Held, Policy: expiry.Policy{OwnDeadTo: 8, Hold: "case 4711"}, Etag: 3, Kills: 5, Reason: "case 4711"},
	} {
		h = h.With(e)
	}
	c := Container{Number: 12, Name: "orders", Created: 1, Policy: h.Entries[2].Policy}.WithHistory(h)
	rec := string(c.Append([]byte("before")))[len("before"):]
	plain := c
	plain.texts = nil
	if text := string(plain.Append(nil)); text != rec {
		t.Errorf("without texts the record is\n%s, not\n%s", text, rec)
	}
	it, _, err := Decode(ContainerKey(12), rec)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadContainer(ContainerKey(12), it)
	if err != nil || read.Etag != 3 || !reflect.DeepEqual(read.History, h.Entries) || read.Policy != c.Policy {
		t.Errorf("%v: %+v, not %+v", err, read, c)
	}
	for _, wrong := range []string{`"etag":"x"`, `"etag":1`, `"ttl":"soon"`, `"dead_to":7`} {
		it.Body = `{"name":"c","ttl":"60","history":[{"ttl":"60","etag":"1"},{"ttl":"60","etag":"1",` + wrong + `}]}`
		if _, err := ReadContainer(ContainerKey(12), it); err == nil || !strings.Contains(err.Error(), "container/12") {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

// TestFullHistory: the oldest entry goes, unless it has set what still rules.
func TestFullHistory(t *testing.T) {
	h := &History{}
	for at := range int64(expiry.MostHistory + 8) {
		h = h.With(expiry.HistoryEntry{At: at, What: expiry.Set, Etag: uint64(at), By: "ops"})
	}
	before := *h
	if len(h.Entries) != expiry.MostHistory || h.Entries[0].At != 8 || h.Etag != uint64(expiry.MostHistory+7) {
		t.Errorf("the history is %+v", h)
	}
	for at := range int64(expiry.MostHistory + 8) {
		h = h.With(expiry.HistoryEntry{At: 100 + at, What: expiry.Flushed, Etag: before.Etag})
	}
	if len(h.Entries) != expiry.MostHistory || h.Entries[0].At != int64(expiry.MostHistory+7) || h.Entries[1].What != expiry.Flushed {
		t.Errorf("the history is %+v", h)
	}
	if before.Entries[0].At != 8 || len(before.Entries) != expiry.MostHistory {
		t.Error("a former history has changed")
	}
	if set := expiry.SetBy(h.Entries); set.By != "ops" || set.What != expiry.Set {
		t.Errorf("the settings are of %+v", set)
	}
}
