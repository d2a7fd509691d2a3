//go:build darwin || freebsd || linux

package aof

import "golang.org/x/sys/unix"

// FreeDisk returns the free bytes of the file system that holds a folder.
func FreeDisk(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}
