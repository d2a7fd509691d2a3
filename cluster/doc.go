// Package cluster makes a server a node of a cluster: it drives raft and applies what raft commits to the
// keyspace.
//
// A [Node] runs one incarnation after the other. An incarnation is everything that is open at a time: the
// keyspace, the raft log, raft's core and the transport. What ends it, such as a leader's lost batch, the
// stores of another node or a failing disk, closes all of it without committing, and the next one opens it
// anew.
//
// In an incarnation, the loop owns raft's core and waits for nothing but the raft log. The applier brings
// committed entries to the keyspace in order. The replicator stands between the journal of the keyspace and
// the loop.
package cluster
