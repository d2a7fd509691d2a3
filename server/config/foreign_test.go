package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// Variables that Kubernetes sets for services named mayfly, or with that prefix, set no option. Similar
// variables are options or mistakes.
func TestServiceLinks(t *testing.T) {
	links := map[string]string{
		"MAYFLY_SERVICE_HOST": "10.0.0.1", "MAYFLY_SERVICE_PORT": "6379", "MAYFLY_SERVICE_PORT_REDIS": "6379", "MAYFLY_PORT": "tcp://10.0.0.1:6379",
		"MAYFLY_PORT_6379_TCP": "tcp://10.0.0.1:6379", "MAYFLY_PORT_6379_TCP_PROTO": "tcp", "MAYFLY_PORT_6379_TCP_PORT": "6379", "MAYFLY_PORT_6379_TCP_ADDR": "10.0.0.1",
		"MAYFLY_TLS_PORT": "tcp://10.0.0.2:6379", "MAYFLY_TLS_SERVICE_HOST": "fd00::1", "MAYFLY_TLS_PORT_53_UDP": "udp://[fd00::1]:53", "MAYFLY_TLS_PORT_53_UDP_PROTO": "udp",
	}
	for key, value := range links {
		t.Setenv(key, value)
	}
	c := load(t, configFile(t, "port 7001"))
	if s := c.Settings(); s.Port != 7001 || s.TLSPort != 0 {
		t.Errorf("port %d, tls-port %d", s.Port, s.TLSPort)
	}
	var log bytes.Buffer
	c.LogIgnored(zerolog.New(&log).Level(zerolog.InfoLevel))
	if log.Len() > 0 {
		t.Errorf("logged as a notice: %s", &log)
	}
	c.LogIgnored(zerolog.New(&log).Level(zerolog.DebugLevel))
	for key := range links {
		if !strings.Contains(log.String(), `"`+key+`"`) {
			t.Errorf("the log does not say that %s is ignored: %s", key, &log)
		}
	}
	for key, value := range map[string]string{
		"MAYFLY_PORT": "10.0.0.1:6379", "MAYFLY_SERVICE_HOST": "mayfly.local", "MAYFLY_SERVICE_PORT": "0", "MAYFLY_SERVICE_PORTS": "6379",
		"MAYFLY_PORT_6379_TCP_PROTO": "http", "MAYFLY_PORT_X_TCP": "tcp://10.0.0.1:6379", "MAYFLY_SERVICE": "10.0.0.1", "MAYFLY_TIMEOUT": "tcp://10.0.0.1:6379",
	} {
		t.Run(key, func(t *testing.T) {
			t.Setenv(key, value)
			checkRefused(t, nil, key, value)
		})
	}
	t.Setenv("MAYFLY_PORT", "7002")
	if got := load(t).Settings().Port; got != 7002 {
		t.Errorf("the option port in the environment: %d", got)
	}
}

// One start reports all mistakes.
func TestAllMistakesAtOnce(t *testing.T) {
	path := configFile(t, "timeout 1s\nnonsense 1\nmaxclients 5\nrequirepass \"open\nport 1 2\n")
	t.Setenv("MAYFLY_MAXCLIENTS", "0")
	t.Setenv("MAYFLY_TIMEOT", "5")
	_, err := Load([]string{"-x", "1", "--config", path, "--port", "70000", "--dir"})
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		`illegal argument "-x" on the command line`,
		`option port on the command line has the illegal value "70000"; legal: auto, 0 to 65535`,
		"option dir on the command line has no value",
		`option maxclients in the environment variable MAYFLY_MAXCLIENTS has the illegal value "0"`,
		`unknown option "timeot" with value "5" in the environment variable MAYFLY_TIMEOT: did you mean timeout?`,
		"option timeout in " + path + ":1 has the illegal value",
		`unknown option "nonsense" with value "1" in ` + path + ":2",
		"unbalanced quotes in " + path + ":4",
		"option port in " + path + ":5 has 2 values but takes one",
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}

	t.Setenv("MAYFLY_MAXCLIENTS", "")
	t.Setenv("MAYFLY_TIMEOT", "")
	_, err = Load([]string{configFile(t, strings.Repeat("nonsense 1\n", 1000))})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 21 || lines[20] != "and 980 more mistakes like these" {
		t.Errorf("of a thousand mistakes:\n%v", err)
	}
	if _, err := Load([]string{"--port", "70000", "--help"}); err != ErrHelp {
		t.Errorf("help beside a mistake: %v", err)
	}
}

