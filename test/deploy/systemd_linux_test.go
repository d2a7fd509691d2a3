package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

const unitFile = "deploy/systemd/mayfly.service"

// settingsOf returns the values of a setting in the unit, in order.
func settingsOf(t *testing.T, name string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	drill.Check(t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, m[1])
	}
	return values
}

// TestDeployUnit: systemd understands the unit, and finds it safe.
func TestDeployUnit(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	harness.Need(t, "systemd-analyze")
	text, err := os.ReadFile(unitFile)
	drill.Check(t, err)
	here := filepath.Join(t.TempDir(), "mayfly.service")
	drill.Check(t, os.WriteFile(here, []byte(strings.ReplaceAll(string(text), "/usr/bin/mayfly", harness.Binary)), 0o644))
	if got := harness.Run(t, nil, "systemd-analyze", "verify", "--man=no", here); got != "" {
		t.Errorf("systemd-analyze verify: %s", got)
	}
	// 2.0 of 10, where 10 is worst. The command fails above it.
	harness.Run(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=20", here)
}

// TestDeployUnitRuns plays what systemd does with the unit: the command, its files and its messages. Only
// system calls that the unit allows may come. It sets an environment variable, so it does not run beside
// others.
func TestDeployUnitRuns(t *testing.T) {
	drill.Slow(t)
	strace := harness.Need(t, "strace")
	systemd := harness.NewNotifySocket(t)
	host, port := harness.Host(t), harness.FreePort(t)
	credentials := filepath.Dir(harness.WriteFile(t, "mayfly.conf", "requirepass secret\nbind "+host+"\nport "+port+"\n"))
	state := t.TempDir()
	command := settingsOf(t, "ExecStart")
	if len(command) != 1 || !slices.Equal(settingsOf(t, "WorkingDirectory"), []string{"/var/lib/mayfly"}) || !slices.Equal(settingsOf(t, "StateDirectory"), []string{"mayfly mayfly/backups"}) {
		t.Fatalf("the unit runs %q elsewhere than in its state directory", command)
	}
	drill.Check(t, os.Mkdir(filepath.Join(state, "backups"), 0o700))
	args := strings.Fields(strings.ReplaceAll(command[0], "${CREDENTIALS_DIRECTORY}", credentials))
	args[0] = harness.Binary
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-o", trace}, args...)...)
	cmd.Dir = state
	p := &harness.Process{T: t, Cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.Log, &p.Log
	drill.Check(t, cmd.Start())
	t.Cleanup(p.Discard)
	if got := systemd.Next(); !strings.HasPrefix(got, "READY=1\n") {
		t.Fatalf("systemd is told %q", got)
	}
	client, ctx := connect(t, net.JoinHostPort(host, port), "secret"), t.Context()
	for _, command := range [][]any{
		{"CONTAINER.CREATE", "orders", "TTL", 10}, {"DOC.PUT", "orders", "1", `{"item":"tea"}`}, {"SET", "a", "b", "PX", 50},
		{"SAVE"}, {"SCRUB"}, {"INFO", "everything"}, {"COMPACT"}, {"BACKUP", "/var/lib/mayfly/backups/monday"},
	} {
		for i := range command {
			if text, ok := command[i].(string); ok {
				command[i] = strings.Replace(text, "/var/lib/mayfly", state, 1)
			}
		}
		if err := client.Do(ctx, command...).Err(); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "data/LOCK")); err != nil {
		t.Errorf("the data is not in the state directory: %v", err)
	}
	pid, err := client.Info(ctx, "server").Result()
	drill.Check(t, err)
	signalServer(t, pid)
	if got := systemd.Next(); got != "STOPPING=1" {
		t.Errorf("systemd is told %q", got)
	}
	if code := p.Wait(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	checkSystemCalls(t, trace)
}

// signalServer sends SIGTERM to the process that INFO names.
func signalServer(t *testing.T, info string) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^process_id:(\d+)\r?$`).FindStringSubmatch(info)
	if m == nil {
		t.Fatalf("INFO names no process: %s", info)
	}
	harness.Run(t, nil, "kill", "-TERM", m[1])
}

// checkSystemCalls checks the system calls of a trace against the filter of the unit.
func checkSystemCalls(t *testing.T, trace string) {
	t.Helper()
	harness.Need(t, "systemd-analyze")
	allowed := map[string]bool{}
	for _, filter := range settingsOf(t, "SystemCallFilter") {
		names, deny := strings.CutPrefix(filter, "~")
		for name := range strings.FieldsSeq(names) {
			for _, call := range filterSet(t, name) {
				allowed[call] = !deny
			}
		}
	}
	text, err := os.ReadFile(trace)
	drill.Check(t, err)
	calls := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +(\w+)\(`).FindAllStringSubmatch(string(text), -1) {
		calls[m[1]] = true
	}
	for _, call := range []string{"openat", "fsync", "listen", "epoll_pwait"} {
		if !calls[call] {
			t.Errorf("the trace has no %s, which a server needs", call)
		}
	}
	for call := range calls {
		if !allowed[call] {
			t.Errorf("the unit does not allow %s", call)
		}
	}
}

// filterSet returns the system calls of a set such as @system-service.
func filterSet(t *testing.T, name string) (calls []string) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	for line := range strings.Lines(harness.Run(t, nil, "systemd-analyze", "syscall-filter", name)) {
		if call := strings.TrimSpace(line); call != "" && call != name && !strings.HasPrefix(call, "#") {
			calls = append(calls, filterSet(t, call)...)
		}
	}
	return calls
}
