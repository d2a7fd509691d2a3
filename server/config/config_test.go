package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/redisfmt"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// load loads a configuration that must be legal.
func load(t *testing.T, args ...string) *Config {
	t.Helper()
	c, err := Load(args)
	if err != nil {
		t.Fatalf("Load(%q): %v", args, err)
	}
	return c
}

// configFile writes a config file and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mayfly.conf")
	drill.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// configured returns what CONFIG GET shows for one option.
func configured(t *testing.T, c *Config, option string) string {
	t.Helper()
	found := c.ConfigGet([]string{option})
	if len(found) != 1 || found[0][0] != option {
		t.Fatalf("CONFIG GET %s = %q", option, found)
	}
	return found[0][1]
}

func TestDefaults(t *testing.T) {
	dir, err := filepath.Abs("data")
	drill.Check(t, err)
	want := Settings{
		Network: Network{
			Port: 6379, Bind: []string{"127.0.0.1", "-::1"}, TCPBacklog: 511, TCPKeepAlive: 300 * time.Second, MaxClients: 10000, IOThreads: -1,
		},
		TLS:    TLS{TLSAuthClients: "yes"},
		Access: Access{ProtectedMode: true, AuthTimeout: time.Minute, Scripts: true, ACLLogLen: 128},
		Data: Data{
			Dir: dir, Partitions: 16, AppendFsync: keyspace.EverySec, ActiveExpireEffort: 1, UndoWindow: -1, ScrubInterval: 24 * time.Hour,
			DiskReserve: 128 << 20, Compaction: keyspace.DefaultCompaction, Eviction: eviction.Defaults,
		},
		Limits: Limits{
			MaxMemoryClients: 1 << 30, MaxValueSize: 16 << 20, MaxContainers: keyspace.DefaultMaxContainers, TrackedKeys: 1_000_000,
			QueryBufferLimit: 1 << 30, QueryBudget: 1_000_000, LuaTimeLimit: 5 * time.Second, Encodings: redisfmt.DefaultEncodings,
			OutputLimits: OutputLimits{Replica: OutputLimit{256 << 20, 64 << 20, time.Minute}, PubSub: OutputLimit{32 << 20, 8 << 20, time.Minute}},
		},
		Reports: Reports{
			SlowlogThreshold: 10_000, SlowlogLength: 128, LatencyTracking: true, LatencyPercentiles: []float64{50, 99, 99.9},
			LogLevel: zerolog.InfoLevel, LogFormat: LogAuto, Version: "7.4.0",
		},
		Cluster: ClusterSettings{NodeTimeout: time.Second, Name: "mymaster", LogSize: 64 << 20},
	}
	if got := load(t).Settings(); !reflect.DeepEqual(*got, want) {
		t.Errorf("defaults\n got %+v\nwant %+v", *got, want)
	}
}

