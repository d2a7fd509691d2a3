package clients

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// frameworksDir holds the programs of TestFrameworks, and the pinned versions of their libraries.
const frameworksDir = "test/clients/testdata/frameworks"

// language is what a library of TestFrameworks is written in.
type language string

const (
	goLanguage language = "Go"
	nodeJS     language = "Node.js"
	pythonDeb  language = "Python" // this and those below as packaged by Debian 12
	phpDeb     language = "PHP"
	rubyDeb    language = "Ruby"
)

// interpreters run the programs for libraries that Debian packages. Their names begin with check_.
var interpreters = map[language][]string{
	pythonDeb: {"/usr/bin/python3", "-B"},
	phpDeb:    {"/usr/bin/php"},
	rubyDeb:   {"/usr/bin/ruby"},
}

// framework is a library that TestFrameworks runs against the server, and a row of docs/frameworks.md.
// Version is the one that the test runs.
type framework struct {
	name     string // as its users install it; of interpreters the package of Debian
	version  string
	language language
	program  string // the test in Go, or the file below frameworksDir
	drill    bool   // runs only as a drill: it needs a package of Debian that .ci/run does not install
	does     string // what the test does
	but      string // what does not work
}

const (
	doesLock    = "a lock is exclusive, is released by its owner only, is extended, expires"
	doesSession = "a session is stored, read, expires, is destroyed"
	doesLimit   = "a limit refuses, is reset, opens again"
	doesCache   = "hits, misses, TTL, many keys at once, deletes"
)

// frameworks are sorted as the page lists them. Tests compare the versions with the pinned ones.
var frameworks = []framework{
	{"connect-redis", "9.0.0", nodeJS, "connect-redis.mjs", false, "express-session: " + doesSession, ""},
	{"@keyv/redis", "5.1.6", nodeJS, "keyv.mjs", false, "keyv 5: " + doesCache + ", namespaces", ""},
	{"cache-manager", "7.2.9", nodeJS, "cache-manager.mjs", false, doesCache + ", wrapped functions", ""},
	{"rate-limiter-flexible", "11.4.0", nodeJS, "rate-limiter-flexible.mjs", false, doesLimit + "; blocks; with ioredis and node-redis", ""},
	{"rate-limit-redis", "6.0.1", nodeJS, "rate-limit-redis.mjs", false, "express-rate-limit: " + doesLimit, ""},
	{"redlock", "4.2.0", nodeJS, "redlock.mjs", false, doesLock + "; several resources at once", ""},
	{"redis-om", "0.4.7", nodeJS, "redis-om.mjs", false, "entities as JSON and as hashes are saved, fetched, changed, expire, are removed",
		"no search (`FT.*`); `expire` of JSON adds the member `ttl`, which `fetch` returns"},
	{"@socket.io/redis-adapter", "8.3.0", nodeJS, "socket.io.mjs", false, "messages, rooms, acknowledgements and disconnections across two servers", ""},

	{"github.com/go-redsync/redsync/v4", "v4.18.1", goLanguage, "TestRedsync", false, doesLock, ""},
	{"github.com/bsm/redislock", "v0.9.4", goLanguage, "TestRedislock", false, doesLock, ""},
	{"github.com/go-redis/redis_rate/v10", "v10.0.1", goLanguage, "TestRedisRate", false, doesLimit, ""},
	{"github.com/ulule/limiter/v3", "v3.11.2", goLanguage, "TestUluleLimiter", false, doesLimit, ""},
	{"github.com/go-redis/cache/v9", "v9.0.0", goLanguage, "TestGoRedisCache", false, "hits, misses, TTL, makes a value once, deletes", ""},
	{"github.com/redis/rueidis", "v1.0.79", goLanguage, "TestRueidis", false, "commands, pipelines, transactions, scripts, JSON, messages, its client-side cache", ""},
	{"github.com/redis/rueidis", "v1.0.79", goLanguage, "TestRueidislock", false, "`rueidislock`: a lock is exclusive, is kept, is released", ""},

	{"python3-redis", "4.3.4", pythonDeb, "check_redis.py", false, "`Lock`: " + doesLock + "; scripts, JSON, TTL, messages", ""},
	{"python3-django-redis", "5.2.0", pythonDeb, "check_django_redis.py", true, "Django's cache (" + doesCache + "), its locks, its sessions", ""},
	{"python3-flask-session", "0.3.2", pythonDeb, "check_flask_session.py", true, doesSession, ""},
	{"python3-limits", "2.8.0", pythonDeb, "check_limits.py", true, "fixed and moving windows: " + doesLimit, ""},
	{"python3-dogpile.cache", "1.1.8", pythonDeb, "check_dogpile.py", true, doesCache + ", makes a value once under a lock", ""},
	{"python3-celery", "5.2.6", pythonDeb, "check_celery.py", true, "as broker and for results: tasks run, wait for a moment, are retried; a chord waits for its tasks", ""},
	{"python3-rq", "1.13.0", pythonDeb, "check_rq.py", true, "jobs run in their order, fail, are put back, are scheduled",
		"with `reported-version 4.0.14`: from Redis 5.0 on it writes results to streams"},
	{"python3-channels-redis", "4.0.0", pythonDeb, "check_channels.py", true, "messages reach a channel in their order, a group all of its channels; a full channel refuses", ""},

	{"php-illuminate-queue", "8.83.26", phpDeb, "check_laravel.php", true, "Laravel: jobs run in their order, are released, come back from a worker that is lost, wait for a moment; a funnel and a throttle refuse", ""},
	{"ruby-sidekiq", "6.4.1", rubyDeb, "check_sidekiq.rb", true, "jobs run, wait for a moment, fail, are tried again, are dead in the end", ""},
}

