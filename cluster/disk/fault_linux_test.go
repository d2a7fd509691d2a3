package disk

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"mayfly/test/drill"

	"golang.org/x/sys/unix"
)

// TestWriteStopsAtEveryByte leaves each part of a Save and of an Open in the file, as a write does that fails
// or that a kill interrupts. None is damage, and what was acknowledged before is there. A drill stops at
// every byte, other runs at some.
func TestWriteStopsAtEveryByte(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	save(t, l, hard(2, 1, 1), entries(2, 2, 4, 300))
	l.Close()
	path := filepath.Join(o.Dir, "0000000000000000-0000000000000000.wal")
	read := func() []byte {
		t.Helper()
		content, err := os.ReadFile(path)
		drill.Check(t, err)
		return content
	}
	before := read()
	l = opened(t, o)
	acknowledged := describe(t, l)
	opening := read()
	save(t, l, hard(2, 1, 4), entries(2, 5, 7, 200))
	saving := read()
	l.Close()
	random, stride := drill.Rand(t), drill.Pick(31, 13, 1)
	for _, step := range [][2][]byte{{before, opening}, {opening, saving}} {
		from, to := step[0], step[1]
		for at := range to {
			if from[at] == to[at] || random.IntN(stride) > 0 {
				continue
			}
			drill.Check(t, os.WriteFile(path, slices.Concat(to[:at], from[at:]), 0o600))
			l, err := Open(o)
			if err != nil {
				t.Fatalf("a write that has ended at byte %d: %v", at, err)
			}
			if got := describe(t, l); !isPrefix(acknowledged, got) {
				t.Fatalf("a write that has ended at byte %d: %s\nis without %s", at, got, acknowledged)
			}
			l.Close()
		}
	}
}

// TestRewriteCoversTheLastSave shows that Open forces everything to disk of which a failed Save may have left
// copies in memory only.
func TestRewriteCoversTheLastSave(t *testing.T) {
	t.Parallel()
	o, l := created(t)
	last := uint64(1)
	for i := range uint64(30) {
		drill.Check(t, l.wal.Sync())
		before, err := scan(&o)
		drill.Check(t, err)
		save(t, l, hard(2, 1, last), entries(2, last+1, last+1+i%4, int(100+i*37)))
		last += 1 + i%4
		after, err := scan(&o)
		drill.Check(t, err)
		if from := min(after.run, after.end); after.tail == before.tail && from > before.end || after.tail != before.tail && from > 256 {
			t.Errorf("save %d: writes again from %d of %s, the Save began at %d of %s", i, from, filepath.Base(after.tail), before.end, filepath.Base(before.tail))
		}
	}
}

// faultVariable makes the test binary be the process whose system calls fail: the number of a call, an error,
// a folder.
const faultVariable = "MAYFLY_TEST_RAFTLOG_FAULT"

// Exit codes of that process besides the number of the last acknowledged entry.
const (
	faultMost   = 200
	faultWrong  = 201 // an error that is none of a failed call
	faultDamage = 202
	faultNoTest = 203
)

