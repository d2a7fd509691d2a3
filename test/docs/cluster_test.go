package docs

import (
	"context"
	"mayfly/test/harness"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clusterExample maps the ports and folders of the page to free ones.
type clusterExample struct {
	t     *testing.T
	dir   string            // where the commands run
	ports map[string]string // by those of the page
	logs  []*harness.LogBuffer
}

// here returns a text of the page with the ports and folders of the test.
func (x *clusterExample) here(text string) string {
	text = strings.ReplaceAll(text, "/tmp/", x.dir+"/")
	text = strings.ReplaceAll(text, "./mayfly", harness.Binary)
	return regexp.MustCompile(`\b7[0-9]{3}\b`).ReplaceAllStringFunc(text, func(port string) string {
		if x.ports[port] == "" {
			x.ports[port] = harness.FreePort(x.t)
		}
		return x.ports[port]
	})
}

// start starts a node in the background. It is killed when the test ends.
func (x *clusterExample) start(line string) {
	x.t.Helper()
	log := new(harness.LogBuffer)
	cmd := exec.Command("bash", "-c", "exec "+x.here(line))
	cmd.Dir, cmd.Stderr = x.dir, log
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.logs = append(x.logs, log)
	x.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// ask runs a line with redis-cli until the cluster is ready to answer it.
func (x *clusterExample) ask(line string) string {
	notReady := regexp.MustCompile(`^(CLUSTERDOWN|LOADING|Could not connect|Error: |ERR CLUSTER .* failed: .*(loading|majority|vote))`)
	for end := time.Now().Add(harness.Patience); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(x.t.Context(), harness.Patience)
		cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+x.here(line))
		cmd.Dir = x.dir
		out, _ := cmd.CombinedOutput() // what it says is judged
		cancel()
		if got := strings.TrimSpace(string(out)); !notReady.MatchString(got) || time.Now().After(end) {
			return got
		}
	}
}

// TestDocsCluster plays docs/cluster.md from top to bottom: it starts the nodes on loopback addresses, asks them what
// the page asks with redis-cli, and runs the program. A comment behind a line with redis-cli is the reply.
func TestDocsCluster(t *testing.T) {
	harness.Need(t, "redis-cli")
	x := &clusterExample{t: t, dir: t.TempDir(), ports: map[string]string{}}
	nodes, replies, programs := 0, 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```(sh|go)\n(.*?)^```$").FindAllStringSubmatch(harness.Guides(t)[clusterPage], -1) {
		if block[1] == "go" {
			programs++
			out, err := exec.Command("go", "run", harness.WriteFile(t, "main.go", x.here(block[2]))).CombinedOutput()
			want := printed(block[2])
			if err != nil || string(out) != want || want == "" {
				t.Errorf("the program printed\n%s%v\nwant\n%s", out, err, want)
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			line, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "    # ")
			switch {
			case strings.HasPrefix(line, "./mayfly --cluster-id ") && strings.Contains(line, "127.0.0.1"):
				nodes++
				x.start(line)
			case strings.HasPrefix(line, "redis-cli "):
				replies++
				if got := x.ask(line); want != "" && got != want || got == "" {
					t.Fatalf("%s\n got %q\nwant %q", line, got, want)
				}
			}
		}
	}
	info := x.ask("redis-cli -p 7002 INFO cluster")
	metrics, err := os.ReadFile("server/metrics/cluster.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`(mayfly_)?(cluster_[a-z_]+)`").FindAllStringSubmatch(harness.Guides(t)[clusterPage], -1) {
		if m[1] == "" && !strings.Contains(info, m[2]+":") {
			t.Errorf("INFO has no field %s", m[2])
		} else if m[1] != "" && !strings.Contains(string(metrics), `"`+m[2]+`"`) {
			t.Errorf("there is no metric mayfly_%s", m[2])
		}
	}
	if nodes < 7 || replies == 0 || programs == 0 {
		t.Errorf("%d nodes, %d replies and %d programs are played", nodes, replies, programs)
	}
	if t.Failed() {
		for _, log := range x.logs {
			t.Logf("log of a node:\n%s", log)
		}
	}
}

// TestStopWhileForming stops a node whose peers never come. It has not said that it is ready, and says why it waits, to tools too.
func TestStopWhileForming(t *testing.T) {
	own, other, port := harness.FreePort(t), harness.FreePort(t), harness.FreePort(t)
	var out, log harness.LogBuffer
	cmd := exec.Command(harness.Binary, "--cluster-id", "a", "--cluster-addr", "127.0.0.1:"+own, "--port", port,
		"--cluster-peers", "a=127.0.0.1:"+own+",b=127.0.0.1:"+other, "--dir", filepath.Join(t.TempDir(), "data"))
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(harness.Patience); !strings.Contains(log.String(), "no answer from b"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatalf("it does not say for which node it waits:\n%s", &log)
		}
	}
	timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	defer func() { _ = cmd.Process.Kill() }() // in vain if it has ended
	const waits = "PING: LOADING Redis is loading the dataset in memory: the node waits for the other nodes of its cluster\n"
	for _, name := range []string{"forecast", "top"} {
		if _, text := harness.Tool(t, 2, "", name, "--port", port); !strings.HasSuffix(text, waits) {
			t.Errorf("mayfly %s says %s", name, text)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if err != nil || out.String() != "" || strings.Contains(log.String(), `"ready"`) {
		t.Errorf("it ends with %v, printed %q and logged\n%s", err, &out, &log)
	}
}
