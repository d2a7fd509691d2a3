//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package vfs

import "os"

// NoFollow is a flag of [FS.OpenFile] that refuses symbolic links, where the system knows one.
const NoFollow = 0

func lock(*os.File, bool) error { return ErrNoLocks }
