// Package journal commits changes in groups, in the order in which they happen.
//
// A transaction hands its changes in with [Journal.Append] while it holds its locks, and gets an [LSN].
// They join the batch that waits. [Journal.Wait] returns once the batch is committed: one caller leads and
// writes the batch for all of them with one system call, the others wait (group commit). With the policy
// [Always] the leader forces it to disk as well, with one fsync for all.
//
// A commit is a range of set and del commands that ends with its seal (package aof). It counts as a whole or
// not at all. Its LSN is one more than that of the commit before, across files too.
//
// The journal is a sequence of files, one a generation. [Journal.Rotate] goes on in a new file, so that a
// checkpoint can bring what the older ones hold to the stores and remove them. A file is whole on disk before
// the next one gets its name; only the newest can be torn. [Replay] reads them at a start.
//
// Every change is the whole state of an item, so it does no harm to replay one that a store has already.
//
// If a write fails, the batch is kept and tried again, and [Journal.Err] is not nil until it succeeds. If an
// fsync fails, that is final: the system may have dropped what it could not write.
package journal
