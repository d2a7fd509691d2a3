package tools

import (
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace"
)

// TestNumbersOnImport: a container keeps its number if that is free in the target.
func TestNumbersOnImport(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("from", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.CreateContainer("gone", 5, expiry.Strict)
		tx.Drop(tx.Container("gone"))
		for _, name := range []string{"a", "b", "c", "2025"} {
			tx.CreateContainer(name, 5, expiry.Strict)
		}
	})
	h.make("to", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.CreateContainer("c", 5, expiry.Strict)
		tx.CreateNumbered("other", 18, 5, expiry.Strict)
	})
	lines, _ := h.run(exitOK, "", "export", h.path("from"))
	if want := `{"container":"a","default":"5","mode":"strict","number":17,"created":`; !strings.Contains(lines, want) || strings.Count(lines, "number") != 4 {
		t.Errorf("the export is %s", lines)
	}
	_, report := h.run(exitOK, lines, "import", h.path("to"))
	for _, want := range []string{"container b has the number 19, not 18\n", "container c has the number 16, not 19\n"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report %s lacks %s", report, want)
		}
	}
	if n := strings.Count(report, "has the number"); n != 2 {
		t.Errorf("%d containers are reported: %s", n, report)
	}
	numbers := func(folder string, want map[string]uint32) {
		t.Helper()
		for name, c := range h.content(folder).Containers {
			if c.DB >= keyspace.Databases && c.DB != want[name] {
				t.Errorf("%s has number %d, not %d", name, c.DB, want[name])
			}
		}
	}
	numbers("to", map[string]uint32{"a": 17, "b": 19, "c": 16, "2025": 2025, "other": 18})
	h.run(exitOK, lines, "import", h.path("new"))
	numbers("new", map[string]uint32{"a": 17, "b": 18, "c": 19, "2025": 2025})
	for _, bad := range []string{"15", "1048576", "-1", "1.5", `"16"`} {
		_, report := h.run(exitIncomplete, `{"container":"x","default":"5","number":`+bad+"}", "import", h.path("new"))
		if !strings.Contains(report, "line 1: ") || !strings.Contains(report, "number") {
			t.Errorf("number %s: %s", bad, report)
		}
	}
	_, report = h.run(exitIncomplete, `{"container":"17","default":"5"}`, "import", h.path("new"))
	if want := "line 1: number 17 is that of container 'a'"; !strings.Contains(report, want) {
		t.Errorf("the report is %s", report)
	}
}