// TestEveryOptionEverywhere sets each option to a legal value on the command line, in the
// environment and in a config file.
func TestEveryOptionEverywhere(t *testing.T) {
	set := map[string]string{ // to what: as CONFIG GET shows it
		"port": "7050", "bind": "127.0.0.1 ::1", "unixsocket": "/tmp/a b", "unixsocketperm": "770",
		"tls-port": "7051", "tls-cert-file": "c.pem", "tls-key-file": "k.pem", "tls-ca-cert-file": "ca.pem", "tls-auth-clients": "optional",
		"requirepass": `it's "quoted" \x41`, "protected-mode": "no", "maxclients": "5", "io-threads": "0", "timeout": "60", "tcp-keepalive": "0", "tcp-backlog": "1",
		"max-value-size": "2048", "client-query-buffer-limit": "1048576", "max-containers": "7", "tracking-table-max-keys": "5", "reported-version": "7.0.15", "undo-window": "60", "query-budget": "500", "scripts": "no", "lua-time-limit": "100", "hash-max-listpack-entries": "10", "hash-max-listpack-value": "20", "hash-max-ziplist-entries": "10", "hash-max-ziplist-value": "20", "set-max-intset-entries": "30", "zset-max-listpack-entries": "40", "zset-max-listpack-value": "50", "zset-max-ziplist-entries": "40", "zset-max-ziplist-value": "50", "busy-reply-threshold": "100", "dir": "/tmp/elsewhere", "partitions": "256", "appendfsync": "always", "active-expire-effort": "10", "disk-reserve": "1048576",
		"maxmemory": "1000000000", "maxmemory-policy": "volatile-ttl", "maxmemory-samples": "7", "lfu-log-factor": "0", "lfu-decay-time": "60", "maxmemory-clients": "5000000", "auto-compact-percentage": "0", "auto-compact-min-size": "1048576", "scrub-interval": "3600", "erase-within": "600",
		"loglevel": "debug", "log-format": "json", "logfile": "/tmp/log", "pidfile": "/tmp/pid", "port-file": "/tmp/port", "supervised": "systemd",
		"slowlog-log-slower-than": "-1", "slowlog-max-len": "0", "latency-monitor-threshold": "100", "latency-tracking": "no", "latency-tracking-info-percentiles": "0 99.99 100",
		"metrics-addr": "localhost:9121", "metrics-pprof": "yes", "metrics-hosts": "db db.example.org",
		"web-addr": "[::1]:8379", "web-hosts": "db db.example.org", "web-readonly": "yes",
		"auth-timeout": "30", "reserved-clients": "3",
		"aclfile": "/dev/null", "acl-pubsub-default": "allchannels", "acllog-max-len": "0",
		"cluster-id": "a", "cluster-addr": "h1:7001", "cluster-peers": "a=h1:7001,b=[::1]:7002", "cluster-node-timeout": "500", "cluster-read-index": "yes", "cluster-proxy": "yes",
		"cluster-announce-addr": "public:6379", "cluster-name": "main", "repl-log-size": "8388608",
		"cluster-cert-file": "node.pem", "cluster-key-file": "node.key", "cluster-ca-cert-file": "nodes.pem", "cluster-secret-file": "secret",
		"ephemeral": "yes", "clock": "manual", "clock-start": "1893456000000",
		"notify-keyspace-events": "$xKE", "client-output-buffer-limit": "normal 1 2 3 slave 4 5 6 pubsub 7 8 9",
	}
	for _, o := range Options {
		value, ok := set[o.Name]
		switch {
		case o.Compat || o.Name == "config":
			continue
		case !ok:
			t.Errorf("no value to try for option %s", o.Name)
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			args := []string{"--" + o.Name, value}
			line := o.Name + ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
			if o.Many {
				args = append([]string{"--" + o.Name}, strings.Fields(value)...)
				line = o.Name + " " + value
			}
			if got := configured(t, load(t, args...), o.Name); got != value {
				t.Errorf("command line: %q", got)
			}
			file := configFile(t, "# nothing")
			drill.Report(t, load(t, append([]string{file}, args...)...).ConfigRewrite())
			if got := configured(t, load(t, file), o.Name); got != value {
				t.Errorf("rewritten config file: %q", got)
			}
			if got := configured(t, load(t, "--"+o.Name+"="+value), o.Name); got != value {
				t.Errorf("command line with =: %q", got)
			}
			if got := configured(t, load(t, configFile(t, line)), o.Name); got != value {
				t.Errorf("config file: %q", got)
			}
			t.Setenv("MAYFLY_"+strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_")), value)
			if got := configured(t, load(t), o.Name); got != value {
				t.Errorf("environment: %q", got)
			}
		})
	}
}

