// Package disk keeps the raft log of one node: etcd's write-ahead log on disk and the recent entries in
// memory.
//
// The library writes, chains checksums and cuts segments. This package adds what a node needs around it:
//
// A marker in the log names the entry after which reading begins. Compact moves it behind the position of the
// local files, keeps a bounded number of bytes before that for followers that are behind, and deletes the
// segments before it. Stores that came from a peer move it too; entries that do not agree with such a marker
// are dropped, as raft has dropped them.
//
// A power cut leaves the last records in part. Open cuts them off, because no node was told of what was not
// synced. The library takes zeros for the end of the log wherever they are; Open looks further: records that
// can only be there if what lies before them was synced show that the log is damaged. So do a gap between
// segments, a checksum, a commit index beyond the log and a position of the local files that the log does not
// have. A DamageError says where. A log that has lost its last synced record and nothing else looks like a
// torn one, here as in etcd.
//
// After an error of Save nothing is saved any more: the log is closed and opened again. What Open reads then,
// or after a kill, may be in the kernel's cache only, and a disk that failed a sync may never get it. So Open
// writes the last Save again, in place, and syncs before it returns. It appends no entry: an entry replaces
// those after it, and a copy that a full disk cuts short would take acknowledged entries away.
//
// A failed write is no damage. It leaves a part of a record with zeros behind it, at the end of the log.
package disk
