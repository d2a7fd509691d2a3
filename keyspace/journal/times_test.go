package journal

import (
	"slices"
	"testing"
	"time"

	"mayfly/vfs/vfstest"
)

func TestCommitTimes(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, vfstest.New(), 1, 1, No)
	defer j.Close()
	if last, p := j.CommitTimes(50, 99); last != 0 || !slices.Equal(p, []time.Duration{0, 0}) {
		t.Errorf("before the first commit they are %v and %v", last, p)
	}
	j.put(t, "1:a", "x")
	if last, p := j.CommitTimes(50); last <= 0 || p[0] != last {
		t.Errorf("after one commit they are %v and %v", last, p)
	}
	for i := range 2 * recentCommits { // those before are forgotten
		j.times.add(time.Duration(1+i%100) * time.Second)
	}
	last, p := j.CommitTimes(50, 99, 100)
	if want := time.Duration(1+(2*recentCommits-1)%100) * time.Second; last != want {
		t.Errorf("the last took %v, want %v", last, want)
	}
	if p[0] < 48*time.Second || p[0] > 52*time.Second || p[1] < 98*time.Second || p[1] > 100*time.Second || p[2] != 100*time.Second {
		t.Errorf("percentiles are %v", p)
	}
}
