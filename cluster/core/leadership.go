package core

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// leadership is what a leader knows in its term. It ends with the term.
type leadership struct {
	since   time.Duration
	begun   bool   // begin was proposed
	begin   uint64 // index of begin once it is committed
	session uint64 // open: begin was applied here

	confPending bool
	confIndex   uint64 // the pending change of the configuration is at this index or before; 0: not saved yet

	transfer uint64 // to whom the leadership goes, 0: none
	deposed  bool   // a node was told to depose this leader: it may do so at any time later

	configuration uint64 // counts changes
	rounds        []round
	barriers      []uint64 // for the next round with barriers
	lease         time.Duration
}

// round is a question to the majority whether this node still leads.
type round struct {
	id            uint64
	start         time.Duration // not after the heartbeats were sent
	configuration uint64
	barriers      []uint64
}

// pending appends all barriers that were not answered to dst.
func (l *leadership) pending(dst []uint64) []uint64 {
	for _, r := range l.rounds {
		dst = append(dst, r.barriers...)
	}
	return append(dst, l.barriers...)
}

// observe takes over to whom raft transfers the leadership.
func (l *leadership) observe(transferee uint64) {
	l.transfer = transferee
	if transferee != 0 {
		l.lease = 0
	}
}

// deposing says that the message to depose this leader goes out.
func (l *leadership) deposing() { l.deposed, l.lease = true, 0 }

// saved notices the index of a change of the configuration that was proposed.
func (l *leadership) saved(entries []*raftpb.Entry) {
	if l.confPending && l.confIndex == 0 && len(entries) > 0 {
		l.confIndex = entries[len(entries)-1].GetIndex()
	}
}

func (l *leadership) delivered(index uint64) {
	if l.confPending && l.confIndex != 0 && index >= l.confIndex {
		l.confPending, l.confIndex = false, 0
	}
}

// startRound asks the majority. Every tick does, for the lease.
func (c *Core) startRound(barriers []uint64) {
	l := &c.leads
	c.lastRound++
	l.rounds = append(l.rounds, round{c.lastRound, c.now, l.configuration, barriers})
	c.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, c.lastRound))
}

// confirm takes the majority's answer to a round.
func (c *Core) confirm(ctx []byte) {
	l := &c.leads
	if len(ctx) != 8 {
		return
	}
	id := binary.BigEndian.Uint64(ctx)
	for len(l.rounds) > 0 && l.rounds[0].id <= id {
		r := l.rounds[0]
		l.rounds = l.rounds[1:]
		c.barriers = append(c.barriers, r.barriers...)
		if until := r.start + c.leaseTime(); until > l.lease && r.configuration == l.configuration && l.transfer == 0 && !l.deposed {
			l.lease = until
		}
	}
	c.startBarriers()
}

// startBarriers starts a round for the barriers that wait, unless one with barriers is under way.
func (c *Core) startBarriers() {
	l := &c.leads
	if len(l.barriers) == 0 {
		return
	}
	for _, r := range l.rounds {
		if len(r.barriers) > 0 {
			return
		}
	}
	barriers := l.barriers
	l.barriers = nil
	c.startRound(barriers)
}

// ReadBarrier asks a majority whether this node still leads. The answer comes with Ready under the number
// ctx. Barriers that come while others are under way share the next question.
func (c *Core) ReadBarrier(ctx uint64, now time.Duration) error {
	c.now = now
	if c.leads.session == 0 {
		return ErrNotLeading
	}
	c.leads.barriers = append(c.leads.barriers, ctx)
	c.guard(c.startBarriers)
	return c.err
}

// leaseTime is how long the promise of the majority lasts on this node's clock, if clocks differ by less than
// a tenth.
func (c *Core) leaseTime() time.Duration { return c.electionTimeout() * 9 / 10 }

// LeaseUntil returns the time before which no other node can lead, 0 if nothing is promised. A read that was
// made before the lease was looked up is linearizable if the clock is before it: load LeaseUntil first, then
// read the clock.
func (c *Core) LeaseUntil() time.Duration {
	if c.config.NoLeases || c.leads.session == 0 || c.err != nil {
		return 0
	}
	return c.leads.lease
}

// Transfer starts to hand the leadership to a voter, 0 for the one with the longest log. The lease has ended
// when Transfer returns: publish LeaseUntil before the next Ready is sent. Raft gives up after an election
// timeout.
func (c *Core) Transfer(to uint64, now time.Duration) error {
	c.now = now
	if c.leads.session == 0 {
		return ErrNotLeading
	}
	if to == c.config.ID {
		return nil
	}
	if to == 0 {
		if to = c.successor(); to == 0 {
			return fmt.Errorf("%w: no other voter is connected", ErrMember)
		}
	}
	switch {
	case !c.state.Voter(to):
		return fmt.Errorf("%w: %s has no vote", ErrMember, c.name(to))
	case !c.active(to):
		return fmt.Errorf("%w: %s is not connected", ErrMember, c.name(to))
	}
	return c.depose(to)
}

// Depose is Transfer, also for a leader without an open session, as one that cannot apply what is before it.
func (c *Core) Depose(to uint64, now time.Duration) error {
	c.now = now
	if c.role != Leader || to == c.config.ID {
		return ErrNotLeading
	}
	return c.depose(to)
}

func (c *Core) depose(to uint64) error {
	c.leads.lease = 0
	c.guard(func() { c.raft.TransferLeader(to) })
	return c.err
}