// TestFailedCalls lets one system call fail in a process with a log: forever, from between two Saves on. The
// process sees errors that are no damage, can close the log and try to open it again, and what it had
// acknowledged is there afterwards.
//
// No test runs beside it: until a new process has begun, it holds the locks of all logs that are open in this
// one.
func TestFailedCalls(t *testing.T) {
	drill.Slow(t)
	if fault := os.Getenv(faultVariable); fault != "" {
		os.Exit(failCalls(t, strings.SplitN(fault, ",", 3)))
	}
	for _, tt := range []struct {
		name   string
		number uintptr
		err    syscall.Errno
	}{
		{"write", unix.SYS_WRITE, unix.EIO},
		{"write", unix.SYS_WRITE, unix.ENOSPC},
		{"pwrite", unix.SYS_PWRITE64, unix.EIO},
		{"fdatasync", unix.SYS_FDATASYNC, unix.EIO},
		{"fdatasync", unix.SYS_FDATASYNC, unix.ENOSPC},
		{"fsync", unix.SYS_FSYNC, unix.EIO},
		{"fallocate", unix.SYS_FALLOCATE, unix.ENOSPC},
		{"ftruncate", unix.SYS_FTRUNCATE, unix.EIO},
		{"renameat", unix.SYS_RENAMEAT, unix.EIO},
		{"unlinkat", unix.SYS_UNLINKAT, unix.EIO},
		{"openat", unix.SYS_OPENAT, unix.EMFILE},
	} {
		t.Run(fmt.Sprintf("%s %s", tt.name, tt.err.Error()), func(t *testing.T) {
			o := options(t)
			drill.Check(t, Create(o, snapshot(1, 1).GetMetadata()))
			o.Applied, o.Term = 1, 1
			cmd := exec.Command(os.Args[0], "-test.run", "^TestFailedCalls$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d,%s", faultVariable, tt.number, tt.err, o.Dir))
			out, err := cmd.CombinedOutput()
			code := cmd.ProcessState.ExitCode()
			switch code {
			case -1, 0, 1, 2, faultWrong, faultDamage:
				t.Fatalf("exit code %d: %v\n%s", code, err, out)
			case faultNoTest:
				t.Skip("NOT TESTED: this machine has no filter for system calls")
			}
			l := opened(t, o)
			if last, _ := l.Memory().LastIndex(); last < uint64(code) {
				t.Errorf("entry %d was acknowledged, the log ends at %d", code, last)
			}
			save(t, l, hard(3, 1, 1), entries(3, uint64(code)+1, uint64(code)+3, 500))
			want := describe(t, l)
			l.Close()
			expect(t, opened(t, o), want)
		})
	}
}

// failCalls is the process with the calls that fail. It returns its exit code.
func failCalls(t *testing.T, fault []string) int {
	number, _ := strconv.Atoi(fault[0])
	errno, _ := strconv.Atoi(fault[1])
	o := Options{Dir: fault[2], Cluster: 7, ID: 1, Applied: 1, Term: 1}
	l, err := Open(o)
	if err != nil {
		return faultWrong
	}
	last := uint64(1)
	next := func() error {
		err := l.Save(hard(2, 1, last), entries(2, last+1, last+2, 700), nil)
		if err == nil {
			last += 2
		}
		return err
	}
	for range 4 {
		if next() != nil {
			return faultWrong
		}
	}
	if filter(number, errno) != nil {
		return faultNoTest
	}
	for err == nil && last < faultMost-10 {
		err = next()
	}
	code := func(err error) int {
		damage := (*DamageError)(nil)
		switch {
		case errors.As(err, &damage):
			return faultDamage
		case err != nil && !errors.Is(err, syscall.Errno(errno)):
			return faultWrong
		}
		return 0
	}
	if c := code(err); c != 0 {
		return c
	}
	_ = l.Close()
	for range 3 {
		l, err := Open(o)
		if c := code(err); c != 0 {
			return c
		}
		if err == nil {
			if at, _ := l.Memory().LastIndex(); at < last {
				return faultDamage
			}
			_ = l.Close()
		}
	}
	return int(last)
}

// filter makes a system call fail with an error in this process, for good. Go's runtime wakes a thread by a
// write of eight bytes and ends the process if that fails; it does not.
func filter(number, errno int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const third = 32 // where a filter finds the third argument: the length of a write
	spared := uint32(math.MaxUint32)
	if number == unix.SYS_WRITE {
		spared = 8
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: uint32(number)},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: third},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: spared},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(errno)}, // SECCOMP_RET_ERRNO
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},                 // SECCOMP_RET_ALLOW
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const setModeFilter, tsync = 1, 1
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, tsync, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return errno
	}
	return nil
}
