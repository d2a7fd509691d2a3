// Package scrub checks the files of a data folder while a server uses it, and has damaged ones written anew.
//
// All items are in memory, so a disk that loses bits does no harm until the next start, which then refuses the folder. A
// [Scrubber] finds the damage before: it reads every finished byte of the folder at a gentle pace and checks it as a start
// does. It reads from the disk, not from the system's memory, and leaves none of what it read there.
//
// A damaged [File] is reported to the keyspace, which writes it anew from memory. Backups copy files with the same checks
// ([File.CopyTo]).
package scrub
