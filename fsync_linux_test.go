package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// failFsyncs lets every fsync of a process fail until the function it gives is called.
func failFsyncs(t *testing.T, p *process) (stop func()) {
	t.Helper()
	return injectFsyncs(t, p.cmd.Process.Pid, "error=EIO")
}

// injectFsyncs changes every fsync of a process until the function it gives is called: effect is one of strace.
func injectFsyncs(t *testing.T, pid int, effect string) (stop func()) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("NOT TESTED: a disk that fails to force data down or is slow, since strace is not installed")
	}
	var said logBuffer
	cmd := exec.Command(strace, "-f", "-p", strconv.Itoa(pid), "-o", filepath.Join(t.TempDir(), "calls"),
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:"+effect)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	t.Cleanup(stop)
	waitFor(t, "strace to attach", func() bool {
		select {
		case <-ended:
			t.Skipf("NOT TESTED: a disk that fails to force data down or is slow, since strace may not look on: %s", said.String())
		default:
		}
		return strings.Contains(said.String(), "attached")
	})
	return stop
}

// TestFailedFsync lets the disk of a server fail to force data down: writes are refused with the cause,
// reads go on, INFO and the log tell. That the disk works again changes nothing, as nobody knows what of
// the earlier has arrived; a restart does, and what was acknowledged before is there.
func TestFailedFsync(t *testing.T) {
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			p := start(t, dir, "--appendfsync", fsync)
			c := p.client()
			if err := c.Set(t.Context(), "before", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			works := failFsyncs(t, p)
			refused := func() bool {
				err := c.Set(t.Context(), "during", "v", 0).Err()
				return err != nil && strings.HasPrefix(err.Error(), "MISCONF ") && strings.Contains(err.Error(), "input/output error")
			}
			if fsync == "always" && !refused() {
				t.Error("a write was acknowledged that is not on disk")
			}
			waitFor(t, "writes to be refused", refused) // at everysec within the second
			if v, err := c.Get(t.Context(), "before").Result(); v != "v" || err != nil {
				t.Errorf("reading: %q, %v", v, err)
			}
			info := c.Info(t.Context(), "persistence").Val()
			if !strings.Contains(info, "aof_last_write_status:err") || !strings.Contains(info, "input/output error") {
				t.Errorf("INFO says nothing of it:\n%s", info)
			}
			waitFor(t, "the log to say so", func() bool {
				return strings.Contains(p.log.String(), "writes are refused until the server is started again")
			})
			works()
			if !refused() {
				t.Error("a write was accepted after a failed fsync")
			}
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != 1 {
				t.Errorf("exit code %d: not all is on disk, and it says nothing", code)
			}
			c = start(t, dir).client()
			if v, err := c.Get(t.Context(), "before").Result(); v != "v" || err != nil {
				t.Errorf("after a restart: %q, %v", v, err)
			}
			if err := c.Set(t.Context(), "after", "v", 0).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
