package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// network are the messages that come from other nodes. Proposals, transfers and reads are each node's own:
// the core must know of them before raft does.
var network = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgSnap,
	raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgTimeoutNow,
}

// check returns why a message of another node is refused. Raft itself trusts its messages.
func (c *Core) check(m *raftpb.Message) error {
	switch {
	case m == nil:
		return errors.New("no message")
	case !slices.Contains(network, m.GetType()):
		return errors.New("not for other nodes to send")
	case m.GetTo() != c.config.ID:
		return fmt.Errorf("it is for node %x, this is %x", m.GetTo(), c.config.ID)
	case m.GetFrom() == 0 || m.GetFrom() == c.config.ID:
		return errors.New("no sender")
	case m.GetTerm() == 0:
		return errors.New("no term")
	case len(m.GetContext()) != 0 && len(m.GetContext()) != 8 && (m.GetType() == raftpb.MsgHeartbeat || m.GetType() == raftpb.MsgHeartbeatResp):
		return fmt.Errorf("context of %d bytes", len(m.GetContext()))
	case m.GetType() == raftpb.MsgSnap && m.GetSnapshot().GetMetadata().GetIndex() == 0:
		return errors.New("no position")
	}
	for i, e := range m.GetEntries() {
		if e.GetIndex() != m.GetIndex()+1+uint64(i) || e.GetTerm() > m.GetTerm() {
			return fmt.Errorf("entry %d of term %d after entry %d", e.GetIndex(), e.GetTerm(), m.GetIndex()+uint64(i))
		}
	}
	return nil
}

// told is what leaders have told this node of their commit index. Raft's own is bounded by the log of this
// node, so one that lacks entries takes itself for up to date.
type told struct {
	commit uint64        // the highest
	target uint64        // commit when contact with a leader began; 0: there was none
	at     time.Duration // of the last message with a commit index
}

// take reads a message of the leader. Raft makes no use of the Index of heartbeats: there the leader's commit
// index stands, of which their Commit shows what this node is known to have.
func (t *told) take(m *raftpb.Message, now, timeout time.Duration) {
	var commit uint64
	switch m.GetType() {
	case raftpb.MsgApp:
		commit = m.GetCommit()
	case raftpb.MsgHeartbeat:
		commit = m.GetIndex()
	}
	if commit == 0 {
		return
	}
	t.commit = max(t.commit, commit)
	if t.target == 0 || now-t.at > timeout {
		t.target = t.commit
	}
	t.at = now
}

// campaignTransfer is raft's mark on the requests for votes of a node to which the leadership is transferred.
const campaignTransfer = "CampaignTransfer"

// bound reports whether a message is to be dropped because of what this node has promised: to elect no node
// for an election timeout after it has heard a leader, and to hold only a bounded log. The network loses
// messages too, so raft sends again.
func (c *Core) bound(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgApp:
		if m.GetTerm() >= c.term {
			c.promise = c.now + c.electionTimeout()
		}
		return c.role != Leader && len(m.GetEntries()) > 0 && c.backlog.bytes > c.config.MaxUnapplied
	case raftpb.MsgHeartbeat, raftpb.MsgSnap:
		if m.GetTerm() >= c.term {
			c.promise = c.now + c.electionTimeout()
		}
	case raftpb.MsgVote, raftpb.MsgPreVote:
		return string(m.GetContext()) != campaignTransfer && c.now < c.promise
	case raftpb.MsgPreVoteResp:
		return c.now < c.promise // the vote for itself comes after it
	case raftpb.MsgAppResp:
		// Raft answers messages of old terms with its term alone. The leader of that term would take the log
		// of that node for empty, and send it the stores.
		return !m.GetReject() && m.GetIndex() == 0 && m.GetTerm() <= c.term
	}
	return false
}
