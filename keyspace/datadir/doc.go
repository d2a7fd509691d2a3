// Package datadir knows the layout of a data folder, locks it, and makes new ones.
//
// A folder belongs to one process at a time. Its file "format" has the version of the layout and the number
// of partitions; it is made last, so a folder without it is not complete.
//
// A [Staging] folder is being filled: a backup or a repair. It gets its final name once all of it is on disk,
// so that a folder under that name is whole.
//
// # Manifest
//
// A file alone cannot tell that it was cut exactly behind an earlier seal, that it is an older copy of
// itself, or that another file is gone. The [Manifest] names the mark and the confirmed end of every store,
// the generations of the journal, and whether the server stopped cleanly. It is written anew, durably,
// whenever that changes and before anything relies on it. Checkpoints write it before they remove journals,
// compactions before they rename their file. So do a new file of the journal, a start and a stop.
//
// Files may be ahead of the manifest, never behind it. After a clean stop they match it exactly.
package datadir
