// Package commands knows what mayfly's commands are and what they do: everything between a command as
// words and a reply as a value. It knows nothing of sockets and of how replies look on the wire
// (package server), nor of locks and disks (package keyspace).
//
// # The way of a command
//
// [Engine.Execute] takes a session and the words of one command:
//
//  1. It finds the command's row in the table (table.go) and counts the arguments.
//  2. It asks whether the command may run at all: password, disk.
//  3. The row's Parse looks at the arguments and returns a [Run], or an error. It touches neither the
//     keyspace nor the clock, so that nobody waits for it.
//  4. A transaction begins. The row says which arguments are ids; their partitions are locked, and the
//     time is read, once.
//  5. The Run does the work and returns a [Reply].
//  6. The transaction is closed: what it wrote goes to the journal as one group, and the session's
//     Ticket covers all that the reply tells. The server waits for the ticket, for a whole pipeline at
//     once, before the reply leaves.
//
// Between MULTI and EXEC commands are queued after step 2. EXEC then goes the rest of the way with all of
// them at once, in one transaction (transactions.go).
//
// A command that panics anywhere on this way is logged and answered as an error; its locks are free
// again, the connection lives, and what it had changed is as it was ([keyspace.Tx.Rollback]).
//
// # A new command
//
// Write a row in its family's file and the Parse it names; that is all. Look-up, arity, NOAUTH and
// MISCONF, locking, COMMAND INFO and COMMAND DOCS follow from the row. Tests hold a row to its word: its
// arity must fit its syntax; what Redis has too must be described as Redis describes it; and it is
// given senseless arguments of all kinds.
//
// Families: strings.go (SET and its relatives), ranges.go and lcs.go (parts of strings), keys.go (keys of
// any type), move.go (COPY, RENAME, SWAPDB), object.go, expire.go (EXPIRE, TTL), transactions.go,
// pubsub.go, containers.go, documents.go with document_read.go, document_write.go, patch.go and merge.go,
// connection.go, and for the server itself info.go, config.go, command_cmd.go, greeting.go, and to
// watch it slowlog.go, latency.go and monitor.go. What is counted is in statistics.go, commandstats.go and
// rates.go.
//
// What they share: options.go (moments, and the options of Redis' commands), named_options.go (those
// of our own), errors.go (the errors' words), number.go and glob.go (reading and matching exactly as
// Redis does), json.go, validate.go, walker.go, pointer.go and paths.go (the text of documents).
//
// # Messages
//
// A command that changes an item says so: [Context] has put, remove and happened for that, and read and
// readBody for items that a user asks for (notify.go). What it says, and what PUBLISH sends, goes through the [Hub]
// (hub.go, mail.go) in the order in which it happened, and leaves when it is committed.
//
// # Ends
//
// There is one place that knows when something is dead, expiry.Policy; commands ask it and never
// compute it. A plain key's own end is a moment, which INCR and APPEND keep and SET takes away. A
// document's own end is in its JSON: EXPIRE writes the member ttl. Below both lies the default of the
// container, so that TTL may answer for a key that nobody has given an end.
//
// # Transcripts
//
// Behaviour is written down in testdata/*.txt as a user would see it in redis-cli, played on a clock
// that the transcript moves. Parts marked "redis: same" are played against a real redis-server as well;
// it has also written their replies. See TestTranscripts.
package commands
