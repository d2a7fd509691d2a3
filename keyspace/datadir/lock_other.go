//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package datadir

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock two processes could destroy a folder.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("mayfly cannot lock files on this system")
}

func lockFolder(path, _ string, _ bool) (*os.File, error) { return lockFile(path) }

func lockShared(path string) (*os.File, error) { return lockFile(path) }
