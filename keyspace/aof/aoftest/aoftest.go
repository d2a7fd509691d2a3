package aoftest

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

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// Epoch is the time in ms at which tests begin.
const Epoch = 1_700_000_000_000

// Set returns the change that sets a plain item.
func Set(key, body string) aof.Op {
	return aof.Op{Key: key, Rec: Rec(key, body)}
}

// Rec returns the record of a plain item.
func Rec(key, body string) string {
	return string(record.Append(nil, key, record.Item{Kind: record.Plain, Body: body, TS: Epoch}))
}

// Del returns the change that deletes an item.
func Del(key string) aof.Op { return aof.Op{Key: key, Del: true} }

// ErrDisk is the error of a [Disk] that fails.
var ErrDisk = errors.New("input/output error")

// Disk counts writes and fsyncs and makes them fail.
type Disk struct {
	Writes, Syncs         atomic.Int64
	FailWrites, FailSyncs atomic.Bool
}

// NewDisk replaces the disk until the test ends. It works until a test makes it fail.
func NewDisk(t *testing.T) *Disk {
	d := &Disk{}
	do := func(count *atomic.Int64, fail *atomic.Bool) error {
		count.Add(1)
		if fail.Load() {
			return ErrDisk
		}
		return nil
	}
	ReplaceDisk(t, func() error { return do(&d.Writes, &d.FailWrites) }, func(f *os.File) error {
		if err := do(&d.Syncs, &d.FailSyncs); err != nil {
			return err
		}
		return f.Sync()
	})
	return d
}

// ReplaceDisk calls write before each append to a file, and sync in place of each fsync, until the test ends. Nil
// is the real disk. The test opens its files afterwards.
func ReplaceDisk(t *testing.T, write func() error, sync func(f *os.File) error) {
	fsync, fdatasync, writeAt := aof.Fsync, aof.Fdatasync, aof.WriteAt
	t.Cleanup(func() { aof.Fsync, aof.Fdatasync, aof.WriteAt = fsync, fdatasync, writeAt })
	if sync != nil {
		aof.Fsync, aof.Fdatasync = sync, sync
	}
	if write != nil {
		aof.WriteAt = func(f *os.File, b []byte, at int64) (int, error) {
			if err := write(); err != nil {
				return 0, err
			}
			return writeAt(f, b, at)
		}
	}
}

// MuchText is the content of a file before its size is limited.
var MuchText = strings.Repeat("x", 1<<20)

// InOwnProcess runs the test in a process of its own, and reports whether it has; in that process it returns false. The
// limits of a process would affect other tests.
func InOwnProcess(t *testing.T) (done bool) {
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

// LimitFileSize makes the system refuse writes beyond some bytes of any file, until lift is called. It simulates a full
// disk, partial writes included. The test must run in its own process.
func LimitFileSize(t *testing.T, bytes int64) (lift func()) {
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

// Plant makes a file in a folder of its own.
func Plant(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read reads a file.
func Read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// CheckKept checks that the end that was cut off a file at [Epoch] is kept beside it, and removes it.
func CheckKept(t *testing.T, path string, want []byte) {
	t.Helper()
	kept, err := filepath.Glob(path + aof.TornSuffix + "*")
	if err != nil || len(kept) != 1 || !strings.HasSuffix(kept[0], aof.TornSuffix+strconv.Itoa(Epoch)) {
		t.Fatalf("kept aside: %v, %v", kept, err)
	}
	if got := Read(t, kept[0]); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes are kept aside, not the %d that were cut", len(got), len(want))
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
}

// EachFlip calls f with s once for each of its bits flipped.
func EachFlip(s string, f func(bad string, at int)) {
	for i := range len(s) * 8 {
		b := []byte(s)
		b[i/8] ^= 1 << (i % 8)
		f(string(b), i/8)
	}
}
