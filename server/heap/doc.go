// Package heap keeps the memory of the process near what it needs.
//
//  1. Go's collector lets garbage grow to the size of the live heap (GOGC=100). For a small heap that is
//     right. For one of many items it is much memory for little gain: the collector looks into few of them.
//     A fifth of that garbage costs two percent of the processor time of writes.
//  2. The runtime keeps free memory for minutes. After a load, a start, or the death of many items, little is
//     allocated any more. The same holds when clients leave in the middle of large commands. Then the
//     keyspace compacts its memory, the collector runs, and free memory goes back to the system.
//  3. With maxmemory, the runtime gets a soft limit (GOMEMLIMIT).
//
// GOGC in the environment overrides the first.
package heap
