package tools

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// TestExportAndImportOfRunningServers moves everything from one server to another, and the way over a
// folder shows that the first export told the truth.
func TestExportAndImportOfRunningServers(t *testing.T) {
	harness.Parallel(t)
	ctx := context.Background()
	a := harness.Start(t, filepath.Join(t.TempDir(), "a"), "--requirepass", "secret", "--partitions", "3")
	secret := []string{"REDISCLI_AUTH=secret"}
	conn := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + a.Port, Password: "secret", ReadTimeout: harness.Patience})
	defer conn.Close()
	run := func(args ...any) {
		t.Helper()
		if err := conn.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	end := time.Now().Add(time.Hour).UnixMilli()
	run("CONTAINER.SET", "orders", "TTL", "3600", "TTLMODE", "lenient")
	run("CONTAINER.SET", "0", "TTL", "7200")
	run("INDEX.CREATE", "orders", "/n", "/a~1b")
	run("INDEX.CREATE", "orders", "/loc", "GEO")
	for i := range 1500 {
		run("DOC.PUT", "orders", fmt.Sprint("id-", i), fmt.Sprintf("{\"n\": %d,\n\"ttl\": %d}", i, 1000+i))
	}
	run("DOC.PUT", "orders", "for ever", `{"ttl":-1}`)
	run("DOC.PUT", "orders", "lenient", `{"ttl":"x"}`)
	run("SET", "end", "\x00\xff", "PXAT", end)
	run("SET", "default", "")
	run("SET", "persists", "x")
	run("PERSIST", "persists")

	run("SELECT", "orders")
	for _, value := range []string{"5", `"a\nb"`, "null", "[1,2]", "true"} {
		run("JSON.SET", "any "+value, "$", value)
	}
	run("PEXPIREAT", "any 5", end)
	run("PERSIST", "any true")
	run("SELECT", "0")
	run("HSET", "small hash", "f", "1", "\xff", "2")
	run("HPEXPIREAT", "small hash", end, "FIELDS", 1, "f")
	run("SADD", "set", "a", "b")
	run("EXPIREMEMBERAT", "set", "a", end/1000)
	run("PEXPIREAT", "set", end)
	run("ZADD", "zset", "1.5", "a", "-inf", "b")
	run("EXPIREMEMBERAT", "zset", "a", end, "ms")
	for i := range 1500 {
		run("RPUSH", "list", fmt.Sprint("entry-", i))
		run("HSET", "large hash", fmt.Sprint("field-", i), strings.Repeat("x", i%100))
	}

	lines, report := harness.ToolIn(t, secret, 0, "", "export", "127.0.0.1:"+a.Port)
	if n := strings.Count(lines, "\n"); n != 17+1507+8 || !strings.Contains(report, "exported 17 containers and 1515 items\n") {
		t.Errorf("%d lines: %s", n, report)
	}
	for _, want := range []string{
		`{"container":"orders","default":"3600","mode":"lenient","number":16,"created":`,
		`,"indexes":[["/n","/a~1b"],["/loc","geo"]]}`,
		fmt.Sprintf(`{"container":"0","id":"end","end":%d,"value64":"AP8="}`, end),
		`{"container":"0","id":"persists","end":-1,"value":"x"}`,
		`,"ttl":-1,"doc":{"ttl":-1}}`,
		fmt.Sprintf(`,"end":%d,"doc":5}`, end),
		`,"end":-1,"doc":true}`,
		`"any null","ts":`,
		`,"ttl":1007,"raw":"{\"n\": 7,\n\"ttl\": 1007}"}`,
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("%s is not there", want)
		}
	}

	b := harness.Start(t, filepath.Join(t.TempDir(), "b"), "--requirepass", "secret", "--partitions", "7")
	dead := `{"container":"orders","id":"dead","ts":1000,"doc":{}}` + "\n"
	strange := `{"container":"strict","default":"5","mode":"strict"}` + "\n" + `{"container":"strict","id":"refused","doc":{"ttl":0}}` + "\n"
	_, report = harness.ToolIn(t, secret, 1, lines+dead+strange, "import", "127.0.0.1:"+b.Port)
	if !strings.Contains(report, fmt.Sprintf("line %d: invalid ttl 0", 17+1515+3)) ||
		!strings.Contains(report, "imported 18 containers and 1515 items; 1 are dead, 0 are older than the target's, 1 lines are bad\n") {
		t.Error(report)
	}
	again, _ := harness.ToolIn(t, secret, 0, "", "export", "127.0.0.1:"+b.Port)
	there := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + b.Port, Password: "secret", ReadTimeout: harness.Patience})
	defer there.Close()
	for _, words := range [][]any{{"HPEXPIRETIME", "small hash", "FIELDS", 2, "f", "\xff"}, {"SMEMBERS", "set"}, {"PEXPIRETIME", "set", "a"}, {"PEXPIRETIME", "set", "b"}, {"PEXPIRETIME", "set"},
		{"ZRANGE", "zset", 0, -1, "WITHSCORES"}, {"PEXPIRETIME", "zset", "a"}, {"LRANGE", "list", 0, -1}, {"HLEN", "large hash"}, {"HGET", "large hash", "field-99"}} {
		want, err := conn.Do(ctx, words...).Result()
		got, err1 := there.Do(ctx, words...).Result()
		if !reflect.DeepEqual(got, want) || err != nil || err1 != nil {
			t.Errorf("%v: %v, %v; where it comes from %v, %v", words, got, err1, want, err)
		}
	}
	if got, want := withoutTimes(again), withoutTimes(lines)+`{"container":"strict","default":"5","mode":"strict","number":17}`+"\n"; !sameLines(got, want) {
		t.Errorf("the second server has\n%.2000s\nthe first\n%.2000s", got, want)
	}

	// A user gets what he may see, and the report does not say that it is everything.
	run("ACL", "SETUSER", "shop", "on", "nopass", "~*", "db=strict", "+@all")
	run("CONTAINER.CREATE", "strict", "TTL", "5")
	seen, report := harness.ToolIn(t, secret, 0, "", "export", "127.0.0.1:"+a.Port, "--user", "shop")
	if !strings.HasPrefix(seen, `{"container":"strict",`) || !strings.Contains(report, "exported 1 containers and 0 items, all that the user shop may see\n") {
		t.Errorf("%s%s", seen, report)
	}
	run("CONTAINER.DROP", "strict")

	// The folder, which knows more, has the same documents written at the same times.
	if out, err := harness.Tool(t, 2, "", "export", a.Dir); out != "" || !strings.Contains(err, "in use by another process") {
		t.Errorf("%s%s", out, err)
	}
	a.Terminate()
	stopped, _ := harness.Tool(t, 0, "", "export", a.Dir)
	for line := range strings.Lines(lines) {
		if strings.Contains(line, `"orders"`) && !strings.Contains(stopped, line) {
			t.Errorf("the folder has not: %s", line)
		}
	}
	harness.ToolIn(t, secret, 2, "", "export", "127.0.0.1:"+a.Port)
	harness.ToolIn(t, secret, 2, "", "import", "127.0.0.1:"+a.Port)
}

