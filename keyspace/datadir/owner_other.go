//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package datadir

import "io/fs"

// ownedByUs does not know: the modes of such systems do not tell.
func ownedByUs(fs.FileInfo) bool { return true }

func writableByOthers(fs.FileInfo) bool { return false }
