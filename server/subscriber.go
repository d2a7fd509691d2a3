package server

import (
	"mayfly/commands"
	"mayfly/server/resp"
)

// What a connection does besides when its client subscribes to something: it is the receiver of its
// session, and sends replies through an outbox, one by one, so that they have their place among the
// messages.

// Hold keeps messages back until the reply of the command under way has its place: see
// [commands.Receiver]. With the first one the connection begins to send through an outbox.
func (c *conn) Hold() {
	if c.outbox == nil {
		c.outbox = newOutbox(c)
	}
	c.outbox.hold()
}

// Deliver takes a message to the client.
func (c *conn) Deliver(m *commands.Message) { c.outbox.deliver(m) }

// write sends bytes after all that is under way to the client.
func (c *conn) write(p []byte) error {
	c.session.ResetTimer()
	if c.outbox != nil {
		return c.outbox.write(p)
	}
	// While the client does not take it, this and what has been read ahead stay in memory.
	if len(p) < resp.SmallBuffer {
		return c.socket.send(p)
	}
	held := len(p) + c.guard.Uncharged()
	defer c.session.Memory.Release(c.session.Memory.Charge(held))
	c.session.SetUnsent(1, len(p))
	defer c.session.SetUnsent(0, 0)
	return c.socket.send(p)
}

// interleave gives the reply that is in the batch its place among the messages.
func (c *conn) interleave(b *batch) error {
	if err := c.flush(b); err != nil {
		return err
	}
	c.outbox.release(c.session.Proto)
	if !c.session.ReceivesMessages() {
		return c.closeOutbox()
	}
	return nil
}

// closeOutbox sends what is in the outbox and goes on without one. The session subscribes to nothing
// any more.
func (c *conn) closeOutbox() error {
	if c.outbox == nil {
		return nil
	}
	err := c.outbox.close()
	c.outbox = nil
	if err == errLaggard {
		c.server.log.Warn().Int64("client", c.session.ID).Str("addr", c.session.Addr).
			Msg("a subscriber did not keep up with its messages and was disconnected: see client-output-buffer-limit")
	}
	return err
}

// end lets go of what the session and the connection hold.
func (c *conn) end() {
	c.server.engine.CloseSession(c.session)
	if !c.committing { // else the store has failed, and the process ends
		_ = c.closeOutbox() // the connection ends in any case
	}
	c.guard.Close()
}
