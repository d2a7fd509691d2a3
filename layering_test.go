package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// layers lists the source folders, each with the folders of this module that it may import, tests
// included. Imports run downwards: a folder imports only folders further down in the table.
var layers = layerTable{
	{".", "cluster tools tools/progress tools/chart server server/config commands/engine cluster/forming keyspace keyspace/datadir keyspace/replica vfs expiry/clock commands/suggest"},
	{"cluster", "cluster/topology cluster/bus cluster/transport cluster/forming cluster/stores cluster/core cluster/disk cluster/entry keyspace keyspace/journal keyspace/replica keyspace/aof vfs expiry/clock"},
	{"bench", "tools/progress tools/chart expiry/clock"}, // a module of its own, which speaks only the protocol to servers
	{"tools", "tools/progress tools/chart commands keyspace keyspace/repair keyspace/datadir keyspace/elements keyspace/aof json/jsondoc expiry vfs expiry/clock commands/suggest"},
	{"tools/progress", "tools/chart"},
	{"tools/chart", ""},
	{"server", "server/forward server/resp server/config server/metrics server/web commands commands/engine keyspace expiry/clock"},
	{"server/forward", "commands/engine expiry/clock"},
	{"server/resp", "commands/engine redisfmt longtext"},
	{"server/config", "commands/engine commands/events commands/access cluster/entry keyspace keyspace/undo keyspace/eviction redisfmt expiry/clock commands/suggest"},
	{"server/metrics", "server/httpgate commands/admin commands/items commands/engine cluster/topology expiry/clock"},
	{"server/web", "server/httpgate commands/engine expiry/clock"},
	{"server/httpgate", ""},
	{"commands", "commands/admin commands/containers commands/documents commands/hashes commands/jsons commands/keys commands/lists commands/nodes commands/queries commands/scripting commands/sets commands/sortedsets commands/streams commands/users commands/engine"},
	{"commands/admin", "commands/items commands/engine commands/access commands/syntax commands/latency cluster/topology keyspace redisfmt expiry expiry/clock"},
	{"commands/containers", "commands/items commands/engine keyspace keyspace/undo keyspace/foresight keyspace/selection keyspace/index keyspace/deathlog json/jsondoc redisfmt expiry"},
	{"commands/documents", "commands/items commands/engine commands/events keyspace json/jsondoc redisfmt expiry"},
	{"commands/hashes", "commands/items commands/engine keyspace redisfmt"},
	{"commands/jsons", "commands/items commands/engine commands/events keyspace json/jsonedit json/jsonpath json/jsondoc redisfmt json/jsontext expiry"},
	{"commands/keys", "commands/items commands/engine commands/events keyspace json/jsondoc redisfmt expiry"},
	{"commands/lists", "commands/items commands/engine keyspace redisfmt"},
	{"commands/nodes", "commands/items commands/engine cluster/topology cluster/entry keyspace redisfmt"},
	{"commands/queries", "commands/items commands/engine keyspace keyspace/selection keyspace/index query/page query/predicates query json/jsondoc expiry"},
	{"commands/scripting", "commands/engine redisfmt"},
	{"commands/sets", "commands/items commands/engine keyspace redisfmt"},
	{"commands/sortedsets", "commands/items commands/engine keyspace keyspace/elements redisfmt"},
	{"commands/streams", "commands/items commands/engine commands/waiting commands/events commands/access keyspace keyspace/groups keyspace/deathlog keyspace/streamid json/jsondoc redisfmt expiry"},
	{"commands/users", "commands/engine commands/access redisfmt"},
	{"commands/items", "commands/engine commands/waiting commands/events keyspace keyspace/groups keyspace/deathlog json/jsondoc redisfmt expiry"},
	{"commands/engine", "commands/events cluster/topology cluster/bus commands/access commands/scripts commands/syntax commands/latency commands/suggest commands/waiting keyspace keyspace/eviction keyspace/elements keyspace/streamid keyspace/replica json/jsondoc redisfmt expiry expiry/clock"},
	{"commands/waiting", "keyspace expiry expiry/clock"},
	{"commands/access", "redisfmt expiry/clock"},
	{"cluster/topology", "keyspace/record"},
	{"cluster/bus", "redisfmt expiry/clock"},
	{"commands/syntax", ""},
	{"commands/events", ""},
	{"commands/latency", ""},
	{"commands/suggest", ""},
	{"commands/scripts", "commands/scripts/lua"},
	{"commands/scripts/lua", "longtext"},
	{"cluster/transport", "vfs expiry/clock"},
	{"cluster/forming", "keyspace/record vfs expiry/clock"},
	{"cluster/stores", "keyspace/datadir keyspace/record vfs"},
	{"cluster/core", "cluster/entry"},
	{"cluster/disk", ""},
	{"cluster/entry", ""},
	{"keyspace", "keyspace/tables keyspace/locks keyspace/watch keyspace/storage keyspace/undo keyspace/foresight keyspace/selection keyspace/index keyspace/deathlog keyspace/memtable keyspace/eviction keyspace/journal keyspace/groups keyspace/elements keyspace/streamid keyspace/datadir keyspace/store keyspace/lease keyspace/replica keyspace/aof keyspace/record expiry/members expiry vfs expiry/clock"},
	{"keyspace/repair", "keyspace/journal keyspace/groups keyspace/deathlog keyspace/elements keyspace/datadir keyspace/store keyspace/replica keyspace/aof keyspace/record expiry/members expiry vfs expiry/clock"},
	{"keyspace/tables", "keyspace/locks keyspace/watch keyspace/index keyspace/deathlog keyspace/memtable keyspace/journal keyspace/elements keyspace/aof keyspace/record expiry"},
	{"keyspace/locks", ""},
	{"keyspace/watch", "expiry"},
	{"keyspace/storage", "keyspace/memtable keyspace/journal keyspace/elements keyspace/datadir keyspace/store keyspace/lease keyspace/replica keyspace/aof keyspace/record expiry vfs"},
	{"keyspace/undo", "keyspace/record expiry"},
	{"keyspace/foresight", "keyspace/memtable expiry"},
	{"keyspace/selection", "keyspace/index keyspace/memtable keyspace/record query/predicates query expiry"},
	{"keyspace/index", "keyspace/memtable keyspace/record query/predicates query query/geo"},
	{"keyspace/deathlog", "keyspace/memtable keyspace/elements keyspace/streamid keyspace/record expiry"},
	{"keyspace/memtable", "keyspace/eviction keyspace/record longtext expiry"},
	{"keyspace/eviction", ""},
	{"keyspace/journal", "keyspace/replica keyspace/aof keyspace/record vfs expiry/clock"},
	{"keyspace/groups", "keyspace/streamid"},
	{"keyspace/elements", "keyspace/record"},
	{"keyspace/streamid", ""},
	{"keyspace/datadir", "keyspace/store keyspace/aof keyspace/record vfs"},
	{"keyspace/store", "keyspace/aof keyspace/record vfs"},
	{"keyspace/lease", "keyspace/aof keyspace/record"},
	{"keyspace/replica", "keyspace/aof keyspace/record"},
	{"keyspace/aof/aoftest", "keyspace/aof keyspace/record test/drill vfs/vfstest vfs"}, // helps tests only
	{"keyspace/aof/buntdbtest", ""},                                                     // likewise
	{"keyspace/aof", "keyspace/record vfs"},
	{"keyspace/record", "expiry"},
	{"query/page", "query json/jsontext"},
	{"query/predicates", "query query/geo"},
	{"query", "query/geo json/jsontext"},
	{"query/geo", "json/jsontext"},
	{"json/jsonedit", "json/jsonpath longtext json/jsontext"},
	{"json/jsonpath", "json/jsontext"},
	{"json/jsondoc", "expiry/members redisfmt json/jsontext expiry"},
	{"expiry/members", "json/jsontext expiry"},
	{"redisfmt", ""},
	{"longtext", ""},
	{"json/jsontext", ""},
	{"expiry", "expiry/clock"},
	{"commands/redistest", "test/drill"}, // helps tests only, as all that follows
	{"test/ledger", "test/harness"},
	{"test/harness", "test/drill cluster/clustertest"},
	{"test/drill", ""},
	{"cluster/clustertest", "expiry/clock"},
	{"vfs/vfstest", "vfs"},
	{"vfs", ""},
	{"expiry/clock", ""},
}

