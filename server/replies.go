package server

import (
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/resp"
)

// Bounds of rendered replies that wait to be sent. They keep memory and latency from growing with the length
// of a client's pipeline.
const (
	fullReplies = 256 << 10 // bytes
	fullMarks   = 16 << 10  // commands
	largeReply  = 64 << 10  // bytes; a larger reply is streamed
	keptReplies = fullReplies + largeReply
)

// replies are rendered replies that wait for what they report to be committed.
type replies struct {
	out   []byte
	marks []mark
	lsn   keyspace.LSN // covers all replies in out

	waited time.Duration // the longest that one of the commands has waited for the cluster
}

// A mark is the end of a reply in replies.out, and what must be committed before the reply may leave.
type mark struct {
	end     int
	lsn     keyspace.LSN
	changed bool // the command has changed something
}

func (r *replies) reset() { r.out, r.marks, r.lsn, r.waited = r.out[:0], r.marks[:0], 0, 0 }

// add renders a reply that must not leave before lsn is committed. changed says that the command has changed
// something.
func (r *replies) add(proto int, reply *engine.Reply, lsn keyspace.LSN, changed bool) {
	r.out = resp.AppendReply(r.out, proto, reply)
	r.marks = append(r.marks, mark{len(r.out), lsn, changed})
	r.lsn = max(r.lsn, lsn)
}

// addText adds bytes that are no reply and reveal nothing.
func (r *replies) addText(text string) {
	r.out = append(r.out, text...)
	r.marks = append(r.marks, mark{end: len(r.out)})
}

// commit waits until all replies may leave. Replies that report or reveal what cannot be committed become
// errors, because a crash could take that back. written waits for the reply of a command that has changed
// something: it may succeed when wait fails, because another node of the cluster leads by now.
func (r *replies) commit(wait, written func(keyspace.LSN) error) {
	if r.lsn == 0 || wait(r.lsn) == nil {
		return
	}
	out := make([]byte, 0, len(r.out))
	reads, writes := verdict{wait: wait}, verdict{wait: written}
	start := 0
	for i, m := range r.marks {
		reply, v := r.out[start:m.end], &reads
		start = m.end
		if m.changed {
			v = &writes
		}
		if v.allows(m.lsn) || len(reply) == 0 {
			out = append(out, reply...)
		} else {
			out = resp.AppendError(out, engine.CommitFailure(v.cause, m.changed).Error())
		}
		r.marks[i].end = len(out)
	}
	r.out = out
}

// verdict is what is known of the LSNs that a function waits for.
type verdict struct {
	wait              func(keyspace.LSN) error
	committed, failed keyspace.LSN // the greatest that is, the least that is not; 0: unknown
	cause             error
}

// allows reports whether a reply may leave.
func (v *verdict) allows(lsn keyspace.LSN) bool {
	if lsn > v.committed && (v.failed == 0 || lsn < v.failed) {
		if err := v.wait(lsn); err != nil {
			v.failed, v.cause = lsn, err
		} else {
			v.committed = lsn
		}
	}
	return lsn <= v.committed
}
