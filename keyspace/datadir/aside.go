package datadir

import (
	"errors"
	"path/filepath"
	"strings"

	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// RepairPrefix begins the names of the files that a repair leaves in a folder for its reader.
const RepairPrefix = "repair-"

// RemoveAside removes what is kept beside the files in use: ends that a start has cut off by a time in ms,
// and files that a repair has left by another. It logs each before its removal. If it removes some, it forces
// that to disk.
func RemoveAside(fsys vfs.FS, dir string, ends, repairs int64, log zerolog.Logger) error {
	old, err := tornEnds(fsys, dir)
	if err != nil {
		return err
	}
	var errs []error
	removed := false
	remove := func(path string, size int64) {
		log.Warn().Str("file", path).Int64("bytes", size).Msg("removing a file that was kept aside: its time is over")
		err := fsys.Remove(path)
		removed = removed || err == nil
		errs = append(errs, err)
	}
	for _, end := range old {
		if end.at <= uint64(max(ends, 0)) {
			remove(end.path, end.size)
		}
	}
	entries, err := fsys.ReadDir(dir)
	errs = append(errs, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), RepairPrefix) || !e.Type().IsRegular() {
			continue
		}
		if fi, err := e.Info(); err != nil {
			errs = append(errs, err)
		} else if fi.ModTime().UnixMilli() <= repairs {
			remove(filepath.Join(dir, e.Name()), fi.Size())
		}
	}
	if removed {
		errs = append(errs, vfs.SyncDir(fsys, dir))
	}
	return errors.Join(errs...)
}
