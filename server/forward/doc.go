// Package forward passes the commands of a client on to the leader of a cluster, and the replies back.
//
// A [Proxy] belongs to one client. It gathers commands and sends them together over a connection of its own,
// at whose other end the leader runs an ordinary session. Replies pass through in pieces, whatever their
// size.
//
// A command is sent again only if the leader has replied that it has not run it. If the connection breaks
// before the reply, the client gets an error.
package forward
