package core

import (
	"errors"
	"fmt"
	"slices"

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
