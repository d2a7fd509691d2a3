package server

import (
	"sync"

	"mayfly/commands"
	"mayfly/keyspace"
	"mayfly/server/resp"
)

// When the replies of a pipeline leave before it is exhausted, so that neither memory nor latency
// grow with its length.
const (
	fullBatch   = 256 << 10 // bytes of replies
	fullMarks   = 16 << 10  // commands
	bigReply    = 64 << 10  // bytes; a reply above this is written piece by piece
	keptReplies = fullBatch + bigReply
)

// A batch is what a connection needs while it works on a pipeline: the arguments of the command
// that runs, and the rendered replies that wait for what they report to be committed.
type batch struct {
	resp.Parser

	out    []byte
	marks  []mark
	ticket keyspace.LSN // covers all replies in out
}

// A mark says where in a batch a reply ends, and what must be committed before it may leave.
type mark struct {
	end    int
	ticket keyspace.LSN
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// release ends the use of a batch. Memory that an unusually large one took is dropped.
func (b *batch) release() {
	b.reset()
	if cap(b.out) > keptReplies {
		b.out = nil
	}
	b.Forget(0)
	batches.Put(b)
}

// reset forgets the replies, which have been sent.
func (b *batch) reset() { b.out, b.marks, b.ticket = b.out[:0], b.marks[:0], 0 }

// add renders a reply that must not leave before ticket is committed.
func (b *batch) add(proto int, r *commands.Reply, ticket keyspace.LSN) {
	b.out = resp.AppendReply(b.out, proto, r)
	b.mark(ticket)
}

func (b *batch) mark(ticket keyspace.LSN) {
	b.marks = append(b.marks, mark{len(b.out), ticket})
	b.ticket = max(b.ticket, ticket)
}

// full tells whether the replies should leave although there is more to do.
func (b *batch) full() bool { return len(b.out) >= fullBatch || len(b.marks) >= fullMarks }

// commit waits until all replies may leave. Those that report or reveal what cannot be committed
// become errors: they would state what a crash could take back.
func (b *batch) commit(wait func(keyspace.LSN) error) {
	if b.ticket == 0 || wait(b.ticket) == nil {
		return
	}
	out := make([]byte, 0, len(b.out))
	var committed, failed keyspace.LSN // the greatest that is, the least that is not; 0: unknown
	var cause error
	start := 0
	for i, m := range b.marks {
		reply := b.out[start:m.end]
		start = m.end
		if m.ticket > committed && (failed == 0 || m.ticket < failed) {
			if err := wait(m.ticket); err != nil {
				failed, cause = m.ticket, err
			} else {
				committed = m.ticket
			}
		}
		if m.ticket > committed && len(reply) > 0 {
			out = resp.AppendError(out, commands.Misconf(cause).Error())
		} else {
			out = append(out, reply...)
		}
		b.marks[i].end = len(out)
	}
	b.out = out
}
