package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands"
	"mayfly/server/config"
	"mayfly/test/harness"
)

// maxReadmeLines keeps the README short. What is longer goes to docs.
const maxReadmeLines = 220

// allPages returns every Markdown file of the tree, by path.
func allPages(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "data"):
			return fs.SkipDir
		case filepath.Ext(file) == ".md":
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return harness.ReadPages(t, files)
}

// TestReadmeLength holds the README to its limit.
func TestReadmeLength(t *testing.T) {
	if n := strings.Count(harness.Guides(t)[harness.ReadmeFile], "\n"); n > maxReadmeLines {
		t.Errorf("the README has %d lines, more than %d", n, maxReadmeLines)
	}
}

// TestReadmeMap: the README links to every page in docs.
func TestReadmeMap(t *testing.T) {
	pages := harness.Guides(t)
	for page := range pages {
		if page != harness.ReadmeFile && !strings.Contains(pages[harness.ReadmeFile], "]("+page+")") {
			t.Errorf("the README does not link to %s", page)
		}
	}
}

// TestDocsTables compares the generated tables with what the program has.
func TestDocsTables(t *testing.T) {
	harness.CheckTables(t, map[string]string{
		"commands":      commandTable(),
		"compatibility": compatibilityTable(),
		"options":       optionTable(false),
		"redis options": optionTable(true),
	})
}

// commandGroups are the groups of commands in the order of the tables.
var commandGroups = []string{"container", "document", "json", "string", "stream", "generic", "transactions", "scripting", "pubsub", "connection", "server", "cluster", "sentinel"}

// eachCommand visits the commands and subcommands that can be called, with their full names, by group.
func eachCommand(visit func(name string, c *commands.Command)) {
	byName := func(a, b commands.Command) int { return cmp.Compare(a.Name, b.Name) }
	type call struct {
		name string
		*commands.Command
	}
	var calls []call
	for c := range commands.All() {
		name := strings.ToUpper(c.Name)
		if c.Parse != nil {
			calls = append(calls, call{name, c})
		}
		for _, sub := range slices.SortedFunc(slices.Values(c.Sub), byName) {
			calls = append(calls, call{name + " " + strings.ToUpper(sub.Name), &sub})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int {
		return cmp.Compare(slices.Index(commandGroups, a.Group), slices.Index(commandGroups, b.Group))
	})
	for _, c := range calls {
		visit(c.name, c.Command)
	}
}

// sameAs returns the version of Redis whose semantics a command has: the one that tests compare with, or
// the later one that introduced the command. Those of RedisJSON have versions of their own.
func sameAs(c *commands.Command) string {
	if c.Group == harness.OfRedisJSON {
		return "RedisJSON 8.6"
	}
	parts := func(version string) (parts []int) {
		for part := range strings.SplitSeq(version, ".") {
			n, err := strconv.Atoi(part)
			if err != nil {
				panic("not a version: " + version)
			}
			parts = append(parts, n)
		}
		return parts
	}
	if slices.Compare(parts(c.Since), parts(commands.RedisVersion)) > 0 {
		return c.Since
	}
	return commands.RedisVersion
}

// commandTable lists the commands by group.
func commandTable() string {
	out := "| command | what it does | group |\n|---|---|---|\n"
	eachCommand(func(name string, c *commands.Command) {
		call := strings.TrimSpace(name + " " + c.Syntax)
		out += fmt.Sprintf("| `%s` | %s | %s |\n", cell(call), cell(strings.TrimSuffix(c.Summary, ".")), c.Group)
	})
	return out
}

// compatibilityTable lists Redis' commands by group, with the version that brought them, the one whose
// semantics they have, and how they differ from it.
func compatibilityTable() string {
	out := "| command | in Redis since | same as in | but |\n|---|---|---|---|\n"
	eachCommand(func(name string, c *commands.Command) {
		if c.IsOwn() {
			return
		}
		since := c.Since
		if c.Group == harness.OfRedisJSON {
			since = "RedisJSON " + since
		}
		out += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, since, sameAs(c), cell(c.Differs))
	})
	return out
}

// optionTable lists the options: ours, or those for programs that know Redis.
func optionTable(compat bool) string {
	out := "| option | default | legal | meaning | at run time |\n|---|---|---|---|---|\n"
	for _, o := range config.Options {
		if o.Compat != compat {
			continue
		}
		code := func(s string) string {
			if s == "" {
				return ""
			}
			return "`" + cell(s) + "`"
		}
		change := map[bool]string{true: "yes"}[o.Mutable]
		legal := strings.TrimSpace(o.Legal() + " " + o.Unit)
		out += fmt.Sprintf("| `--%s` | %s | %s | %s | %s |\n", o.Name, code(o.Default), cell(legal), cell(o.Doc), change)
	}
	return out
}