func TestIllegalValues(t *testing.T) {
	illegal := map[string][]string{
		"port": {"-1", "65536", "abc", "", "1.5", "010", "+1", "0x10", " 1"}, "tls-port": {"65536"},
		"bind": {"", " ", strings.Repeat("a ", 17)}, "unixsocketperm": {"8", "1000", "-1", "rw"},
		"tls-auth-clients": {"maybe", ""}, "protected-mode": {"1", "true", ""},
		"maxclients": {"0", "4294967296"}, "io-threads": {"-1", "129", "all"}, "timeout": {"-1", "2147483648", "9223372036854775807", "1s"}, "tcp-keepalive": {"-1"}, "tcp-backlog": {"-1"},
		"client-query-buffer-limit": {"1048575", "1023kb", "0", "-1", "9999999999gb", ""},
		"max-value-size":            {"1023", "1gb", "16 mb", "16tb", "-1", "", "kb", "18446744073709551616", "9999999999gb"},
		"max-containers":            {"-1", "10k"}, "tracking-table-max-keys": {"-1", "1m"}, "reported-version": {"", "7", "7.4", "7.4.0.1", "7.4.x", "07.4.0"}, "undo-window": {"-1", "604801", "1h"}, "query-budget": {"0", "many"}, "scripts": {"maybe", "1"}, "lua-time-limit": {"-1", "5s"}, "hash-max-listpack-entries": {"-1", "x"}, "hash-max-listpack-value": {"-1"}, "hash-max-ziplist-entries": {"-1"}, "hash-max-ziplist-value": {"-1"}, "set-max-intset-entries": {"-1", "x"}, "zset-max-listpack-entries": {"-1"}, "zset-max-listpack-value": {"-1"}, "zset-max-ziplist-entries": {"-1"}, "zset-max-ziplist-value": {"-1"}, "busy-reply-threshold": {"-1", "2147483648"}, "dir": {""}, "partitions": {"0", "257"}, "appendfsync": {"sometimes"}, "active-expire-effort": {"0", "11"},
		"loglevel": {"loud"}, "log-format": {"xml"}, "supervised": {"upstart", "yes"},
		"proto-max-bulk-len": {"512mb"}, "databases": {"17"}, "maxmemory": {"-1", "1tb", "50%"}, "maxmemory-policy": {"allkeys"}, "maxmemory-samples": {"0", "x"}, "lfu-log-factor": {"-1"}, "lfu-decay-time": {"-1", "1m"}, "maxmemory-clients": {"-1", "101%", "5.5%", "%", "-5%", "05%"},
		"auto-compact-percentage": {"-1", "100%"}, "auto-compact-min-size": {"-1", "big"}, "scrub-interval": {"-1", "1d"}, "erase-within": {"-1", "1", "599", "1h", "2147483648"}, "disk-reserve": {"-1", "some"},
		"ephemeral": {"1"}, "clock": {"auto", ""}, "clock-start": {"0", "yesterday", "2030-13-01T00:00:00Z"},
		"notify-keyspace-events":     {"KEAq", "?"},
		"client-output-buffer-limit": {"normal 0 0", "others 1 1 1", "pubsub 1 2 -1", "pubsub x 2 1", "pubsub 1 2 1.5", "pubsub 1 1 1 pubsub"},
		"cluster-enabled":            {"yes"}, "daemonize": {"yes"},
		"slowlog-log-slower-than": {"-2", "1ms", ""}, "slowlog-max-len": {"-1"}, "latency-monitor-threshold": {"-1", "2147483648"},
		"latency-tracking": {"1", ""}, "latency-tracking-info-percentiles": {"100.1", "-1", "x", "50,99"},
		"metrics-addr": {"9121", "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:http"}, "metrics-pprof": {"1"}, "metrics-hosts": {strings.Repeat("a ", 65)},
		"web-addr": {"8379", "localhost", "localhost:0"}, "web-readonly": {"1"}, "web-hosts": {strings.Repeat("a ", 65)},
		"auth-timeout": {"-1", "1m"}, "reserved-clients": {"-1"},
		"acl-pubsub-default": {"none", ""}, "acllog-max-len": {"-1", "10001"},
		"cluster-id": {"a b", "-a", "a=b", strings.Repeat("a", 64)}, "cluster-addr": {"7001", ":7001", "h:0", "h:http"}, "cluster-announce-addr": {"h"},
		"cluster-peers":        {"a", "a=h", "a=h:1,", "a=h:1,a=h:2", "a=h:1,b=h:1", "a=:1"},
		"cluster-node-timeout": {"99", "60001", "1s"}, "cluster-read-index": {"1"}, "cluster-proxy": {"1"}, "cluster-name": {""}, "repl-log-size": {"1kb", "0"},
	}
	for _, o := range Options {
		values := illegal[o.Name]
		legal := o.in(new(Settings)).legal()
		if len(values) == 0 && legal != "" && !o.AcceptedWeaker {
			t.Errorf("no illegal value to try for option %s", o.Name)
		}
		for _, value := range values {
			path := configFile(t, "# a comment\n\n"+o.Name+` "`+value+`"`)
			checkRefused(t, []string{"--" + o.Name, value}, o.Name, fmt.Sprintf("%q", value), legal, "on the command line")
			checkRefused(t, []string{path}, o.Name, fmt.Sprintf("%q", value), legal, path+":3")
			if value == "" {
				continue // an empty variable counts as not set
			}
			variable := "MAYFLY_" + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
			t.Run(variable, func(t *testing.T) {
				t.Setenv(variable, value)
				checkRefused(t, nil, o.Name, fmt.Sprintf("%q", value), legal, variable)
			})
		}
	}
}

