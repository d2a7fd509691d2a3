// Package server owns everything between the network and the commands: sockets, the framing guard,
// sessions, TLS, options, rendering of replies, and the orderly end.
//
// Every connection goes round in a circle ([conn]):
//
//  1. read what the client has sent, with one system call (loop_linux.go, socket.go);
//  2. let the [resp.Guard] cut it into whole, bounded commands, which redcon's parser, if it is needed at
//     all, takes on trust (guard.go, inline.go, parser.go);
//  3. execute them one by one and render their replies into one buffer, for RESP2 or RESP3
//     (batch.go, render.go);
//  4. when nothing whole is left to execute, wait until all that the replies report is committed,
//     and write them with one system call.
//
// Most connections do so together, in one goroutine that waits for all of them at a time and for
// nothing else, and has one commit for all: a [loop]. There are as many loops as the option io-threads
// says. What cannot be done without making others wait (commands that may take long, a client that does
// not take its replies, subscriptions, the end of a connection) has a connection leave its loop and
// go on in a goroutine of its own, which can do everything, if at a higher price. It does not come
// back. TLS connections, and all where there is no epoll, have such a goroutine from the beginning.
//
// A client costs little while it is silent: its buffers are lent to it only while it has something
// under way (buffer.go). What it can make the server spend is bounded at every step, more tightly
// before it has authenticated: the length of a command and of its parts (guard.go), what the server
// keeps for all clients together, big commands and replies among it (clientmemory.go,
// commands.ClientMemory), replies in memory (batch.go), the time to finish a command and
// to take a reply (loop_linux.go, conn.go, socket.go), the number of clients (server.go).
//
// A client that subscribes to something has a second goroutine, which sends it messages and, between
// them, replies, from a bounded queue (outbox.go, subscriber.go).
//
// Beside it an HTTP server may tell monitoring how things are (metrics.go).
//
// Arguments are views of the connection's buffer and valid until their command has been executed and
// its reply rendered. No reply leaves before what it reports or reveals is committed.
package server

// Version is mayfly's own version.
const Version = "0.1.0"
