package server

import (
	"time"

	"mayfly/commands"
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
	end int
	lsn keyspace.LSN
}

func (r *replies) reset() { r.out, r.marks, r.lsn, r.waited = r.out[:0], r.marks[:0], 0, 0 }

// add renders a reply that must not leave before lsn is committed.
func (r *replies) add(proto int, reply *commands.Reply, lsn keyspace.LSN) {
	r.out = resp.AppendReply(r.out, proto, reply)
	r.marks = append(r.marks, mark{len(r.out), lsn})
	r.lsn = max(r.lsn, lsn)
}

// addText adds bytes that are no reply and reveal nothing.
func (r *replies) addText(text string) {
	r.out = append(r.out, text...)
	r.marks = append(r.marks, mark{len(r.out), 0})
}

// commit waits until all replies may leave. Replies that report or reveal what cannot be committed become
// errors, because a crash could take that back.
func (r *replies) commit(wait func(keyspace.LSN) error) {
	if r.lsn == 0 || wait(r.lsn) == nil {
		return
	}
	out := make([]byte, 0, len(r.out))
	var committed, failed keyspace.LSN // the greatest that is, the least that is not; 0: unknown
	var cause error
	start := 0
	for i, m := range r.marks {
		reply := r.out[start:m.end]
		start = m.end
		if m.lsn > committed && (failed == 0 || m.lsn < failed) {
			if err := wait(m.lsn); err != nil {
				failed, cause = m.lsn, err
			} else {
				committed = m.lsn
			}
		}
		if m.lsn > committed && len(reply) > 0 {
			out = resp.AppendError(out, commands.CommitFailure(cause).Error())
		} else {
			out = append(out, reply...)
		}
		r.marks[i].end = len(out)
	}
	r.out = out
}
