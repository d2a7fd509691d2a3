package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mayfly/server"
	"mayfly/server/config"
	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

func TestHelpAndVersion(t *testing.T) {
	harness.Parallel(t)
	help := harness.RunToEnd(t, nil, "--help")
	if help.Code != 0 || help.Stderr != "" {
		t.Errorf("--help: exit code %d, standard error %q", help.Code, help.Stderr)
	}
	for _, o := range config.Options {
		def := o.Default
		if def == "" {
			def = `""`
		}
		entry := regexp.MustCompile(`(?m)^--` + o.Name + `\s(.+\n ?)*? .*` + anySpace(o.Unit+"; default "+def) + `\)`)
		if o.Unit == "" {
			entry = regexp.MustCompile(`(?m)^--` + o.Name + `\s(.+\n ?)*? .*` + anySpace("default "+def) + `\)`)
		}
		if !entry.MatchString(help.Stdout) {
			t.Errorf("--help does not list --%s with default %q and unit %q", o.Name, o.Default, o.Unit)
		}
	}
	for _, word := range []string{"-h", "help"} {
		if got := harness.RunToEnd(t, nil, word); got != help {
			t.Errorf("%s: %+v", word, got)
		}
	}
	for _, word := range []string{"--version", "-v", "version"} {
		if version := harness.RunToEnd(t, nil, word); version.Code != 0 || version.Stdout != "mayfly "+server.Version+"\n" {
			t.Errorf("%s: %+v", word, version)
		}
	}
}

// anySpace is a pattern for a text that may be broken into lines.
func anySpace(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
}

// TestIllegalOptionsStopTheStart has one mistake of each kind: package config tries each option.
func TestIllegalOptionsStopTheStart(t *testing.T) {
	harness.Parallel(t)
	several := harness.RunToEnd(t, []string{"MAYFLY_PROT=1"}, "--port", "70000", "--maxclients", "0")
	if lines := strings.Count(several.Stderr, "\nmayfly: "); several.Code != 1 || lines != 2 {
		t.Errorf("of three mistakes: %+v", several)
	}
	path := harness.WriteFile(t, "mayfly.conf", "port 7000\n\nappendfsync never\n")
	for _, tt := range []struct{ env, args, says []string }{
		{nil, []string{"--maxclients"}, []string{"maxclients", "no value"}},
		{nil, []string{"--maxclients", "0"}, []string{"maxclients", `"0"`, "legal: ", "command line"}},
		{nil, []string{"--prot", "1"}, []string{`"prot"`, "unknown option"}},
		{nil, []string{"--port", "0"}, []string{"nothing to listen on"}},
		{[]string{"MAYFLY_PROT=1"}, nil, []string{`"prot"`, "MAYFLY_PROT", "unknown option"}},
		{[]string{"MAYFLY_PARTITIONS=1.5"}, nil, []string{"partitions", `"1.5"`, "1 to 256", "MAYFLY_PARTITIONS"}},
		{nil, []string{path}, []string{"appendfsync", `"never"`, "everysec, always, no", path + ":3"}},
	} {
		harness.CheckRefusal(t, harness.RunToEnd(t, tt.env, tt.args...), tt.says...)
	}
}

