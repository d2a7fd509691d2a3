package tools

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"mayfly/keyspace"
	"mayfly/test/drill"
)

// TestSlipsInPaths: nothing is made or written for a name that is probably misspelt.
func TestSlipsInPaths(t *testing.T) {
	h := newFixtureNow(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.Put(tx.Container("0"), "a", keyspace.Document, `{}`, 0)
	})
	t.Chdir(h.dir)
	h.run(exitOK, "", "export", "data", "all.ndjson")
	h.run(exitOK, "", "export", "data", "all.db", "--format", "buntdb")
	lines := string(h.read("all.ndjson"))
	before := h.list()

	for _, c := range []struct {
		input string
		args  string
		words []string
	}{
		{"", "import typo.ndjson", []string{"no such file: typo.ndjson", "--dir"}},
		{lines, "import typo.ndjson", []string{"no such file: typo.ndjson"}},
		{"", "import typo.ndjson data", []string{"no such file: typo.ndjson"}},
		{"", "import data typo.ndjson", []string{"no such file: typo.ndjson"}},
		{"", "import ./typo.JSON --container c --ttl -1", []string{"no such file: ./typo.JSON"}},
		{"", "import typo.db localhost:1", []string{"no such file: typo.db"}},
		{"", "import t/typo.nd localhost:1", []string{"no such file: t/typo.nd"}},
		{"", "import localhost:1 t/typo.nd", []string{"no such file: t/typo.nd"}},
		{"", "import --in - data", []string{"standard input is empty"}},
		{"", "import typo data", []string{"typo is no file, no data folder and no server"}},
		{"", "import --in typo.ndjson data", []string{"typo.ndjson", "no such file"}},
		{"", "import http://127.0.0.1:1", []string{"http:// addresses", "redis://host:port/number", "a server is host:port"}},
		{"", "import https://example.com/all.json data", []string{"https:// addresses"}},
		{"", "import all.ndjson http://localhost:1", []string{"http:// addresses"}},
		{"", "import all.ndjson redis://localhost:1", []string{"such a server is host:port, without redis://"}},
		{"", "import redis://localhost:1/0 rediss://localhost:1/0", []string{"one Redis", "without rediss://"}},
		{"", "export redis://localhost:1", []string{"a server of mayfly is host:port", "mayfly import redis://host:port/number --container <name>"}},
		{"", "export redis://u:secret@localhost:1/0 out.ndjson", []string{"mayfly import redis://host:port/number"}},
		{"", "export http://localhost:1/x", []string{"a server is host:port, perhaps localhost:1"}},
		{"", "check redis://localhost:1", []string{"check does not take redis:// addresses", "data folder"}},
		{"", "repair http://localhost:1 new", []string{"repair does not take http:// addresses"}},
		{"", "import all.db otherhost", []string{"otherhost is no file, no data folder and no server", "host:port", "--dir otherhost"}},
		{"", "import all.ndjson otherhost", []string{"otherhost is no file"}},
		{"", "import all.ndjson db.example.com", []string{"db.example.com is no file"}},
		{"", "import all.ndjson all.db", []string{"all.db is a file, not a data folder", "all.ndjson"}},
		{"", "import ./new", []string{"standard input is empty"}},
		{"", "import --dir new", []string{"standard input is empty"}},
		{"", "import data", []string{"standard input is empty"}},
		{"", "import localhost:1", []string{"standard input is empty"}},
		{"", "export localhost:6379 --format buntdb", []string{"name the file to write: mayfly export localhost:6379 all.db --format buntdb"}},
		{"", "export data --format buntdb", []string{"name the file to write: mayfly export data all.db"}},
		{"", "export data localhost:6379", []string{"localhost:6379 is the address of a server", "import"}},
		{"", "export typo", []string{"no such file or directory: typo", "host:port"}},
		{"", "export typo out.ndjson", []string{"no such file or directory: typo"}},
		{"", "export localhost", []string{"no such file or directory: localhost; a server is host:port"}},
		{"", "repair data all.ndjson", []string{"a repair makes a new folder: all.ndjson exists"}},
		{"", "check localhost:6379", []string{"localhost:6379 is the address of a server"}},
		{"", "repair localhost:6379 new", []string{"localhost:6379 is the address of a server"}},
	} {
		h.refused(c.input, c.words, strings.Fields(c.args)...)
		if after := h.list(); after != before {
			t.Fatalf("%s: the folder has %s, had %s", c.args, after, before)
		}
	}
	for _, args := range []string{"import ./new", "import --dir other", "import all.db ./third", "import all.ndjson --dir fourth.db", "import data", "import"} {
		if args == "import" {
			args = "import all.ndjson"
		}
		h.run(exitOK, lines, strings.Fields(args)...)
	}
	h.run(exitOK, "", "import", "data", "--container", "0") // as of an empty collection
	for _, dir := range []string{"new", "other", "third", "fourth.db"} {
		h.same(h.content(dir), h.content("data"))
	}
}

func TestImportFromATerminal(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var errs bytes.Buffer
	code := Run([]string{"import", "--dir", h.path("data")}, Environment{In: nil, Out: &bytes.Buffer{}, Err: &errs, Terminals: Terminals{In: true}})
	if code != exitFailed || !strings.Contains(errs.String(), "standard input is a terminal: name the file to read") {
		t.Errorf("%d: %s", code, &errs)
	}
	if h.list() != "" {
		t.Errorf("the folder has %s", h.list())
	}
}

// list returns the names in the test's folder.
func (h *fixture) list() string {
	h.t.Helper()
	entries, err := os.ReadDir(h.dir)
	drill.Check(h.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
