package keyspace

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/keyspace/record"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the examples in FORMAT.md")

// The examples in FORMAT.md are the bytes of real files.
func TestFormatDocumentShowsRealFiles(t *testing.T) {
	dir := t.TempDir()
	order := Item{Kind: Document, Body: `{"sku":"A-1","ttl":30}`, TS: epoch, ExpireAt: epoch + 30_000, Version: 42}
	rec := string(record.Append(nil, "12:order-1", order))

	path := filepath.Join(dir, partitionFile(7))
	if err := os.WriteFile(path, seal{mark: 0x9f3a11c0}.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpenStore(t, path)
	applied(t, s, op{key: "12:order-1", rec: rec})
	applied(t, s, del("12:order-1"))
	s.close()

	newMark = func() uint32 { return 0x71b20c5d }
	defer func() { newMark = rand.Uint32 }()
	j := mustOpenJournal(t, dir, 4, 41, EverySec, nil)
	j.put(t, "12:order-1", rec)
	if err := j.sync(); err != nil {
		t.Fatal(err)
	}
	group := appendSet(appendDel(nil, "12:order-1"), "clock", string(record.Append(nil, "clock", Item{Kind: record.ClockKind, TS: epoch})))
	if err := j.wait(j.append(group)); err != nil {
		t.Fatal(err)
	}
	j.close()

	b, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for name, content := range map[string]string{
		partitionFile(7): string(read(t, path)),
		journalFile(4):   string(read(t, filepath.Join(dir, journalFile(4)))),
		formatName:       formatText(16),
	} {
		before, rest, ok := strings.Cut(doc, "\n```\n# "+name+"\n")
		_, after, ok2 := strings.Cut(rest, "```\n")
		if !ok || !ok2 {
			t.Fatalf("there is no example of %s", name)
		}
		shown := strings.ReplaceAll(content, "\n", "\\n\n")
		shown = strings.ReplaceAll(shown, "\r", "\\r")
		want := before + "\n```\n# " + name + "\n" + shown + "```\n" + after
		if *rewrite {
			doc = want
		} else if doc != want {
			t.Errorf("the example of %s should read\n%s", name, shown)
		}
	}
	if *rewrite {
		if err := os.WriteFile("FORMAT.md", []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