// TestImportWithoutMemory: an item that a server refuses at its memory limit stays there as it was, with its
// end, and counts once.
func TestImportWithoutMemory(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	conn, address := p.Client(), "127.0.0.1:"+p.Port
	run := func(args ...any) any {
		t.Helper()
		reply, err := conn.Do(t.Context(), args...).Result()
		if err != nil {
			t.Fatalf("%.99v: %v", args, err)
		}
		return reply
	}
	keys := []any{"any", "plain", "small hash", "large hash", "{tag} list"}
	end := time.Now().Add(time.Hour).UnixMilli()
	run("CONTAINER.SET", "0", "TTL", "100000")
	run("JSON.SET", "any", "$", "[1]")
	run("PEXPIREAT", "any", end)
	run("SET", "plain", "x")
	run("PERSIST", "plain")
	run("HSET", "small hash", "f", "1", "g", "2")
	run("HPEXPIREAT", "small hash", end, "FIELDS", 1, "g")
	for i := range 40 {
		run("HSET", "large hash", fmt.Sprint("f-", i), strings.Repeat("x", 100_000))
		run("HPEXPIREAT", "large hash", end, "FIELDS", 1, fmt.Sprint("f-", i))
	}
	for i := range 1200 {
		run("RPUSH", "{tag} list", i)
	}
	run("PEXPIREAT", "large hash", end)
	run("PERSIST", "{tag} list")
	lines, _ := harness.Tool(t, 0, "", "export", address)
	run(append([]any{"DEL"}, keys...)...)
	for _, key := range keys {
		run("SET", key, "as it was", "PXAT", end+1)
	}
	// There is no memory at all, or enough for the first pieces of the large hash.
	for limit, bad := range map[int64]int{1: 5, harness.Figure(t, conn, "used_memory") + 2_500_000: 1} {
		items := ""
		for line := range strings.Lines(lines) {
			if bad == 5 || strings.Contains(line, "large hash") {
				items += line
			}
		}
		run("CONFIG", "SET", "maxmemory", limit)
		_, report := harness.Tool(t, 1, items, "import", address)
		if strings.Count(report, "OOM") != bad || !strings.Contains(report, fmt.Sprintf(" 0 items; 0 are dead, 0 are older than the target's, %d lines are bad\n", bad)) {
			t.Errorf("at %d: %s", limit, report)
		}
		for _, key := range keys {
			if value, at := run("GET", key), run("PEXPIRETIME", key); value != "as it was" || at != end+1 {
				t.Errorf("at %d %v has %v until %v", limit, key, value, at)
			}
		}
		if n := run("DBSIZE"); n != int64(len(keys)) {
			t.Errorf("at %d there are %v keys", limit, n)
		}
	}
	run("CONFIG", "SET", "maxmemory", 0)
	run("DEL", "any") // JSON.SET replaces no string
	harness.Tool(t, 0, lines, "import", address)
	if again, _ := harness.Tool(t, 0, "", "export", address); !sameLines(withoutTimes(again), withoutTimes(lines)) {
		t.Errorf("the server has\n%.2000s\nand had\n%.2000s", again, lines)
	}
}

