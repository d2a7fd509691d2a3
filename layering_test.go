package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the source folders, each with those of ours that it may import. There are no others.
var layers = map[string][]string{
	".":               {"tools", "server", "commands", "keyspace", "expiry", "expiry/clock"},
	"tools":           {"commands", "keyspace", "expiry", "expiry/clock"}, // work on data folders; with a server they speak the protocol
	"server":          {"commands", "keyspace", "expiry", "expiry/clock"},
	"commands":        {"keyspace", "expiry", "expiry/clock"},
	"keyspace":        {"expiry", "expiry/clock", "keyspace/record"},
	"keyspace/record": {"expiry"},
	"expiry":          {"expiry/clock"},
	"expiry/clock":    {},
	"bench":           {}, // speaks only the protocol
}

// owners are libraries that one layer hides from the others.
var owners = map[string]string{
	"github.com/tidwall/redcon": "server",
	"github.com/tidwall/buntdb": "keyspace",
}

// clockFile alone reads the time.
const clockFile = "expiry/clock/clock.go"

// TestLayering holds the architecture: who may import whom, and who may read the time.
func TestLayering(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		seen[path.Dir(file)] = true
		for _, fault := range layeringFaults(t, file, source) {
			t.Error(fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range layers {
		if !seen[folder] {
			t.Errorf("%s: the folder has no source", folder)
		}
	}
}

// TestLayeringFaults shows that the rules can be broken.
func TestLayeringFaults(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"server/a.go", `package server; import ("mayfly/commands"; "github.com/tidwall/redcon"; "time"); var _ time.Duration`, ""},
		{"commands/a.go", `package commands; import "mayfly/server"`, "commands/a.go: must not import mayfly/server"},
		{"bench/a.go", `package main; import "mayfly/keyspace"`, "bench/a.go: must not import mayfly/keyspace"},
		{"bench/a.go", `package main; import "time"; var _ = time.Now()`, ""},
		{"commands/a_test.go", `package commands; import "github.com/tidwall/redcon"`, "commands/a_test.go: only server imports github.com/tidwall/redcon"},
		{"server/a.go", `package server; import "github.com/tidwall/buntdb"`, "server/a.go: only keyspace imports github.com/tidwall/buntdb"},
		{"util/a.go", `package util`, "util/a.go: util is not a folder of the design"},
		{"server/tls/a.go", `package tls`, "server/tls/a.go: server/tls is not a folder of the design"},
		{"keyspace/a.go", `package keyspace; import "time"; var x = time.Now`, "keyspace/a.go: only expiry/clock/clock.go reads the time, not time.Now"},
		{"expiry/a.go", `package expiry; import clock "time"; var x = clock.Since(y)`, "expiry/a.go: only expiry/clock/clock.go reads the time, not time.Since"},
		{"expiry/clock/clock.go", `package clock; import "time"; var x = time.Now()`, ""},
		{"keyspace/a_test.go", `package keyspace; import "time"; var x = time.Until(y)`, ""},
	} {
		if got := strings.Join(layeringFaults(t, tt.file, []byte(tt.source)), "; "); got != tt.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tt.file, tt.source, got, tt.want)
		}
	}
}

// layeringFaults says what a source file does that its place does not allow.
func layeringFaults(t *testing.T, file string, source []byte) (faults []string) {
	t.Helper()
	folder := path.Dir(file)
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(text string) { faults = append(faults, file+": "+text) }
	allowed, known := layers[folder]
	if !known {
		fault(folder + " is not a folder of the design")
	}
	timePackage := "" // the name under which the file knows it
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if ours, ok := strings.CutPrefix(name, "mayfly/"); ok && !slices.Contains(allowed, ours) {
			fault("must not import " + name)
		}
		if owner := owners[name]; owner != "" && owner != folder {
			fault("only " + owner + " imports " + name)
		}
		if name == "time" {
			timePackage = "time"
			if spec.Name != nil {
				timePackage = spec.Name.Name
			}
		}
	}
	if timePackage == "" || file == clockFile || folder == "bench" || strings.HasSuffix(file, "_test.go") {
		return faults
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := sel.X.(*ast.Ident)
			if ok && pkg.Name == timePackage && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				fault("only " + clockFile + " reads the time, not time." + sel.Sel.Name)
			}
		}
		return true
	})
	return faults
}
