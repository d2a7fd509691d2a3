package clients

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// linesOf starts redis-cli for a session that goes on until it is ended, and returns the lines that it
// prints.
func linesOf(p *harness.Process, args ...string) *bufio.Scanner {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	cli := exec.CommandContext(ctx, harness.Need(p.T, "redis-cli"), append([]string{"-p", p.Port}, args...)...)
	out, err := cli.StdoutPipe()
	drill.Check(p.T, err)
	drill.Check(p.T, cli.Start())
	p.T.Cleanup(func() {
		cancel()
		_ = cli.Wait() // it has been killed
	})
	return bufio.NewScanner(out)
}

// expectLines reads as many lines as there are patterns, which they must match.
func expectLines(t *testing.T, lines *bufio.Scanner, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !lines.Scan() || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(lines.Text()) {
			t.Fatalf("redis-cli prints %q (%v), want %s", lines.Text(), lines.Err(), pattern)
		}
	}
}

func TestRedisCLIMonitor(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, option := range []string{"-2", "-3"} {
		lines := linesOf(p, option, "MONITOR")
		expectLines(t, lines, "OK")
		p.CLI("SET", "a", "x y")
		p.CLI("-n", "3", "GET", `"`)
		const client = `\d{10}\.\d{6} \[%d 127\.0\.0\.1:\d+\] %s`
		expectLines(t, lines,
			fmt.Sprintf(client, 0, `"SET" "a" "x y"`), fmt.Sprintf(client, 3, `"(SELECT|select)" "3"`), fmt.Sprintf(client, 3, `"GET" "\\""`))
	}
}

// TestRedisCLIReports lets redis-cli go through all keys.
func TestRedisCLIReports(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	p.CLI("MSET", "short", "12345", "long", strings.Repeat("x", 1000))
	p.CLI("DOC.PUT", "0", "doc", `{"a":1}`)
	for _, tt := range []struct {
		args []string
		want []string // patterns, in this order
	}{
		{[]string{"--bigkeys"}, []string{`Sampled 3 keys in the keyspace!`, `Biggest string found '"long"' has 1000 bytes`,
			`2 strings with 1005 bytes`, `1 ReJSON-RLs with 0 \?`}},
		{[]string{"--memkeys"}, []string{`Sampled 3 keys in the keyspace!`, `Biggest string found '"long"' has 1\d\d\d bytes`,
			`Biggest ReJSON-RL found '"doc"' has \d+ bytes`}},
		{[]string{"--memkeys-samples", "10"}, []string{`Sampled 3 keys`}},
		// It asks for OBJECT FREQ, and shows Redis' refusal.
		{[]string{"--hotkeys"}, []string{`Error: ERR An LFU maxmemory policy is not selected, access frequency not tracked\.`}},
		// Not on a terminal it prints one line: least, most, mean in ms, samples.
		{[]string{"--latency", "-i", "1"}, []string{`^\d+ \d+ \d+\.\d\d \d+\n$`}},
	} {
		out, _ := p.CLIWith(nil, tt.args...)
		pattern := regexp.MustCompile(`(?s)` + strings.Join(tt.want, `.*`))
		if !pattern.MatchString(out) {
			t.Errorf("redis-cli %q prints\n%s\nwant %s", tt.args, out, pattern)
		}
	}
}

// TestRedisCLIWatches starts modes of redis-cli that go on until they are stopped, and waits for what each
// must print sooner or later while commands are given.
func TestRedisCLIWatches(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, tt := range []struct {
		args, want string
		publish    bool
	}{
		{"--stat -i 0.05", `\n1 +\d+(\.\d\d)?[BKM] +\d+ +0 +\d+ \(\+\d+\) +\d+`, false},
		{"--latency-dist -i 0.1", `From 0 to 100%:`, false},
		{"SUBSCRIBE news other", `subscribe\nother\n2\n(.*\n)?message\nnews\nhot\n`, true},
		{"-3 PSUBSCRIBE n*", `pmessage\nn\*\nnews\nhot\n`, true},
		{"--csv SSUBSCRIBE shard", `"smessage","shard","cold"\n`, true},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			// Into a pipe it would print only when its buffer is full.
			cmd := exec.CommandContext(t.Context(), harness.Need(t, "stdbuf"),
				append([]string{"-oL", harness.Need(t, "redis-cli"), "-p", p.Port}, strings.Fields(tt.args)...)...)
			out, err := cmd.StdoutPipe()
			drill.Check(t, err)
			drill.Check(t, cmd.Start())
			lines := make(chan string)
			go func() {
				defer close(lines)
				for in := bufio.NewReader(out); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					lines <- line
				}
			}()
			client, printed, want := p.Client(), "", regexp.MustCompile(tt.want)
			deadline := time.After(harness.Patience)
			for again := time.NewTicker(20 * time.Millisecond); !want.MatchString(printed); {
				select {
				case line, ok := <-lines:
					if !ok {
						t.Fatalf("it has ended: %s", printed)
					}
					printed += line
				case <-again.C:
					client.Set(t.Context(), "k", "v", 0)
					if tt.publish {
						client.Publish(t.Context(), "news", "hot")
						client.SPublish(t.Context(), "shard", "cold")
					}
				case <-deadline:
					t.Fatalf("it prints\n%s\nwant %s", printed, want)
				}
			}
			_ = client.Close()
			_ = cmd.Process.Kill()
			for range lines { // until it has ended
			}
			_ = cmd.Wait()
		})
	}
}

// TestRedisCLIHelp: what redis-cli tells at its prompt of our own commands comes from COMMAND DOCS. The
// prompt needs a terminal, which script provides.
func TestRedisCLIHelp(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	cmd := exec.Command(harness.Need(t, "script"), "-qec", harness.Need(t, "redis-cli")+" -p "+p.Port, "/dev/null")
	cmd.Env = append(cmd.Environ(), "TERM=dumb", "HOME="+t.TempDir()) // no line editing, no history
	stdin, err := cmd.StdinPipe()
	drill.Check(t, err)
	timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := stdin.Write([]byte("HELP DOC.SETTTL\nhelp CONTAINER.DROP\nexit\n")); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	printed := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(strings.ReplaceAll(string(out), "\r", ""), "")
	for _, want := range []string{
		"DOC.SETTTL container id -1|seconds|NULL [IFMATCH etag]\n  summary: Sets or (NULL) removes", "CONTAINER.DROP name\n  summary: Removes a container",
		"group: document\n", "group: container\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%v; it does not say %q:\n%s", err, want, printed)
		}
	}
}
