package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// TornSuffix is in the name of a file's end that was cut off, before the time in ms.
const TornSuffix = ".torn-"

// mostInMemory is the longest end in bytes that CutTail keeps aside on a full disk, where it goes through
// memory.
const mostInMemory = 256 << 20

// CutTail cuts off the end of a file and keeps it in a file beside it, named by the time now (ms). The copy
// is on disk before the cut.
//
// On a full disk the cut comes first, because it makes room for the copy. What finds no room even so is lost,
// and logged: it was never confirmed, and a start must not fail because of it.
func CutTail(fsys vfs.FS, f vfs.File, from, size, now int64, log zerolog.Logger) error {
	path := f.Name()
	aside, err := keepAside(fsys, path, io.NewSectionReader(f, from, size-from), now)
	if vfs.IsFull(err) {
		return cutFirst(fsys, f, from, size, now, log)
	}
	if err != nil {
		return err
	}
	log.Warn().Str("file", path).Int64("from", from).Int64("to", size).Str("kept", aside).Msg(cutOff + " and kept aside")
	return cut(f, from)
}

const cutOff = "the end of a file was not confirmed when the server last stopped: cut off"

// cutFirst is CutTail on a full disk.
func cutFirst(fsys vfs.FS, f vfs.File, from, size, now int64, log zerolog.Logger) error {
	end, err := io.ReadAll(io.NewSectionReader(f, from, min(size-from, mostInMemory)))
	if err != nil {
		return err
	}
	if err := cut(f, from); err != nil {
		return err
	}
	event := log.Warn().Str("file", f.Name()).Int64("from", from).Int64("to", size)
	aside, err := keepAside(fsys, f.Name(), bytes.NewReader(end), now)
	switch {
	case vfs.IsFull(err):
		event.Err(err).Msg(cutOff + "; it finds no room to be kept aside")
		return nil
	case err != nil:
		return err
	}
	event.Str("kept", aside).Int("bytes", len(end)).Msg(cutOff + " and kept aside")
	return nil
}

// cut cuts off the end of a file, durably.
func cut(f vfs.File, from int64) error {
	if err := f.Truncate(from); err != nil {
		return err
	}
	return f.Sync()
}

// keepAside writes the end of a file into a file beside it, durably, and returns its path. After an error
// there is none.
func keepAside(fsys vfs.FS, path string, end io.Reader, now int64) (aside string, err error) {
	aside = path + TornSuffix + strconv.FormatInt(now, 10)
	kept, err := vfs.CreateNew(fsys, aside)
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		aside = fmt.Sprintf("%s%s%d-%d", path, TornSuffix, now, n)
		kept, err = vfs.CreateNew(fsys, aside)
	}
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.NewOffsetWriter(kept, 0), end)
	if err = errors.Join(err, kept.Sync(), kept.Close()); err != nil {
		return "", errors.Join(err, fsys.Remove(aside))
	}
	return aside, vfs.SyncDir(fsys, filepath.Dir(path))
}