func TestPortInUse(t *testing.T) {
	harness.Parallel(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	dir := filepath.Join(t.TempDir(), "data")
	for _, option := range []string{"--port", "--tls-port"} {
		args := []string{"--dir", dir, option, port}
		if option == "--tls-port" {
			cert, key := harness.SelfSigned(t)
			args = append(args, "--port", "0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
		}
		harness.CheckRefusal(t, harness.RunToEnd(t, nil, args...), "127.0.0.1", port, "address already in use", "choose another port with "+option)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a server that could not listen has made a data folder")
	}
}

// TestSlips: what a new user mistypes first gets a line that says what to type.
func TestSlips(t *testing.T) {
	harness.Parallel(t)
	for _, slip := range []struct{ args, says string }{
		{"chekc", `"chekc": did you mean check?`},
		{"IMPRT a b", `"IMPRT": did you mean import?`},
		{"versoin", `"versoin": did you mean version?`},
		{"start", `there is no command and no config file "start": the commands are check, repair, export, import, forecast, top, health, help, version`},
		{"redis.conf", "cannot read the config file redis.conf: no such file or directory"},
		{"./chekc", "cannot read the config file ./chekc: no such file or directory"},
		{"--maxmemory 100x", `option maxmemory on the command line has the illegal value "100x"; legal: 0 to 9223372036854775807 bytes, or with a unit: k, m, g`},
		{"--max-value-size 1mib", "or with a unit: k, m, g"},
		{"--maxclients 0", "legal: 1 to 4294967295"},
	} {
		got := harness.RunToEnd(t, nil, strings.Fields(slip.args)...)
		harness.CheckRefusal(t, got, slip.says)
		if strings.Contains(slip.args, "maxclients") && strings.Contains(got.Stderr, "unit") {
			t.Errorf("%s: %s", slip.args, got.Stderr)
		}
	}
}

func TestFolderInUse(t *testing.T) {
	harness.Parallel(t)
	first := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	c := first.Client()
	drill.Check(t, c.Set(t.Context(), "k", "v", 0).Err())
	log := filepath.Join(t.TempDir(), "log")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--dir", first.Dir, "--logfile", log), first.Dir, "in use by another process", fmt.Sprint(first.Cmd.Process.Pid))
	if text, err := os.ReadFile(log); !strings.Contains(string(text), `"level":"fatal","error":"data folder `+first.Dir+": in use by another process") {
		t.Errorf("the log of the second server: %s%v", text, err)
	}
	if err := c.Set(t.Context(), "k2", "v", 0).Err(); err != nil {
		t.Errorf("the first server after the second has tried: %v", err)
	}
	first.Terminate()
	if got, err := harness.Start(t, first.Dir).Client().Exists(t.Context(), "k", "k2").Result(); err != nil || got != 2 {
		t.Errorf("%d keys of 2 are left, %v", got, err)
	}
}

// files lists a folder: names and permissions.
func files(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			fmt.Fprintln(&list, info.Mode(), path)
		}
		return err
	})
	drill.Check(t, err)
	return list.String()
}

func TestDataAreTheOwnersOnly(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for line := range strings.Lines(files(t, p.Dir)) {
		if mode, _, _ := strings.Cut(line, " "); !strings.HasSuffix(mode, "------") {
			t.Errorf("others may read %s", line)
		}
	}
}

// TestUnwritableFolder uses a folder that not even root can make: below a file.
func TestUnwritableFolder(t *testing.T) {
	harness.Parallel(t)
	file := harness.WriteFile(t, "file", "text")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--dir", filepath.Join(file, "data")), file, "not a directory")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--dir", file), file, "not a directory")
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("the file in the way was changed to %q, %v", text, err)
	}
}