// beside are packages of Debian that a library does not bring.
var beside = map[string][]string{
	"php-illuminate-queue": {"php-cli", "php-redis", "php-illuminate-redis", "php-illuminate-events"},
}

// unfit is what does not work, and why.
type unfit struct {
	names string
	what  string
	needs string // commands that the server does not have
	so    string // what to do instead
}

// unfits are libraries that need types that the server does not have.
var unfits = []unfit{
	{"bullmq", "queues of Node.js", "XADD", "[logs of deaths](deaths.md#a-worker-that-loses-nothing) and [durable timers](deaths.md#a-durable-timer)"},
	{"@socket.io/redis-streams-adapter", "an adapter over streams", "XADD", "@socket.io/redis-adapter"},
	{"redis-om for Python and .NET", "entities and search", "FT.CREATE FT.SEARCH", "redis-om for Node.js with `dataStructure: \"JSON\"`, and [queries](queries.md)"},
}

// TestFrameworks uses the server as libraries do that are made for Redis: locks, limiters, caches, sessions.
// Time is real here, since it passes in the libraries as well.
func TestFrameworks(t *testing.T) {
	harness.Parallel(t)
	t.Run(string(nodeJS), testNode)
	for _, f := range frameworks {
		if f.language == nodeJS {
			continue
		}
		t.Run(string(f.language)+"/"+strings.ReplaceAll(f.name, "/", "_")+"/"+f.program, func(t *testing.T) {
			t.Parallel()
			if f.drill && !drill.On() {
				t.Skip("NOT TESTED without -drill")
			}
			var program *exec.Cmd
			switch f.language {
			case goLanguage:
				program = goProgram(t, f)
			default:
				program = debianProgram(t, f)
			}
			port := harness.Start(t, filepath.Join(t.TempDir(), "data")).Port
			if f.language == goLanguage {
				program.Env = append(program.Environ(), "MAYFLY_PORT="+port)
			} else {
				program.Args = append(program.Args, port)
			}
			out, err := program.CombinedOutput()
			if err != nil || !regexp.MustCompile(`(?im)^pass(ed)?$`).Match(out) {
				t.Errorf("%s %s: %v\n%s", f.name, f.version, err, out)
			}
		})
	}
}

