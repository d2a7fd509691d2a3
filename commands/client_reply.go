package commands

import "mayfly/commands/redisfmt"

// replyMode is which replies a client wants (CLIENT REPLY). The zero value is all of them.
type replyMode struct {
	off      bool
	skip     bool // the reply to the command under way
	skipNext bool // the one to the next command
}

// filter drops the reply to a command if the client does not want it. What tells of subscriptions is no
// reply but a message, and always sent, as in Redis.
func (m *replyMode) filter(r *Reply) {
	silent := m.off || m.skip || m.skipNext
	m.skip, m.skipNext = m.skipNext, false
	if silent && r.Kind != KindSeveral {
		*r = Reply{}
	}
}

// filterQueue is filter for the reply of EXEC, which is one: what a CLIENT REPLY in the transaction
// has changed since the mode before counts from the next command on, and SKIP, whose next command has
// its place in that reply, not at all.
func (m *replyMode) filterQueue(before replyMode, r *Reply) {
	off := m.off
	*m = before
	m.filter(r)
	m.off = off
}

// reset is what RESET does. A skip that is under way swallows its reply.
func (m *replyMode) reset() { m.off, m.skipNext = false, false }

func parseClientReply(in *Input) (Run, error) {
	word := in.Args[2]
	set := map[string]func(*replyMode){
		"ON":   func(m *replyMode) { *m = replyMode{} },
		"OFF":  func(m *replyMode) { m.off = true },
		"SKIP": func(m *replyMode) { m.skipNext = !m.off },
	}
	for name, apply := range set {
		if redisfmt.EqualFold(word, name) {
			return func(x *Context) Reply {
				apply(&x.Session.replies)
				return OK
			}, nil
		}
	}
	return nil, errSyntax
}
