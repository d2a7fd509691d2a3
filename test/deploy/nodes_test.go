package deploy

import (
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

// TestDeployThreeNodes runs the example, which kills the leader under load. As a drill it does that ten
// times.
func TestDeployThreeNodes(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	kills := drill.Pick(1, 1, 10)
	harness.Need(t, "redis-cli")
	var clients, peers []string
	for range 3 {
		clients, peers = append(clients, harness.FreePort(t)), append(peers, harness.FreePort(t))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(3+kills)*harness.Patience)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "example")
	cmd := exec.CommandContext(ctx, "deploy/three-nodes/run")
	cmd.Env = append(cmd.Environ(), "MAYFLY="+harness.Binary, "DIR="+dir,
		fmt.Sprint("KILLS=", kills), fmt.Sprint("WRITERS=", drill.Pick(1, 1, 4)),
		"CLIENT_PORTS="+strings.Join(clients, " "), "NODE_PORTS="+strings.Join(peers, " "))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{fmt.Sprintf(`(?m)^kill %d: [abc] led and is dead; writes go on after [0-9]+ ms$`, kills),
		`(?m)^acknowledged documents: [1-9][0-9]*; lost: 0$`, `(?m)^all nodes have the same: index `} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
}