func TestTLS(t *testing.T) {
	harness.Parallel(t)
	host, port := harness.Host(t), harness.FreePort(t)
	cert, key := harness.SelfSigned(t, host)
	garbage := harness.WriteFile(t, "garbage.pem", "no certificate")
	dir := filepath.Join(t.TempDir(), "data")
	common := []string{"--port", "0", "--bind", host, "--tls-port", port, "--dir", dir}
	for _, tt := range []struct{ args, texts []string }{
		{nil, []string{"tls-cert-file", "tls-key-file"}},
		{[]string{"--tls-cert-file", "/no/such.pem", "--tls-key-file", key}, []string{"/no/such.pem", "no such file"}},
		{[]string{"--tls-cert-file", garbage, "--tls-key-file", key}, []string{garbage}},
		{[]string{"--tls-cert-file", cert, "--tls-key-file", key}, []string{"tls-ca-cert-file"}},
		{[]string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", garbage}, []string{garbage}},
	} {
		harness.CheckRefusal(t, harness.RunToEnd(t, nil, append(common, tt.args...)...), tt.texts...)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a server without a good certificate has made a data folder")
	}

	p := harness.Start(t, dir, "--bind", host, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	if got := p.CLI("-h", host, "-p", port, "--tls", "--cacert", cert, "PING"); got != "PONG" {
		t.Errorf("PING over TLS: %s", got)
	}
}

// TestStartsWithRedisConf starts with the directives of Debian's redis.conf as Debian starts Redis, in a
// folder that Redis has used.
func TestStartsWithRedisConf(t *testing.T) {
	harness.Parallel(t)
	dir, home := filepath.Join(t.TempDir(), "data"), t.TempDir()
	drill.Check(t, os.Mkdir(dir, 0o700))
	dump := filepath.Join(dir, "dump.rdb")
	drill.Check(t, os.WriteFile(dump, []byte("REDIS0010"), 0o600))
	conf, err := filepath.Abs("server/config/testdata/redis-7.0.15.conf")
	drill.Check(t, err)
	logFile, pidFile := filepath.Join(home, "redis.log"), filepath.Join(home, "redis.pid")
	p := harness.Start(t, dir, "--config", conf, "--supervised", "auto", "--daemonize", "no", "--logfile", logFile, "--pidfile", pidFile)
	if got := p.CLI("SET", "k", "v"); got != "OK" {
		t.Errorf("SET: %s", got)
	}
	if text, err := os.ReadFile(pidFile); err != nil || string(text) != fmt.Sprintln(p.Cmd.Process.Pid) {
		t.Errorf("the pidfile says %q, %v", text, err)
	}
	p.Terminate()
	log, err := os.ReadFile(logFile)
	if err != nil || strings.Count(string(log), "ignored directives of Redis") != 1 || !strings.Contains(string(log), "all data is on disk") {
		t.Errorf("%v, the log:\n%s", err, log)
	}
	if p.Log.String() != "" {
		t.Errorf("on standard error:\n%s", p.Log.String())
	}
	if _, err := os.Stat(pidFile); err == nil {
		t.Error("the pidfile is left behind")
	}
	if text, err := os.ReadFile(dump); err != nil || string(text) != "REDIS0010" {
		t.Errorf("dump.rdb is %q, %v", text, err)
	}
}

func TestUnixSocket(t *testing.T) {
	harness.Parallel(t)
	socket := filepath.Join(t.TempDir(), "mayfly.sock")
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--unixsocket", socket, "--unixsocketperm", "770")
	if got := p.CLI("-s", socket, "PING"); got != "PONG" {
		t.Errorf("PING over the socket: %s", got)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("the socket has mode %v, %v; want 770", info.Mode(), err)
	}
	dir := filepath.Join(t.TempDir(), "other")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "0", "--unixsocket", socket, "--dir", dir), socket, "another process listens on it")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--unixsocket", socket, "--dir", p.Dir), socket, "another process listens on it")
	if got := p.CLI("-s", socket, "PING"); got != "PONG" {
		t.Errorf("PING over the socket after others have tried to take it: %s", got)
	}
	// Who listens but then cannot open its data leaves no socket behind.
	second := filepath.Join(t.TempDir(), "second.sock")
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "0", "--unixsocket", second, "--dir", p.Dir), p.Dir, "in use")
	p.Terminate()
	for _, path := range []string{socket, second} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("socket %s is left behind", path)
		}
	}
}

func TestSourcesOfOptions(t *testing.T) {
	drill.Slow(t)
	path := harness.WriteFile(t, "redis.conf", "# the file\ntimeout 100\nmaxclients 100\nactive-expire-effort 2\nport 1\nappendonly yes\nsave \"\"\n")
	t.Setenv("MAYFLY_MAXCLIENTS", "200")
	t.Setenv("MAYFLY_ACTIVE_EXPIRE_EFFORT", "3")
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--config", path, "--active-expire-effort", "4")
	want := map[string]string{
		"timeout": "100", "maxclients": "200", "active-expire-effort": "4", "port": p.Port, "tcp-keepalive": "300",
		"config": path, "dir": p.Dir, "save": "", "appendonly": "yes",
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	c := p.Client()
	args := []any{"CONFIG", "GET"}
	for _, name := range names {
		args = append(args, name)
	}
	got, err := c.Do(t.Context(), args...).Result()
	drill.Check(t, err)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("CONFIG GET\n got %v\nwant %v", got, want)
	}
	if info := c.Info(t.Context(), "server").Val(); !strings.Contains(info, "config_file:"+path) {
		t.Errorf("INFO server does not name the config file %s:\n%s", path, info)
	}
}

