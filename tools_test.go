package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The tools are tested in package tools; here, what only the built program and a running server show.

// tool runs a tool of the built program and checks its exit code.
func tool(t *testing.T, code int, input string, args ...string) (out, err string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("mayfly %q: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// TestExportAndImportOfRunningServers moves everything from one server to another, and the way over a
// folder shows that the first export told the truth.
func TestExportAndImportOfRunningServers(t *testing.T) {
	ctx := context.Background()
	a := start(t, filepath.Join(t.TempDir(), "a"), "--requirepass", "secret", "--partitions", "3")
	t.Setenv("REDISCLI_AUTH", "secret")
	conn := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + a.port, Password: "secret", ReadTimeout: patience})
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

	lines, report := tool(t, 0, "", "export", "127.0.0.1:"+a.port)
	if n := strings.Count(lines, "\n"); n != 17+1507+3 || !strings.Contains(report, "exported 17 containers and 1510 items\n") {
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

	b := start(t, filepath.Join(t.TempDir(), "b"), "--requirepass", "secret", "--partitions", "7")
	dead := `{"container":"orders","id":"dead","ts":1000,"doc":{}}` + "\n"
	strange := `{"container":"strict","default":"5","mode":"strict"}` + "\n" + `{"container":"strict","id":"refused","doc":{"ttl":0}}` + "\n"
	_, report = tool(t, 1, lines+dead+strange, "import", "127.0.0.1:"+b.port)
	if !strings.Contains(report, fmt.Sprintf("line %d: ERR invalid ttl 0", 17+1510+3)) ||
		!strings.Contains(report, "imported 18 containers and 1510 items; 1 are dead, 0 were written later where they go to, 1 lines are bad\n") {
		t.Error(report)
	}
	again, _ := tool(t, 0, "", "export", "127.0.0.1:"+b.port)
	if got, want := withoutTimes(again), withoutTimes(lines)+`{"container":"strict","default":"5","mode":"strict","number":17}`+"\n"; !sameLines(got, want) {
		t.Errorf("the second server has\n%.2000s\nthe first\n%.2000s", got, want)
	}

	// The folder, which knows more, has the same documents written at the same times.
	if out, err := tool(t, 2, "", "export", a.dir); out != "" || !strings.Contains(err, "in use by another process") {
		t.Errorf("%s%s", out, err)
	}
	a.terminate()
	stopped, _ := tool(t, 0, "", "export", a.dir)
	for line := range strings.Lines(lines) {
		if strings.Contains(line, `"orders"`) && !strings.Contains(stopped, line) {
			t.Errorf("the folder has not: %s", line)
		}
	}
	tool(t, 2, "", "export", "127.0.0.1:"+a.port)
	tool(t, 2, "", "import", "127.0.0.1:"+a.port)
}

// TestDatabaseBetweenRunningServers moves everything by a buntdb database.
func TestDatabaseBetweenRunningServers(t *testing.T) {
	a, b := start(t, filepath.Join(t.TempDir(), "a")), start(t, filepath.Join(t.TempDir(), "b"), "--partitions", "3")
	client := a.client()
	for _, args := range [][]any{
		{"CONTAINER.SET", "orders", "TTL", "3600", "TTLMODE", "lenient"},
		{"INDEX.CREATE", "orders", "/tags/[]"},
		{"DOC.PUT", "orders", "1", `{"ttl": 100}`},
		{"DOC.PUT", "orders", "2", "{\"ttl\":\"x\"}\n"},
		{"SET", "\x00\xff", "{}", "PX", "500000"},
		{"SET", "empty", ""},
	} {
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	file := filepath.Join(t.TempDir(), "all.db")
	tool(t, 0, "", "export", "127.0.0.1:"+a.port, file, "--format", "buntdb")
	_, report := tool(t, 0, "", "import", file, "127.0.0.1:"+b.port)
	if !strings.Contains(report, "imported 17 containers and 4 items; 0 are dead, 0 were written later where they go to, 0 keys are bad\n") {
		t.Error(report)
	}
	there, _ := tool(t, 0, "", "export", "127.0.0.1:"+a.port)
	here, _ := tool(t, 0, "", "export", "127.0.0.1:"+b.port)
	if !strings.Contains(here, `,"indexes":[["/tags/[]"]]}`) {
		t.Errorf("no index: %s", here)
	}
	if strings.Count(here, "\n") != 21 || !sameLines(withoutTimes(here), withoutTimes(there)) {
		t.Errorf("the second server has\n%s\nthe first\n%s", here, there)
	}
}

// TestImportOfCosmosItems imports items into a running server. They keep what is left of their ttl.
func TestImportOfCosmosItems(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	now := time.Now().Unix()
	item := func(id string, ago int64, ttl string) string {
		return fmt.Sprintf(`{"id":%q%s,"_rid":"x","_self":"s","_etag":"e","_attachments":"a","_ts":%d}`, id, ttl, now-ago)
	}
	items := "[" + strings.Join([]string{item("left", 100, `,"ttl":1000`), item("ever", 100, `,"ttl":-1`), item("none", 100, ""), item("dead", 100, `,"ttl":99`)}, ",\n") + "]"
	_, report := tool(t, 0, items, "import", "127.0.0.1:"+p.port, "--container", "orders", "--ttl", "-1")
	if !strings.Contains(report, "imported 1 containers and 3 items; 1 are dead, 0 were written later where they go to, 0 items are bad\n") {
		t.Error(report)
	}
	c := p.client()
	left, err := c.Do(t.Context(), "DOC.TTL", "orders", "left").Int()
	if err != nil || left < 880 || left > 900 {
		t.Errorf("%d s are left of the ttl: %v", left, err)
	}
	for id, want := range map[string]string{"ever": `{"id":"ever","ttl":-1}`, "none": `{"id":"none"}`} {
		if got, err := c.Do(t.Context(), "DOC.GET", "orders", id).Text(); got != want {
			t.Errorf("%s is %s, %v; want %s", id, got, err, want)
		}
	}
	// A container that is off does not interpret ttl: it stays as it is.
	tool(t, 0, items, "import", "127.0.0.1:"+p.port, "--container", "carts", "--ttl", "off")
	if got, err := c.Do(t.Context(), "DOC.GET", "carts", "left").Text(); got != `{"id":"left","ttl":1000}` {
		t.Errorf("in a container that is off: %s, %v", got, err)
	}
}

// TestExportWithoutSpace: an export that cannot write all of its file leaves none.
func TestExportWithoutSpace(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := start(t, data)
	for i := range 200 {
		if err := p.client().Set(t.Context(), fmt.Sprint("key-", i), strings.Repeat("x", 10_000), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p.terminate()
	for _, format := range []string{"buntdb", "ndjson"} {
		cmd := exec.Command("bash", "-c", `ulimit -f 1000; exec "$@"`, "bash", binary, "export", data, filepath.Join(dir, "all"), "--format", format)
		out, err := cmd.CombinedOutput()
		if want := "mayfly export: write " + filepath.Join(dir, "all.part") + ": file too large\n"; err == nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: %v: %s, want %s", format, err, out, want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "all*")); len(left) > 0 {
			t.Errorf("%s: %v is left behind", format, left)
		}
	}
}

// withoutTimes cuts what differs by the moment of an import: created and ts.
func withoutTimes(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		for _, member := range []string{`,"created":`, `,"ts":`} {
			if before, rest, ok := strings.Cut(line, member); ok {
				line = before + strings.TrimLeft(rest, "0123456789")
			}
		}
		out.WriteString(line)
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
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir, "--partitions", "1")
	client := p.client()
	for i := range 100 {
		if err := client.Set(t.Context(), fmt.Sprint("key-", i), "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p.terminate()
	file := filepath.Join(dir, "partition-000.db")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte("key-50"))-1]++
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	repaired := dir + "-repaired"
	checkRefusal(t, runToEnd(t, nil, "--port", freePort(t), "--dir", dir, "--partitions", "1"), file, "is damaged at bytes", "mayfly check "+dir, "mayfly repair "+dir+" <newdir>")
	tool(t, 1, "", "check", dir)
	out, _ := tool(t, 1, "", "repair", dir, repaired)
	if !strings.Contains(out, "99 items of 16 containers copied") || !strings.Contains(out, "key-50") {
		t.Error(out)
	}
	tool(t, 0, "", "check", repaired)
	q := start(t, repaired)
	if n, err := q.client().DBSize(t.Context()).Result(); n != 99 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}
