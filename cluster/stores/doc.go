// Package stores moves the data files of a node to another one: it packs, unpacks, checks and installs them.
//
// A stream is a tar of the files of a backup, and of a last entry with their checksums. What arrives is
// written to DIR/cluster/incoming. Once it is whole and on disk it is pending; Mark decides that it replaces
// the data files, and Install does that. Each step can be interrupted at any point and goes on at the next
// start.
package stores
