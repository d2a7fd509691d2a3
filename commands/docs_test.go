package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// TestDocs plays the examples of the README and of every page in docs: the blocks marked "console".
// They are written like transcripts, but time passes in words: (10 seconds later). Each chapter has a
// keyspace of its own, in which its blocks are played one after the other. With -rewrite the replies
// become what the engine answers now.
func TestDocs(t *testing.T) {
	t.Parallel()
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
	drill.Check(t, err)
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
				player = &transcriptPlayer{t: t, harness: newHarness(t), session: 1}
				player.harness.do(1, "HELLO", "3") // the replies are those of redis-cli -3
			}
			first := i + 1
			for i++; lines[i] != "```"; i++ { // a block that is not closed ends the test with a panic
			}
			block := strings.Join(lines[first:i], "\n")
			for _, s := range parseTranscript(later.ReplaceAllStringFunc(block, clockLine)) {
				written := lines[first+s.line-1]
				s.line += first
				player.play(&s)
				if s.directive() == "clock" {
					player.harness.engine.Keyspace().PurgeOnce() // as a server does meanwhile
				}
				out = append(append(out, written), s.want...)
				played++
			}
			out = append(out, lines[i])
		}
		if *rewrite {
			drill.Check(t, os.WriteFile(file, []byte(strings.Join(out, "\n")), 0o644))
		}
	})
	return played
}

// TestDocsMatrix plays the table of the rules of time to live, on each page that has it: a document of
// each row, in a container of each column.
func TestDocsMatrix(t *testing.T) {
	t.Parallel()
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
		drill.Check(t, err)
		_, table, _ := strings.Cut(string(text), header)
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		if len(rows) != len(documents) {
			t.Fatalf("%s: the table of rules has %d rows, want %d", file, len(rows), len(documents))
		}
		w := newHarness(t)
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

// TestDocsLimits tries the limits of docs/limits.md that the engine holds: the number in the table is
// accepted, and one more is refused.
func TestDocsLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/limits.md")
	drill.Check(t, err)
	limits := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1) {
		limits[row[1]] = row[2]
	}
	letters := func(n int) string { return strings.Repeat("x", n) }
	repeat := func(n int, words ...string) (all []string) {
		for range n {
			all = append(all, words...)
		}
		return all
	}
	for _, tt := range []struct {
		row  string
		nth  int // which number of the row
		args func(n int) []string
	}{
		{"nesting of a document", 0, func(n int) []string {
			return []string{"DOC.PUT", "c", "1", strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)}
		}},
		{"operations of a `DOC.PATCH`, paths of a `DOC.GET`", 0, func(n int) []string {
			return append([]string{"DOC.PATCH", "c", "1"}, repeat(n, "SET", "/a", "1")...)
		}},
		{"operations of a `DOC.PATCH`, paths of a `DOC.GET`", 1, func(n int) []string {
			return append([]string{"DOC.GET", "c", "1", "PATH"}, repeat(n, "/a")...)
		}},
		{"a pattern with `*` or `[`", 0, func(n int) []string { return []string{"KEYS", "*" + letters(n-1)} }},
		{"a channel's name", 0, func(n int) []string { return []string{"SUBSCRIBE", letters(n)} }},
		{"what a client says of itself: its name, its library's name and version", 0, func(n int) []string {
			return []string{"CLIENT", "SETNAME", letters(n)}
		}},
		{"an id", 1, func(n int) []string { return []string{"DOC.PUT", "c", letters(n), "{}"} }},
		{"a container's name", 1, func(n int) []string { return []string{"CONTAINER.SET", letters(n), "TTL", "1"} }},
		{"the text of a query", 0, func(n int) []string { return []string{"DOC.QUERY", "c", "WHERE a = 1" + strings.Repeat(" ", n-11)} }},
		{"nesting of a query", 0, func(n int) []string {
			return []string{"DOC.QUERY", "c", "WHERE " + strings.Repeat("(", n-1) + "a" + strings.Repeat(")", n-1)}
		}},
		{"values of an IN", 0, func(n int) []string {
			return []string{"DOC.QUERY", "c", "WHERE a IN (1" + strings.Repeat(",1", n-1) + ")"}
		}},
		{"parameters of a query", 0, func(n int) []string {
			args := []string{"DOC.QUERY", "c", "", "PARAMS"}
			for i := range n {
				args = append(args, fmt.Sprint("@p", i), "1")
			}
			return args
		}},
		{"items of SELECT", 0, func(n int) []string { return []string{"DOC.QUERY", "c", "SELECT 1" + strings.Repeat(",1", n-1)} }},
		{"paths of an ORDER BY, GROUP BY or index", 0, func(n int) []string {
			return []string{"DOC.QUERY", "c", "ORDER BY a" + strings.Repeat(",a", n-1)}
		}},
		{"paths of an ORDER BY, GROUP BY or index", 0, func(n int) []string {
			return []string{"DOC.QUERY", "c", "SELECT COUNT(1) GROUP BY a" + strings.Repeat(",a", n-1)}
		}},
		{"paths of an ORDER BY, GROUP BY or index", 0, func(n int) []string {
			args := []string{"INDEX.CREATE", "c"}
			for i := range n {
				args = append(args, fmt.Sprint("/p", i))
			}
			return args
		}},
		{"rows of a page", 0, func(n int) []string { return []string{"DOC.QUERY", "c", "", "COUNT", strconv.Itoa(n)} }},
		{"ids that `CONTAINER.PLAN` samples", 0, func(n int) []string {
			return []string{"CONTAINER.PLAN", "c", "TTL", "5", "SAMPLE", strconv.Itoa(n)}
		}},
		{"buckets of `CONTAINER.FORECAST`", 0, func(n int) []string { return []string{"CONTAINER.FORECAST", "c", "BUCKETS", strconv.Itoa(n)} }},
		{"seconds of a bucket", 0, func(n int) []string { return []string{"CONTAINER.FORECAST", "c", "EVERY", strconv.Itoa(n)} }},
		{"ids of a page of `CONTAINER.DUE`", 0, func(n int) []string { return []string{"CONTAINER.DUE", "c", "0", "COUNT", strconv.Itoa(n)} }},
		{"the reason of a hold", 1, func(n int) []string { return []string{"CONTAINER.SET", "c", "HOLD", letters(n)} }},
		{"the name of a deadline's member", 1, func(n int) []string { return []string{"CONTAINER.CREATE", fmt.Sprint("d", n), "DEADLINE", letters(n)} }},
		{"a deadline", 1, func(n int) []string { return []string{"DOC.PUT", "ends", "1", fmt.Sprintf(`{"end":%d}`, n)} }},
		{"the age of `DOC.GETTOUCH … MINAGE`", 0, func(n int) []string { return []string{"DOC.GETTOUCH", "c", "1", "MINAGE", strconv.Itoa(n)} }},
		{"a time to live", 0, func(n int) []string { return []string{"CONTAINER.SET", "c", "TTL", strconv.Itoa(n)} }},
	} {
		numbers := regexp.MustCompile(`\d+`).FindAllString(limits[tt.row], -1)
		if len(numbers) <= tt.nth {
			t.Errorf("docs/limits.md: no limit for %s", tt.row)
			continue
		}
		limit, _ := strconv.Atoi(numbers[tt.nth]) // digits
		w := newHarness(t)
		w.expect("OK", "CONTAINER.SET", "c", "TTL", "-1")
		w.expect("OK", "DOC.PUT", "c", "1", `{"a":1}`)
		w.expect("OK", "CONTAINER.CREATE", "ends", "TTL", "-1", "DEADLINE", "end")
		if got := notation(w.do(1, tt.args(limit)...)); strings.HasPrefix(got, "(error)") {
			t.Errorf("%s: %d is refused: %.200s", tt.row, limit, got)
		}
		if got := notation(w.do(2, tt.args(limit+1)...)); !strings.HasPrefix(got, "(error)") {
			t.Errorf("%s: %d is accepted: %.200s", tt.row, limit+1, got)
		}
	}
}

