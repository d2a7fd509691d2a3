package locks

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A panic that leaves a lock held ends the process: all others would wait for the lock for ever.
func TestEndProcessOnPanic(t *testing.T) {
	t.Parallel()
	if os.Getenv("MAYFLY_TEST_PANIC") != "" {
		defer func() { recover() }()
		defer EndProcessOnPanic()
		panic("cannot continue")
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "MAYFLY_TEST_PANIC=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot continue") {
		t.Errorf("the process ends with %v:\n%s", err, out)
	}
}
