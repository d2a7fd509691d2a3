package harness

import (
	"errors"
	"fmt"
	"os"
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

// Fill writes a file that leaves so little of the disk that some hundred writes fill it.
func Fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const left = 256 << 10
	for size := int64(0); ; size += left {
		if _, err := f.Write(make([]byte, left)); errors.Is(err, syscall.ENOSPC) {
			return f.Truncate(size - left)
		} else if err != nil {
			return err
		}
	}
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
