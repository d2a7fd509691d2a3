package cluster

import (
	"errors"
	"fmt"
	"testing"

	"mayfly/cluster/transport"
)

// TestIsPassing: a request goes on while no node leads, and while the node that took it, or the leader,
// loads. But a transfer that may have begun does not.
func TestIsPassing(t *testing.T) {
	t.Parallel()
	refused := func(err error) error { return &transport.RefusedError{Status: 409, Reason: err.Error()} }
	for _, c := range []struct {
		err              error
		passes, transfer bool
	}{
		{errNoLeader, true, true},
		{refused(errNoLeader), true, true},
		{errRestarting, true, true},
		{refused(errRestarting), true, true},
		{errInterrupted, true, false},
		{refused(errInterrupted), true, false},
		{fmt.Errorf("%w: end of file", errBroken), true, false},
		{notMember("a"), false, false},
		{refused(notMember("a")), false, false},
		{errRemoved, false, false},
		{errors.New("this node leads no more"), false, false},
	} {
		if mayBeDone(c.err) != (c.passes && !c.transfer) {
			t.Errorf("%T %v: may be done: %v", c.err, c.err, mayBeDone(c.err))
		}
		if passes, transfer := isPassing(c.err, "remove"), isPassing(c.err, "transfer"); passes != c.passes || transfer != c.transfer {
			t.Errorf("%T %v: %v for a removal, %v for a transfer", c.err, c.err, passes, transfer)
		}
	}
}
