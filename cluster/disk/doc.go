// Package disk keeps the raft log of one node: etcd's write-ahead log on disk and the recent entries in memory.
package disk
