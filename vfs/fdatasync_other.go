//go:build !linux

package vfs

import "os"

// fdatasync is fsync on systems without it.
func fdatasync(f *os.File) error { return f.Sync() }
