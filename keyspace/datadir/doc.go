// Package datadir knows the layout of a data folder, locks it, and makes new ones.
//
// A folder belongs to one process at a time. Its file "format" tells the version of the layout and the number
// of partitions; it appears last when a folder is made, so a folder without it is not complete.
//
// A [Staging] folder is one that is being filled: a backup or a repair. It gets its name when all of it is on
// disk, so that under that name there is a whole folder or none.
package datadir
