package engine

// ReplyMode is the set of replies that a client wants (CLIENT REPLY). The zero value is all replies.
type ReplyMode struct {
	Off      bool
	Skip     bool // skip the reply of the running command
	SkipNext bool // skip the reply of the next command
}

// filter drops the reply if the client does not want it. The replies of subscriptions are messages and
// always sent, as in Redis.
func (m *ReplyMode) filter(r *Reply) {
	silent := m.Off || m.Skip || m.SkipNext
	m.Skip, m.SkipNext = m.SkipNext, false
	if silent && r.Kind != KindSeveral {
		*r = Reply{}
	}
}

// filterExec is filter for the single reply of EXEC. before is the mode before EXEC. An ON or OFF within
// the transaction counts from the next command on. A SKIP has no effect: the reply after it is part of
// the array.
func (m *ReplyMode) filterExec(before ReplyMode, r *Reply) {
	off := m.Off
	*m = before
	m.filter(r)
	m.Off = off
}

// reset is the effect of RESET. A running skip drops its reply.
func (m *ReplyMode) reset() { m.Off, m.SkipNext = false, false }