// checkRefused checks that arguments are refused with one line that has all of the texts.
func checkRefused(t *testing.T, args []string, texts ...string) {
	t.Helper()
	_, err := Load(args)
	if err == nil {
		t.Errorf("%q: accepted", args)
		return
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q: %q is not one line", args, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q does not say %q", args, err, text)
		}
	}
}

func TestRefusedSources(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		texts []string
	}{
		{[]string{"--prot", "80"}, []string{`unknown option "prot"`, `"80"`, "on the command line: did you mean port? --help"}},
		{[]string{"--maxmemroy", "1gb"}, []string{`unknown option "maxmemroy"`, "did you mean maxmemory?"}},
		{[]string{"--port", "1", "2"}, []string{"option port", "2 values", "0 to 65535"}},
		{[]string{"--port"}, []string{"option port", "no value", "0 to 65535"}},
		{[]string{"--port", "7050", "--"}, []string{`"--"`}},
		{[]string{"-p", "7050"}, []string{`"-p"`, "--help"}},
		{[]string{"/no/such.conf"}, []string{"/no/such.conf", "no such file"}},
		{[]string{"--config", "/no/such.conf"}, []string{"/no/such.conf", "no such file"}},
		{[]string{t.TempDir()}, []string{"is a directory"}},
		{[]string{configFile(t, "port 1\nprot 80")}, []string{`unknown option "prot"`, `"80"`, ".conf:2"}},
		{[]string{configFile(t, `requirepass "open`)}, []string{"quotes", ".conf:1"}},
		{[]string{configFile(t, "config other.conf")}, []string{"config", ".conf:1"}},
		{[]string{configFile(t, "port")}, []string{"option port", "no value", ".conf:1"}},
		{[]string{configFile(t, strings.Repeat("x", 2<<20))}, []string{"too long"}},
		{[]string{configFile(t, "proto-max-bulk-len 512mb\nmax-value-size 1mb")}, []string{"option proto-max-bulk-len", `"512mb"`, "the value of max-value-size", ".conf:1"}},
		// What a stronger source overrides must still be legal.
		{[]string{configFile(t, "port abc"), "--port", "7050"}, []string{"option port", `"abc"`, ".conf:1"}},
	} {
		checkRefused(t, tt.args, tt.texts...)
	}
	t.Setenv("MAYFLY_XYZ", "1")
	checkRefused(t, nil, `unknown option "xyz"`, `"1"`, "MAYFLY_XYZ")
}