// testImports lists what tests of a folder may import besides. Tests of repair write folders with a keyspace,
// tests of the keyspace examine theirs with repair, and tests of metrics read INFO of one.
var testImports = map[string]string{
	".":                  "test/harness",
	"test/clients":       "test/harness",
	"test/cluster":       "test/harness test/ledger cluster/clustertest keyspace/aof/buntdbtest",
	"test/crash":         "test/harness test/ledger keyspace/aof/buntdbtest keyspace commands server server/config",
	"test/deploy":        "test/harness",
	"test/docs":          "commands commands/admin commands/engine server/config test/harness tools",
	"test/page":          "test/harness",
	"test/server":        "test/harness server/config server",
	"test/tools":         "test/harness",
	"test/wire":          "commands commands/engine test/harness",
	"cluster":            "expiry",
	"server/config":      "commands",
	"server/metrics":     "commands commands/access keyspace",
	"keyspace":           "query/page query keyspace/repair keyspace/aof/aoftest keyspace/aof/buntdbtest",
	"keyspace/index":     "query/page",
	"query":              "query/page query/predicates",
	"keyspace/repair":    "keyspace keyspace/streamid keyspace/aof/aoftest",
	"keyspace/foresight": "keyspace/record",
	"commands":           "cluster/bus cluster/topology commands/access commands/events commands/items commands/redistest commands/latency commands/suggest commands/syntax expiry expiry/clock json/jsonedit keyspace keyspace/deathlog keyspace/eviction keyspace/replica keyspace/streamid redisfmt vfs vfs/vfstest",
	"server":             "keyspace/replica vfs vfs/vfstest",
	"keyspace/catalog":   "expiry",
	"keyspace/tables":    "expiry/clock",
	"keyspace/follow":    "expiry",
	"keyspace/inventory": "expiry",
	"keyspace/journal":   "keyspace/aof/aoftest",
	"keyspace/store":     "keyspace/aof/aoftest",
	"keyspace/datadir":   "keyspace/aof/aoftest",
	"keyspace/aof":       "keyspace/aof/aoftest",
	"commands/scripts":   "commands/redistest",
	"keyspace/storage":   "keyspace/aof/aoftest",
}

