package harness

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mayfly/test/drill"
)

// Parallel marks a test that starts processes: it runs beside others, and not in the quick form.
func Parallel(t *testing.T) {
	t.Helper()
	drill.Slow(t)
	t.Parallel()
}

// Absent reports that this machine lacks something that a test needs. It fails in continuous integration,
// where nothing may go untested unseen. Elsewhere it skips the test loudly.
func Absent(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("absent, although CI=true: "+format, args...)
	}
	t.Skipf("NOT TESTED: "+format, args...)
}

// Need returns the path of a program.
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

// findPython returns a Python with redis-py. Finding it takes a second.
var findPython = sync.OnceValue(func() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import redis").Run() == nil {
			return python
		}
	}
	return ""
})

// Python returns the path of a Python with redis-py.
func Python(t *testing.T) string {
	t.Helper()
	python := findPython()
	if python == "" {
		Absent(t, "no python3 has the module redis (Debian: python3-redis)")
	}
	return python
}

// IoredisVersions are the versions of ioredis that tests run: the last of the line that most programs use,
// and the newest.
var IoredisVersions = []string{"5.11.1", "6.0.0"}

// installing is held while something is installed for tests.
var installing sync.Mutex

// InstallInNode returns the path of Node.js and the folder with a version of a library. npm installs it into
// the user's cache folder, once.
func InstallInNode(t *testing.T, library, version string) (node, modules string) {
	t.Helper()
	node, dir := Npm(t, library+"-"+version, func(string) []string {
		return []string{"install", "--no-package-lock", library + "@" + version}
	})
	return node, filepath.Join(dir, "node_modules")
}

// Npm returns the path of Node.js and a folder of this name in the user's cache folder. The first time,
// prepare fills the new folder and returns what npm shall do in it.
func Npm(t *testing.T, name string, prepare func(dir string) (args []string)) (node, dir string) {
	t.Helper()
	node, npm := Need(t, "node"), Need(t, "npm")
	return node, install(t, name, func(dir string) {
		args := append(prepare(dir), "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts")
		if out, err := exec.Command(npm, args...).CombinedOutput(); err != nil {
			Absent(t, "npm cannot install %s: %v\n%s", name, err, out)
		}
	})
}

// install returns a folder of this name in the user's cache folder, which fill has filled once.
func install(t *testing.T, name string, fill func(dir string)) (dir string) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		Absent(t, "a folder to install %s into: %v", name, err)
	}
	dir = filepath.Join(cache, "mayfly-tests", name)
	whole := filepath.Join(dir, "installed")
	if _, err := os.Stat(whole); err == nil {
		return dir
	}
	drill.Check(t, os.MkdirAll(dir, 0o755))
	fill(dir)
	drill.Check(t, os.WriteFile(whole, nil, 0o644))
	return dir
}

// The redis-py of Debian 13, which has a cache. That of Debian 12 has none.
const (
	cachingRedisPy    = "pool/main/p/python-redis/python3-redis_6.1.0-2_all.deb"
	cachingRedisPySum = "85b4ab406ee9dc03a0474cf6b9c0b178d0124a9196e2d8ad7fc4c3a988e924e4"
)

// CachingRedisPy returns the path of Python and the folder with a redis-py that has a cache. The first time,
// it is fetched from where this machine has its packages from.
func CachingRedisPy(t *testing.T) (python, modules string) {
	t.Helper()
	python = Python(t)
	dir := install(t, "redis-py-6.1.0", func(dir string) {
		out, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm").Output()
		mirror, _, _ := strings.Cut(string(out), "\n")
		if err != nil || mirror == "" {
			Absent(t, "a mirror of Debian for redis-py 6.1: %v", err)
		}
		file := filepath.Join(dir, "redis-py.deb")
		for _, args := range [][]string{
			{"/usr/lib/apt/apt-helper", "download-file", mirror + cachingRedisPy, file, "SHA256:" + cachingRedisPySum},
			{"dpkg-deb", "--extract", file, dir},
		} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				Absent(t, "%q: %v\n%s", args, err, out)
			}
		}
	})
	return python, filepath.Join(dir, "usr/lib/python3/dist-packages")
}

// Endless is a script that runs until something ends it.
const Endless = "while true do end"

// Local finds the addresses in programs of the docs.
var Local = regexp.MustCompile(`"localhost:(\d+)"`)

// ProgramFolder returns a folder with a program of the docs, which go run links once. Arguments such as
// 6379=127.0.0.1:7000 say where a port of localhost is.
func ProgramFolder(t *testing.T, program string) string {
	t.Helper()
	return SourceFolder(t, map[string]string{"main.go": Local.ReplaceAllString(program, `at("$1")`), "at.go": atArguments})
}

// SourceFolder returns a folder with files, in the user's cache folder. It has the same path each time, so Go
// compiles what is in it once.
func SourceFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	drill.Check(t, err)
	dir := filepath.Join(cache, "mayfly-tests", fmt.Sprintf("program-%x", sha256.Sum256([]byte(fmt.Sprintf("%q", files)))))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	drill.Check(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fresh-")
	drill.Check(t, err)
	defer os.RemoveAll(fresh) // in vain once it is renamed
	for name, text := range files {
		drill.Check(t, os.WriteFile(filepath.Join(fresh, name), []byte(text), 0o600))
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another run may be first
		t.Fatal(err)
	}
	return dir
}

// atArguments gives a program of the docs the addresses that stand for those in it.
const atArguments = `package main

import (
	"os"
	"strings"
)

func at(port string) string {
	for _, arg := range os.Args[1:] {
		if address, ok := strings.CutPrefix(arg, port+"="); ok {
			return address
		}
	}
	panic("no address for port " + port)
}
`