// TestDatabaseBetweenRunningServers moves everything by a buntdb database.
func TestDatabaseBetweenRunningServers(t *testing.T) {
	harness.Parallel(t)
	a, b := harness.Start(t, filepath.Join(t.TempDir(), "a")), harness.Start(t, filepath.Join(t.TempDir(), "b"), "--partitions", "3")
	client, end := a.Client(), time.Now().Add(time.Hour).UnixMilli()
	for _, args := range [][]any{
		{"CONTAINER.SET", "orders", "TTL", "3600", "TTLMODE", "lenient"},
		{"INDEX.CREATE", "orders", "/tags/[]"},
		{"DOC.PUT", "orders", "1", `{"ttl": 100}`},
		{"DOC.PUT", "orders", "2", "{\"ttl\":\"x\"}\n"},
		{"SET", "\x00\xff", "{}", "PX", "500000"},
		{"SET", "empty", ""},
		{"HSET", "hash", "f", "1", "g", "\xff"},
		{"HPEXPIREAT", "hash", end, "FIELDS", "1", "f"},
		{"ZADD", "zset", "1.5", "a", "-inf", "\xff"},
		{"EXPIREMEMBERAT", "zset", "a", end, "ms"},
		{"RPUSH", "list", "x", "", "x"},
	} {
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	file := filepath.Join(t.TempDir(), "all.db")
	harness.Tool(t, 0, "", "export", "127.0.0.1:"+a.Port, file, "--format", "buntdb")
	_, report := harness.Tool(t, 0, "", "import", file, "127.0.0.1:"+b.Port)
	if !strings.Contains(report, "imported 17 containers and 7 items; 0 are dead, 0 are older than the target's, 0 keys are bad\n") {
		t.Error(report)
	}
	there, _ := harness.Tool(t, 0, "", "export", "127.0.0.1:"+a.Port)
	here, _ := harness.Tool(t, 0, "", "export", "127.0.0.1:"+b.Port)
	if !strings.Contains(here, `,"indexes":[["/tags/[]"]]}`) {
		t.Errorf("no index: %s", here)
	}
	if strings.Count(here, "\n") != 24 || !sameLines(withoutTimes(here), withoutTimes(there)) {
		t.Errorf("the second server has\n%s\nthe first\n%s", here, there)
	}
}

// TestImportOfCosmosItems imports items into a running server. They keep what is left of their ttl.
func TestImportOfCosmosItems(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	now := time.Now().Unix()
	item := func(id string, ago int64, ttl string) string {
		return fmt.Sprintf(`{"id":%q%s,"_rid":"x","_self":"s","_etag":"e","_attachments":"a","_ts":%d}`, id, ttl, now-ago)
	}
	items := "[" + strings.Join([]string{item("left", 100, `,"ttl":1000`), item("ever", 100, `,"ttl":-1`), item("none", 100, ""), item("dead", 100, `,"ttl":99`)}, ",\n") + "]"
	_, report := harness.Tool(t, 0, items, "import", "127.0.0.1:"+p.Port, "--container", "orders", "--ttl", "-1")
	if !strings.Contains(report, "imported 1 containers and 3 items; 1 are dead, 0 are older than the target's, 0 items are bad\n") {
		t.Error(report)
	}
	c := p.Client()
	left, err := c.Do(t.Context(), "DOC.TTL", "orders", "left").Int()
	if err != nil || left < 900-30 || left > 900 {
		t.Errorf("%d s are left of the ttl: %v", left, err)
	}
	for id, want := range map[string]string{"ever": `{"id":"ever","ttl":-1}`, "none": `{"id":"none"}`} {
		if got, err := c.Do(t.Context(), "DOC.GET", "orders", id).Text(); got != want {
			t.Errorf("%s is %s, %v; want %s", id, got, err, want)
		}
	}
	// A container that is off does not interpret ttl: it stays as it is.
	harness.Tool(t, 0, items, "import", "127.0.0.1:"+p.Port, "--container", "carts", "--ttl", "off")
	if got, err := c.Do(t.Context(), "DOC.GET", "carts", "left").Text(); got != `{"id":"left","ttl":1000}` {
		t.Errorf("in a container that is off: %s, %v", got, err)
	}
}

// TestImportKeepsTimes: with --keep-times a running server has what a folder would have.
func TestImportKeepsTimes(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	c, now := p.Client(), time.Now().Unix()
	into := func(code int, input string, options ...string) (report string) {
		t.Helper()
		_, report = harness.Tool(t, code, input, append([]string{"import", "127.0.0.1:" + p.Port}, options...)...)
		return report
	}
	items := fmt.Sprintf(`{"id":"own","ttl":864000,"_rid":"x","_ts":%[1]d}
{"id":"none","_rid":"x","_ts":%[1]d}
{"id":"dead","ttl":100,"_rid":"x","_ts":%[1]d}
{"id":"bad","ttl":0,"_rid":"x","_ts":%[1]d}
`, now-1000)
	report := into(1, items, "--container", "orders", "--ttl", "2000", "--keep-times")
	if !strings.Contains(report, "line 4: invalid ttl 0") || !strings.Contains(report, "2 items; 1 are dead, 0 are older than the target's, 1 lines are bad\n") {
		t.Error(report)
	}
	for id, body := range map[string]string{"own": `{"id":"own","ttl":864000}`, "none": `{"id":"none"}`} {
		meta, err := c.Do(t.Context(), "DOC.META", "orders", id).Result()
		if fields, _ := meta.(map[any]any); fields["ts"] != (now-1000)*1000 {
			t.Errorf("%s: %v, %v: want a ts of %d", id, meta, err, now-1000)
		}
		if got, err := c.Do(t.Context(), "DOC.GET", "orders", id).Text(); got != body {
			t.Errorf("%s is %s, %v", id, got, err)
		}
	}
	// What was written later stays, as in a folder. Without the option a server overwrites.
	drill.Check(t, c.Do(t.Context(), "DOC.PUT", "orders", "none", `{"here":1}`).Err())
	lines := fmt.Sprintf(`{"container":"orders","id":"none","ts":%d000,"doc":{"there":1}}`, now-1000)
	if report := into(0, lines, "--keep-times"); !strings.Contains(report, "0 items; 0 are dead, 1 are older than the target's, 0 lines are bad\n") {
		t.Error(report)
	}
	if got, err := c.Do(t.Context(), "DOC.GET", "orders", "none").Text(); got != `{"here":1}` {
		t.Errorf("%s, %v", got, err)
	}
	into(0, lines)
	if got, err := c.Do(t.Context(), "DOC.GET", "orders", "none").Text(); got != `{"there":1}` {
		t.Errorf("%s, %v", got, err)
	}

	// So does what JSON.SET has stored, with any root.
	into(0, fmt.Sprintf(`{"container":"orders","id":"list","ts":%d000,"doc":[1]}`, now-1000), "--keep-times")
	if ttl, err := c.Do(t.Context(), "DOC.TTL", "orders", "list").Int64(); err != nil || ttl > 1000 {
		t.Errorf("a list has %d seconds to live, %v", ttl, err)
	}
	drill.Check(t, c.Do(t.Context(), "DOC.DEL", "orders", "list").Err())

	// Settings of what exists stay, or are changed under a guard.
	line := `{"container":"orders","default":"5","mode":"lenient","hold":"case 12"}`
	into(0, fmt.Sprintf(`{"container":"orders","id":"old","ts":%d000,"doc":{}}`, now-1000), "--keep-times")
	for _, step := range []struct {
		options      []string
		code         int
		report, want string
	}{
		{nil, 0, "container orders keeps its settings: TTL 2000, not 5, TTLMODE strict, not lenient, HOLD off, not case 12; --apply-settings changes them\n", "2000 strict"},
		{[]string{"--apply-settings"}, 1, "line 1: the settings would kill 1 items of container orders at once, more than --max-kill 0: nothing has changed\n", "2000 strict"},
		{[]string{"--apply-settings", "--max-kill", "1"}, 0, "; the change has killed 1 items\n", "5 lenient"},
		{[]string{"--apply-settings", "--max-kill", "1"}, 0, "imported 1 containers", "5 lenient"},
	} {
		report := into(step.code, line, step.options...)
		meta, err := c.Do(t.Context(), "CONTAINER.GET", "orders").Result()
		fields, _ := meta.(map[any]any)
		if !strings.Contains(report, step.report) || fmt.Sprint(fields["ttl"], " ", fields["ttlmode"]) != step.want {
			t.Errorf("%v: %v %v\n%s", step.options, meta, err, report)
		}
	}
	if report := into(1, `{"container":"orders","default":"6"}`, "--apply-settings", "--max-kill", "9"); !strings.Contains(report, "line 1: CONTAINER.SET: HELD container 'orders' is on hold: case 12") {
		t.Error(report)
	}
}

// TestImportRehearsed: a dry run into a server of named users counts what the import then does. What the
// server refuses costs nothing that follows.
func TestImportRehearsed(t *testing.T) {
	harness.Parallel(t)
	users := filepath.Join(t.TempDir(), "users.acl")
	drill.Check(t, os.WriteFile(users, []byte("user default off\nuser ops on >secret ~* &* +@all\n"), 0o600))
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--max-value-size", "1kb", "--aclfile", users)
	admin := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, Username: "ops", Password: "secret", ReadTimeout: harness.Patience})
	defer admin.Close()
	for _, mode := range []string{"strict", "lenient"} {
		drill.Check(t, admin.Do(t.Context(), "CONTAINER.CREATE", mode, "TTL", "60", "TTLMODE", mode, "DEADLINE", "ends").Err())
	}
	into := func(code int, input string, options ...string) (report string) {
		t.Helper()
		args := append([]string{"import", "127.0.0.1:" + p.Port, "--user", "ops"}, options...)
		_, report = harness.ToolIn(t, []string{"REDISCLI_AUTH=secret"}, code, input, args...)
		return report
	}
	long := strings.Repeat("x", 1024)
	documents := `{"id":"first"}
{"id":"ttl","ttl":0}
{"id":"deadline","ends":"soon"}
{"id":"passed","ends":"2019-08-11T17:54:14.692Z"}
{"id":"long","x":"` + long + `"}
{"id":"last"}
`
	elements := `{"container":"strict","id":"h","hash":"1:f` + fmt.Sprint(len(long)+1) + `:x` + long + `"}
{"container":"strict","id":"k","value":"v"}
`
	for _, c := range []struct {
		input, container string
		count            string
		bad              []string
	}{
		{documents, "strict", "2 items; 0 are dead, 0 are older than the target's, 4 lines are bad\n",
			[]string{"line 2: invalid ttl 0", `line 3: invalid ends "soon"`, "line 4: ", "line 5: a value of 1044 bytes: max-value-size of 127.0.0.1:" + p.Port + " allows 1024\n"}},
		{documents, "lenient", "4 items; 1 are dead, 0 are older than the target's, 1 lines are bad\n", []string{"line 5: a value of 1044 bytes"}},
		{elements, "", "1 items; 0 are dead, 0 are older than the target's, 1 lines are bad\n", []string{"line 1: a value of 1025 bytes"}},
	} {
		options := []string{}
		if c.container != "" {
			options = append(options, "--container", c.container)
		}
		for _, rehearsal := range []string{"--dry-run", ""} {
			report := into(1, c.input, append(options, strings.Fields(rehearsal)...)...)
			for _, want := range append(c.bad, c.count) {
				if !strings.Contains(report, want) {
					t.Errorf("%s %s: no %q in\n%s", c.container, rehearsal, want, report)
				}
			}
		}
	}
	if lines, _ := harness.ToolIn(t, []string{"REDISCLI_AUTH=secret"}, 0, "", "export", "127.0.0.1:"+p.Port, "--user", "ops"); strings.Count(lines, `"id":"last","ts"`) != 2 {
		t.Errorf("the last documents have not come:\n%s", lines)
	}
	if _, report := harness.Tool(t, 2, "", "export", "127.0.0.1:"+p.Port); !strings.Contains(report, "--user names the user") {
		t.Error(report)
	}
}

