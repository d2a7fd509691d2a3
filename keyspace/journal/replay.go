package journal

import (
	"fmt"
	"io"
	"os"

	"mayfly/keyspace/aof"

	"github.com/rs/zerolog"
)

// Replay visits the changes of all journals in a folder in the order in which they were committed. It returns the
// last generation and LSN, 0 if there are none. The strings of a change are valid during the visit.
//
// A crash may leave the newest journal with an end that is not confirmed. Replay cuts it off and keeps it aside
// under a name with the time now (ms). Any other difference from what was written is an *aof.DamageError; the
// caller then discards what was visited.
func Replay(dir string, log zerolog.Logger, now int64, visit func(aof.Op) error) (generation uint64, last LSN, err error) {
	files, err := Files(dir)
	if err != nil {
		return 0, 0, err
	}
	for i, file := range files {
		if i > 0 && file.Generation != generation+1 {
			return 0, 0, fmt.Errorf("%s exists, but the journal before it does not", file.Path)
		}
		generation = file.Generation
		if err := replayFile(file, i == len(files)-1, &last, now, log, visit); err != nil {
			return 0, 0, err
		}
	}
	return generation, last, nil
}

func replayFile(file FileInfo, newest bool, last *LSN, now int64, log zerolog.Logger, visit func(aof.Op) error) error {
	f, err := os.OpenFile(file.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	end, written, err := Scan(f, file.Path, file.Size, newest, last, visit)
	switch {
	case err != nil || !newest:
		return err
	case end < written:
		return aof.CutTail(f, end, file.Size, now, log)
	case end < file.Size: // preallocated
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	// After a kill it may be in the system's memory only. The next journal must not reach the disk before it.
	return aof.Fsync(f)
}

// Scan visits the confirmed changes of a journal's file that follows the commit last, 0 if that is not known, and
// advances last. It returns the offsets behind the last commit and behind what was written. In the newest file they
// may differ, and zeros may follow; any other file must end with a commit.
func Scan(f io.ReaderAt, name string, size int64, newest bool, last *LSN, visit func(aof.Op) error) (end, written int64, err error) {
	if written = size; newest {
		if written, err = aof.TrimZeros(f, size); err != nil {
			return 0, size, err
		}
	}
	inOrder := func(s aof.Seal) error {
		if s.LSN == 0 {
			return nil // the head of the file
		}
		if *last != 0 && LSN(s.LSN) != *last+1 {
			reason := fmt.Sprintf("commit %d follows commit %d: commits are missing", s.LSN, *last)
			return &aof.DamageError{File: name, From: s.From, To: s.At + aof.SealSize, Reason: reason}
		}
		*last = LSN(s.LSN)
		return nil
	}
	_, end, err = aof.Scan(f, name, written, aof.Journal, &aof.Confirmed{Visit: visit, OnSeal: inOrder})
	if err == nil && end < written && !newest {
		err = &aof.DamageError{File: name, From: end, To: written, Reason: "a finished journal does not end with a commit"}
	}
	return end, written, err
}
