package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mayfly/commands"
	"mayfly/server"
)

// The README is checked here for all that it says of the program: its tables, its command lines, its
// links, the names it mentions. Its examples are played by TestREADME in package commands, on a clock
// that can be moved, and as far as no time passes in them here, by redis-cli.

var rewrite = flag.Bool("rewrite", false, "write the README's tables anew")

const readmeFile = "README.md"

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestREADMETables compares the tables with what the program has. They stand between the comments
// <!-- begin name --> and <!-- end name -->.
func TestREADMETables(t *testing.T) {
	text := readme(t)
	for _, table := range []struct{ name, want string }{
		{"commands", commandTable()},
		{"compatibility", compatibilityTable()},
		{"options", optionTable(false)},
		{"redis options", optionTable(true)},
	} {
		begin, end := "<!-- begin "+table.name+" -->\n", "<!-- end "+table.name+" -->\n"
		before, rest, ok1 := strings.Cut(text, begin)
		got, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Errorf("the README has no %s and %s", strings.TrimSpace(begin), strings.TrimSpace(end))
			continue
		}
		if got != table.want && !*rewrite {
			t.Errorf("the table of %s in the README is not what the program has; write it anew with\n"+
				"\tgo test . -run TestREADMETables -rewrite\n%s", table.name, difference(got, table.want))
		}
		text = before + begin + table.want + end + after
	}
	if *rewrite {
		if err := os.WriteFile(readmeFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// difference lists the lines that only one of two texts has.
func difference(got, want string) string {
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

// commandGroups are the groups of commands in the order in which a reader wants to meet them.
var commandGroups = []string{"container", "document", "string", "generic", "transactions", "pubsub", "connection", "server", "cluster"}

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
		if !c.Own() {
			out += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, c.Since, c.SameAs(), cell(c.Differs))
		}
	})
	return out
}

