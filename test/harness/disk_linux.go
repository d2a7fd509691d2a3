package harness

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mayfly/test/drill"

	"os/exec"
	"strconv"
)

// SmallDisk mounts a file system of so many bytes until the test ends.
func SmallDisk(t *testing.T, bytes int) (path string) {
	t.Helper()
	path = t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("NOT TESTED: a disk that gets full, since only root can mount one here: %v", err)
	}
	t.Cleanup(func() {
		drill.Report(t, syscall.Unmount(path, syscall.MNT_DETACH))
	})
	return path
}

// Fill takes all but so little from a small disk that some hundred writes fill it.
func Fill(path string) error {
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(path, &s); err != nil {
			return err
		}
		used := int(s.Blocks-s.Bfree) * int(s.Bsize)
		if err := Resize(path, used+256<<10); !errors.Is(err, syscall.EINVAL) { // more is in use by now
			return err
		}
	}
}

// Resize gives a small disk another size.
func Resize(path string, bytes int) error {
	return syscall.Mount("tmpfs", path, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
}

// InjectFsyncs changes every fsync of a process until the function it gives is called: effect is one of
// strace.
func InjectFsyncs(t *testing.T, pid int, effect string) (stop func()) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("NOT TESTED: a disk that fails to force data down or is slow, since strace is not installed")
	}
	var said LogBuffer
	cmd := exec.Command(strace, "-f", "-p", strconv.Itoa(pid), "-o", filepath.Join(t.TempDir(), "calls"),
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:"+effect)
	cmd.Stderr = &said
	drill.Check(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	t.Cleanup(stop)
	WaitFor(t, "strace to attach", func() bool {
		select {
		case <-ended:
			t.Skipf("NOT TESTED: a disk that fails to force data down or is slow, since strace may not look on: %s", said.String())
		default:
		}
		return strings.Contains(said.String(), "attached")
	})
	return stop
}
