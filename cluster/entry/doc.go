// Package entry encodes the entries of the raft log and the cluster's state that they build.
//
// An entry is a batch of the journal, the begin of a session, or a change of the members. Each begins with a
// byte for the version of the format and one for the kind; integers are varints, strings have their length
// before them. Bytes that a decoder does not know are an error: a node that applied half of an entry would
// differ from the others.
//
// State is the part of the replicated state that is not the keyspace's: the members, the configuration of
// raft and the last session. Every node computes it from the same entries in the same order, so its encoding
// is equal on all nodes at the same index.
package entry