// The redis.conf of Debian's redis-server 7.0.15 works, its directives and, where it is installed, the whole
// file, started as Debian starts Redis: --supervised systemd --daemonize no.
func TestRedisConf(t *testing.T) {
	for _, path := range []string{"testdata/redis-7.0.15.conf", "/etc/redis/redis.conf"} {
		text, err := os.ReadFile(path)
		if err != nil && strings.HasPrefix(path, "/etc") {
			t.Logf("not compared: %v", err)
			continue
		}
		drill.Check(t, err)
		checkRefused(t, []string{path}, path, "daemonize", `"yes"`, "foreground", `only "no"`)
		copied := configFile(t, string(text))
		args := []string{copied, "--supervised", "systemd", "--daemonize", "no"}
		c := load(t, args...)
		s := c.Settings()
		if s.Port != 6379 || s.Dir != "/var/lib/redis" || s.PidFile != "/run/redis/redis-server.pid" || s.LogFile != "/var/log/redis/redis-server.log" || s.Supervised != BySystemd {
			t.Errorf("%s: %+v", path, *s)
		}
		for _, want := range []string{"appendonly no", "hz", "rdbcompression", "repl-diskless-sync"} {
			if !slices.Contains(c.ignored, want) {
				t.Errorf("%s: nothing says that %s is ignored: %q", path, want, c.ignored)
			}
		}
		if got := configured(t, c, "appendonly"); got != "yes" {
			t.Errorf("%s: appendonly is shown as %q", path, got)
		}
		var log bytes.Buffer
		c.LogIgnored(zerolog.New(&log))
		if lines := strings.Count(log.String(), "\n"); lines != 1 {
			t.Errorf("%s: %d lines in the log, want one\n%s", path, lines, &log)
		}

		// CONFIG REWRITE leaves all of it alone but what has changed.
		drill.Check(t, c.ConfigSet([][2]string{{"timeout", "7"}, {"requirepass", "secret"}}))
		drill.Check(t, c.ConfigRewrite())
		want := strings.Replace(string(text), "\ntimeout 0\n", "\ntimeout 7\n", 1) + rewriteSignature + "\nrequirepass secret\nsupervised systemd\n"
		if got, err := os.ReadFile(copied); err != nil || string(got) != want {
			t.Errorf("%s: rewritten, %v:\n%s", path, err, difference(string(got), want))
		}
		if s := load(t, args...).Settings(); s.RequirePass != "secret" || s.Dir != "/var/lib/redis" {
			t.Errorf("%s after rewriting: %+v", path, *s)
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

// A directive for a feature that mayfly lacks, and on which a user relies, stops the start.
func TestRefusedDirectives(t *testing.T) {
	for _, tt := range []struct{ line, text string }{
		{"rename-command FLUSHALL \"\"", "commands keep their names"},
		{"cluster-enabled yes", "cluster-peers"},
		{"replicaof 10.0.0.1 6379", "no replication"},
		{"SlaveOf 10.0.0.1 6379", "no replication"},
		{"daemonize yes", "foreground"},
		{"databases 32", "containers 0 to 15"},
		{"min-replicas-to-write 1", "no replication"},
		{"loadmodule /usr/lib/rejson.so", "no modules"},
		{"tls-protocols TLSv1.3", "1.2 or 1.3"},
		{"tls-ciphers HIGH", "cannot be chosen"},
		{"syslog-enabled yes", "logfile"},
		{"supervised upstart", "systemd"},
	} {
		path := configFile(t, "\n"+tt.line)
		checkRefused(t, []string{path}, strings.ToLower(strings.Fields(tt.line)[0]), path+":2", tt.text)
	}
	c := load(t, configFile(t, "replicaof no one\nmin-replicas-to-write 0\nsyslog-enabled no\ncluster-enabled no\ndaemonize no\ndatabases 16\nHZ 10\nhz 50\nsave 900 1 300 10\n"+
		"tls-protocols \"TLSv1.2 TLSv1.3\"\n"))
	if want := []string{"replicaof", "min-replicas-to-write", "syslog-enabled", "hz", "save 900 1 300 10", "tls-protocols"}; !slices.Equal(c.ignored, want) {
		t.Errorf("ignored %q, want %q", c.ignored, want)
	}
	checkRefused(t, []string{configFile(t, "hz")}, "option hz", "no value")
	// What a stronger source, or a later line, says of such a directive is what counts.
	load(t, configFile(t, "daemonize yes\nmaxclients 5\ndaemonize no\n"))
	load(t, configFile(t, "databases 32"), "--databases", "16")
}

// A directive without a meaning is no option.
func TestIgnoredDirectives(t *testing.T) {
	for _, name := range strings.Fields(ignoredDirectives) {
		if lookUpOption(name) != nil {
			t.Errorf("%s is an option, and is said to have no meaning", name)
		}
	}
}

// An included file takes the place of the line that includes it.
func TestInclude(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		drill.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	inner := write("inner.conf", "maxclients 7\ntimeout 7\n")
	write("part-1.conf", "slowlog-max-len 1\n")
	write("part-2.conf", "slowlog-max-len 2\nhz 5\n")
	outer := write("outer.conf", "maxclients 1\nInclude "+inner+"\ntimeout 8\ninclude "+dir+"/part-*.conf\ninclude "+dir+"/none-*.conf\n")
	c := load(t, outer)
	if s := c.Settings(); s.MaxClients != 7 || s.Timeout.Seconds() != 8 || s.SlowlogLength != 2 || !slices.Equal(c.ignored, []string{"hz"}) {
		t.Errorf("%+v, ignored %q", *s, c.ignored)
	}

	// What an included file sets can only be changed after it.
	drill.Check(t, c.ConfigSet([][2]string{{"maxclients", "5"}, {"slowlog-max-len", "9"}}))
	for _, length := range []string{"9", "10"} {
		drill.Check(t, c.ConfigSet([][2]string{{"slowlog-max-len", length}}))
		drill.Check(t, c.ConfigRewrite())
		want := "Include " + inner + "\ntimeout 8\ninclude " + dir + "/part-*.conf\ninclude " + dir + "/none-*.conf\n" +
			rewriteSignature + "\nmaxclients 5\nslowlog-max-len " + length + "\n"
		if got, err := os.ReadFile(outer); err != nil || string(got) != want {
			t.Errorf("%v, rewritten to\n%s\nwant\n%s", err, got, want)
		}
	}
	if s := load(t, outer).Settings(); s.MaxClients != 5 || s.SlowlogLength != 10 {
		t.Errorf("after rewriting: %+v", *s)
	}

	checkRefused(t, []string{write("bad.conf", "\ninclude "+write("worse.conf", "port x"))}, "option port", "worse.conf:1")
	checkRefused(t, []string{write("missing.conf", "include /no/such.conf")}, "/no/such.conf", "no such file")
	checkRefused(t, []string{write("two.conf", "include a b")}, "include", "two.conf:1", "one")
	checkRefused(t, []string{write("self.conf", "include "+filepath.Join(dir, "self.conf"))}, "self.conf:1", "16 deep")
}