// TestConfigSetTakesEffect changes options of a running server whose effect a client can see.
func TestConfigSetTakesEffect(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--loglevel", "warning", "--maxclients", "100")
	if got := p.Log.String(); got != "" {
		t.Errorf("log at level warning: %s", got)
	}
	c := p.Client()
	for _, pair := range [][2]string{{"appendfsync", "always"}, {"active-expire-effort", "10"}, {"loglevel", "notice"}, {"requirepass", "secret"}} {
		drill.Check(t, c.ConfigSet(t.Context(), pair[0], pair[1]).Err())
	}
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Errorf("a client that was connected before there was a password: %v", err)
	}
	if got := p.CLI("GET", "k"); got != "NOAUTH Authentication required." {
		t.Errorf("GET without the password: %s", got)
	}
	if got := p.CLI("-a", "secret", "--no-auth-warning", "GET", "k"); got != "v" {
		t.Errorf("GET with the password: %s", got)
	}
	drill.Check(t, c.ConfigSet(t.Context(), "maxclients", "1").Err())
	nc, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
	drill.Check(t, err)
	defer nc.Close()
	buf := make([]byte, 256)
	if n, err := nc.Read(buf); err != nil || string(buf[:n]) != "-ERR max number of clients reached\r\n" {
		t.Errorf("a client too many is told %q, %v", buf[:n], err)
	}
	p.Terminate()
	if got := p.Log.String(); !strings.Contains(got, "stopped") {
		t.Errorf("log at level notice: %s", got)
	}
}

func TestLogFormats(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	p.Terminate()
	for line := range strings.Lines(p.Log.String()) {
		var entry struct{ Time, Level, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" || entry.Level == "" || entry.Message == "" {
			t.Errorf("log line %s: %v", line, err)
		}
	}
	p = harness.Start(t, p.Dir, "--log-format", "pretty")
	p.Terminate()
	for line := range strings.Lines(p.Log.String()) {
		if strings.HasPrefix(line, "{") || strings.Contains(line, "\x1b") {
			t.Errorf("pretty log line in a file: %q", line)
		}
	}
}

func TestGreeting(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, text := range []string{"127.0.0.1:" + p.Port, p.Dir, "redis-cli -p " + p.Port} {
		if !strings.Contains(p.Greeting, text) {
			t.Errorf("the greeting does not say %q:\n%s", text, p.Greeting)
		}
	}
	followGreeting(p)
	if got, err := strconv.Atoi(p.CLI("DOC.TTL", "orders", "1")); got < 1 || got > 10 {
		t.Errorf("the proposed document lives for %d s, %v", got, err)
	}
}

// followGreeting types what the server proposes to type.
func followGreeting(p *harness.Process) {
	p.T.Helper()
	harness.Need(p.T, "redis-cli")
	var replies []string
	for line := range strings.Lines(p.Greeting) {
		if strings.HasPrefix(line, "  redis-cli") {
			cmd := exec.Command("sh", "-c", line)
			if strings.Contains(p.Greeting, "export REDISCLI_AUTH=") {
				cmd.Env = append(os.Environ(), "REDISCLI_AUTH=secret")
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				p.T.Errorf("%s: %v", line, err)
			}
			replies = append(replies, strings.TrimSpace(string(out)))
		}
	}
	if got, want := strings.Join(replies, " "), `OK OK {"item":"tea"}`; got != want {
		p.T.Errorf("the proposed commands answer %s, want %s\n%s", got, want, p.Greeting)
	}
}

