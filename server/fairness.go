package server

import (
	"mayfly/commands/engine"
	"mayfly/expiry/clock"
)

// This file has what a connection does for commands that compute for long. It has a goroutine of its own
// then.
//
// Such a command waits for one of the server's turns. There is one turn less than processors, so that the
// loops always find one. Connections with long commands alternate, whatever the length of their pipelines.

// executeLong executes one command when the connection has a turn. It returns as [pipeline.execute] does.
// Before the command the earlier replies leave, unless that is quick: so a client that is gone is noticed.
func (c *conn) executeLong(args []string) (pending *engine.Outcome, err error) {
	c.turn = c.server.turns.request()
	defer c.endTurn()
	now := clock.Monotonic()
	if !c.turn.isGranted() || now-c.longAt > c.server.timeouts.long {
		if err := c.flush(); err != nil {
			return nil, err
		}
	}
	if err := c.awaitTurn(); err != nil {
		return nil, err
	}
	c.longAt = clock.Monotonic()
	c.session.Paced = false
	defer func() { c.session.Paced = true }()
	return c.pipe.execute(c, args)
}

// awaitTurn waits for the turn that was requested. The error says why the connection ends instead. Only a
// reset counts as the end of the client: one that sends no more may have writes in its pipeline.
func (c *conn) awaitTurn() error {
	if c.turn.isGranted() {
		return nil
	}
	defer c.session.ResetTimer()
	return c.await(c.turn.Granted(), c.socket.isReset)
}

// endTurn ends the turn, or the request for one.
func (c *conn) endTurn() {
	c.turn.end()
	c.turn = nil
}

// yield gives the turn to others who wait, and waits for the next. A command calls yield while it holds no
// locks. One whose connection is killed meanwhile has no turn and ends: what it has collected must not wait
// in memory.
func (c *conn) yield() {
	if c.turn == nil || !c.server.turns.contended() {
		return
	}
	c.endTurn()
	c.turn = c.server.turns.request()
	select {
	case <-c.turn.Granted():
	case <-c.gone:
	}
}
