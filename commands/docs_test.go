package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocs plays the examples of the README and of every page in docs: the blocks marked "console".
// They are written like transcripts, but time passes in words: (10 seconds later). Each chapter has a
// keyspace of its own, in which its blocks are played one after the other. With -rewrite the replies
// become what the engine answers now.
func TestDocs(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages in docs: ", err)
	}
	played := 0
	for _, file := range append(files, "../README.md") {
		played += playPage(t, file)
	}
	if played == 0 {
		t.Error("the docs have no examples")
	}
}

// playPage plays the examples of one page and returns how many commands they have.
func playPage(t *testing.T, file string) (played int) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
		lines := strings.Split(string(text), "\n")
		var out []string
		var player *transcriptPlayer
		for i := 0; i < len(lines); i++ {
			out = append(out, lines[i])
			if strings.HasPrefix(lines[i], "## ") {
				player = nil
			}
			if lines[i] != "```console" {
				continue
			}
			if player == nil {
				player = &transcriptPlayer{t: t, world: newWorld(t), session: 1}
			}
			first := i + 1
			for i++; lines[i] != "```"; i++ { // a block that is not closed ends the test with a panic
			}
			block := strings.Join(lines[first:i], "\n")
			for _, s := range parseTranscript(later.ReplaceAllStringFunc(block, clockLine)) {
				written := lines[first+s.line-1]
				s.line += first
				player.play(&s)
				out = append(append(out, written), s.want...)
				played++
			}
			out = append(out, lines[i])
		}
		if *rewrite {
			if err := os.WriteFile(file, []byte(strings.Join(out, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	return played
}

// TestDocsMatrix plays the table of the rules of time to live, on each page that has it: a document of
// each row, in a container of each column.
func TestDocsMatrix(t *testing.T) {
	const header = "| document \\ container | TTL off | TTL -1 | TTL n |\n|---|---|---|---|\n"
	ttls := []string{"off", "-1", "100"}
	documents := map[string]string{"no `ttl`": `{}`, "`ttl` = -1": `{"ttl":-1}`, "`ttl` = m": `{"ttl":50}`}
	meaning := map[string]string{
		"lives for ever":                      "(integer) -1",
		"dies n seconds after its last write": "(integer) 100",
		"dies m seconds after its last write": "(integer) 50",
	}
	for _, file := range []string{"../README.md", "../docs/ttl.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), header)
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		if len(rows) != len(documents) {
			t.Fatalf("%s: the table of rules has %d rows, want %d", file, len(rows), len(documents))
		}
		w := newWorld(t)
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			document := documents[cells[0]]
			if document == "" || len(cells) != 1+len(ttls) {
				t.Fatalf("%s: no row of the table of rules: %s", file, row)
			}
			for i, ttl := range ttls {
				w.expect("OK", "CONTAINER.SET", "c", "TTL", ttl)
				w.expect("OK", "DOC.PUT", "c", "1", document)
				w.expect(meaning[cells[i+1]], "DOC.TTL", "c", "1")
			}
		}
	}
}

// later is a line of an example that lets time pass.
var later = regexp.MustCompile(`(?m)^\((\d+) (second|minute|hour|day)s? later\)$`)

// clockLine returns the same in the words of transcripts.
func clockLine(line string) string {
	words := later.FindStringSubmatch(line)
	n, _ := strconv.Atoi(words[1]) // digits
	inSeconds := map[string]int{"second": 1, "minute": 60, "hour": 3600, "day": 86400}
	return "clock +" + strconv.Itoa(n*inSeconds[words[2]]) + "s"
}
