package harness

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// Tool runs a tool of mayfly to its end and checks its exit code. The input is its standard input.
func Tool(t *testing.T, code int, input string, args ...string) (stdout, stderr string) {
	t.Helper()
	return ToolIn(t, nil, code, input, args...)
}

// ToolIn is [Tool] with additional variables of the environment, such as REDISCLI_AUTH=secret.
func ToolIn(t *testing.T, env []string, code int, input string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Binary, args...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.Stdin = strings.NewReader(input)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // the exit code says how it has ended
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("mayfly %q: exit code %d, want %d\n%s%s", args, got, code, &out, &err)
	}
	return out.String(), err.String()
}
