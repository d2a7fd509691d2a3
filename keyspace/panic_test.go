package keyspace

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A panic that leaves a lock held must not be recovered from: all that need the lock would wait for ever.
func TestEndProcess(t *testing.T) {
	if os.Getenv("MAYFLY_TEST_PANIC") != "" {
		defer func() { recover() }()
		endProcess("cannot go on")
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "MAYFLY_TEST_PANIC=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot go on") {
		t.Errorf("the process ends with %v:\n%s", err, out)
	}
}
