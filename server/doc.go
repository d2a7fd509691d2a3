// Package server serves clients: listeners, connections, the epoll loop, the pipeline and subscribers. It
// takes bytes off the network, has commands executed, and sends their replies.
//
// # The way of bytes
//
// A listener accepts a connection (listen.go, tls.go). [Server.admit] counts it, makes its session and
// gives it to a loop. Then each request takes these steps:
//
//  1. Read. One system call reads what the client has sent into the buffer of its [resp.Guard]
//     (conn_linux.go, socket.go). A silent client owns no buffer.
//  2. Parse. The guard lets whole commands within bounds through, and a [resp.Parser] splits them into
//     arguments. Arguments are views of the buffer until their reply is rendered.
//  3. Execute. [pipeline.execute] enters the engine once for a command. The engine returns one
//     engine.Outcome, whose reply is rendered into the batch for RESP2 or RESP3 (pipeline.go, replies.go).
//  4. Commit. When no whole command is left, the server enters the engine once more. It waits until all that
//     the replies report is committed. If the commit fails, the replies it covers become errors.
//  5. Write. One system call sends the client's replies.
//
// # Two kinds of connection
//
// Both kinds execute commands with the same [pipeline]; they differ in how they wait. A [loop] serves many
// connections in one goroutine (loop_linux.go). It works in turns: read from all ready clients, prefetch,
// execute, one commit for all, write (turn_linux.go). The option io-threads is the number of loops. A loop
// saves 28 to 45 percent of processor time a command over a goroutine for each connection.
//
// What would keep the others of a loop waiting makes a connection leave it for good. These are slow
// commands, large replies, subscriptions, a client that does not take its replies, and the end of a
// connection with a last reply. The connection goes on in a goroutine of its own (conn.go), which can wait
// for everything. TLS connections, and all connections where there is no epoll, have one from the start.
//
// A client that receives messages has a second goroutine. It sends messages and, between them, replies, from
// a bounded queue (subscriber.go, outbox.go).
//
// # Bounds
//
// Every resource that a client can make the server spend is bounded, more tightly before authentication:
//
//   - the size of a command and its parts (package resp);
//   - the memory of all clients together (clientmemory.go), and replies in memory (replies.go);
//   - the time to finish a command (the stall rule in pipeline.go) and to take a reply (socket.go);
//   - the number of clients (server.go).
//
// A panic costs one connection ([conn.contain]). During a commit it ends the process, because the state of
// the store is unknown.
//
// # Beside the clients
//
// The memory of the process is kept near what it needs (heap.go). The log file, the pidfile and the notices
// to systemd are in daemon.go. Package config holds the options. Package metrics serves Prometheus and health
// checks over HTTP. Package web serves the page, whose commands come over connections in memory (page.go).
package server

// Version is mayfly's own version.
const Version = "0.1.0"
