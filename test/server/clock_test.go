package server

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestEphemeral: the data of a server for tests goes with it, and that of one that was killed with the next
// start. The folder of the option dir is left alone.
func TestEphemeral(t *testing.T) {
	harness.Parallel(t)
	tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	folders := func() []string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(tmp, "*"))
		drill.Check(t, err)
		return list
	}
	start := func() *harness.Process {
		t.Helper()
		p := harness.StartWith(t, []string{"TMPDIR=" + tmp}, dir, "--ephemeral", "yes", "--clock", "manual", "--clock-start", "2030-01-01T00:00:00Z")
		if got := p.CLI("DBSIZE"); got != "0" {
			t.Errorf("a server for tests begins with %s items", got)
		}
		p.CLI("SET", "k", "v", "EX", "31536000")
		if got := p.CLI("CLOCK", "NOW"); got != "1893456000000" {
			t.Errorf("its clock begins at %s", got)
		}
		return p
	}
	killed := start()
	if got := folders(); len(got) != 1 || killed.CLI("CONFIG", "GET", "dir") != "dir\n"+filepath.Join(got[0], "data") {
		t.Errorf("the folders are %q, CONFIG GET dir says %s", got, killed.CLI("CONFIG", "GET", "dir"))
	}
	for _, command := range [][]string{{"BACKUP", "copy"}, {"COMPACT"}, {"SCRUB"}, {"CONFIG", "REWRITE"}} {
		if got := killed.CLI(command...); !strings.HasPrefix(got, "ERR ") {
			t.Errorf("%q: %s", command, got)
		}
	}
	for _, command := range []string{"SAVE", "BGSAVE", "BGREWRITEAOF"} {
		if got := killed.CLI(command); strings.HasPrefix(got, "ERR ") {
			t.Errorf("%s: %s", command, got)
		}
	}
	before := folders()
	killed.Signal(syscall.SIGKILL)
	killed.Wait()
	if got := folders(); len(got) != 1 {
		t.Errorf("the folders of a killed server are %q", got)
	}
	p := start()
	if got := folders(); len(got) != 1 || got[0] == before[0] {
		t.Errorf("the folders are %q after the start, %q of the killed server before", got, before)
	}
	if got := p.CLI("CLOCK", "ADVANCE", "31536000"); got != "1924992000000" || p.CLI("GET", "k") != "" {
		t.Errorf("a year later it is %s, and the key is %q", got, p.CLI("GET", "k"))
	}
	p.Terminate()
	if got := folders(); len(got) != 0 {
		t.Errorf("a server has left %q", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a server for tests has made the folder of the option dir")
	}
}

// TestEphemeralRefusals: options for tests that contradict others are refused with one line for each.
func TestEphemeralRefusals(t *testing.T) {
	harness.Parallel(t)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--clock", "manual"}, "needs ephemeral yes"},
		{[]string{"--clock-start", "2030-01-01T00:00:00Z"}, "needs clock manual"},
		{[]string{"--ephemeral", "yes", "--cluster-id", "a", "--cluster-addr", "127.0.0.1:7001", "--cluster-peers", "a=127.0.0.1:7001"}, "does not go with cluster-id"},
	} {
		harness.CheckRefusal(t, harness.RunToEnd(t, nil, append(tt.args, "--port", "auto")...), tt.says)
	}
	harness.CheckRefusal(t, harness.RunToEnd(t, []string{"TMPDIR=/nowhere"}, "--ephemeral", "yes", "--port", "auto"), "TMPDIR", "/nowhere", "no such file or directory")
}
