// Package manifest records what a data folder must hold, so that a file which is missing, cut short or exchanged is noticed.
//
// A file alone cannot tell that it was cut exactly behind an earlier seal, that it is an older copy of itself, or that
// another file is gone. The manifest names the mark and the confirmed end of every store, the generations of the
// journal, and whether the server stopped cleanly. It is written anew, durably, whenever that changes and
// before anything relies on it. Checkpoints write it before they remove journals, compactions before they rename
// their file. So do a new file of the journal, a start and a stop.
//
// Files may be ahead of the manifest, never behind it. After a clean stop they match it exactly.
package manifest