// TestGreetingWherever proposes what works for servers that cannot be reached as usual.
func TestGreetingWherever(t *testing.T) {
	harness.Parallel(t)
	cert, key := harness.SelfSigned(t)
	socket := filepath.Join(t.TempDir(), "my socket")
	port := harness.FreePort(t)
	tls := []string{"--port", "0", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"}
	for name, tt := range map[string]struct{ args, texts []string }{
		"password":         {[]string{"--requirepass", "secret"}, []string{"REDISCLI_AUTH=", "redis-cli -p "}},
		"socket only":      {[]string{"--port", "0", "--unixsocket", socket}, []string{"redis-cli -s '" + socket + "'"}},
		"TLS only":         {tls, []string{"redis-cli --tls --insecure -p " + port}},
		"TLS with a CA":    {append(slices.Clone(tls), "--tls-ca-cert-file", cert), []string{"redis-cli --tls --cacert " + cert}},
		"another address":  {[]string{"--bind", "127.0.0.2"}, []string{"redis-cli -h 127.0.0.2 -p "}},
		"several":          {[]string{"--bind", "127.0.0.2", "127.0.0.1"}, []string{"redis-cli -p "}},
		"every IPv4 there": {[]string{"--bind", "*"}, []string{"redis-cli -p "}},
	} {
		t.Run(name, func(t *testing.T) {
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"), tt.args...)
			for _, text := range tt.texts {
				if !strings.Contains(p.Greeting, text) {
					t.Errorf("the greeting does not say %q:\n%s", text, p.Greeting)
				}
			}
			if strings.Contains(p.Greeting, "secret") {
				t.Errorf("the greeting tells the password:\n%s", p.Greeting)
			}
			followGreeting(p)
			p.Terminate() // the next may have the same port
		})
	}
	demanding := harness.Start(t, filepath.Join(t.TempDir(), "data"), append(tls[:len(tls)-1], "yes", "--tls-ca-cert-file", cert)...)
	if !strings.Contains(demanding.Greeting, "--cert CERTIFICATE --key KEY") {
		t.Errorf("the greeting does not say that clients must show a certificate:\n%s", demanding.Greeting)
	}
}

// TestAcknowledgedWritesSurvive writes from several clients until the process ends, and finds every
// write that was acknowledged after a restart. With the default appendfsync that holds even if the
// process is killed.
func TestAcknowledgedWritesSurvive(t *testing.T) {
	harness.Parallel(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
			drill.Check(t, p.Client().Do(t.Context(), "CONTAINER.SET", "orders", "TTL", "3600").Err())
			const clients = 4
			enough := drill.Pick(0, 100, 2000)
			var acknowledged [clients]int
			var wg sync.WaitGroup
			var warm sync.WaitGroup
			for i := range clients {
				warm.Add(1)
				c := p.Client()
				wg.Go(func() {
					for n := 0; ; n++ {
						if n == enough {
							warm.Done()
						}
						id := fmt.Sprintf("%d-%d", i, n)
						pipe := c.Pipeline()
						pipe.Set(t.Context(), id, id, 0)
						pipe.Do(t.Context(), "DOC.PUT", "orders", id, fmt.Sprintf(`{"n":%d}`, n))
						if _, err := pipe.Exec(t.Context()); err != nil {
							if n < enough {
								t.Errorf("write %d: %v", n, err)
								warm.Done()
							}
							return
						}
						acknowledged[i] = n + 1
					}
				})
			}
			warm.Wait()
			p.Signal(signal)
			code := p.Wait()
			wg.Wait()
			if want := map[bool]int{true: -1, false: 0}[signal == syscall.SIGKILL]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}

			c := harness.Start(t, p.Dir).Client()
			for i, count := range acknowledged {
				for n := range count {
					id := fmt.Sprintf("%d-%d", i, n)
					pipe := c.Pipeline()
					plain := pipe.Get(t.Context(), id)
					document := pipe.Do(t.Context(), "DOC.GET", "orders", id)
					_, _ = pipe.Exec(t.Context()) // each reply is looked at
					if plain.Val() != id || fmt.Sprint(document.Val()) != fmt.Sprintf(`{"n":%d}`, n) {
						t.Fatalf("%s of %d acknowledged: %v, %v", id, count, plain, document)
					}
				}
			}
		})
	}
}