// libraries are those that few folders may import.
var libraries = map[string]struct{ owners, tests []string }{
	// Tests of the server show what redcon's own server gets wrong.
	"github.com/tidwall/redcon": {owners: []string{"server/resp"}, tests: []string{"server"}},
	// Tests open the files of a data folder with the stock library.
	"github.com/zeebo/xxh3":     {owners: []string{"commands/items", "keyspace/elements"}},
	"github.com/tidwall/btree":  {owners: []string{"keyspace/index", "keyspace/groups"}},
	"github.com/tidwall/buntdb": {owners: []string{"tools"}, tests: []string{"test/crash", "keyspace/aof/buntdbtest", "keyspace", "keyspace/aof", "keyspace/journal", "keyspace/store"}},
}

// clockFolder alone reads the time. Tests and bench do too.
const clockFolder = "expiry/clock"

// mostLines is the size of the largest package, in lines without tests and what only builds for tests have.
const mostLines = 8000

// large are packages that may be larger, with their bounds.
var large = map[string]int{"commands/engine": 8500}

// mostWords is the length of the first sentence of a package's documentation.
const mostWords = 25

type layerTable []struct{ folder, imports string }

// imports returns the folders that a folder may import.
func (l layerTable) imports(folder string) (imports []string, ok bool) {
	for _, row := range l {
		if row.folder == folder {
			return strings.Fields(row.imports), true
		}
	}
	return nil, false
}

// faults returns the imports that do not run downwards, and the rows and imports that no source needs.
func (l layerTable) faults(packages map[string]*sourcePackage) (faults []string) {
	below := map[string]bool{}
	for _, row := range slices.Backward(l) {
		p := packages[row.folder]
		if p == nil {
			faults = append(faults, row.folder+": the folder has no source")
			continue
		}
		for _, name := range strings.Fields(row.imports) {
			if !below[name] {
				faults = append(faults, row.folder+": "+name+" is not further down")
			}
			if !slices.Contains(strings.Fields(p.imports), name) {
				faults = append(faults, row.folder+": no file imports "+name)
			}
		}
		below[row.folder] = true
	}
	return faults
}

// sourcePackage is what the rules for packages look at.
type sourcePackage struct {
	name    string
	doc     string // of doc.go, or of main.go in a program
	lines   int    // without tests
	imports string // of this module, without tests
}

