package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/cluster/topology"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"go.etcd.io/raft/v3/raftpb"
)

// A follower that comes back and has not got the entries yet says that it lacks them.
func TestFollowerThatCatchesUpSaysSo(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	var starved atomic.Uint64 // the id of a node that gets no entries
	for _, n := range c.nodes {
		n.opt.wrapSend = func(send func([]*raftpb.Message)) func([]*raftpb.Message) {
			return func(list []*raftpb.Message) {
				send(slices.DeleteFunc(slices.Clone(list), func(m *raftpb.Message) bool {
					return m.GetTo() == starved.Load() && m.GetType() == raftpb.MsgApp
				}))
			}
		}
	}
	c.startAll()
	c.mustPut("before", "1")
	away := c.follower()
	starved.Store(away.View().Self().ID)
	has := away.View().Applied
	away.crash(t)
	const keys = 20
	for i := range keys {
		c.mustPut(fmt.Sprint("key", i), "1")
	}
	var committed uint64
	c.eventually("the leader shows that the keys are committed", func() bool {
		committed = c.leader().View().Commit
		return committed >= has+keys
	})
	c.eventually("whichever node leads next knows that", func() bool {
		for _, n := range c.nodes {
			if n.Node != nil && n.View().Commit < committed {
				return false
			}
		}
		return true
	})
	away.start(t)
	c.eventually("it knows what it lacks", func() bool {
		v := away.View()
		self, lacks := v.Self(), int64(committed)-int64(v.Applied)
		if lacks <= 0 || self.Lag >= 0 && self.Lag < lacks || v.Cause == "" {
			t.Fatalf("without %d entries: lag %d, %s, cause %q", lacks, self.Lag, v.Role, v.Cause)
		}
		return v.Role == topology.Follower && self.Lag >= lacks && strings.Contains(v.Cause, "catches up")
	})
	c.eventually("the leader knows it, too", func() bool {
		v := c.leader().View()
		return v.Leads() && v.Member(away.name).Behind > 2*viewInterval
	})
	starved.Store(0)
	c.eventually("it has caught up", func() bool {
		v := away.View()
		return v.Cause == "" && v.Self().Lag == 0 && v.Applied >= committed
	})
}

// A node that needs stores for which its disk has no room says which room it waits for.
func TestNodeWithoutRoomForStoresSaysSo(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	away, body := c.leaveBehind()
	var room atomic.Int64
	away.opt.storesFS = &vfstest.Faulty{FS: vfs.OS, OnRoom: func() (free, size int64) { return room.Load(), 1 << 40 }}
	away.start(t)
	c.eventually("it says that it waits for room", func() bool {
		v := away.View()
		if v.Self().Lag == 0 || v.Cause == "" {
			t.Fatalf("without the stores: lag %d, %s, cause %q", v.Self().Lag, v.Role, v.Cause)
		}
		return v.Self().Lag > 0 && strings.Contains(v.Cause, "bytes more must be free")
	})
	c.eventually("the leader knows that it needs the stores", func() bool {
		v := c.leader().View()
		m := v.Member(away.name)
		return v.Leads() && m.Stores && m.Behind > 2*viewInterval
	})
	room.Store(1 << 40)
	c.has(away, "big63", body)
	c.eventually("all is well", func() bool {
		m := c.leader().View().Member(away.name)
		return away.View().Cause == "" && away.View().Self().Lag == 0 && !m.Stores
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	p := pace{at: time.Second}
	for _, step := range []struct {
		match, last uint64
		now, want   time.Duration
	}{
		{10, 20, time.Second, 0},
		{10, 30, 2 * time.Second, time.Second},
		{19, 40, 4 * time.Second, 3 * time.Second},
		{20, 50, 5 * time.Second, 4 * time.Second}, // it has what was the last at 1 s
		{50, 60, 6 * time.Second, time.Second},
		{60, 60, 7 * time.Second, time.Second},
	} {
		if got := p.behind(step.match, step.last, step.now); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
}