// TestSecondSignal: a client that does not take its replies holds the stop up. A second SIGTERM does
// not change that, a SIGINT ends it at once.
func TestSecondSignal(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	c := p.Client()
	drill.Check(t, c.Set(t.Context(), "big", bytes.Repeat([]byte("x"), 8<<20), 0).Err())
	nc, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
	drill.Check(t, err)
	defer nc.Close()
	if _, err := nc.Write(bytes.Repeat([]byte("GET big\r\n"), 8)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(make([]byte, 1)); err != nil { // the replies are on their way
		t.Fatal(err)
	}
	p.Signal(syscall.SIGTERM)
	harness.WaitFor(t, "the stop to begin", func() bool { return strings.Contains(p.Log.String(), "stopping") })
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(p.Log.String(), "second signal") {
		t.Error("the log does not say why the process ended")
	}
}

func TestHarmlessSignals(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	c := p.Client()
	p.Signal(syscall.SIGHUP)
	for range 100 {
		drill.Check(t, c.Ping(t.Context()).Err())
	}
	p.Signal(syscall.SIGTERM)
	p.Terminate() // a second SIGTERM does no harm
}

func TestRedisCLISession(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, tt := range []struct{ command, want string }{
		{"PING", "PONG"},
		{"SET greeting hello", "OK"},
		{"APPEND greeting !", "6"},
		{"GET greeting", "hello!"},
		{"GET nobody", ""},
		{"CONTAINER.SET orders TTL 3600", "OK"},
		{`DOC.PUT orders 1 {"item":"tea","ttl":60}`, "OK"},
		{"DOC.GET orders 1", `{"item":"tea","ttl":60}`},
		{"DOC.COUNT orders", "1"},
		{"DOC.SETTTL orders 1 -1", "1"},
		{"DOC.TTL orders 1", "-1"},
		{"DOC.DEL orders 1 2", "1"},
		{"CONTAINER.DROP orders", "1"},
		{"CONFIG GET save", "save"},
		{"CONFIG SET IO-Threads 1", "ERR CONFIG SET failed (possibly related to argument 'IO-Threads') - can't set immutable config"},
		{"NOSUCH a", "ERR unknown command 'NOSUCH', with args beginning with: 'a'"},
		{"DUMP a", "ERR unknown command 'DUMP', Redis has this command, mayfly has not: see docs/redis-compatibility.md. With args beginning with: 'a'"},
	} {
		if got := p.CLI(strings.Fields(tt.command)...); got != tt.want {
			t.Errorf("redis-cli %s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
	// The real clock, once: a document of one second dies.
	p.CLI("CONTAINER.SET", "orders", "TTL", "off")
	p.CLI("DOC.PUT", "orders", "1", `{"ttl":1}`)
	p.CLI("CONTAINER.SET", "orders", "TTL", "-1")
	harness.WaitFor(t, "a document to die", func() bool { return p.CLI("DOC.GET", "orders", "1") == "" })
}

func TestRedisBenchmark(t *testing.T) {
	harness.Parallel(t)
	path := harness.Need(t, "redis-benchmark")
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	out, err := exec.Command(path, "-p", p.Port, "-t", "ping,set,get,incr,mset", "-n", "2000", "-r", "100", "-q").CombinedOutput()
	if err != nil || strings.Contains(string(out), "WARN") || strings.Contains(string(out), "rror") {
		t.Errorf("redis-benchmark: %v\n%s", err, out)
	}
}

// TestProtectedMode connects by an address of this machine that is not a loopback one.
func TestProtectedMode(t *testing.T) {
	harness.Parallel(t)
	address := outsideAddress(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--bind", "127.0.0.1", address)
	// A library's first words would come between what the server says and the user.
	nc, err := net.Dial("tcp", net.JoinHostPort(address, p.Port))
	drill.Check(t, err)
	defer nc.Close()
	if said, _ := io.ReadAll(nc); !strings.HasPrefix(string(said), "-DENIED mayfly is running in protected mode") {
		t.Errorf("from outside, without a password set: %q", said)
	}

	outside := func(password string) error {
		c := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(address, p.Port), Password: password, MaxRetries: -1, ReadTimeout: harness.Patience})
		defer c.Close()
		return c.Ping(t.Context()).Err()
	}
	inside := p.Client()
	if err := outside(""); err == nil {
		t.Error("from outside, without a password set: a command was carried out")
	}
	drill.Check(t, inside.ConfigSet(t.Context(), "requirepass", "secret").Err())
	if err := outside("secret"); err != nil {
		t.Errorf("from outside, with the password: %v", err)
	}
	if err := outside(""); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("from outside, without the password: %v", err)
	}
	for _, pair := range [][2]string{{"requirepass", ""}, {"protected-mode", "no"}} {
		drill.Check(t, inside.ConfigSet(t.Context(), pair[0], pair[1]).Err())
	}
	if err := outside(""); err != nil {
		t.Errorf("from outside, with protected mode off: %v", err)
	}
}

// outsideAddress gives an IPv4 address of this machine that is not a loopback one.
func outsideAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	drill.Check(t, err)
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	harness.Absent(t, "this machine has no address but loopback ones")
	return ""
}
