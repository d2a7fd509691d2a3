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
	"time"

	_ "mayfly/commands" // fills the table of commands
	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/server/config"
	"mayfly/test/drill"
	"mayfly/test/harness"
)

// The README and the pages in docs are checked here for what they say of the program: tables, command lines,
// programs, links, names of files. TestDocs in package commands plays their examples on a clock that can be
// moved. TestDocsByRedisCLI plays those in which no time passes with redis-cli. The tests find the pages by
// walking the tree, so a new page needs no change here.

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
	drill.Check(t, err)
	return harness.ReadFiles(t, files)
}

// TestReadmeLength holds the README to its limit.
func TestReadmeLength(t *testing.T) {
	t.Parallel()
	if n := strings.Count(harness.Guides(t)["README.md"], "\n"); n > maxReadmeLines {
		t.Errorf("the README has %d lines, more than %d", n, maxReadmeLines)
	}
}

// TestReadmeMap: the README links to every page in docs.
func TestReadmeMap(t *testing.T) {
	t.Parallel()
	pages := harness.Guides(t)
	for page := range pages {
		if page != "README.md" && !strings.Contains(pages["README.md"], "]("+page+")") {
			t.Errorf("the README does not link to %s", page)
		}
	}
}

// TestDocsTables compares the generated tables with what the program has.
func TestDocsTables(t *testing.T) {
	t.Parallel()
	harness.CheckTables(t, map[string]string{
		"commands":      commandTable(),
		"compatibility": compatibilityTable(),
		"options":       optionTable(false),
		"redis options": optionTable(true),
	})
}

// commandGroups are the groups of commands in the order of the tables.
var commandGroups = []string{"container", "document", "json", "string", "hash", "set", "sorted-set", "list", "stream", "generic", "transactions", "scripting", "pubsub", "connection", "server", "cluster", "sentinel"}