func TestSourcesByPrecedence(t *testing.T) {
	path := configFile(t, "PORT 7001\r\n  timeout\t'5'  \n#port 1\nmaxclients 7\nbind 127.0.0.1 \"-::1\"\nmaxclients 8")
	t.Setenv("MAYFLY_TIMEOUT", "6")
	t.Setenv("MAYFLY_MAXCLIENTS", "")
	t.Setenv("MAYFLY_ACTIVE_EXPIRE_EFFORT", "3")
	for _, args := range [][]string{{path, "--Active-Expire-Effort", "4"}, {"--active-expire-effort", "2", "--config", path, "--active-expire-effort", "4"}} {
		s := load(t, args...).Settings()
		if s.Port != 7001 || s.Timeout != 6*time.Second || s.ActiveExpireEffort != 4 || s.MaxClients != 8 || s.ConfigFile != path ||
			!slices.Equal(s.Bind, []string{"127.0.0.1", "-::1"}) {
			t.Errorf("%q: %+v", args, *s)
		}
	}
	// Another name of an option is that option, and what must be the value of another may come before it.
	old := configFile(t, "lua-time-limit 5000\nhash-max-ziplist-value 7\nproto-max-bulk-len 512mb\nmax-value-size 512mb\n")
	if s := load(t, old, "--busy-reply-threshold", "500", "--hash-max-listpack-value", "9").Settings(); s.LuaTimeLimit != 500*time.Millisecond || s.Encodings.HashValue != 9 || s.MaxValueSize != 512<<20 {
		t.Errorf("%+v", *s)
	}
	if got := load(t, old, "--max-value-size", "64mb").Settings().MaxValueSize; got != 64<<20 {
		t.Errorf("max-value-size is %d", got)
	}
	t.Setenv("MAYFLY_CONFIG", path)
	if got := load(t).Settings().Port; got != 7001 {
		t.Errorf("config file named in the environment: port %d", got)
	}
}

// Arguments by which users and scripts start Redis work.
func TestArgumentsOfRedis(t *testing.T) {
	s := load(t, "--bind", "127.0.0.1", "-::1", "--port", "7000", "--save", "", "--appendonly", "yes", "--requirepass", "a b", "--max-value-size", "1MB").Settings()
	if !slices.Equal(s.Bind, []string{"127.0.0.1", "-::1"}) || s.Port != 7000 || s.RequirePass != "a b" || s.MaxValueSize != 1<<20 {
		t.Errorf("%+v", *s)
	}
	for _, tt := range []struct {
		arg  string
		want error
	}{{"--help", ErrHelp}, {"-h", ErrHelp}, {"--version", ErrVersion}, {"-v", ErrVersion}} {
		if _, err := Load([]string{tt.arg}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.arg, err)
		}
	}
}

func TestMemoryUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1b": 1, "1k": 1000, "1kb": 1024, "1K": 1000, "2Mb": 2 << 20, "2m": 2e6, "3gb": 3 << 30, "3g": 3e9,
		"": -1, "kb": -1, "-1": -1, "1zz": -1, "1.5kb": -1, "1 kb": -1, "9223372036854775807": 1<<63 - 1, "9223372036854775808": -1, "9007199254740992kb": -1,
	} {
		got, err := parseMemory(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestConfigGet(t *testing.T) {
	c := load(t, "--requirepass", "secret")
	for _, tt := range []struct {
		patterns, want []string // name, value …
	}{
		{[]string{"port"}, []string{"port", "6379"}},
		{[]string{"PORT", "port", "p?rt"}, []string{"PORT", "6379"}},
		{[]string{"TCP-*", "nosuch"}, []string{"tcp-keepalive", "300", "tcp-backlog", "511"}},
		{[]string{"nosuch*"}, nil},
		{[]string{"save"}, []string{"save", ""}},
		{[]string{"appendonly"}, []string{"appendonly", "yes"}},
		{[]string{"proto-max-bulk-len"}, []string{"proto-max-bulk-len", "16777216"}},
		{[]string{"requirepass"}, []string{"requirepass", "secret"}},
		{[]string{"bind"}, []string{"bind", "127.0.0.1 -::1"}},
	} {
		var got []string
		for _, pair := range c.ConfigGet(tt.patterns) {
			got = append(got, pair[:]...)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("CONFIG GET %q = %q, want %q", tt.patterns, got, tt.want)
		}
	}
	if got := len(c.ConfigGet([]string{"*"})); got != len(Options) {
		t.Errorf("CONFIG GET * has %d options of %d", got, len(Options))
	}
}

func TestConfigSet(t *testing.T) {
	const failed = "ERR CONFIG SET failed (possibly related to argument '"
	c := load(t)
	before := c.ConfigGet([]string{"*"})
	for _, tt := range []struct {
		pairs [][2]string
		want  string
	}{
		{[][2]string{{"foo", "1"}}, "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"},
		{[][2]string{{"timeout", "7"}, {"Foo", "2"}}, "ERR Unknown option or number of arguments for CONFIG SET - 'Foo'"},
		{[][2]string{{"maxclients", "abc"}}, failed + "maxclients') - argument couldn't be parsed into an integer"},
		{[][2]string{{"MaxClients", "0"}}, failed + "maxclients') - argument must be between 1 and 4294967295 inclusive"},
		{[][2]string{{"timeout", "7"}, {"TIMEOUT", "8"}}, failed + "timeout') - duplicate parameter"},
		{[][2]string{{"lua-time-limit", "1"}, {"busy-reply-threshold", "2"}}, failed + "busy-reply-threshold') - duplicate parameter"},
		{[][2]string{{"timeout", "7"}, {"databases", "16"}}, failed + "databases') - can't set immutable config"},
		{[][2]string{{"partitions", "4"}}, failed + "partitions') - can't set immutable config"},
		{[][2]string{{"timeout", "7"}, {"appendfsync", "foo"}}, failed + "appendfsync') - argument(s) must be one of the following: everysec, always, no"},
		{[][2]string{{"undo-window", "604801"}}, failed + "undo-window') - argument must be auto, 0 to 604800"}, {[][2]string{{"undo-window", "1h"}}, failed + "undo-window') - argument must be auto, 0 to 604800"},
		{[][2]string{{"timeout", "-1"}}, failed + "timeout') - argument must be between 0 and 2147483647 inclusive"},
		{[][2]string{{"timeout", "010"}}, failed + "timeout') - argument couldn't be parsed into an integer"},
		{[][2]string{{"protected-mode", "maybe"}}, failed + "protected-mode') - argument must be 'yes' or 'no'"},
		{[][2]string{{"max-value-size", "1zz"}}, failed + "max-value-size') - argument must be a memory value"},
		{[][2]string{{"save", "900 1"}}, failed + `save') - argument must be ""`},
		{[][2]string{{"active-expire-effort", "1.5"}}, failed + "active-expire-effort') - argument couldn't be parsed into an integer"},
	} {
		if err := c.ConfigSet(tt.pairs); err == nil || err.Error() != tt.want {
			t.Errorf("CONFIG SET %q\n got %v\nwant %s", tt.pairs, err, tt.want)
		}
	}
	if after := c.ConfigGet([]string{"*"}); !slices.Equal(before, after) {
		t.Errorf("refused changes have changed\n%q\nto\n%q", before, after)
	}

	old := c.Settings()
	drill.Check(t, c.ConfigSet([][2]string{{"TIMEOUT", "7"}, {"appendfsync", "ALWAYS"}, {"proto-max-bulk-len", "1Kb"}, {"max-value-size", "1Kb"}, {"appendonly", "yes"}}))
	if s := c.Settings(); s.Timeout != 7*time.Second || s.AppendFsync != keyspace.Always || c.MaxValueSize() != 1024 {
		t.Errorf("after CONFIG SET: %+v", *s)
	}
	if old.Timeout != 0 {
		t.Error("CONFIG SET has changed settings that were handed out")
	}
}

func TestConfigSetAppliesAllOrNothing(t *testing.T) {
	c := load(t)
	var applied []string
	c.OnChange("timeout", func(s *Settings) error {
		applied = append(applied, fmt.Sprint("timeout ", s.Timeout))
		return nil
	})
	c.OnChange("maxclients", func(s *Settings) error {
		applied = append(applied, fmt.Sprint("maxclients ", s.MaxClients))
		if s.MaxClients == 13 {
			return errors.New("no room")
		}
		return nil
	})
	err := c.ConfigSet([][2]string{{"timeout", "7"}, {"maxclients", "13"}})
	if want := "ERR CONFIG SET failed (possibly related to argument 'maxclients') - no room"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if s := c.Settings(); s.Timeout != 0 || s.MaxClients != 10000 {
		t.Errorf("a change that failed was kept: %+v", *s)
	}
	// The second does not change timeout, so that nothing is to be applied for it.
	for _, timeout := range []string{"7", "7"} {
		drill.Check(t, c.ConfigSet([][2]string{{"timeout", timeout}, {"maxclients", "12"}}))
	}
	if want := []string{"timeout 7s", "maxclients 13", "timeout 0s", "timeout 7s", "maxclients 12"}; !slices.Equal(applied, want) {
		t.Errorf("applied %q, want %q", applied, want)
	}
}

func TestPassword(t *testing.T) {
	c := load(t)
	needsLogin := func() bool { return c.Users().Table().NeedsLogin() }
	if needsLogin() {
		t.Error("a password is set by default")
	}
	drill.Check(t, c.ConfigSet([][2]string{{"requirepass", "secret"}}))
	for password, right := range map[string]bool{"secret": true, "Secret": false, "": false, "secret ": false, "secre": false} {
		if got := c.Users().Authenticate("default", password) != nil; got != right {
			t.Errorf("whether %q is right: got %t", password, got)
		}
	}
	if err := c.ConfigSet([][2]string{{"requirepass", ""}}); err != nil || needsLogin() {
		t.Errorf("the password cannot be taken back: %v", err)
	}
}

// Two options that are set together are read together, also under the race detector.
func TestConfigConcurrently(t *testing.T) {
	c := load(t, "--timeout", "1", "--maxclients", "1")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 200 {
				v := fmt.Sprint(1 + (i+n)%9)
				drill.Report(t, c.ConfigSet([][2]string{{"timeout", v}, {"maxclients", v}}))
			}
		})
		wg.Go(func() {
			for range 200 {
				if s := c.Settings(); int(s.Timeout/time.Second) != s.MaxClients {
					t.Errorf("half a change is visible: timeout %v, maxclients %d", s.Timeout, s.MaxClients)
				}
				if got := c.ConfigGet([]string{"timeout", "maxclients"}); got[0][1] != got[1][1] {
					t.Errorf("half a change is visible: %q", got)
				}
			}
		})
	}
	wg.Wait()
}

