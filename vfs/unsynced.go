package vfs

import "io/fs"

// Unsynced returns a file system over another one that forces nothing to disk: for files that end with their
// process.
func Unsynced(fsys FS) FS { return unsynced{fsys} }

type unsynced struct{ FS }

func (u unsynced) Open(path string) (File, error) { return unsyncedOf(u.FS.Open(path)) }

func (u unsynced) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	return unsyncedOf(u.FS.OpenFile(path, flag, perm))
}

func unsyncedOf(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error     { return nil }
func (unsyncedFile) SyncData() error { return nil }
