//go:build darwin || freebsd || linux

package aof

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeDisk returns the bytes of the file system of a folder that this process may still write.
func freeDisk(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	free := int64(fs.Bavail)
	if os.Geteuid() == 0 {
		free = int64(fs.Bfree)
	}
	return free * int64(fs.Bsize), nil
}

// diskSize returns the size in bytes of the file system of a folder.
func diskSize(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Blocks) * int64(fs.Bsize), nil
}