// eachCommand visits the commands and subcommands that can be called, with their full names, by group.
func eachCommand(visit func(name string, c *engine.Command)) {
	byName := func(a, b engine.Command) int { return cmp.Compare(a.Name, b.Name) }
	type call struct {
		name string
		*engine.Command
	}
	var calls []call
	for _, c := range engine.TableSorted {
		name := strings.ToUpper(c.Name)
		if c.Parse != nil {
			calls = append(calls, call{name, c.Command})
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
// the later one that introduced the command. Those of RedisJSON and Valkey have versions of their own.
func sameAs(c *engine.Command) string {
	if c.Group == harness.OfRedisJSON {
		return "RedisJSON 8.6"
	}
	if strings.HasPrefix(c.Since, "Valkey ") || strings.HasPrefix(c.Since, "KeyDB ") {
		return c.Since
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
	if slices.Compare(parts(c.Since), parts(admin.RedisVersion)) > 0 {
		return c.Since
	}
	return admin.RedisVersion
}

// commandTable lists the commands by group.
func commandTable() string {
	out := "| command | what it does | group |\n|---|---|---|\n"
	eachCommand(func(name string, c *engine.Command) {
		call := strings.TrimSpace(name + " " + c.Syntax)
		does := strings.TrimSuffix(c.Summary, ".")
		switch {
		case strings.HasPrefix(c.Differs, "Refused: "):
			does = "**Always refused**: " + strings.TrimPrefix(c.Differs, "Refused: ")
		case c.Flags&engine.OnlyInCluster != 0:
			does += ". **Only in a cluster**"
		}
		out += fmt.Sprintf("| `%s` | %s | %s |\n", cell(call), cell(does), c.Group)
	})
	return out
}

// compatibilityTable lists Redis' commands by group, with the version that brought them, the one whose
// semantics they have, and how they differ from it.
func compatibilityTable() string {
	out := "| command | in Redis since | same as in | but |\n|---|---|---|---|\n"
	eachCommand(func(name string, c *engine.Command) {
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
	t.Parallel()
	for _, c := range engine.TableSorted {
		if !slices.Contains(commandGroups, c.Group) {
			t.Errorf("commandGroups lacks %s, the group of %s", c.Group, c.Name)
		}
	}
}

// TestDocsMissingCommands: a command that a chapter on what is missing names must be missing.
func TestDocsMissingCommands(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	names := map[string]bool{"DOC.SET": true}
	eachCommand(func(name string, _ *engine.Command) { names[name] = true })
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
	t.Parallel()
	pages, followed := allPages(t), 0
	anchors := anchorsOf(pages)
	for page, text := range pages {
		for _, fault := range linkFaults(anchors, page, text) {
			t.Error(fault)
		}
		followed += len(link.FindAllString(text, -1))
	}
	if followed == 0 {
		t.Error("no links found")
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// anchorsOf returns the anchors of pages, by path.
func anchorsOf(pages map[string]string) map[string]map[string]bool {
	anchors := map[string]map[string]bool{}
	for page, text := range pages {
		anchors[page] = harness.Anchors(text)
	}
	return anchors
}

// TestDocsLinkFaults shows that links can be broken.
func TestDocsLinkFaults(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"README.md": "## Run it\n```sh\n# not a heading\n```\n",
		"docs/a.md": "# A\n## `SAVE`, and why\n## Twice\n## Twice\n",
	}
	for _, tt := range []struct{ page, text, want string }{
		{"README.md", "[a](docs/a.md) [b](docs/a.md#save-and-why) [c](#run-it) [d](https://example.org/#x)", ""},
		{"docs/a.md", "[a](../README.md#run-it) [b](#twice) [c](#twice-1) [d](../go.mod)", ""},
		{"README.md", "[a](#nowhere)", "README.md: no chapter #nowhere in README.md"},
		{"README.md", "[a](#not-a-heading)", "README.md: no chapter #not-a-heading in README.md"},
		{"docs/a.md", "[a](#twice-2)", "docs/a.md: no chapter #twice-2 in docs/a.md"},
		{"docs/a.md", "[a](../README.md#save)", "docs/a.md: no chapter #save in README.md"},
		{"docs/a.md", "[a](README.md)", "docs/a.md: no file docs/README.md"},
		{"README.md", "[a](../go.mod)", "README.md: no file ../go.mod"},
	} {
		if got := strings.Join(linkFaults(anchorsOf(pages), tt.page, tt.text), "; "); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.text, tt.page, got, tt.want)
		}
	}
}

// linkFaults returns a line for each link of a page that leads nowhere. It is given the anchors of all pages.
func linkFaults(anchors map[string]map[string]bool, page, text string) (faults []string) {
	for _, m := range link.FindAllStringSubmatch(harness.Prose(text), -1) {
		if strings.HasPrefix(m[1], "https://") {
			continue
		}
		target, anchor, hasAnchor := strings.Cut(m[1], "#")
		file := page
		if target != "" {
			file = path.Join(path.Dir(page), target)
		}
		if anchors[file] == nil {
			if _, err := os.Stat(file); err != nil || strings.HasPrefix(file, "..") {
				faults = append(faults, fmt.Sprintf("%s: no file %s", page, file))
				continue
			}
		}
		if hasAnchor && !anchors[file][anchor] {
			faults = append(faults, fmt.Sprintf("%s: no chapter #%s in %s", page, anchor, file))
		}
	}
	return faults
}

// TestDocsNames looks for files and declarations that are mentioned like `commands/engine.go` and
// `commands/engine.go:Engine.Execute`.
func TestDocsNames(t *testing.T) {
	t.Parallel()
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
	drill.Check(t, err)
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
	t.Parallel()
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

// TestDocsByRedisCLI types the examples into redis-cli. It shows that the notation is redis-cli's and that
// the built program does what the pages say. What follows a passing of time in a chapter is left to TestDocs
// in package commands.
func TestDocsByRedisCLI(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	harness.Need(t, "redis-cli")
	typed := 0
	for page, text := range harness.Guides(t) {
		if len(harness.Blocks(text, "console")) == 0 {
			continue
		}
		typed++
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			p := harness.Start(t, filepath.Join(t.TempDir(), "data")) // numbers of containers begin at 16 again
			for chapter := range strings.SplitSeq(text, "\n## ") {
				typeChapter(p, chapter)
			}
		})
	}
	if typed == 0 {
		t.Error("nothing is typed")
	}
}

var (
	later      = regexp.MustCompile(`(?m)^\(\d+ \w+ later\)$`)
	emptyLines = regexp.MustCompile(`\n+`)
)

// typeChapter types the examples of one chapter into an empty server.
func typeChapter(p *harness.Process, chapter string) {
	p.T.Helper()
	var commands, replies strings.Builder
	now := later.Split(strings.Join(harness.Blocks(chapter, "console"), ""), 2)[0]
	for line := range strings.Lines(now) {
		if command, ok := strings.CutPrefix(line, "> "); ok {
			commands.WriteString(command)
		} else if !strings.HasPrefix(line, "#") && line != "\n" {
			replies.WriteString(line)
		}
	}
	if commands.Len() == 0 {
		return
	}
	empty(p)
	out, code := p.CLIWith(strings.NewReader(commands.String()), "-3", "--no-raw")
	got := emptyLines.ReplaceAllString(out, "\n") // errors are followed by an empty line
	if code != 0 || got != replies.String() {
		title, _, _ := strings.Cut(chapter, "\n")
		p.T.Errorf("chapter %s: redis-cli says\n%s\nand ends with %d; the page says\n%s", title, got, code, replies.String())
	}
}

// empty removes all documents, keys and containers.
func empty(p *harness.Process) {
	p.T.Helper()
	db, ctx := p.Client(), p.T.Context()
	names, err := db.Do(ctx, "CONTAINER.LIST", "MATCH", "*[^0-9]*").StringSlice()
	pipe := db.Pipeline()
	pipe.FlushAll(ctx)
	for _, name := range names {
		pipe.Do(ctx, "CONTAINER.DROP", name)
	}
	if _, failed := pipe.Exec(ctx); failed != nil && !strings.HasPrefix(failed.Error(), "HELD ") { // what is on hold stays
		err = errors.Join(err, failed)
	}
	drill.Check(p.T, err)
}

// readsFolder marks the programs whose argument is a data folder.
const readsFolder = "os.Args[1]"

// TestDocsFolderPrograms runs the programs that read a data folder without mayfly. They read a copy
// of the folder of a running server, and the folder once the server has stopped. A program prints
// each key with its value, and a value ends with the text of the document.
func TestDocsFolderPrograms(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
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
			drill.Check(t, err)
			p.Terminate()
			for _, folder := range []string{copied, dir} {
				got := map[string]string{}
				for line := range strings.Lines(runGo(t, program, nil, folder)) {
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
	drill.Slow(t)
	t.Parallel()
	found := 0
	for page, text := range harness.Guides(t) {
		for _, program := range harness.Blocks(text, "go") {
			if strings.Contains(program, readsFolder) || harness.IsWorker(program) || page == clusterPage || page == clockPage {
				continue
			}
			found++
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
				at := func(string) string { return "127.0.0.1:" + p.Port }
				if got, want := runGo(t, program, at), printed(program); got != want {
					t.Errorf("a program printed\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
	if found == 0 {
		t.Error("there is no program")
	}
}

// runGo runs a program of the docs with arguments and returns what it prints. at says where a port of
// localhost is; nil: the program knows none.
func runGo(t *testing.T, program string, at func(port string) string, args ...string) string {
	t.Helper()
	dir := harness.ProgramFolder(t, program)
	args = append([]string{"run", filepath.Join(dir, "main.go"), filepath.Join(dir, "at.go")}, args...)
	for _, m := range harness.Local.FindAllStringSubmatch(program, -1) {
		args = append(args, m[1]+"="+at(m[1]))
	}
	cmd := exec.Command("go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	return string(out)
}

// printed returns what a program prints: what the comment at the end of a line says.
func printed(program string) (text string) {
	for _, m := range regexp.MustCompile(`(?m)Println.* // (.*)$`).FindAllStringSubmatch(program, -1) {
		text += m[1] + "\n"
	}
	return text
}

// TestDocsTools runs the blocks of shell lines that use only the tools. /var/lib is a folder of the test with
// the data of a stopped server in /var/lib/mayfly; localhost and otherhost are running servers, and
// items.json is a file with an item.
func TestDocsTools(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	onlyTools := regexp.MustCompile(`^(mayfly (check|repair|export|import|forecast|top) [^\n]*\n)+$`)
	path := t.TempDir()
	drill.Check(t, os.Symlink(harness.Binary, filepath.Join(path, "mayfly")))
	played := 0
	for page, text := range harness.Guides(t) {
		for _, block := range harness.Blocks(text, "sh") {
			if onlyTools.MatchString(block) {
				played++
				t.Run(page, func(t *testing.T) {
					t.Parallel()
					playTools(t, path, block)
				})
			}
		}
	}
	if played == 0 {
		t.Error("no tools are shown")
	}
}

// playTools runs a block of shell lines that finds mayfly in a folder.
func playTools(t *testing.T, path, block string) {
	start := func(dir string) *harness.Process {
		t.Helper()
		p := harness.Start(t, dir)
		db, ctx := p.Client(), t.Context()
		for _, command := range [][]any{
			{"CONTAINER.SET", "orders", "TTL", 3600}, {"DOC.PUT", "orders", "1001", `{"item":"tea"}`}, {"SET", "greeting", "hello"},
		} {
			drill.Check(t, db.Do(ctx, command...).Err())
		}
		return p
	}
	dir := t.TempDir()
	script := strings.ReplaceAll(block, "/var/lib/", dir+"/")
	if script != block {
		start(filepath.Join(dir, "mayfly")).Terminate()
	}
	if strings.Contains(block, "items.json") {
		drill.Check(t, os.WriteFile(filepath.Join(dir, "items.json"), fmt.Appendf(nil, `{"id":"1002","item":"milk","_ts":%d}`, time.Now().Unix()), 0o600))
	}
	if strings.Contains(script, "localhost:6380") { // any server that speaks Redis' protocol
		script = regexp.MustCompile(`(user:password@)?localhost:6380`).ReplaceAllString(script, "127.0.0.1:"+start(filepath.Join(t.TempDir(), "redis")).Port)
	}
	if strings.Contains(script, "localhost") {
		p := start(filepath.Join(t.TempDir(), "data"))
		script = strings.NewReplacer("localhost:6379", "127.0.0.1:"+p.Port,
			"localhost --port 6379", "127.0.0.1 --port "+p.Port).Replace(script)
	}
	var other *harness.Process
	if strings.Contains(block, "otherhost") {
		other = harness.Start(t, filepath.Join(t.TempDir(), "data"))
		script = strings.ReplaceAll(script, "otherhost:6379", "127.0.0.1:"+other.Port)
	}
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
	if other != nil {
		if got, err := other.Client().Do(t.Context(), "DOC.GET", "orders", "1001").Text(); got != `{"item":"tea"}` {
			t.Errorf("the other server lacks what was exported: %q, %v", got, err)
		}
	}
}

// TestDocsLines imports the lines of JSON that the pages show, and no line is bad.
func TestDocsLines(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
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
	t.Parallel()
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