// cell makes a text fit into a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// TestDocsGroups holds the order of groups to the groups of the commands.
func TestDocsGroups(t *testing.T) {
	for c := range commands.All() {
		if !slices.Contains(commandGroups, c.Group) {
			t.Errorf("commandGroups lacks %s, the group of %s", c.Group, c.Name)
		}
	}
}

// TestDocsMissingCommands: a command that a chapter on what is missing names must be missing.
func TestDocsMissingCommands(t *testing.T) {
	table, found := commandTable(), 0
	for page, text := range harness.Guides(t) {
		for _, chapter := range regexp.MustCompile(`(?m)^## `).Split(text, -1) {
			title, body, _ := strings.Cut(chapter, "\n")
			if !slices.Contains(missingChapters, title) {
				continue
			}
			for _, m := range regexp.MustCompile("`([A-Z][A-Z. ]+)`").FindAllStringSubmatch(body, -1) {
				found++
				if strings.Contains(table, "| `"+m[1]+"`") || strings.Contains(table, "| `"+m[1]+" ") {
					t.Errorf("%s: %s: there is a command %s", page, title, m[1])
				}
			}
		}
	}
	if found == 0 {
		t.Errorf("the chapters %q name no command", missingChapters)
	}
}

// missingChapters are the titles of the chapters that name commands which do not exist.
var missingChapters = []string{"What it cannot do", "What is missing", "Caveats"}

// TestDocsCommands: every DOC and CONTAINER command that a page names exists, apart from the example
// of an unknown one.
func TestDocsCommands(t *testing.T) {
	names := map[string]bool{"DOC.SET": true}
	eachCommand(func(name string, _ *commands.Command) { names[name] = true })
	found := 0
	for page, text := range harness.Guides(t) {
		for _, name := range regexp.MustCompile(`\b(?:DOC|CONTAINER)\.[A-Z]+`).FindAllString(text, -1) {
			found++
			if !names[name] {
				t.Errorf("%s: there is no command %s", page, name)
			}
		}
	}
	if found == 0 {
		t.Error("no commands are mentioned")
	}
}

// TestDocsLinks follows the links of all pages to chapters and files.
func TestDocsLinks(t *testing.T) {
	pages, followed := allPages(t), 0
	for page, text := range pages {
		for _, fault := range linkFaults(pages, page, text) {
			t.Error(fault)
		}
		followed += len(harness.Link.FindAllString(text, -1))
	}
	if followed == 0 {
		t.Error("no links found")
	}
}

// TestDocsLinkFaults shows that links can be broken.
func TestDocsLinkFaults(t *testing.T) {
	pages := map[string]string{
		"README.md": "## Run it\n```sh\n# not a heading\n```\n",
		"docs/a.md": "# A\n## `SAVE`, and why\n## Twice\n## Twice\n",
	}
	for _, tt := range []struct{ page, text, want string }{
		{"README.md", "[a](docs/a.md) [b](docs/a.md#save-and-why) [c](#run-it) [d](https://example.org/#x)", ""},
		{"docs/a.md", "[a](../README.md#run-it) [b](#twice) [c](#twice-1) [d](../docs_test.go)", ""},
		{"README.md", "[a](#nowhere)", "README.md: no chapter #nowhere in README.md"},
		{"README.md", "[a](#not-a-heading)", "README.md: no chapter #not-a-heading in README.md"},
		{"docs/a.md", "[a](#twice-2)", "docs/a.md: no chapter #twice-2 in docs/a.md"},
		{"docs/a.md", "[a](../README.md#save)", "docs/a.md: no chapter #save in README.md"},
		{"docs/a.md", "[a](README.md)", "docs/a.md: no file docs/README.md"},
		{"README.md", "[a](../go.mod)", "README.md: no file ../go.mod"},
	} {
		if got := strings.Join(linkFaults(pages, tt.page, tt.text), "; "); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.text, tt.page, got, tt.want)
		}
	}
}

