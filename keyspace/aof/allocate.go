package aof

import (
	"errors"
	"os"
	"syscall"
)

// Allocate takes room on the disk for the first bytes of a file that the caller owns. After an error it may have taken
// some. Tests replace it.
var Allocate = allocate

// FreeDisk returns how many bytes this process may still write to the file system of a folder. DiskSize returns the
// size of that file system. Where that is not known they return a huge number. Tests replace them.
var (
	FreeDisk = freeDisk
	DiskSize = diskSize
)

// allocateZeros writes zeros behind the end of the file.
func allocateZeros(f *os.File, bytes int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	for at := fi.Size(); at < bytes; {
		n, err := f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// IsFull reports whether the error is that the disk has no room, or the user's quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