// TestExportWithoutSpace: an export that cannot write all of its file leaves none.
func TestExportWithoutSpace(t *testing.T) {
	harness.Parallel(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := harness.Start(t, data)
	for i := range 200 {
		drill.Check(t, p.Client().Set(t.Context(), fmt.Sprint("key-", i), strings.Repeat("x", 10_000), 0).Err())
	}
	p.Terminate()
	for _, format := range []string{"buntdb", "ndjson"} {
		cmd := exec.Command("bash", "-c", `ulimit -f 1000; exec "$@"`, "bash", harness.Binary, "export", data, filepath.Join(dir, "all"), "--format", format)
		out, err := cmd.CombinedOutput()
		if want := "mayfly export: write " + filepath.Join(dir, "all.part") + ": file too large\n"; err == nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: %v: %s, want %s", format, err, out, want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "all*")); len(left) > 0 {
			t.Errorf("%s: %v is left behind", format, left)
		}
	}
}

// TestExportInterrupted: an export that a signal ends leaves no file, and ends by that signal.
func TestExportInterrupted(t *testing.T) {
	harness.Parallel(t)
	silent, err := net.Listen("tcp", harness.Host(t)+":0")
	drill.Check(t, err)
	defer func() { drill.Report(t, silent.Close()) }()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := t.TempDir()
		cmd := exec.Command(harness.Binary, "export", silent.Addr().String(), "--out", filepath.Join(dir, "all"))
		drill.Check(t, cmd.Start())
		asking, err := silent.Accept()
		drill.Check(t, err)
		drill.Check(t, cmd.Process.Signal(s))
		_ = cmd.Wait()
		drill.Report(t, asking.Close())
		if end := cmd.ProcessState.Sys().(syscall.WaitStatus); !end.Signaled() || end.Signal() != s {
			t.Errorf("%v: %v", s, cmd.ProcessState)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%v: %v is left behind", s, left)
		}
	}
	// What is ignored, as under nohup, stays ignored: the part would be gone, and the export go on without it.
	cmd := exec.Command("bash", "-c", `trap '' HUP; exec "$@"`, "bash", harness.Binary, "export", silent.Addr().String(), "--out", filepath.Join(t.TempDir(), "all"))
	drill.Check(t, cmd.Start())
	asking, err := silent.Accept()
	drill.Check(t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	drill.Check(t, err)
	var ignored uint64
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	if _, err := fmt.Sscanf(rest, "%x", &ignored); err != nil || ignored&(1<<(syscall.SIGHUP-1)) == 0 {
		t.Errorf("SIGHUP is not ignored any more: %x, %v", ignored, err)
	}
	drill.Report(t, asking.Close())
	_ = cmd.Wait()
}

