// Package journal commits changes in groups, in the order in which they happen.
//
// A transaction appends its changes with [Journal.Append] while it holds its locks, and gets an [LSN].
// They join the pending batch. [Journal.Wait] returns once the batch is committed: one caller leads and
// writes the batch for all of them with one system call, the others wait (group commit). With the policy
// [Always] the leader forces it to disk as well, with one fsync for all.
//
// A commit is a range of set and del commands that ends with its seal (package aof). It counts as a whole or
// not at all. Its LSN is one more than that of the commit before, across files too.
//
// The journal is a sequence of files, one a generation. [Journal.Rotate] begins a new file, so that a
// checkpoint can apply the older ones to the stores and remove them. A file is whole on disk before the next
// one gets its name; only the newest can be torn. [Replay] reads them at a start.
//
// Every change is the whole state of an item, so a store may receive it twice.
//
// If a write fails, the journal keeps the batch and retries it; [Journal.Err] is not nil until it succeeds. A
// failed fsync is final: the system may have dropped what it could not write.
package journal
