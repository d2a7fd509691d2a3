package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestDocsTestCommands: each "go test" that a page shows names packages, tests and flags that exist.
func TestDocsTestCommands(t *testing.T) {
	t.Parallel()
	found := 0
	for page, text := range harness.Guides(t) {
		for _, m := range regexp.MustCompile("go test ([^`\n#]+)").FindAllStringSubmatch(text, -1) {
			found++
			for _, fault := range testCommandFaults(t, strings.Fields(m[1])) {
				t.Errorf("%s: %s: %s", page, m[0], fault)
			}
		}
	}
	drills := regexp.MustCompile("(?m)^\\| `(\\./.*?)`").FindAllStringSubmatch(harness.Guides(t)["docs/testing.md"], -1)
	for _, m := range drills {
		for _, fault := range testCommandFaults(t, append(strings.Fields(m[1]), "-drill")) {
			t.Errorf("docs/testing.md: %s: %s", m[1], fault)
		}
	}
	if found == 0 || len(drills) == 0 {
		t.Errorf("%d commands and %d drills are mentioned", found, len(drills))
	}
}

// TestDocsTestCommandFaults shows that commands can be wrong.
func TestDocsTestCommandFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, want string }{
		{"-short ./...", ""},
		{"-race ./...", ""},
		{"./test/docs ./test/deploy -drill -timeout 0", ""},
		{"./test/docs ./test/deploy -run 'TestDocs|TestDeploy' -seed 7 -drill", ""},
		{"./test/docs -run '^TestDocsLines$/^a page$'", ""},
		{"./test/docs -run Tables -rewrite", ""},
		{"./test/nowhere", "./test/nowhere has no tests"},
		{"./deploy/...", "./deploy/... has no tests"},
		{"./test/docs ./test/deploy -run TestDocsLines", "no test of ./test/deploy matches TestDocsLines"},
		{"./test/docs -kills 1000", "test/docs: no flag -kills"},
		{"./test/drill -rewrite", "test/drill: no flag -rewrite"},
	} {
		if got := strings.Join(testCommandFaults(t, strings.Fields(tt.command)), "; "); got != tt.want {
			t.Errorf("go test %s: %q, want %q", tt.command, got, tt.want)
		}
	}
}

// testCommandFaults reports why "go test args" runs no test or is refused.
func testCommandFaults(t *testing.T, args []string) (faults []string) {
	t.Helper()
	var patterns, flags []string
	tests := regexp.MustCompile("") // what -run chooses
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; arg {
		case "-short", "-v", "-race":
		case "-timeout", "-count":
			i++
		case "-seed":
			flags = append(flags, arg)
			i++
		case "-run":
			i++
			pattern, _, _ := strings.Cut(strings.Trim(args[i], "'"), "/")
			tests = regexp.MustCompile(pattern)
		default:
			if strings.HasPrefix(arg, "-") {
				flags = append(flags, arg)
			} else if strings.HasPrefix(arg, ".") {
				patterns = append(patterns, arg)
			}
		}
	}
	for _, pattern := range patterns {
		folders := testFolders(t, pattern)
		if len(folders) == 0 {
			faults = append(faults, pattern+" has no tests")
			continue
		}
		if !slices.ContainsFunc(folders, func(folder string) bool { return hasTest(t, folder, tests) }) {
			faults = append(faults, "no test of "+pattern+" matches "+tests.String())
		}
		for _, flag := range flags { // go test gives it to each package
			without := slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
				return slices.Contains(flagsOf(t, folder, map[string]bool{}), flag)
			})
			if len(without) > 0 {
				faults = append(faults, fmt.Sprintf("%s: no flag %s", strings.Join(without, " "), flag))
			}
		}
	}
	return faults
}

// testFolders returns the folders with tests that a pattern such as ./test/... means.
func testFolders(t *testing.T, pattern string) (folders []string) {
	t.Helper()
	root, below := strings.CutSuffix(pattern, "...")
	err := filepath.WalkDir(filepath.Clean(root), func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && !entry.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		name := entry.Name()
		other, _ := filepath.Glob(filepath.Join(path, "go.mod")) // another module
		if path != filepath.Clean(root) && (!below || len(other) > 0 || name == "testdata" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*_test.go")); len(files) > 0 {
			folders = append(folders, path)
		}
		return nil
	})
	drill.Check(t, err)
	return folders
}

// hasTest reports whether a test of a folder matches.
func hasTest(t *testing.T, folder string, tests *regexp.Regexp) bool {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(source(t, filepath.Join(folder, "*_test.go")), -1) {
		if tests.MatchString(m[1]) {
			return true
		}
	}
	return false
}

var (
	flagCall   = regexp.MustCompile(`flag\.\w+\("([\w-]+)"`)
	testImport = regexp.MustCompile(`"mayfly/(test/\w+|\S+test)"`)
)

// flagsOf returns the flags that a package defines, and those of the packages for tests that it imports.
func flagsOf(t *testing.T, folder string, seen map[string]bool) (flags []string) {
	t.Helper()
	seen[folder] = true
	text := source(t, filepath.Join(folder, "*.go"))
	for _, m := range flagCall.FindAllStringSubmatch(text, -1) {
		flags = append(flags, "-"+m[1])
	}
	for _, m := range testImport.FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			flags = append(flags, flagsOf(t, m[1], seen)...)
		}
	}
	return flags
}

var sources sync.Map // texts by pattern: many commands name the same packages

// source returns the text of files.
func source(t *testing.T, pattern string) string {
	t.Helper()
	if text, ok := sources.Load(pattern); ok {
		return text.(string)
	}
	files, err := filepath.Glob(pattern)
	drill.Check(t, err)
	var text strings.Builder
	for _, file := range slices.Sorted(slices.Values(files)) {
		part, err := os.ReadFile(file)
		drill.Check(t, err)
		text.Write(part)
	}
	sources.Store(pattern, text.String())
	return text.String()
}