// withoutTimes cuts what differs by the moment of an import, created and ts, and the elements of hashes and
// sets, which have no order.
func withoutTimes(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		for _, member := range []string{`,"created":`, `,"ts":`} {
			if before, rest, ok := strings.Cut(line, member); ok {
				line = before + strings.TrimLeft(rest, "0123456789")
			}
		}
		for _, member := range []string{`,"hash":`, `,"hash64":`, `,"set":`} {
			line, _, _ = strings.Cut(line, member)
		}
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// sameLines reports whether two texts have the same lines in any order.
func sameLines(a, b string) bool {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestDamagedFolderAndTheWayOut: a server refuses a damaged folder and names the tools; the repaired one
// is taken.
func TestDamagedFolderAndTheWayOut(t *testing.T) {
	harness.Parallel(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := harness.Start(t, dir, "--partitions", "1")
	client := p.Client()
	for i := range 100 {
		drill.Check(t, client.Set(t.Context(), fmt.Sprint("key-", i), "value", 0).Err())
	}
	p.Terminate()
	file := filepath.Join(dir, "partition-000.db")
	content, err := os.ReadFile(file)
	drill.Check(t, err)
	content[bytes.Index(content, []byte("key-50"))-1]++
	drill.Check(t, os.WriteFile(file, content, 0o600))
	repaired := dir + "-repaired"
	harness.CheckRefusal(t, harness.RunToEnd(t, nil, "--port", "auto", "--dir", dir, "--partitions", "1"), file, "is damaged at bytes", "mayfly check "+dir, "mayfly repair "+dir+" <newdir>")
	harness.Tool(t, 1, "", "check", dir)
	out, _ := harness.Tool(t, 1, "", "repair", dir, repaired)
	if !strings.Contains(out, "99 items of 16 containers copied") || !strings.Contains(out, "key-50") {
		t.Error(out)
	}
	harness.Tool(t, 0, "", "check", repaired)
	q := harness.Start(t, repaired)
	if n, err := q.Client().DBSize(t.Context()).Result(); n != 99 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}
