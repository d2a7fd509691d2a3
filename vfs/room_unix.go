//go:build darwin || freebsd || linux

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// room returns the bytes of the file system of a folder that this process may still write, and all.
func room(dir string) (free, size int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, err
	}
	free = int64(fs.Bavail)
	if os.Geteuid() == 0 {
		free = int64(fs.Bfree)
	}
	return free * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), nil
}
