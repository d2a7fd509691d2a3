//go:build darwin || freebsd || linux

package keyspace

import "golang.org/x/sys/unix"

// freeDisk is how many bytes may still be written to the file system that holds a folder.
func freeDisk(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}
