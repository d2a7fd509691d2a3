package tools

import (
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
)

// Holds outlive an export and import, a backup and a repair, and what is overdue lives there too.
func TestHoldsAreKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		c := tx.CreateContainer("orders", 10, expiry.Strict)
		tx.Put(c, "default", keyspace.Document, `{}`, expiry.Inherit)
		tx.Put(c, "own", keyspace.Document, `{"ttl":5}`, epoch+5000)
		tx.Put(c, "plain", keyspace.Plain, "x", epoch+90_000)
		tx.Put(c, "never", keyspace.Plain, "x", expiry.Never)
		tx.SetHold(c, `case "4711" – Müller`)
	})
	h.clock.Advance(time.Hour)
	lines, report, want := h.carried("data")
	if !strings.Contains(report, "4 items; 0 are dead") {
		t.Error(report)
	}
	if len(want.Items) != 4 || want.Containers["orders"].Policy.Hold != `case "4711" – Müller` {
		t.Fatalf("%+v", want)
	}
	// The same import again changes nothing, and is no error.
	if _, report := h.run(exitOK, lines, "import", h.path("imported")); !strings.Contains(report, "4 are older") {
		t.Error(report)
	}
}

// An import changes nothing that is on hold in the target. It reports what it had to leave out.
func TestImportIntoAContainerOnHold(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		c := tx.CreateContainer("orders", 100, expiry.Strict)
		tx.Put(c, "a", keyspace.Document, `{"here":1}`, expiry.Inherit)
		tx.SetHold(c, "case 4711")
		free := tx.CreateContainer("free", 100_000, expiry.Strict)
		tx.Put(free, "a", keyspace.Document, `{"here":1}`, expiry.Inherit)
	})
	h.clock.Advance(time.Hour)
	later := `{"container":"orders","id":"a","ts":1700000001000,"doc":{"there":1}}
{"container":"orders","id":"b","ts":1700000001000,"doc":{"there":1}}
`
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		_, report := h.run(exitIncomplete, later+strings.SplitAfter(later, "\n")[1], "import", h.path("data"), dry)
		for _, want := range []string{"line 1: container 'orders' is on hold: case 4711", "0 containers and 1 items; 0 are dead, 1 are older than the target's, 1 lines are bad"} {
			if !strings.Contains(report, want) {
				t.Errorf("%s: no %q in\n%s", dry, want, report)
			}
		}
	}
	for _, line := range []string{
		`{"container":"orders","default":"5"}`, `{"container":"orders","default":"100","hold":"case 12"}`,
	} {
		if _, report := h.run(exitOK, line+"\n", "import", h.path("data")); !strings.Contains(report, "container orders keeps its settings: ") {
			t.Errorf("%s: %s", line, report)
		}
		for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
			if _, report := h.run(exitIncomplete, line+"\n", "import", h.path("data"), "--apply-settings", "--max-kill", "9", dry); !strings.Contains(report, "line 1: container 'orders' is on hold: case 4711") {
				t.Errorf("%s, %s: %s", line, dry, report)
			}
		}
	}
	h.refused("", []string{"invalid --max-kill -1: legal are whole numbers from 0"}, "import", h.path("data"), "--apply-settings", "--max-kill", "-1")
	h.run(exitOK, `{"container":"orders","default":"100","hold":"case 4711"}`+"\n"+`{"container":"orders","default":"100"}`+"\n", "import", h.path("data"))
	// A hold of the source holds the target's items too, if that is wanted.
	held := `{"container":"free","default":"100000","hold":"case 12"}
{"container":"free","id":"a","ts":1700000001000,"doc":{"there":1}}
{"container":"free","id":"b","ts":1700000001000,"doc":{"there":1}}
`
	if _, report := h.run(exitOK, strings.SplitAfter(held, "\n")[0], "import", h.path("data")); !strings.Contains(report, "HOLD off, not case 12;") {
		t.Error(report)
	}
	h.run(exitIncomplete, held, "import", h.path("data"), "--apply-settings")
	c := h.content("data")
	if it := c.Items[[2]string{"free", "a"}]; len(c.Items) != 4 || it.Body != `{"here":1}` {
		t.Errorf("%+v", c.Items)
	}
	if it := c.Items[[2]string{"orders", "a"}]; it.Body != `{"here":1}` || c.Containers["orders"].Policy.Default != 100 || c.Containers["free"].Policy.Hold != "case 12" {
		t.Errorf("%+v", c)
	}
	h.refused(`{"container":"c","default":"-1","hold":"`+strings.Repeat("x", 256)+`"}`+"\n", nil, "import", h.path("data"), "--strict")
}
