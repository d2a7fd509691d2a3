package aof

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rs/zerolog"
)

// TornSuffix is in the name of a file's end that was cut off, before the time in ms.
const TornSuffix = ".torn-"

// CutTail cuts off the end of a file and keeps it in a file beside it, named by the time now (ms). The copy is
// on disk before the cut.
func CutTail(f *os.File, from, size, now int64, log zerolog.Logger) error {
	path := f.Name()
	aside := path + TornSuffix + strconv.FormatInt(now, 10)
	kept, err := CreateNew(aside)
	for n := 2; errors.Is(err, os.ErrExist); n++ {
		aside = fmt.Sprintf("%s%s%d-%d", path, TornSuffix, now, n)
		kept, err = CreateNew(aside)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(kept, io.NewSectionReader(f, from, size-from))
	if err = errors.Join(err, Fsync(kept), kept.Close()); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	log.Warn().Str("file", path).Int64("from", from).Int64("to", size).Str("kept", aside).
		Msg("the end of a file was not confirmed when the server last stopped: cut off and kept aside")
	if err := f.Truncate(from); err != nil {
		return err
	}
	return Fsync(f)
}
