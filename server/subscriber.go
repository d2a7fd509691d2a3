package server

import "mayfly/commands/engine"

// The connection is the receiver of its session. While the client receives messages, replies go through an
// outbox one by one, so each has its place among the messages.

// Hold keeps messages back until the reply of the running command has its place: see
// [engine.Receiver]. The first call makes the outbox.
func (c *conn) Hold() {
	if c.outbox == nil {
		c.outbox = newOutbox(c)
	}
	c.outbox.hold()
}

// Deliver takes a message to the client.
func (c *conn) Deliver(m *engine.Message) { c.outbox.deliver(m) }

// Full reports whether half of the messages wait that may: see [engine.Receiver].
func (c *conn) Full() bool { return c.outbox.full() }

// interleave gives the latest reply its place among the messages.
func (c *conn) interleave() error {
	if err := c.flush(); err != nil {
		return err
	}
	c.outbox.unhold(c.session.Proto)
	if !c.session.ReceivesMessages() {
		return c.closeOutbox()
	}
	return nil
}

// closeOutbox sends what is in the outbox and goes on without one. The session has no subscription any more.
func (c *conn) closeOutbox() error {
	if c.outbox == nil {
		return nil
	}
	err := c.outbox.close()
	c.outbox = nil
	if err == errSlowSubscriber {
		c.server.log.Warn().Int64("client", c.session.ID).Str("addr", c.session.Addr).
			Msg("a subscriber did not keep up with its messages and was disconnected: see client-output-buffer-limit")
	}
	return err
}
