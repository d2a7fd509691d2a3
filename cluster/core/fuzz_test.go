package core

import (
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"mayfly/cluster/entry"
	"mayfly/test/drill"
)

// FuzzStep feeds a node with messages that no correct node sends, as a leader, a follower or a candidate. It
// may refuse them, or end with an error; it must not panic, nor hand out entries in another order.
//
// The input is the role, then messages, each behind its length. Sender, receiver and term of most are made
// legal, so that they get further.
func FuzzStep(f *testing.F) {
	id := func(n uint64) *uint64 { return &n }
	for _, m := range []*raftpb.Message{
		{Type: raftpb.MsgApp.Enum(), Index: id(1), LogTerm: id(1), Commit: id(9), Entries: []*raftpb.Entry{{Term: id(2), Index: id(2), Data: entry.AppendBatch(nil, 2, 1, 1, []byte("x"))}}},
		{Type: raftpb.MsgApp.Enum(), Index: id(1), LogTerm: id(1), Entries: []*raftpb.Entry{{Term: id(2), Index: id(2), Type: raftpb.EntryConfChangeV2.Enum(), Data: []byte("x")}}},
		{Type: raftpb.MsgApp.Enum(), Index: id(1 << 63), LogTerm: id(1 << 63), Commit: id(1 << 63)},
		{Type: raftpb.MsgHeartbeat.Enum(), Commit: id(1 << 40), Context: make([]byte, 8)},
		{Type: raftpb.MsgHeartbeatResp.Enum(), Context: make([]byte, 8)},
		{Type: raftpb.MsgAppResp.Enum(), Index: id(1 << 60)},
		{Type: raftpb.MsgAppResp.Enum(), Index: id(1 << 60), Reject: new(true), RejectHint: id(1 << 62), LogTerm: id(3)},
		{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: id(5)}}},
		{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: id(5), Term: id(9), ConfState: &raftpb.ConfState{Voters: []uint64{0, 1, 1}, Learners: []uint64{1}}}}},
		{Type: raftpb.MsgVote.Enum(), Index: id(1 << 63), LogTerm: id(1 << 63), Context: []byte(campaignTransfer)},
		{Type: raftpb.MsgPreVoteResp.Enum()}, {Type: raftpb.MsgVoteResp.Enum()}, {Type: raftpb.MsgTimeoutNow.Enum()},
	} {
		text, err := proto.Marshal(m)
		drill.Check(f, err)
		for role := range byte(3) {
			f.Add(append([]byte{role, 0, byte(len(text))}, text...))
			f.Add(append(append([]byte{role, 1, byte(len(text))}, text...), append([]byte{2, byte(len(text))}, text...)...))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) < 3 || len(input) > 4096 {
			return
		}
		w := newNet(t, 3)
		n := w.leader()
		peer := n.config.ID%3 + 1
		switch input[0] % 3 {
		case 1:
			n, peer = w.nodes[peer], n.config.ID
		case 2:
			n = w.nodes[peer]
			peer = n.config.ID%3 + 1
			w.nodes = map[uint64]*node{n.config.ID: n}
			w.tick(25)
		}
		for input = input[1:]; len(input) >= 2; {
			flags, size := input[0], min(int(input[1]), len(input)-2)
			var m raftpb.Message
			if proto.Unmarshal(input[2:2+size], &m) != nil {
				return
			}
			input = input[2+size:]
			m.To, m.From = &n.config.ID, &peer
			if flags&2 == 0 {
				term := n.term + uint64(flags>>6)
				m.Term = &term
			}
			_ = n.Step(&m, w.now)
			if flags&1 != 0 {
				w.now += time.Duration(flags>>2&15) * tick
				n.Tick(w.now)
			}
			if !n.drain(t) {
				return
			}
		}
	})
}

// drain does what the node has to do, without other nodes. It reports whether the node can go on.
func (n *node) drain(t *testing.T) bool {
	last := n.Core.delivered
	for range 1000 {
		r, ok, err := n.Ready()
		if err != nil || r.Save != nil && r.Save.Snapshot != nil {
			return false
		}
		if !ok {
			return true
		}
		for _, e := range r.Apply {
			if last++; e.Index != last {
				t.Fatalf("entry %d comes after entry %d", e.Index, last-1)
			}
			n.Applied(e.Index)
		}
		if r.Save != nil {
			if len(r.Save.Entries) > 0 {
				if first, err := n.log.FirstIndex(); err != nil || r.Save.Entries[0].GetIndex() < first {
					t.Fatalf("entry %d is to be saved, the log begins at %d: %v", r.Save.Entries[0].GetIndex(), first, err)
				}
			}
			n.unsaved = append(n.unsaved, r.Save)
			n.save()
		}
	}
	t.Fatal("the node does not come to rest")
	return false
}