// TestDocsMemory measures what docs/limits.md says of the memory of items and containers.
func TestDocsMemory(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/limits.md")
	drill.Check(t, err)
	m := regexp.MustCompile(`overhead is (\d+) bytes for an item of (\d+) bytes with an id of (\d+)\D[^.]*\.` +
		` Containers count too: about (\d+) bytes each, and (\d+) for each partition`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("docs/limits.md: no sentences on the memory of items and containers")
	}
	var n [5]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // digits
	}
	overhead, size, id, container, partition := n[0], n[1], n[2], n[3], n[4]

	w := newHarness(t)
	used := func() int { return int(w.engine.Keyspace().Used()) }
	before := used()
	w.expect("OK", "CONTAINER.SET", "orders", "TTL", "3600")
	if got := used() - before; got < container*8/10 || got > container*12/10 {
		t.Errorf("a container takes %d bytes, docs/limits.md says about %d", got, container)
	}
	before = used()
	document := `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
	w.expect("OK", "DOC.PUT", "orders", strings.Repeat("i", id), document)
	if got, want := used()-before, size+id+overhead+partition; got != want {
		t.Errorf("the first document of a container takes %d bytes, docs/limits.md says %d", got, want)
	}
	w.expect("OK", "SELECT", "orders")
	w.expect(fmt.Sprintf("(integer) %d", size+id+overhead), "MEMORY", "USAGE", strings.Repeat("i", id))
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
