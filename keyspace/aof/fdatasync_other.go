//go:build !linux

package aof

import "os"

// fdatasync is fsync where it is not known whether the system can do less.
func fdatasync(f *os.File) error { return f.Sync() }
