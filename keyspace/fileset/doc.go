// Package fileset keeps track of the files of a data folder in use, and of the manifest that names them.
//
// The manifest is written anew whenever the files change and before anything relies on it: see [Set.WriteManifest].
// A [Set] tells how each file must be at this moment, for backups and scrubs.
package fileset