// TestLayering holds the architecture: which folder imports which, which one imports a library and
// reads the time, how large packages are and that their documentation names their job.
func TestLayering(t *testing.T) {
	packages := map[string]*sourcePackage{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir // Go leaves them out, too
		case entry.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		for _, fault := range layeringFaults(t, file, source) {
			t.Error(fault)
		}
		addSource(t, packages, file, source)
		return nil
	})
	drill.Check(t, err)
	for _, fault := range layers.faults(packages) {
		t.Error(fault)
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		for _, fault := range packageFaults(folder, packages[folder]) {
			t.Error(fault)
		}
	}
}

// TestLayeringFaults shows that each rule for a file can be broken.
func TestLayeringFaults(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"server/a.go", `package server; import ("mayfly/commands"; "mayfly/server/resp"; "time"); var _ time.Duration`, ""},
		{"commands/a.go", `package commands; import "mayfly/server"`, "commands/a.go: must not import mayfly/server"},
		{"commands/a_test.go", `package commands; import "mayfly/server/resp"`, "commands/a_test.go: must not import mayfly/server/resp"},
		{"server/a.go", `package server; import "mayfly/keyspace/journal"`, "server/a.go: must not import mayfly/keyspace/journal"},
		{"keyspace/aof/a.go", `package aof; import "mayfly/keyspace"`, "keyspace/aof/a.go: must not import mayfly/keyspace"},
		{"keyspace/memtable/a.go", `package memtable; import "mayfly/keyspace/aof"`, "keyspace/memtable/a.go: must not import mayfly/keyspace/aof"},
		{"redisfmt/a.go", `package redisfmt; import "mayfly/expiry"`, "redisfmt/a.go: must not import mayfly/expiry"},
		{"bench/a.go", `package main; import "mayfly/keyspace"`, "bench/a.go: must not import mayfly/keyspace"},
		{"bench/a.go", `package main; import "time"; var _ = time.Now()`, ""},
		{"server/resp/a.go", `package resp; import "github.com/tidwall/redcon"`, ""},
		{"commands/a_test.go", `package commands; import "github.com/tidwall/redcon"`, "commands/a_test.go: only server/resp imports github.com/tidwall/redcon"},
		{"server/resp/a.go", `package resp; import "github.com/tidwall/buntdb"`, "server/resp/a.go: only tools imports github.com/tidwall/buntdb"},
		{"keyspace/store/a.go", `package store; import "github.com/tidwall/buntdb"`, "keyspace/store/a.go: only tools imports github.com/tidwall/buntdb"},
		{"keyspace/store/a_test.go", `package store; import "github.com/tidwall/buntdb"`, ""},
		{"expiry/a_test.go", `package expiry; import "github.com/tidwall/buntdb"`, "expiry/a_test.go: only tools imports github.com/tidwall/buntdb"},
		{"tools/a.go", `package tools; import "github.com/tidwall/buntdb"`, ""},
		{"keyspace/aof/a.go", `package aof; import "github.com/tidwall/buntdb"`, "keyspace/aof/a.go: only tools imports github.com/tidwall/buntdb"},
		{"keyspace/repair/a_test.go", `package repair; import "mayfly/keyspace"`, ""},
		{"keyspace/repair/a.go", `package repair; import "mayfly/keyspace"`, "keyspace/repair/a.go: must not import mayfly/keyspace"},
		{"keyspace/store/a.go", `package store; import "mayfly/keyspace/aof/aoftest"`, "keyspace/store/a.go: must not import mayfly/keyspace/aof/aoftest"},
		{"util/a.go", `package util`, "util/a.go: util is not a folder of the design"},
		{"server/tls/a.go", `package tls`, "server/tls/a.go: server/tls is not a folder of the design"},
		{"keyspace/a.go", `package keyspace; import "time"; var x = time.Now`, "keyspace/a.go: only expiry/clock reads the time, not time.Now"},
		{"expiry/a.go", `package expiry; import clock "time"; var x = clock.Since(y)`, "expiry/a.go: only expiry/clock reads the time, not time.Since"},
		{"main.go", `package main; import "time"; var x = time.Until(y)`, "main.go: only expiry/clock reads the time, not time.Until"},
		{"expiry/clock/a.go", `package clock; import "time"; var x = time.Now()`, ""},
		{"keyspace/a_test.go", `package keyspace; import "time"; var x = time.Until(y)`, ""},
		{"expiry/a.go", "package expiry\n// " + strings.Repeat("x", 107), ""},
		{"expiry/a.go", "package expiry\n\t// " + strings.Repeat("x", 108), "expiry/a.go: a comment of more than 110 columns: \t// " + strings.Repeat("x", 108)},
	} {
		if got := strings.Join(layeringFaults(t, tt.file, []byte(tt.source)), "; "); got != tt.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tt.file, tt.source, got, tt.want)
		}
	}
}