// linkFaults returns a line for each link of a page that leads nowhere.
func linkFaults(pages map[string]string, page, text string) (faults []string) {
	for _, m := range harness.Link.FindAllStringSubmatch(harness.Fence.ReplaceAllString(text, ""), -1) {
		if strings.HasPrefix(m[1], "https://") {
			continue
		}
		target, anchor, hasAnchor := strings.Cut(m[1], "#")
		file := page
		if target != "" {
			file = path.Join(path.Dir(page), target)
		}
		if _, known := pages[file]; !known {
			if _, err := os.Stat(file); err != nil || strings.HasPrefix(file, "..") {
				faults = append(faults, fmt.Sprintf("%s: no file %s", page, file))
				continue
			}
		}
		if hasAnchor && !harness.Anchors(pages[file])[anchor] {
			faults = append(faults, fmt.Sprintf("%s: no chapter #%s in %s", page, anchor, file))
		}
	}
	return faults
}

// TestDocsNames looks for files and declarations that are mentioned like `commands/engine.go` and
// `commands/engine.go:Engine.Execute`.
func TestDocsNames(t *testing.T) {
	mention := regexp.MustCompile("`([\\w/]+\\.(?:go|md|txt))(?::([\\w.]+))?`")
	mentions := 0
	for page, text := range harness.Guides(t) {
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			mentions++
			file, name := m[1], m[2]
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if name != "" && !slices.Contains(declared(t, file), name) {
				t.Errorf("%s: %s does not declare %s", page, file, name)
			}
		}
	}
	if mentions == 0 {
		t.Error("no files are mentioned")
	}
}

// declared lists what a file declares at its top level, methods as Type.Method.
func declared(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				name = fmt.Sprint(of) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// TestDocsCommandLines checks the options on command lines and in config files.
func TestDocsCommandLines(t *testing.T) {
	lines, files := 0, 0
	for page, text := range harness.Guides(t) {
		for line := range strings.Lines(strings.Join(harness.Blocks(text, "sh"), "")) {
			line, _, _ = strings.Cut(line, "#")
			args, ok := strings.CutPrefix(line, "go run . ")
			if !ok {
				args, ok = strings.CutPrefix(line, "./mayfly ")
			}
			if !ok {
				continue
			}
			lines++
			if _, err := config.Load(strings.Fields(args)); err != nil && err != config.ErrHelp {
				t.Errorf("%s: %s: %v", page, strings.TrimSpace(line), err)
			}
		}
		for _, file := range harness.Blocks(text, "conf") {
			files++
			if _, err := config.Load([]string{harness.WriteFile(t, "mayfly.conf", file)}); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, file)
			}
		}
	}
	if lines == 0 || files == 0 {
		t.Errorf("%d command lines and %d config files found", lines, files)
	}
}

