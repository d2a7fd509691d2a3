// Package aof reads and writes buntdb's file format, with checks that buntdb does not make.
//
// A file is a sequence of commands of the Redis protocol, in exactly this form:
//
//	*3\r\n$3\r\nset\r\n$<n>\r\n<key>\r\n$<n>\r\n<record>\r\n
//	*2\r\n$3\r\ndel\r\n$<n>\r\n<key>\r\n
//
// Stores and journals are such files. buntdb opens each of them and finds what this package finds. The server
// does not read files with buntdb, which checks nothing: one wrong digit in a length makes it drop data
// silently, allocate that many bytes, or never return.
//
// # Seals
//
// A [Seal] is an item under one key that confirms the range of the file before it. It holds the range's place
// and checksum, the log sequence number it brings the file to, and how much of the file was known to be on
// disk. Lengths and deletes have no checksum of their own; the seal covers them. A range without its seal was
// never confirmed.
//
// [Scan] reads a file and judges it. An end that was not confirmed may be cut off. Any other difference from
// what was written is a [DamageError].
//
// # Files
//
// One goroutine appends to a [File]. A failed write is cut off as a whole. With appendfsync always a journal
// writes over zeros that are on disk ([File.Preallocate]). The file system then has no metadata to force to
// disk with each commit.
package aof
