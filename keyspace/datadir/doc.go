// Package datadir knows the layout of a data folder, locks it, and makes new ones.
//
// A folder belongs to one process at a time. Its file "format" has the version of the layout and the number of
// partitions; it is made last, so a folder without it is not complete.
//
// A [Staging] folder is being filled: a backup or a repair. It gets its final name once all of it is on disk, so
// that a folder under that name is whole.
package datadir