// TestDocsTestCommands: each "go test" that a page shows names tests and flags that exist.
func TestDocsTestCommands(t *testing.T) {
	found := 0
	for page, text := range harness.Guides(t) {
		for _, m := range regexp.MustCompile("go test ((?:\\.[\\w./]*)(?: \\.[\\w./]*)*)([^`\n#]*)").FindAllStringSubmatch(text, -1) {
			found++
			for _, folder := range strings.Fields(m[1]) {
				if strings.HasSuffix(folder, "...") {
					continue
				}
				if fault := testCommandFault(t, folder, strings.Fields(m[2])); fault != "" {
					t.Errorf("%s: go test %s %s: %s", page, m[1], m[2], fault)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no tests are mentioned")
	}
}

// testCommandFault reports why "go test folder args" runs no test or is refused; "" if it does run one.
func testCommandFault(t *testing.T, folder string, args []string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		return folder + " has no tests"
	}
	var source strings.Builder
	for _, text := range harness.ReadPages(t, files) {
		source.WriteString(text)
	}
	tests := source.String()
	for _, m := range regexp.MustCompile(`"mayfly/(\S+test)"`).FindAllStringSubmatch(tests, -1) { // helpers that define flags
		helpers, _ := filepath.Glob(filepath.Join(m[1], "*.go"))
		for _, text := range harness.ReadPages(t, helpers) {
			source.WriteString(text)
		}
	}
	names := regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(tests, -1)
	for i, arg := range args {
		switch arg {
		case "-v", "-race":
		case "-timeout", "-tags":
		case "-run":
			pattern, _, _ := strings.Cut(strings.Trim(args[i+1], "'"), "/")
			runs := func(name []string) bool { return regexp.MustCompile(pattern).MatchString(name[1]) }
			if !slices.ContainsFunc(names, runs) {
				return folder + " has no test " + pattern
			}
		default:
			if flag, ok := strings.CutPrefix(arg, "-"); ok &&
				!regexp.MustCompile(`flag\.\w+\("`+flag+`"`).MatchString(source.String()) {
				return folder + " has no flag " + arg
			}
		}
	}
	return ""
}

// TestDocsByRedisCLI types the examples into redis-cli. It shows that the notation is redis-cli's and
// that the built program does what the pages say. What follows a passing of time in a chapter is left
// to TestDocs in package commands.
func TestDocsByRedisCLI(t *testing.T) {
	later := regexp.MustCompile(`(?m)^\(\d+ \w+ later\)$`)
	typed := 0
	for page, text := range harness.Guides(t) {
		p := harness.Start(t, filepath.Join(t.TempDir(), "data")) // numbers of containers begin at 16 again
		p.CLI("PING")                                             // skips without redis-cli
		for chapter := range strings.SplitSeq(text, "\n## ") {
			empty(p)
			var commands, replies strings.Builder
			now := later.Split(strings.Join(harness.Blocks(chapter, "console"), ""), 2)[0]
			for line := range strings.Lines(now) {
				if command, ok := strings.CutPrefix(line, "> "); ok {
					commands.WriteString(command)
					typed++
				} else if !strings.HasPrefix(line, "#") && line != "\n" {
					replies.WriteString(line)
				}
			}
			cmd := exec.Command("redis-cli", "-3", "--no-raw", "-p", p.Port)
			cmd.Stdin = strings.NewReader(commands.String())
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got := regexp.MustCompile(`\n+`).ReplaceAllString(string(out), "\n") // errors are followed by an empty line
			if got != replies.String() {
				title, _, _ := strings.Cut(chapter, "\n")
				t.Errorf("%s, chapter %s: redis-cli says\n%s\nthe page says\n%s", page, title, got, replies.String())
			}
		}
	}
	if typed == 0 {
		t.Error("nothing was typed")
	}
}

// readsFolder marks the programs whose argument is a data folder.
const readsFolder = "os.Args[1]"

// TestDocsFolderPrograms runs the programs that read a data folder without mayfly. They read a copy
// of the folder of a running server, and the folder once the server has stopped. A program prints
// each key with its value, and a value ends with the text of the document.
func TestDocsFolderPrograms(t *testing.T) {
	found := 0
	for page, text := range harness.Guides(t) {
		for _, program := range harness.Blocks(text, "go") {
			if !strings.Contains(program, readsFolder) {
				continue
			}
			found++
			dir, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
			p := harness.Start(t, dir)
			want := folderDocuments(p)
			err := os.CopyFS(copied, os.DirFS(dir))
			for errors.Is(err, fs.ErrNotExist) { // the background work has removed a file meanwhile
				err = errors.Join(os.RemoveAll(copied), os.CopyFS(copied, os.DirFS(dir)))
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Terminate()
			file := harness.WriteFile(t, "main.go", program)
			for _, folder := range []string{copied, dir} {
				out, err := exec.Command("go", "run", file, folder).CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", page, err, out)
				}
				got := map[string]string{}
				for line := range strings.Lines(string(out)) {
					key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
					if _, id, ok := strings.Cut(key, ":"); ok {
						got[id] = value[strings.LastIndex(value, " ")+1:] // without the header of the record
					}
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: the program finds in %s\n%v\nwant\n%v", page, folder, got, want)
				}
			}
		}
	}
	if found == 0 {
		t.Error("there is no program that reads a data folder")
	}
}

// folderDocuments writes, overwrites and deletes documents, before and after a checkpoint, and returns
// the text of those that live by id.
func folderDocuments(p *harness.Process) map[string]string {
	p.T.Helper()
	c, ctx, want := p.Client(), context.Background(), map[string]string{}
	do := func(args ...any) {
		if err := c.Do(ctx, args...).Err(); err != nil {
			p.T.Fatalf("%v: %v", args, err)
		}
	}
	do("CONTAINER.SET", "orders", "TTL", 3600)
	for round := range 2 {
		for i := range 20 {
			id, document := fmt.Sprint("id-", i), fmt.Sprintf(`{"round":%d,"n":%d}`, round, i)
			switch {
			case i%5 == round:
				do("DOC.DEL", "orders", id)
				delete(want, id)
			case i%2 == 0 || round == 0:
				do("DOC.PUT", "orders", id, document)
				want[id] = document
			}
		}
		if round == 0 {
			do("SAVE")
		}
	}
	return want
}

// clusterPage is the page whose commands and program are played on real nodes.
const clusterPage = "docs/cluster.md"

// TestDocsPrograms runs the programs in Go, which print what the comment at the end of a line says.
func TestDocsPrograms(t *testing.T) {
	found := 0
	for page, text := range harness.Guides(t) {
		for _, program := range harness.Blocks(text, "go") {
			if strings.Contains(program, readsFolder) || harness.IsWorker(program) || page == clusterPage {
				continue
			}
			found++
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
			here := strings.ReplaceAll(program, ":6379", ":"+p.Port)
			out, err := exec.Command("go", "run", harness.WriteFile(t, "main.go", here)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", page, err, out)
			}
			if want := printed(program); string(out) != want {
				t.Errorf("%s: a program printed\n%s\nwant\n%s", page, out, want)
			}
		}
	}
	if found == 0 {
		t.Error("there is no program")
	}
}

// printed returns what a program prints: what the comment at the end of a line says.
func printed(program string) (text string) {
	for _, m := range regexp.MustCompile(`(?m)Println.* // (.*)$`).FindAllStringSubmatch(program, -1) {
		text += m[1] + "\n"
	}
	return text
}

// TestDocsTools runs the blocks of shell lines that use only the tools. /var/lib is a folder of the test
// with the data of a stopped server in /var/lib/mayfly; localhost and otherhost are running servers.
func TestDocsTools(t *testing.T) {
	fill := func(p *harness.Process) {
		p.CLI("CONTAINER.SET", "orders", "TTL", "3600")
		p.CLI("DOC.PUT", "orders", "1001", `{"item":"tea"}`)
		p.CLI("SET", "greeting", "hello")
	}
	onlyTools := regexp.MustCompile(`^(mayfly (check|repair|export|import|forecast|top) [^\n]*\n)+$`)
	path := t.TempDir()
	if err := os.Symlink(harness.Binary, filepath.Join(path, "mayfly")); err != nil {
		t.Fatal(err)
	}
	played := 0
	for page, text := range harness.Guides(t) {
		for _, block := range harness.Blocks(text, "sh") {
			if !onlyTools.MatchString(block) {
				continue
			}
			played++
			dir := t.TempDir()
			stopped := harness.Start(t, filepath.Join(dir, "mayfly"))
			fill(stopped)
			stopped.Terminate()
			local, other := harness.Start(t, filepath.Join(t.TempDir(), "data")), harness.Start(t, filepath.Join(t.TempDir(), "data"))
			fill(local)
			script := strings.NewReplacer("/var/lib/", dir+"/", "localhost:6379", "127.0.0.1:"+local.Port, "localhost --port 6379", "127.0.0.1 --port "+local.Port,
				"otherhost:6379", "127.0.0.1:"+other.Port).Replace(block)
			cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, script, out)
			}
			if strings.Contains(block, "otherhost") && other.CLI("DOC.GET", "orders", "1001") != local.CLI("DOC.GET", "orders", "1001") {
				t.Errorf("%s: the other server lacks what was exported", page)
			}
		}
	}
	if played == 0 {
		t.Error("no tools are shown")
	}
}

