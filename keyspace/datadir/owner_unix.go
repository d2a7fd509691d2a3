//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(fi fs.FileInfo) bool {
	stat, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// writableByOthers reports whether users other than the owner may write to a folder.
func writableByOthers(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o022 != 0 }
