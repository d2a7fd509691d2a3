package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/entry"
	"mayfly/expiry/clock"
	"mayfly/vfs"
)

// A leader whose disk is full or hangs passes the lead on to a node with room. It asks the others first, so
// the lead stays where it is if no node has room. Heartbeats do not need the disk: without this a leader
// whose disk hangs would lead for ever.

// roomPath is the path at which a node says whether it has room.
const roomPath = "/cluster/room"

// room is the answer.
type room struct {
	Room bool `json:"room"`
}

const (
	roomPeriod = 100 * time.Millisecond // between two looks at the own disk
	roomPause  = time.Second            // after a round in which no other node had room
	askTime    = 300 * time.Millisecond // for one answer
	leastRoom  = 32 << 20               // bytes, of two segments of the raft log

	overdueTimeouts = 3 // a disk hangs if it takes longer than so many election timeouts
)

// full reports whether this node cannot write what a leader writes.
func (inc *incarnation) full() bool { return inc.failing.Load() || inc.hangs() || inc.ks.DiskFull() }

// hangs reports whether a write hangs that replies or the applied position wait for: to the raft log, or to
// the local journal.
func (inc *incarnation) hangs() bool {
	longest := overdueTimeouts * inc.node.options.NodeTimeout
	return inc.loop.saver.step.Hangs(clock.Monotonic(), longest) || inc.ks.Hangs(longest)
}

// answerRoom says whether this node could lead.
func (n *Node) answerRoom(w http.ResponseWriter, _ *http.Request) {
	var answer room
	if inc := n.running.Load(); inc != nil && !inc.full() {
		free, _, err := vfs.OS.Room(n.options.Dir)
		answer.Room = err == nil && free >= leastRoom
	}
	_ = json.NewEncoder(w).Encode(answer) // the other node may have gone
}

// watchRoom passes the lead on while this node cannot write, until the incarnation ends.
func (inc *incarnation) watchRoom() {
	for inc.pause(roomPeriod) {
		if !inc.leadsRaft() || !inc.full() {
			inc.noHeir.Store(false)
			continue
		}
		if !inc.passOn(inc.context) && inc.leadsRaft() {
			inc.noHeir.Store(true)
			inc.pause(roomPause)
		}
	}
}

// leadsRaft reports whether raft takes this node for the leader, with an open session or not.
func (inc *incarnation) leadsRaft() bool { return inc.loop.status.Load().Role == core.Leader }

// passOn makes a node with room the leader, if there is one, the most up to date first.
func (inc *incarnation) passOn(ctx context.Context) bool {
	for _, m := range inc.successors() {
		if !inc.asks(ctx, &m) {
			continue
		}
		inc.log.Warn().Str("to", m.Name).Msg("this node cannot write: passes the lead on")
		_, leads := inc.leading()
		if leads && !inc.hangs() && inc.handOverUnlessHanging(ctx, m.Name) {
			return true
		}
		// What waits for a disk that hangs is not committed here.
		if (!leads || inc.hangs()) && inc.depose(m.ID) {
			return true
		}
	}
	return false
}

// handOverUnlessHanging hands the lead over, and gives up if the disk begins to hang: nobody else would
// notice that.
func (inc *incarnation) handOverUnlessHanging(ctx context.Context, to string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inc.tasks.Go(func() {
		for ctx.Err() == nil && inc.pause(roomPeriod) {
			if inc.hangs() {
				cancel()
			}
		}
	})
	return inc.node.handOver(ctx, inc, to) == nil
}

// successors returns the other nodes that vote and are in contact, the most up to date first.
func (inc *incarnation) successors() (list []entry.Member) {
	s := inc.loop.status.Load()
	match := map[uint64]uint64{}
	for _, p := range s.Progress {
		match[p.ID] = p.Match
	}
	for _, m := range s.State.Members {
		if m.ID != inc.identity.ID && s.State.Voter(m.ID) && !m.Leaving && inc.heard(m.ID) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b entry.Member) int { return cmp.Compare(match[b.ID], match[a.ID]) })
	return list
}

// asks reports whether a node says that it has room.
func (inc *incarnation) asks(ctx context.Context, m *entry.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var answer room
	err := inc.node.listener.Call(ctx, m.Addr, roomPath, struct{}{}, &answer)
	return err == nil && answer.Room
}

// depose makes another node the leader although this one has changes that are not committed, or has no
// session. It waits until raft has another leader, an election timeout at most.
func (inc *incarnation) depose(to uint64) bool {
	if inc.loop.call(func() error { return inc.loop.core.Depose(to, clock.Monotonic()) }) != nil {
		return false
	}
	const step = 10 * time.Millisecond
	for waited := time.Duration(0); inc.leadsRaft() && waited < inc.node.options.NodeTimeout; waited += step {
		if !inc.pause(step) {
			return false
		}
	}
	return !inc.leadsRaft()
}

// saveFailed ends the incarnation because the raft log cannot be written. A leader makes another node the
// leader before, which needs nothing of this node's disk.
func (inc *incarnation) saveFailed(err error) {
	if !errors.Is(err, errInstall) && inc.leadsRaft() {
		inc.failing.Store(true)
		inc.node.show()
		inc.passOn(inc.context)
	}
	inc.end(err)
}
