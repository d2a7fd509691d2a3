package harness

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// Rewrite is true if tests write what is generated in the docs anew.
var Rewrite = flag.Bool("rewrite", false, "write the generated tables of the docs anew")

// Guides returns the README and the pages in docs, by path.
func Guides(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages in docs: ", err)
	}
	return ReadFiles(t, append(files, "README.md", "CONTRIBUTING.md"))
}

// ReadFiles returns texts by path.
func ReadFiles(t *testing.T, files []string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		drill.Check(t, err)
		texts[filepath.ToSlash(file)] = string(text)
	}
	return texts
}

// CheckTables compares tables in the README and in docs, by name, with what they should be. Each stands on
// one page, between the comments <!-- begin name --> and <!-- end name -->. With -rewrite it writes them
// anew.
func CheckTables(t *testing.T, tables map[string]string) {
	t.Helper()
	pages := Guides(t)
	for name, want := range tables {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
		found := 0
		for page, text := range pages {
			before, rest, ok1 := strings.Cut(text, begin)
			got, after, ok2 := strings.Cut(rest, end)
			if !ok1 || !ok2 {
				continue
			}
			found++
			if got != want && !*Rewrite {
				t.Errorf("%s: the table of %s is not what the program has; write it anew with\n"+
					"\tgo test ./test/docs ./test/clients -run Tables -rewrite\n%s", page, name, Difference(got, want))
			}
			pages[page] = before + begin + want + end + after
		}
		if found != 1 {
			t.Errorf("%d pages have %s and %s, want 1", found, strings.TrimSpace(begin), strings.TrimSpace(end))
		}
	}
	if !*Rewrite {
		return
	}
	for page, text := range pages {
		drill.Check(t, os.WriteFile(page, []byte(text), 0o644))
	}
}

// Difference lists the lines that only one of two texts has.
func Difference(got, want string) string {
	var out strings.Builder
	list := func(sign, text, other string) {
		for line := range strings.Lines(text) {
			if !strings.Contains(other, line) {
				out.WriteString(sign + line)
			}
		}
	}
	list("-", got, want)
	list("+", want, got)
	return out.String()
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInURL = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Prose returns a page without its code blocks.
func Prose(text string) string { return fence.ReplaceAllString(text, "") }

// Anchors returns the anchors that GitHub makes of a page's headings.
func Anchors(text string) map[string]bool {
	set := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(Prose(text), -1) {
		name := strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		anchor := name
		for i := 1; set[anchor]; i++ {
			anchor = fmt.Sprint(name, "-", i)
		}
		set[anchor] = true
	}
	return set
}

// Blocks returns the code blocks of a text that are marked with a language.
func Blocks(text, language string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// IsWorker reports whether a program of the docs reads a group, and so never ends.
func IsWorker(program string) bool { return strings.Contains(strings.ToLower(program), "xreadgroup") }

// OfRedisJSON is the group of the commands that RedisJSON brings to Redis.
const OfRedisJSON = "json"
