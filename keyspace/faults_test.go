package keyspace

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
)

// quiet is a log that nobody reads.
var quiet = zerolog.Nop()

// errDisk is what a failing disk says.
var errDisk = errors.New("input/output error")

// brokenDisk gives faults that can be switched on and off.
type brokenDisk struct {
	faults
	writes, syncs atomic.Int64 // how many have been asked for
	failWrites    atomic.Bool
	failSyncs     atomic.Bool
}

func newBrokenDisk() *brokenDisk {
	d := &brokenDisk{}
	d.write = func() error {
		d.writes.Add(1)
		if d.failWrites.Load() {
			return errDisk
		}
		return nil
	}
	d.sync = func(f *os.File) error {
		d.syncs.Add(1)
		if d.failSyncs.Load() {
			return errDisk
		}
		return f.Sync()
	}
	return d
}

// muchText is what a file has before it must not grow any more.
var muchText = strings.Repeat("x", 1<<20)

// inOwnProcess runs the test in a process of its own, unless that is where it is. What limits a process would
// hit others, too, and the log that go test keeps of the files which its tests open.
func inOwnProcess(t *testing.T) (done bool) {
	t.Helper()
	const name = "MAYFLY_TEST_ALONE"
	if os.Getenv(name) == t.Name() {
		return false
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), name+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return true
}

// limitFileSize makes the system refuse to let any file grow beyond so many bytes, until the
// function it returns is called: a full disk, partly written transactions included. For tests that run
// inOwnProcess.
func limitFileSize(t *testing.T, bytes int64) (lift func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	lifted := false
	lift = func() {
		if !lifted {
			lifted = true
			set(before)
		}
	}
	t.Cleanup(lift)
	set(syscall.Rlimit{Cur: uint64(bytes), Max: before.Max})
	return lift
}

// transplant copies a file into a folder of its own and returns its path there.
func transplant(t *testing.T, path string) string {
	t.Helper()
	return plant(t, filepath.Base(path), read(t, path))
}

// plant makes a file in a folder of its own.
func plant(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkKept checks that what was cut off a file lies beside it.
func checkKept(t *testing.T, path string, want []byte) {
	t.Helper()
	kept, err := filepath.Glob(path + ".torn-*")
	if err != nil || len(kept) != 1 || !strings.HasSuffix(kept[0], ".torn-"+strconv.Itoa(epoch)) {
		t.Fatalf("kept aside: %v, %v", kept, err)
	}
	if got := read(t, kept[0]); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes are kept aside, not the %d that were cut", len(got), len(want))
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
}
