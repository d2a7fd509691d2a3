package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bytes"
	"sync"
)

// Absent reports that something that a test needs is not on this machine. It fails in continuous
// integration, where nothing may be left untested without a word. Elsewhere it skips loudly.
func Absent(t *testing.T, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI=true demands what is absent: %s", what)
	}
	t.Skipf("NOT TESTED: %s", what)
}

// Need gives the path of a program.
func Need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Absent(t, "%s is not installed", program)
	}
	return path
}

// Run runs a program to its end and returns what it prints. The test fails if the program does.
func Run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, &out)
	}
	return strings.TrimSpace(out.String())
}

// Python returns a Python that knows redis-py.
func Python(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import redis").Run() == nil {
			return python
		}
	}
	Absent(t, "no python3 knows the module redis (Debian: python3-redis)")
	return ""
}

// IoredisVersions are what is tested: the last of the line that most programs use, and the newest.
var IoredisVersions = []string{"5.11.1", "6.0.0"}

// installedInNode protects the cache folder of installInNode.
var installedInNode sync.Mutex

// InstallInNode returns the path of Node.js and the folder of a version of a library. npm installs that into the user's
// cache folder, once.
func InstallInNode(t *testing.T, library, version string) (node, modules string) {
	t.Helper()
	installedInNode.Lock()
	defer installedInNode.Unlock()
	node, npm := Need(t, "node"), Need(t, "npm")
	cache, err := os.UserCacheDir()
	if err != nil {
		Absent(t, "no folder to install %s into: %v", library, err)
	}
	dir := filepath.Join(cache, "mayfly-tests", library+"-"+version)
	modules = filepath.Join(dir, "node_modules")
	if exec.Command(node, "-e", `require(process.argv[1])`, filepath.Join(modules, library)).Run() != nil {
		out, err := exec.Command(npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", library+"@"+version).CombinedOutput()
		if err != nil {
			Absent(t, "npm cannot install %s: %v\n%s", library, err, out)
		}
	}
	return node, modules
}

// Endless is a script that runs until something ends it.
const Endless = "while true do end"
