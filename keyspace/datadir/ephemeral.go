package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"mayfly/vfs"
)

// Ephemeral is a private folder for the data of one process, which ends with it. Its outer folder is locked
// as long as the process lives: the next one that makes such a folder removes those of the dead.
type Ephemeral struct {
	Dir string // of the data

	fs   vfs.FS
	path string   // of the outer folder
	lock vfs.File // on it
}

// The name of an outer folder is the prefix and the hexadecimal digits of a random number.
const (
	ephemeralPrefix = "mayfly-ephemeral-"
	ephemeralIDSize = 8 // bytes
)

// isEphemeralName reports whether NewEphemeral makes such names. Others are of someone else, such as a user's
// own folder.
func isEphemeralName(name string) bool {
	id, ok := strings.CutPrefix(name, ephemeralPrefix)
	number, err := hex.DecodeString(id)
	return ok && err == nil && len(number) == ephemeralIDSize && id == strings.ToLower(id)
}

// NewEphemeral makes a folder in another one, which others may write to as well.
func NewEphemeral(fsys vfs.FS, tmp string) (*Ephemeral, error) {
	removeDead(fsys, tmp)
	for {
		var id [ephemeralIDSize]byte
		_, _ = rand.Read(id[:]) // never fails
		e := &Ephemeral{fs: fsys, path: filepath.Join(tmp, ephemeralPrefix+hex.EncodeToString(id[:]))}
		e.Dir = filepath.Join(e.path, "data")
		if err := fsys.Mkdir(e.path, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("ephemeral folder: %w", err)
		}
		lock, err := lockAlive(fsys, e.path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ephemeral folder %s: %w", e.path, err), fsys.RemoveAll(e.path))
		}
		if e.lock = lock; lock != nil {
			return e, nil
		}
	}
}

// lockAlive locks a folder. It returns nil if another process takes it for that of a dead one, before it was
// locked.
func lockAlive(fsys vfs.FS, path string) (vfs.File, error) {
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = f.Lock(false)
	if err == nil {
		if _, err = fsys.Lstat(path); err == nil {
			return f, nil
		}
	}
	f.Close()
	if errors.Is(err, vfs.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

// Remove removes the folder with all in it.
func (e *Ephemeral) Remove() error {
	return errors.Join(e.fs.RemoveAll(e.path), e.lock.Close())
}

// removeDead removes the folders of processes of this user that have ended without that. What cannot be
// removed stays.
func removeDead(fsys vfs.FS, tmp string) {
	list, err := fsys.ReadDir(tmp)
	if err != nil {
		return
	}
	for _, entry := range list {
		path := filepath.Join(tmp, entry.Name())
		if fi, err := fsys.Lstat(path); err != nil || !isEphemeralName(entry.Name()) || !fi.IsDir() || !ownedByUs(fi) {
			continue
		}
		f, err := fsys.Open(path)
		if err != nil {
			continue
		}
		if f.Lock(false) == nil {
			_ = fsys.RemoveAll(path)
		}
		f.Close()
	}
}