// optionTable lists the options: ours, or those for programs that know Redis.
func optionTable(compat bool) string {
	out := "| option | default | legal | meaning | at run time |\n|---|---|---|---|---|\n"
	for _, o := range server.Options {
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

// TestREADMEGroups holds the order of groups to the groups there are.
func TestREADMEGroups(t *testing.T) {
	for c := range commands.All() {
		if !slices.Contains(commandGroups, c.Group) {
			t.Errorf("commandGroups lacks %s, the group of %s", c.Group, c.Name)
		}
	}
}

// TestREADMECaveats: a command that the last chapter says is missing must be missing.
func TestREADMECaveats(t *testing.T) {
	_, caveats, ok := strings.Cut(readme(t), "\n## Caveats and limitations\n")
	mentions := regexp.MustCompile("`([A-Z][A-Z. ]+)`").FindAllStringSubmatch(caveats, -1)
	if !ok || len(mentions) == 0 {
		t.Error("no missing commands are mentioned")
	}
	table := commandTable()
	for _, m := range mentions {
		if strings.Contains(table, "| `"+m[1]+"`") || strings.Contains(table, "| `"+m[1]+" ") {
			t.Errorf("there is a command %s", m[1])
		}
	}
}

// TestREADMELinks follows the links to chapters of the README and to files.
func TestREADMELinks(t *testing.T) {
	text := readme(t)
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1)
	if len(links) == 0 {
		t.Error("no links found")
	}
	for _, m := range links {
		target := m[1]
		if anchor, ok := strings.CutPrefix(target, "#"); ok {
			if !anchors[anchor] {
				t.Errorf("there is no chapter %s", target)
			}
		} else if !strings.HasPrefix(target, "https://") {
			if _, err := os.Stat(target); err != nil {
				t.Errorf("link to %s: %v", target, err)
			}
		}
	}
}

// TestREADMENames looks for the files and what they declare that are mentioned like
// `commands/engine.go` and `commands/engine.go:Engine.Execute`.
func TestREADMENames(t *testing.T) {
	mentions := regexp.MustCompile("`([\\w/]+\\.(?:go|md|txt))(?::([\\w.]+))?`").FindAllStringSubmatch(readme(t), -1)
	if len(mentions) == 0 {
		t.Error("no files are mentioned")
	}
	for _, m := range mentions {
		file, name := m[1], m[2]
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		} else if name != "" && !slices.Contains(declared(t, file), name) {
			t.Errorf("%s does not declare %s", file, name)
		}
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

// blocks gives the code blocks in a text that are marked with a language.
func blocks(text, language string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestREADMECommandLines checks the options on the README's command lines and in its config files.
func TestREADMECommandLines(t *testing.T) {
	lines, files := 0, blocks(readme(t), "conf")
	for line := range strings.Lines(strings.Join(blocks(readme(t), "sh"), "")) {
		line, _, _ = strings.Cut(line, "#")
		args, ok := strings.CutPrefix(line, "go run . ")
		if !ok {
			args, ok = strings.CutPrefix(line, "./mayfly ")
		}
		if !ok {
			continue
		}
		lines++
		if _, err := server.LoadConfig(strings.Fields(args)); err != nil && err != server.ErrHelp {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	for _, file := range files {
		if _, err := server.LoadConfig([]string{writeFile(t, "mayfly.conf", file)}); err != nil {
			t.Errorf("%v in\n%s", err, file)
		}
	}
	if lines == 0 || len(files) == 0 {
		t.Errorf("%d command lines and %d config files found", lines, len(files))
	}
}

// TestREADMEByRedisCLI types the examples into redis-cli, to see that the notation is its own and that
// the program that is built does what the README says. What comes in a chapter after time has passed
// is left to TestREADME in package commands.
func TestREADMEByRedisCLI(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli("PING") // skips without redis-cli
	later := regexp.MustCompile(`(?m)^\(\d+ \w+ later\)$`)
	typed := 0
	for chapter := range strings.SplitSeq(readme(t), "\n## ") {
		p.empty()
		var commands, replies strings.Builder
		now := later.Split(strings.Join(blocks(chapter, "console"), ""), 2)[0]
		for line := range strings.Lines(now) {
			if command, ok := strings.CutPrefix(line, "> "); ok {
				commands.WriteString(command)
				typed++
			} else if !strings.HasPrefix(line, "#") && line != "\n" {
				replies.WriteString(line)
			}
		}
		cmd := exec.Command("redis-cli", "-3", "--no-raw", "-p", p.port)
		cmd.Stdin = strings.NewReader(commands.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got := regexp.MustCompile(`\n+`).ReplaceAllString(string(out), "\n") // errors are followed by an empty line
		if got != replies.String() {
			title, _, _ := strings.Cut(chapter, "\n")
			t.Errorf("chapter %s: redis-cli says\n%s\nthe README says\n%s", title, got, replies.String())
		}
	}
	if typed == 0 {
		t.Error("nothing was typed")
	}
}

// TestREADMEProgram runs the programs in Go, which print what the comment at the end of a line says.
func TestREADMEProgram(t *testing.T) {
	programs := blocks(readme(t), "go")
	if len(programs) == 0 {
		t.Error("there is no program")
	}
	for _, program := range programs {
		p := start(t, filepath.Join(t.TempDir(), "data"))
		here := strings.ReplaceAll(program, ":6379", ":"+p.port)
		out, err := exec.Command("go", "run", writeFile(t, "main.go", here)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var want string
		for _, m := range regexp.MustCompile(`(?m)Println.* // (.*)$`).FindAllStringSubmatch(program, -1) {
			want += m[1] + "\n"
		}
		if string(out) != want {
			t.Errorf("a program printed\n%s\nwant\n%s", out, want)
		}
	}
}

// empty removes all documents, keys and containers.
func (p *process) empty() {
	p.t.Helper()
	p.cli("FLUSHALL")
	for _, name := range strings.Fields(p.cli("CONTAINER.LIST", "MATCH", "*[^0-9]*")) {
		p.cli("CONTAINER.DROP", name)
	}
}
