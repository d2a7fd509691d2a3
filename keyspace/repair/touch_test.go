package repair

import (
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/vfs/vfstest"
)

// A touch counts for the body that it names. If that is lost, the report says so, also if nothing else tells
// of the item. If the touch itself is damaged, the item is copied with its earlier header.
func TestRepairOfTouches(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	body := func(name string) string { return `{"` + name + `":"` + strings.Repeat("x", 5000) + `"}` }
	touch := func(id string) {
		o.key(id, func(tx *keyspace.Tx) {
			c := tx.Container("0")
			it, _ := tx.Get(c, id)
			tx.Put(c, id, it.Kind, it.Body, expiry.Never)
		})
	}
	o.put("0", "twice", body("first"), expiry.Inherit)
	o.put("0", "twice", body("second"), expiry.Inherit)
	untouched := o.dump()[place{"0", "twice"}]
	o.put("0", "once", body("only"), expiry.Inherit)
	touch("twice")
	touch("once")
	touch("once")
	l := o.copied(o.dump())
	file := l.journals()[0]

	report, state := repaired(t, l.copy(file, func(b []byte) []byte { return b }))
	if !report.Clean() {
		t.Errorf("a sound folder: %+v", report)
	}
	compare(t, "a sound folder", l.state, state, nil)

	report, state = repaired(t, l.flipIn(file, `"second"`, 3))
	if got := state[place{"0", "twice"}].Body; got != body("first") || len(report.Older) != 1 || report.Older[0].ID != "twice" || len(report.Lost) > 0 {
		t.Errorf("the newest body: %.20s, %+v", got, report)
	}
	report, state = repaired(t, l.flipIn(file, `"only"`, 3))
	if _, ok := state[place{"0", "once"}]; ok || len(report.Lost) != 1 || report.Lost[0].ID != "once" || len(report.Older) > 0 {
		t.Errorf("the only body: %t, %+v", ok, report)
	}
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, file)))
	at := strings.Index(content, "touch/")
	text := content[at : at+strings.Index(content[at:], " h ")+len(" h 1")] // up to the time
	report, state = repaired(t, l.flipIn(file, text, len(text)-1))
	if got := state[place{"0", "twice"}]; got != untouched || len(report.Older) != 1 || report.Older[0].ID != "twice" || report.Files[len(report.Files)-2].Problems[0].ID != "twice" {
		t.Errorf("the touch: %d, %+v", got.ExpireAt, report)
	}
}
