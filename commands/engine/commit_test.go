package engine

import (
	"errors"
	"fmt"
	"testing"

	"mayfly/keyspace/replica"
)

// TestCommitFailures: the cluster's failures are not those of the disk.
func TestCommitFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause       error
		read, write error
	}{
		{fmt.Errorf("journal: %w", replica.ErrNoMajority), ErrNoMajority, ErrNotConfirmed},
		{fmt.Errorf("journal: %w", replica.ErrVoid), ErrUnsettled, errLeaderChanged},
		{replica.ErrFull, errFullLeader, errFullNotDecided},
		{replica.ErrFollower, errNotLeading, errNotLeading},
		{errors.New("no space left on device"), Error("MISCONF Errors writing to the journal: no space left on device"), Error("MISCONF Errors writing to the journal: no space left on device")},
	} {
		if read, write := CommitFailure(c.cause, false), CommitFailure(c.cause, true); read != c.read || write != c.write {
			t.Errorf("%v: %v and %v, want %v and %v", c.cause, read, write, c.read, c.write)
		}
	}
}