// testNode uses all libraries of Node.js in one process: most of a program's time goes into loading what all
// load. npm installs the libraries as package-lock.json pins them.
func testNode(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs(filepath.Join(frameworksDir, "node"))
	drill.Check(t, err)
	sum := sha256.Sum256([]byte(readText(t, filepath.Join(source, "package-lock.json"))))
	node, dir := harness.Npm(t, "frameworks-"+hex.EncodeToString(sum[:6]), func(dir string) []string {
		for _, name := range []string{"package.json", "package-lock.json"} {
			copyInto(t, filepath.Join(source, name), dir)
		}
		return []string{"ci"}
	})
	// Modules are looked for beside the program that imports them.
	here := t.TempDir()
	drill.Check(t, os.CopyFS(here, os.DirFS(source)), os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(here, "node_modules")))
	args := []string{filepath.Join(here, "run.mjs"), harness.Start(t, filepath.Join(t.TempDir(), "data")).Port}
	for _, f := range frameworks {
		if f.language == nodeJS {
			args = append(args, f.program)
		}
	}
	out, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput()
	for _, program := range args[2:] {
		if !bytes.Contains(out, []byte(program+" passed\n")) {
			t.Errorf("%s does not pass", program)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyInto copies a file into a folder.
func copyInto(t *testing.T, file, dir string) {
	t.Helper()
	drill.Check(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(readText(t, file)), 0o644))
}

// errNoModules says that the libraries for Go are not on this machine and cannot be fetched.
var errNoModules = errors.New("no libraries")

// buildGoFrameworks builds the tests of the libraries for Go and returns the path of the program. They are a
// module of their own: the server does not depend on these libraries.
var buildGoFrameworks = sync.OnceValues(func() (string, error) {
	in := func(args ...string) error {
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(frameworksDir, "go")
		cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := in("mod", "download"); err != nil {
		return "", errors.Join(errNoModules, err)
	}
	program := filepath.Join(filepath.Dir(harness.Binary), "frameworks.test") // removed with mayfly
	return program, in("test", "-c", "-ldflags=-s -w", "-o", program, ".")
})

// goProgram returns the test that uses a library of Go.
func goProgram(t *testing.T, f framework) *exec.Cmd {
	t.Helper()
	program, err := buildGoFrameworks()
	if errors.Is(err, errNoModules) {
		harness.Absent(t, "%s/go: %v", frameworksDir, err)
	}
	drill.Check(t, err)
	return exec.CommandContext(t.Context(), program, "-test.run=^"+f.program+"$")
}

// TestRueidisModel runs TestRueidisNeverStale of the libraries for Go, with a server whose clock the test
// moves.
func TestRueidisModel(t *testing.T) {
	harness.Parallel(t)
	program := goProgram(t, framework{program: "TestRueidisNeverStale"})
	port := harness.Start(t, t.TempDir(), "--ephemeral", "yes", "--clock", "manual", "--undo-window", "60").Port
	program.Env = append(program.Environ(), "MAYFLY_PORT="+port, fmt.Sprint("MAYFLY_SEED=", drill.Seed(t)),
		fmt.Sprint("MAYFLY_STEPS=", drill.Pick(1000, 1000, 100_000)))
	if out, err := program.CombinedOutput(); err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// debianProgram returns the program that uses a library that Debian packages.
func debianProgram(t *testing.T, f framework) *exec.Cmd {
	t.Helper()
	version, err := debianVersion(f.name)
	for _, name := range beside[f.name] {
		_, missing := debianVersion(name)
		err = cmp.Or(err, missing)
	}
	if err != nil {
		harness.Absent(t, "%v", err)
	}
	if version != f.version {
		t.Logf("%s is %s here; docs/frameworks.md says %s", f.name, version, f.version)
	}
	by := interpreters[f.language]
	return exec.CommandContext(t.Context(), by[0], append(by[1:len(by):len(by)], filepath.Join(frameworksDir, strings.ToLower(string(f.language)), f.program))...)
}

// debianVersion returns the version of the library in an installed package, without Debian's own part.
func debianVersion(name string) (string, error) {
	out, err := exec.Command("dpkg-query", "--show", "--showformat=${Version}", name).Output()
	version := regexp.MustCompile(`^[^-+]*`).FindString(strings.TrimSpace(string(out)))
	if err == nil && version == "" {
		err = fmt.Errorf("no version")
	}
	if err != nil {
		return "", fmt.Errorf("no package %s: apt-get install %[1]s (%w)", name, err)
	}
	return version, nil
}

// TestFrameworkVersions compares the versions on the page with those that tests are pinned to.
func TestFrameworkVersions(t *testing.T) {
	t.Parallel()
	var node struct{ Dependencies map[string]string }
	drill.Check(t, json.Unmarshal([]byte(readText(t, filepath.Join(frameworksDir, "node/package.json"))), &node))
	module := readText(t, filepath.Join(frameworksDir, "go/go.mod"))
	for _, f := range frameworks {
		pinned := ""
		switch f.language {
		case nodeJS:
			pinned = node.Dependencies[f.name]
		case goLanguage:
			if m := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(f.name) + ` (v\S+)$`).FindStringSubmatch(module); m != nil {
				pinned = m[1]
			}
		default:
			version, err := debianVersion(f.name)
			if err != nil {
				continue // TestFrameworks says so
			}
			pinned = version
		}
		if pinned != f.version {
			t.Errorf("%s: the test runs %q, the page says %q", f.name, pinned, f.version)
		}
	}
	for _, pattern := range []string{"node/*.mjs", "python/check_*", "php/check_*", "ruby/check_*"} {
		programs, err := filepath.Glob(filepath.Join(frameworksDir, pattern))
		if err != nil || len(programs) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, program := range programs {
			name := filepath.Base(program)
			if name != "common.mjs" && name != "run.mjs" && !slices.ContainsFunc(frameworks, func(f framework) bool { return f.program == name }) {
				t.Errorf("TestFrameworks does not run %s", program)
			}
		}
	}
}

// TestFrameworksUnfit checks that what libraries are said to lack is not there.
func TestFrameworksUnfit(t *testing.T) {
	harness.Parallel(t)
	c := harness.Start(t, filepath.Join(t.TempDir(), "data")).Client()
	for _, u := range unfits {
		for _, command := range strings.Fields(u.needs) {
			err := c.Do(t.Context(), command, "k", "*", "a", "b").Err()
			if err == nil || !strings.Contains(err.Error(), "unknown command") && !strings.Contains(err.Error(), "the server writes all streams") {
				t.Errorf("docs/frameworks.md: %s work if %s does: %v", u.names, command, err)
			}
		}
	}
}

// TestFrameworkTables compares the tables of docs/frameworks.md with what tests run and what does not work.
func TestFrameworkTables(t *testing.T) {
	t.Parallel()
	harness.CheckTables(t, map[string]string{"frameworks": frameworkTable(), "unfit frameworks": unfitTable()})
}

// frameworkTable lists what tests run.
func frameworkTable() string {
	var b bytes.Buffer
	b.WriteString("| library | version | language | what a test does with it | but |\n|---|---|---|---|---|\n")
	for _, f := range frameworks {
		name := strings.TrimPrefix(f.name, "github.com/")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, strings.TrimPrefix(f.version, "v"), f.language, f.does, f.but)
	}
	return b.String()
}

// unfitTable lists what does not work.
func unfitTable() string {
	var b bytes.Buffer
	b.WriteString("| library | what it is | it needs | instead |\n|---|---|---|---|\n")
	for _, u := range unfits {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", u.names, u.what, strings.Join(strings.Fields(u.needs), "`, `"), u.so)
	}
	return b.String()
}

// readText returns the text of a file.
func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	drill.Check(t, err)
	return string(text)
}
