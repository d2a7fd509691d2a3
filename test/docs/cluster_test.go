package docs

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// clusterExample plays the page on a host, on ports and in a folder of its own.
type clusterExample struct {
	t     *testing.T
	host  string
	ports map[string]string // by those of the page
	dir   string            // where the commands run
}

// port returns the port of the test for one of the page.
func (x *clusterExample) port(page string) string {
	if x.ports[page] == "" {
		x.ports[page] = harness.FreePort(x.t)
	}
	return x.ports[page]
}

// here returns a line of the page with the host, the ports and the folder of the test.
func (x *clusterExample) here(line string) string {
	line = regexp.MustCompile(`(-p |--port |:)(\d+)\b`).ReplaceAllStringFunc(line, func(text string) string {
		digits := strings.IndexAny(text, "0123456789")
		return text[:digits] + x.port(text[digits:])
	})
	return strings.NewReplacer("/tmp/", x.dir+"/", "127.0.0.1", x.host, "redis-cli ", "redis-cli -h "+x.host+" ",
		"./mayfly ", harness.Binary+" --bind "+x.host+" ").Replace(line)
}

// address returns where a port of the page is.
func (x *clusterExample) address(page string) string { return net.JoinHostPort(x.host, x.port(page)) }

// start starts a node in the background. It is killed when the test ends.
func (x *clusterExample) start(line string) {
	x.t.Helper()
	log := new(harness.LogBuffer)
	cmd := exec.Command("bash", "-c", "exec "+x.here(line))
	cmd.Dir, cmd.Stderr = x.dir, log
	drill.Check(x.t, cmd.Start())
	x.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if x.t.Failed() {
			x.t.Logf("%s\n%s", line, log)
		}
	})
}

// ask runs a line with redis-cli until the cluster is ready to answer it.
func (x *clusterExample) ask(line string) string {
	notReady := regexp.MustCompile(`^(CLUSTERDOWN|LOADING|Could not connect|Error: |ERR CLUSTER .* failed: .*(loading|majority|vote))`)
	got := ""
	harness.WaitFor(x.t, line, func() bool {
		ctx, cancel := context.WithTimeout(x.t.Context(), harness.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+x.here(line))
		cmd.Dir = x.dir
		out, _ := cmd.CombinedOutput() // what it says is judged
		got = strings.TrimSpace(string(out))
		return !notReady.MatchString(got)
	}, func() string { return got })
	return got
}

// TestDocsCluster plays docs/cluster.md from top to bottom: it starts the nodes on loopback addresses, asks
// them what the page asks with redis-cli, and runs the program. A comment behind a line with redis-cli is the
// reply.
func TestDocsCluster(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	harness.Need(t, "redis-cli")
	x := &clusterExample{t: t, host: harness.Host(t), ports: map[string]string{}, dir: t.TempDir()}
	nodes, replies, programs := 0, 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```(sh|go)\n(.*?)^```$").FindAllStringSubmatch(harness.Guides(t)[clusterPage], -1) {
		if block[1] == "go" {
			programs++
			if got, want := runGo(t, block[2], x.address), printed(block[2]); got != want || want == "" {
				t.Errorf("the program printed\n%s\nwant\n%s", got, want)
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
	drill.Check(t, err)
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
}

// TestDocsClusterInPython runs the program in Python while all nodes are there, and goes on with it after its
// leader was killed. Then it starts it anew.
func TestDocsClusterInPython(t *testing.T) {
	harness.Parallel(t)
	interpreter := harness.Python(t)
	programs := harness.Blocks(harness.Guides(t)[clusterPage], "python")
	if len(programs) != 1 {
		t.Fatalf("%s has %d programs in Python", clusterPage, len(programs))
	}
	c := harness.StartCluster(t, 3)
	var nodes []string
	for _, n := range c.Nodes {
		host, port, err := net.SplitHostPort(n.ClientAddr)
		drill.Check(t, err)
		nodes = append(nodes, fmt.Sprintf("ClusterNode(%q, %s)", host, port))
	}
	program := programs[0]
	for before, after := range map[string]string{
		`ClusterNode("localhost", port) for port in (7001, 7002, 7003)`: strings.Join(nodes, ", "),
		"time.monotonic() + 10": fmt.Sprint("time.monotonic() + ", harness.Patience.Seconds()), // elections take longer in tests
	} {
		if !strings.Contains(program, before) {
			t.Fatalf("the program has no %s", before)
		}
		program = strings.ReplaceAll(program, before, after)
	}
	const want = `{"items":["tea"]}` + "\n"
	cmd := exec.Command(interpreter, "-u", harness.WriteFile(t, "living.py", program+`
input()
run("DOC.PUT", "carts", "7", '{"items":["cup"]}')
print(run("DOC.GET", "carts", "7").decode())
`))
	var out, said harness.LogBuffer
	cmd.Stdout, cmd.Stderr = &out, &said
	stdin, err := cmd.StdinPipe()
	drill.Check(t, err)
	drill.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	harness.WaitFor(t, "the program to read", func() bool { return out.String() == want }, said.String)
	c.Leader().Kill()
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != want+`{"items":["cup"]}`+"\n" {
		t.Fatalf("after the leader was killed: %v\n%s%s", err, &out, &said)
	}
	again, err := exec.Command(interpreter, harness.WriteFile(t, "again.py", program)).Output()
	if err != nil || string(again) != want {
		t.Errorf("while a node is dead: %v\n%s", err, again)
	}
}

// TestStopWhileForming stops a node whose peers never come. It has not said that it is ready, and says why it
// waits, to tools too. Its pidfile tells what to stop.
func TestStopWhileForming(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	host, port, own := harness.Host(t), harness.FreePort(t), harness.FreeAddress(t)
	pidFile := filepath.Join(t.TempDir(), "mayfly.pid")
	var out harness.LogBuffer
	p := &harness.Process{T: t}
	p.Cmd = exec.Command(harness.Binary, "--bind", host, "--port", port, "--cluster-id", "a", "--cluster-addr", own,
		"--cluster-peers", "a="+own+",b="+harness.FreeAddress(t), "--dir", filepath.Join(t.TempDir(), "data"), "--pidfile", pidFile)
	p.Cmd.Stdout, p.Cmd.Stderr = &out, &p.Log
	drill.Check(t, p.Cmd.Start())
	t.Cleanup(p.Discard)
	harness.WaitFor(t, "the node to say for which other it waits", func() bool {
		return strings.Contains(p.Log.String(), "no answer from b")
	})
	const waits = "PING: LOADING the node waits for its cluster to form: not all of the other nodes have answered\n"
	for _, name := range []string{"forecast", "top"} {
		if _, text := harness.Tool(t, 2, "", name, "--host", host, "--port", port); !strings.HasSuffix(text, waits) {
			t.Errorf("mayfly %s says %s", name, text)
		}
	}
	if text, err := os.ReadFile(pidFile); err != nil || string(text) != fmt.Sprintln(p.Cmd.Process.Pid) {
		t.Errorf("the pidfile says %q, %v", text, err)
	}
	p.Terminate()
	if _, err := os.Stat(pidFile); err == nil {
		t.Error("the pidfile is left behind")
	}
	if out.String() != "" || strings.Contains(p.Log.String(), `"ready"`) {
		t.Errorf("it printed %q and logged\n%s", &out, &p.Log)
	}
}