// TestLayerTableFaults shows that each rule for the table itself can be broken.
func TestLayerTableFaults(t *testing.T) {
	packages := map[string]*sourcePackage{"a": {imports: "a b c x "}, "b": {imports: "a c "}, "c": {}}
	for _, tt := range []struct {
		table layerTable
		want  string
	}{
		{layerTable{{"a", "b c"}, {"b", "c"}, {"c", ""}}, ""},
		{layerTable{{"a", "b"}, {"b", "a"}}, "b: a is not further down"},
		{layerTable{{"a", "a"}}, "a: a is not further down"},
		{layerTable{{"a", "x"}}, "a: x is not further down"},
		{layerTable{{"c", "b"}, {"b", ""}}, "c: no file imports b"},
		{layerTable{{"a", ""}, {"d", ""}}, "d: the folder has no source"},
	} {
		if got := strings.Join(tt.table.faults(packages), "; "); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.table, got, tt.want)
		}
	}
}

// TestPackageFaults shows that each rule for a package can be broken.
func TestPackageFaults(t *testing.T) {
	const sound = "Package x does its job. It does it well."
	for _, tt := range []struct {
		folder string
		pkg    sourcePackage
		want   string
	}{
		{"x", sourcePackage{name: "x", doc: sound, lines: mostLines}, ""},
		{".", sourcePackage{name: "main", doc: "Mayfly is a server.", lines: 10}, ""},
		{"x", sourcePackage{name: "x", doc: sound, lines: mostLines + 1}, "x: 8001 lines without tests; most are 8000"},
		{"commands/engine", sourcePackage{name: "engine", doc: "Package engine does much.", lines: mostLines + 1}, ""},
		{"bench", sourcePackage{name: "main", doc: "Bench measures.", lines: mostLines + 1}, ""},
		{"x", sourcePackage{name: "x", doc: "", lines: 10}, "x: no doc.go that begins with Package x"},
		{"x", sourcePackage{name: "x", doc: "This package does things.", lines: 10}, "x: no doc.go that begins with Package x"},
		{"x", sourcePackage{name: "x", doc: "Package x", lines: 10}, "x: the first sentence of doc.go does not name a job"},
		{"x", sourcePackage{name: "x", doc: "Package x does" + strings.Repeat(" more", 30) + ".", lines: 10}, "x: the first sentence of doc.go has 33 words; most are 25"},
		{".", sourcePackage{name: "main", doc: "", lines: 10}, ".: no comment over package main in main.go"},
	} {
		if got := strings.Join(packageFaults(tt.folder, &tt.pkg), "; "); got != tt.want {
			t.Errorf("%s: %+v\n got %q\nwant %q", tt.folder, tt.pkg, got, tt.want)
		}
	}
}

// TestAddSource shows what counts for a package: the comment in doc.go, and the lines and imports of all
// files but tests. What only builds for tests have counts for the imports alone.
func TestAddSource(t *testing.T) {
	packages := map[string]*sourcePackage{}
	addSource(t, packages, "x/doc.go", []byte("// Package x does.\npackage x\n"))
	addSource(t, packages, "x/a.go", []byte("// Package x is not read here.\npackage x\n\nimport (\"mayfly/y\"; \"time\")\nvar a int\n"))
	addSource(t, packages, "x/a_test.go", []byte("package x\nimport \"mayfly/z\"\n"))
	addSource(t, packages, "x/check.go", []byte("//go:build invariants || race\n\npackage x\n"))
	addSource(t, packages, "x/no_check.go", []byte("//go:build !invariants && !race\n\npackage x\n"))
	addSource(t, packages, "x/other.go", []byte("//go:build !linux\n\npackage x\n"))
	addSource(t, packages, "only/a_test.go", []byte("package only\n"))
	if got, want := *packages["x"], (sourcePackage{"x", "Package x does.\n", 13, "y "}); got != want || len(packages) != 1 {
		t.Errorf("got %+v, want %+v; %d packages", got, want, len(packages))
	}
}

