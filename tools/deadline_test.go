package tools

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// Deadlines outlive an export and import, a backup and a repair, and go on ruling there.
func TestDeadlinesAreKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		c, err := tx.CreateRuled("sessions", 0, expiry.Policy{Default: 1200, Deadline: "expiresAt"})
		drill.Check(t, err)
		tx.Put(c, "deadline", keyspace.Document, `{"ttl":1200,"expiresAt":1700000100}`, epoch+100_000)
		tx.Put(c, "ttl", keyspace.Document, `{"ttl":50,"expiresAt":"2023-11-14T22:15:00Z"}`, epoch+50_000)
		tx.Put(c, "none", keyspace.Document, `{}`, expiry.Inherit)
		tx.Put(c, "plain", keyspace.Plain, "x", epoch+90_000)
		tx.Put(c, "list", keyspace.Document, `["expiresAt","ttl"]`, epoch+80_000)
		tx.Put(c, "number", keyspace.Document, `5`, expiry.Never)
	})
	h.clock.Advance(10 * time.Second)
	lines, _, want := h.carried("data")
	if !strings.Contains(lines, `{"container":"sessions","default":"1200","mode":"strict","deadline":"expiresAt",`) {
		t.Error(lines)
	}
	if len(want.Items) != 6 || want.Containers["sessions"].Policy.Deadline != "expiresAt" {
		t.Fatalf("%+v", want)
	}
}

// carried exports and imports a folder, backs it up and repairs it, each of which must give the same. It
// returns the lines of the export, the report of the import, and the content.
func (h *fixture) carried(data string) (lines, report string, want content) {
	h.t.Helper()
	ks := h.open(data, 2)
	drill.Check(h.t, ks.Backup(h.path("backup")))
	h.close(ks)
	lines, _ = h.run(exitOK, "", "export", h.path(data))
	_, report = h.run(exitOK, lines, "import", h.path("imported"), "--partitions", "2")
	h.run(exitOK, "", "repair", h.path(data), h.path("repaired"))
	want = h.content(data)
	for _, name := range []string{"imported", "repaired", "backup"} {
		if got := h.content(name); !reflect.DeepEqual(got, want) {
			h.t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	return lines, report, want
}

// An import into a container obeys the container's deadline, wherever the documents are from.
func TestImportObeysTheDeadline(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		for _, mode := range []expiry.Mode{expiry.Strict, expiry.Lenient} {
			if _, err := tx.CreateRuled(mode.String(), 0, expiry.Policy{Default: 1000, Mode: mode, Deadline: "end"}); err != nil {
				t.Fatal(err)
			}
		}
		tx.Put(tx.Container("strict"), "there", keyspace.Document, `{}`, expiry.Inherit)
	})
	// Of a folder without deadlines: recorded ends give way, and the container that has items keeps its rule.
	lines := `{"container":"strict","default":"1000","deadline":"until"}
{"container":"strict","id":"a","ts":1699999999000,"end":1700000500000,"doc":{"end":1700000300,"until":1700000500}}
{"container":"strict","id":"b","ts":1699999999000,"ttl":10,"doc":{"end":1700000300,"ttl":10}}
{"container":"strict","id":"past","ts":1699999999000,"doc":{"end":1699999999}}
{"container":"strict","id":"plain","ts":1699999999000,"end":1700000500000,"value":"x"}
`
	_, report := h.run(exitOK, lines, "import", h.path("data"))
	if !strings.Contains(report, "container strict keeps its settings: DEADLINE end, not until;") {
		t.Error(report)
	}
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		_, report = h.run(exitIncomplete, lines, "import", h.path("data"), "--apply-settings", dry)
		if !strings.Contains(report, `line 1: container "strict" has items, whose ends are recorded: its deadline stays "end" and does not become "until"`) {
			t.Error(dry, report)
		}
	}
	// Of another system: the documents are new, and the mode decides.
	documents := `{"id":"x","end":1700000300}
{"id":"y","end":"soon"}
{"id":"z","end":5}
{"id":"cosmos","end":"soon","_rid":"x","_ts":1699999999}
`
	_, report = h.run(exitIncomplete, documents, "import", h.path("data"), "--container", "strict")
	for _, words := range []string{`line 2: invalid end "soon"`, "line 3: invalid end 5: legal are moments that have not passed", `line 4: invalid end "soon"`} {
		if !strings.Contains(report, words) {
			t.Errorf("%q is not in %s", words, report)
		}
	}
	h.run(exitOK, documents, "import", h.path("data"), "--container", "lenient")
	c := h.content("data")
	if p := c.Containers["strict"].Policy; p.Deadline != "end" {
		t.Errorf("%+v", p)
	}
	want := map[[2]string]int64{
		{"strict", "there"}: expiry.Inherit, {"strict", "a"}: expiry.CapAt(1700000300000), {"strict", "b"}: 1700000009000, {"strict", "plain"}: 1700000500000,
		{"strict", "x"}: expiry.CapAt(1700000300000), {"lenient", "x"}: expiry.CapAt(1700000300000), {"lenient", "y"}: expiry.Inherit, {"lenient", "cosmos"}: expiry.Inherit,
	}
	for at, it := range c.Items {
		if end, ok := want[at]; !ok || it.ExpireAt != end {
			t.Errorf("%v is %+v", at, it)
		}
	}
	if len(c.Items) != len(want) {
		t.Errorf("%d items, want %d: %+v", len(c.Items), len(want), c.Items)
	}
	h.refused(`{"container":"c","default":"-1","deadline":"`+strings.Repeat("x", 65)+`"}`+"\n", nil, "import", h.path("data"), "--strict")
}
