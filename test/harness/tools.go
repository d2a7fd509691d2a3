package harness

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The tools are tested in package tools; here, what only the built program and a running server show.

// Tool runs a tool of the built program and checks its exit code.
func Tool(t *testing.T, code int, input string, args ...string) (out, err string) {
	t.Helper()
	cmd := exec.Command(Binary, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("mayfly %q: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}