// TestDocsLines imports the lines of JSON that the pages show, and no line is bad.
func TestDocsLines(t *testing.T) {
	found := 0
	for _, text := range harness.Guides(t) {
		for _, lines := range harness.Blocks(text, "json") {
			found++
			harness.Tool(t, 0, lines, "import", "--strict", "--dir", filepath.Join(t.TempDir(), "data"))
		}
	}
	if found == 0 {
		t.Error("no lines of JSON are shown")
	}
}

// TestDocsFences: every block of code is closed and marked with a language that a test knows.
func TestDocsFences(t *testing.T) {
	languages := []string{"console", "sh", "go", "python", "conf", "json", "js"}
	for page, text := range harness.Guides(t) {
		open := false
		for line := range strings.Lines(text) {
			language, isFence := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
			if !isFence {
				continue
			}
			if open = !open; open && !slices.Contains(languages, language) {
				t.Errorf("%s: a block of code in %q, which no test checks", page, language)
			} else if !open && language != "" {
				t.Errorf("%s: a block of code in %q starts within another", page, language)
			}
		}
		if open {
			t.Errorf("%s: the last block of code is not closed", page)
		}
	}
}

// empty removes all documents, keys and containers.
func empty(p *harness.Process) {
	p.T.Helper()
	p.CLI("FLUSHALL")
	for _, name := range strings.Fields(p.CLI("CONTAINER.LIST", "MATCH", "*[^0-9]*")) {
		p.CLI("CONTAINER.DROP", name)
	}
}
