package server

import (
	"syscall"
	"testing"

	"mayfly/test/drill"
)

func TestFileLimit(t *testing.T) {
	var before syscall.Rlimit
	drill.Check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	const low, high = 512, 600
	if before.Max < high {
		t.Skipf("the hard limit on open files is %d", before.Max)
	}
	t.Cleanup(func() {
		drill.Report(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	})
	drill.Check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: low, Max: before.Max}))
	for _, tt := range []struct{ want, get int }{{low - 1, low}, {low, low}, {high, high}, {low, high}} {
		if got := fileLimit(tt.want); got != tt.get {
			t.Errorf("FileLimit(%d) = %d, want %d", tt.want, got, tt.get)
		}
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || int(limit.Cur) != tt.get {
			t.Errorf("after FileLimit(%d) the limit is %d, %v; want %d", tt.want, limit.Cur, err, tt.get)
		}
	}
	// More than any system allows: the greatest possible limit.
	if got := fileLimit(1 << 29); got < high {
		t.Errorf("FileLimit(1<<29) = %d, less than before", got)
	}
}
