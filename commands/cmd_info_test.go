package commands

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/commands/engine"
)

// infoFields reads a reply of INFO. Sections become fields "# Name".
func infoFields(t *testing.T, r engine.Reply) map[string]string {
	t.Helper()
	if r.Kind != engine.KindVerbatim {
		t.Fatalf("INFO gave %s", notation(r))
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(r.Str, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok && line != "" && !strings.HasPrefix(line, "# ") {
			t.Errorf("not a line of INFO: %q", line)
		}
		if _, twice := fields[name]; twice && line != "" {
			t.Errorf("%q twice", name)
		}
		fields[name] = value
	}
	return fields
}

func TestInfoSections(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	header := regexp.MustCompile(`(?m)^# (\w+)\r$`)
	every := "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats Latencystats Cluster Expiry Indexes Deaths Keyspace"
	short := strings.NewReplacer("Commandstats ", "", "Latencystats ", "").Replace(every)
	w.do(1, "NOSUCH")
	for args, want := range map[string]string{
		"":                     short,
		"default":              short,
		"DEFAULT nosuch":       short,
		"everything":           every,
		"all":                  strings.Replace(every, " Modules", "", 1),
		"all modules":          every,
		"expiry":               "Expiry",
		"cpu SERVER":           "Server CPU",
		"keyspace stats stats": "Stats Keyspace",
		"nosuch":               "",
	} {
		text := w.do(1, append([]string{"INFO"}, strings.Fields(args)...)...).Str
		var got []string
		for _, m := range header.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("INFO %s has sections %s, want %s", args, got, want)
		}
		if strings.Count(text, "\r\n\r\n") != max(len(got)-1, 0) {
			t.Errorf("INFO %s: sections are not apart by one empty line: %q", args, text)
		}
	}
}

func TestInfoServer(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.clock.Advance(25 * time.Hour)
	got := infoFields(t, w.do(1, "INFO"))
	for name, want := range map[string]string{
		"redis_version":     "7.0.15",
		"mayfly_version":    "test",
		"redis_mode":        "standalone",
		"tcp_port":          "6379",
		"uptime_in_seconds": "90000",
		"uptime_in_days":    "1",
		"server_time_usec":  fmt.Sprint((testStart + 90000_000) * 1000),
		"role":              "master",
		"maxclients":        "10000",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for name, pattern := range map[string]string{
		"run_id":              `[0-9a-f]{40}`,
		"allocator_allocated": `[1-9]\d{4,}`,
		"used_cpu_user":       `\d+\.\d{6}`,
		"arch_bits":           `64|32`,
		"process_id":          `\d+`,
	} {
		if !regexp.MustCompile(`^(` + pattern + `)$`).MatchString(got[name]) {
			t.Errorf("%s is %q, want a match of %s", name, got[name], pattern)
		}
	}
	if again := infoFields(t, w.do(1, "INFO", "server"))["run_id"]; again != got["run_id"] {
		t.Errorf("the run_id changes: %s, %s", got["run_id"], again)
	}
}

func TestInfoKeyspace(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	keyspace := func() string {
		return strings.TrimPrefix(w.do(1, "INFO", "keyspace").Str, "# Keyspace\r\n")
	}
	if got := keyspace(); got != "" {
		t.Errorf("an empty server has %q", got)
	}
	w.expect("OK", "SET", "a", "1")
	w.expect("OK", "SET", "b", "1", "PX", "5000")
	w.expect("OK", "SELECT", "10")
	w.expect("OK", "SET", "a", "1")
	w.expect("OK", "SELECT", "2")
	w.expect("OK", "SET", "a", "1")
	w.expect("OK", "CONTAINER.SET", "a:b", "TTL", "100")
	w.expect("OK", "CONTAINER.SET", "off", "TTL", "off")
	w.expect("OK", "DOC.PUT", "a:b", "1", "{}")
	w.expect("OK", "DOC.PUT", "a:b", "2", `{"ttl":-1}`)
	w.expect("OK", "DOC.PUT", "off", "1", `{"ttl":5}`)
	if got, want := keyspace(), ""+
		"db0:keys=2,expires=1,avg_ttl=5000\r\n"+
		"db2:keys=1,expires=0,avg_ttl=0\r\n"+
		"db10:keys=1,expires=0,avg_ttl=0\r\n"+
		"db16:keys=2,expires=1,avg_ttl=100000\r\n"+
		"db17:keys=1,expires=0,avg_ttl=0\r\n"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// Dead items do not count, even before they are removed.
	w.clock.Advance(5 * time.Second)
	if got, want := keyspace(), "db0:keys=1,expires=0,avg_ttl=0\r\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q\nwant first %q", got, want)
	}
	w.expect("OK", "CONTAINER.SET", "off", "TTL", "-1") // wakes the ttl of its document, which is over
	if got, want := keyspace(), "db16:keys=2,expires=1,avg_ttl=95000\r\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q\nwant last %q", got, want)
	}
	w.expect("OK", "SELECT", "0")
	w.expect("(integer) 1", "DBSIZE")
}

func TestInfoCountsCommandsAndErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for range 3 {
		w.do(1, "PING")
	}
	w.do(2, "PING")
	w.do(2, "NOSUCH")
	w.do(2, "GET")
	w.do(2, "CONFIG", "SET", "nosuch", "x")
	got := infoFields(t, w.do(1, "INFO", "stats"))
	if got["total_commands_processed"] != "5" || got["total_error_replies"] != "3" {
		t.Errorf("%s commands and %s errors, want 5 and 3", got["total_commands_processed"], got["total_error_replies"])
	}
	w.expect("OK", "CONFIG", "RESETSTAT")
	w.do(2, "NOSUCH")
	got = infoFields(t, w.do(1, "INFO", "stats"))
	if got["total_commands_processed"] != "1" || got["total_error_replies"] != "1" {
		t.Errorf("after RESETSTAT %s commands and %s errors, want 1 and 1", got["total_commands_processed"], got["total_error_replies"])
	}
}

func TestInfoExpiry(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 10 {
		w.expect("OK", "SET", fmt.Sprint("k", i), "v", "EX", "1")
	}
	w.expect("(integer) 2", "HSET", "h", "f", "1", "g", "2")
	w.do(1, "HPEXPIRE", "h", "1000", "FIELDS", "1", "f")
	w.clock.Advance(time.Second)
	w.expect("(nil)", "GET", "k0")
	w.engine.Keyspace().PurgeOnce()
	expiry, stats := infoFields(t, w.do(1, "INFO", "expiry")), infoFields(t, w.do(1, "INFO", "stats"))
	if expiry["expiry_removed_lazily"] != "1" || expiry["expiry_removed_actively"] != "9" || stats["expired_keys"] != "10" {
		t.Errorf("%s removed lazily, %s actively, %s in all; want 1, 9, 10",
			expiry["expiry_removed_lazily"], expiry["expiry_removed_actively"], stats["expired_keys"])
	}
	if stats["expired_subkeys"] != "1" {
		t.Errorf("%s fields died, want 1", stats["expired_subkeys"])
	}
	w.expect("OK", "CONFIG", "RESETSTAT")
	if got := infoFields(t, w.do(1, "INFO", "stats")); got["expired_keys"] != "0" || got["expired_subkeys"] != "0" {
		t.Errorf("after RESETSTAT %s keys and %s fields expired", got["expired_keys"], got["expired_subkeys"])
	}
}

// Sessions are listed and counted while they change. Run with -race.
func TestClientListWhileSessionsChange(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const others = 4
	w.do(1, "PING")
	for n := range others {
		w.do(n+2, "PING")
	}
	all := w.host.sessions()
	w.host.sessions = func() []*engine.Session { return all }
	var wg sync.WaitGroup
	for _, s := range all[1:] {
		wg.Go(func() {
			for i := range 200 {
				for _, line := range []string{
					"HELLO 3 SETNAME n" + fmt.Sprint(i), "SELECT 3", "CLIENT SETINFO lib-name x", "HELLO 2", "RESET",
				} {
					if r := w.engine.Execute(s, strings.Fields(line)).Reply; r.Kind == engine.KindError {
						t.Error(line, r.Str)
					}
				}
			}
		})
	}
	line := regexp.MustCompile(`^(id=\d+ [^\n]* db=[03] [^\n]* cmd=\S+ [^\n]* resp=[23] lib-name=x? lib-ver=\n){5}$`)
	for range 200 {
		if r := w.engine.Execute(all[0], []string{"CLIENT", "LIST"}).Reply; !line.MatchString(r.Str) {
			t.Fatalf("CLIENT LIST gave %q", r.Str)
		}
		w.engine.Execute(all[0], []string{"INFO", "stats"})
	}
	wg.Wait()
}
