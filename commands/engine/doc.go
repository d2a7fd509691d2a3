// Package engine executes commands: it turns the words of a command into a reply as a value.
// It knows neither sockets nor the bytes of replies (package server), nor locks nor disks (package
// keyspace).
//
// # The way of a command
//
// [Engine.Execute] takes a session and the words of one command:
//
//  1. Find the command's row in the table (table.go) and check the number of arguments.
//  2. Check whether the command may run now: password, transaction, disk, memory.
//  3. Call the row's Parse. It checks the arguments and returns a [Run] or an error. It touches neither
//     the keyspace nor the clock, so it needs no lock.
//  4. Begin a transaction: lock the partitions of the ids that the row names, and read the time once.
//  5. Call the Run. It does the work and returns a [Reply].
//  6. Close the transaction: its changes are one group in the journal. The session's LSN covers
//     everything that the reply reveals. The server commits it, once for a whole pipeline, before the
//     reply leaves.
//
// Between MULTI and EXEC commands are queued after step 2. EXEC takes all of them through the other steps
// at once, in one transaction (transactions.go).
//
// A panic on this way is logged and becomes an error reply. Its locks are released, its changes rolled back
// ([keyspace.Tx.Rollback]), and the connection stays open.
//
// # A new command
//
// Write a row in the package of its family, and the Parse it names. Look-up, arity, NOAUTH and MISCONF,
// locking, COMMAND and the tables of the documentation follow from the row. Tests check every row: its
// arity against its syntax, its description against that of Redis, its Parse with random arguments.
//
// A family is a package beside this one, whose files read as the manual of Redis. It knows the engine,
// and no other family. Package items has what families share: options, targets and edits of documents.
// Package commands puts the table together.
//
// Here, errors.go has the texts of errors, events.go reads and changes items, counts reads and publishes
// events. A command takes its way through session.go, transactions.go, pause.go, slow.go (commands that
// take long), prefetch.go, memory_limit.go and client_memory.go. A script is a transaction of its own
// kind (script_run.go). The figures are in statistics.go and command_stats.go.
//
// # Events
//
// A command that changes an item publishes an event: see Put, Remove and Notify of [Context]. Events and
// the messages of PUBLISH go through the [Broker] (broker.go, event_queue.go). They leave in the order in
// which they happened, after their commit.
//
// # Expiration
//
// Only expiry.Policy decides whether an item is dead; commands ask it. A plain key's own expiration is a
// time, which INCR and APPEND keep and SET removes. A document's own is in its JSON: EXPIRE writes the
// member ttl. An item without its own has the container's default, so TTL may return a time for a key
// that no command gave one.
//
// # Transcripts
//
// The files testdata/*.txt describe behaviour as a user sees it in redis-cli, with a clock that the
// transcript moves. Parts marked "redis: same" also run against a real redis-server, which has written
// their replies. See TestTranscripts.
package engine