// longComment is a line of text that is wider than a comment should be. Tables may be.
var longComment = regexp.MustCompile(`(?m)^\t*// [^\n]{108,}$`)

// layeringFaults returns what a source file does that its folder does not allow.
func layeringFaults(t *testing.T, file string, source []byte) (faults []string) {
	t.Helper()
	folder, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	drill.Check(t, err)
	fault := func(text string) { faults = append(faults, file+": "+text) }
	if long := longComment.Find(source); long != nil {
		fault("a comment of more than 110 columns: " + string(long))
	}
	allowed, known := layers.imports(folder)
	if !known && !(test && strings.HasPrefix(folder, "test/")) { // tests of the whole program
		fault(folder + " is not a folder of the design")
	}
	helper := strings.HasSuffix(folder, "test") || strings.HasPrefix(folder, "test/")
	timePackage := "" // the name under which the file knows it
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		drill.Check(t, err)
		ours, ok := strings.CutPrefix(name, "mayfly/")
		if ok && !slices.Contains(allowed, ours) && !(test && (ours == folder || ours == "test/drill" || ours == "vfs/vfstest" || slices.Contains(strings.Fields(testImports[folder]), ours))) {
			fault("must not import " + name)
		}
		if l, ok := libraries[name]; ok && !slices.Contains(l.owners, folder) && !((test || helper) && slices.Contains(l.tests, folder)) {
			fault("only " + strings.Join(l.owners, ", ") + " imports " + name)
		}
		if name == "time" {
			timePackage = "time"
			if spec.Name != nil {
				timePackage = spec.Name.Name
			}
		}
	}
	if timePackage == "" || folder == clockFolder || folder == "bench" || test || helper {
		return faults
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := sel.X.(*ast.Ident)
			if ok && pkg.Name == timePackage && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				fault("only " + clockFolder + " reads the time, not time." + sel.Sel.Name)
			}
		}
		return true
	})
	return faults
}

// addSource adds a file to its package.
func addSource(t *testing.T, packages map[string]*sourcePackage, file string, source []byte) {
	t.Helper()
	if strings.HasSuffix(file, "_test.go") {
		return
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly|parser.ParseComments)
	drill.Check(t, err)
	folder, base := path.Split(file)
	folder = path.Clean(folder)
	if packages[folder] == nil {
		packages[folder] = &sourcePackage{name: parsed.Name.Name}
	}
	p := packages[folder]
	if !forTests(source) {
		p.lines += bytes.Count(source, []byte("\n"))
	}
	for _, spec := range parsed.Imports {
		if name, ok := strings.CutPrefix(spec.Path.Value, `"mayfly/`); ok {
			p.imports += strings.TrimSuffix(name, `"`) + " "
		}
	}
	if base == "doc.go" || base == "main.go" && p.name == "main" {
		p.doc = parsed.Doc.Text()
	}
}

// forTests reports whether only builds for tests have a file: those with the tags invariants or hooks, or the
// race detector.
func forTests(source []byte) bool {
	for line := range bytes.Lines(source) {
		if expr, err := constraint.Parse(strings.TrimSpace(string(line))); err == nil {
			ordinary := func(tag string) bool { return tag != "invariants" && tag != "hooks" && tag != "race" }
			return !expr.Eval(ordinary) && expr.Eval(func(string) bool { return true })
		}
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
	}
	return false
}

// packageFaults returns what is wrong with a package as a whole.
func packageFaults(folder string, p *sourcePackage) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, folder+": "+fmt.Sprintf(format, args...)) }
	if most := max(mostLines, large[folder]); p.lines > most && folder != "bench" {
		fault("%d lines without tests; most are %d", p.lines, most)
	}
	sentence := new(doc.Package).Synopsis(p.doc)
	words := len(strings.Fields(sentence))
	switch {
	case p.name == "main":
		if sentence == "" {
			fault("no comment over package main in main.go")
		}
	case !strings.HasPrefix(p.doc, "Package "+p.name):
		fault("no doc.go that begins with Package %s", p.name)
	case words < 4 || !strings.HasSuffix(sentence, "."):
		fault("the first sentence of doc.go does not name a job")
	case words > mostWords:
		fault("the first sentence of doc.go has %d words; most are %d", words, mostWords)
	}
	return faults
}
