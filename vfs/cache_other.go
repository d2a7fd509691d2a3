//go:build !linux

package vfs

import "os"

// dropCache does nothing: a reader may get the system's memory instead of the disk.
func dropCache(*os.File, int64, int64) {}
