package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache asks the system to forget the clean pages of a range of a file.
func dropCache(f *os.File, from, bytes int64) {
	_ = unix.Fadvise(int(f.Fd()), from, bytes, unix.FADV_DONTNEED) // only advice
}