func TestHelpListsEveryOption(t *testing.T) {
	var out strings.Builder
	drill.Check(t, PrintHelp(&out))
	for line := range strings.Lines(out.String()) {
		if len(line)-1 > helpWidth {
			t.Errorf("--help has a line of %d characters: %s", len(line)-1, line)
		}
	}
	for _, o := range Options {
		if !regexp.MustCompile(`(?m)^--`+o.Name+`( |$)`).MatchString(out.String()) || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), o.Doc) {
			t.Errorf("--help does not list %s", o.Name)
		}
		if o.Doc == "" {
			t.Errorf("option %s has no description", o.Name)
		}
	}
}

// maxmemory-clients may be a share of maxmemory, and changes with it.
func TestClientMemoryLimitAsAShare(t *testing.T) {
	c := load(t, "--maxmemory-clients", "5%")
	for _, tt := range []struct {
		option, value string
		want          int64
	}{
		{"timeout", "1", 0}, // of no limit there is no share
		{"maxmemory", "1000000", 50_000},
		{"maxmemory-clients", "100%", 1_000_000},
		{"maxmemory", "2mb", 2 << 20},
		{"maxmemory-clients", "1kb", 1024},
		{"maxmemory", "1gb", 1024},
		{"maxmemory-clients", "0%", 0},
	} {
		drill.Check(t, c.ConfigSet([][2]string{{tt.option, tt.value}}))
		if got := c.Settings().ClientMemoryLimit(); got != tt.want {
			t.Errorf("%s %s: the limit is %d, want %d", tt.option, tt.value, got, tt.want)
		}
	}
	if got := configured(t, load(t, "--maxmemory-clients", "5%"), "maxmemory-clients"); got != "5%" {
		t.Errorf("shown as %s", got)
	}
	for value, want := range map[string]string{
		"101%": "percentage argument must be less or equal to 100", "1.5%": "argument must be a memory or percent value", "-1": "argument must be a memory or percent value",
	} {
		err := c.ConfigSet([][2]string{{"maxmemory-clients", value}})
		if err == nil || !strings.HasSuffix(err.Error(), "(possibly related to argument 'maxmemory-clients') - "+want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
