package journal

import (
	"fmt"
	"io"
	"os"

	"mayfly/keyspace/aof"

	"github.com/rs/zerolog"
)

// Replay visits the changes of all journals in a folder in the order in which they were committed, and returns
// the last generation and LSN, 0 if there are none. The strings of a change are valid during the visit.
//
// The newest journal may end in something that a crash kept from being written: that is cut off and kept aside
// under a name with the time now (ms). Anything else that is not as it was written is an *aof.DamageError, and
// then what has been visited is of no use.
func Replay(dir string, log zerolog.Logger, now int64, visit func(aof.Op) error) (generation uint64, last LSN, err error) {
	files, err := Files(dir)
	if err != nil {
		return 0, 0, err
	}
	for i, file := range files {
		if i > 0 && file.Generation != generation+1 {
			return 0, 0, fmt.Errorf("%s is there, but not the journal before it", file.Path)
		}
		generation = file.Generation
		replay := replayFinished
		if i == len(files)-1 {
			replay = func(file FileInfo, last *LSN, visit func(aof.Op) error) error {
				return replayNewest(file, last, now, log, visit)
			}
		}
		if err := replay(file, &last, visit); err != nil {
			return 0, 0, err
		}
	}
	return generation, last, nil
}

// Scan visits the confirmed changes of a journal's file that follows the commit last, 0 if that is not known, and
// advances last. It returns the offset behind the last commit.
func Scan(f io.ReaderAt, name string, size int64, last *LSN, v *aof.Confirmed) (end int64, err error) {
	onSeal := v.OnSeal
	v.OnSeal = func(s aof.Seal) error {
		if s.LSN == 0 {
			return nil // the head of the file
		}
		if *last != 0 && LSN(s.LSN) != *last+1 {
			reason := fmt.Sprintf("commit %d follows commit %d: something is missing", s.LSN, *last)
			return &aof.DamageError{File: name, From: s.From, To: s.At + aof.SealSize, Reason: reason}
		}
		*last = LSN(s.LSN)
		if onSeal != nil {
			return onSeal(s)
		}
		return nil
	}
	_, end, err = aof.Scan(f, name, size, aof.Journal, v)
	return end, err
}

// Unfinished is the error for a finished journal that does not end with a commit.
func Unfinished(name string, end, size int64) error {
	return &aof.DamageError{File: name, From: end, To: size, Reason: "a journal that was finished does not end with a commit"}
}

// replayFinished replays a journal that was finished before the next was begun: it must be whole.
func replayFinished(file FileInfo, last *LSN, visit func(aof.Op) error) error {
	f, err := os.Open(file.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := Scan(f, file.Path, file.Size, last, &aof.Confirmed{Visit: visit})
	if err == nil && end < file.Size {
		err = Unfinished(file.Path, end, file.Size)
	}
	return err
}

// replayNewest replays the newest journal, whose end a crash may have kept from the disk.
func replayNewest(file FileInfo, last *LSN, now int64, log zerolog.Logger, visit func(aof.Op) error) error {
	f, err := os.OpenFile(file.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	written, err := aof.TrimZeros(f, file.Size)
	if err != nil {
		return err
	}
	end, err := Scan(f, file.Path, written, last, &aof.Confirmed{Visit: visit})
	switch {
	case err != nil:
		return err
	case end < written:
		return aof.CutTail(f, end, file.Size, now, log)
	case end < file.Size: // preallocated
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	// After a kill it may be in the system's memory only. The next journal must not get to the disk before it.
	return aof.Fsync(f)
}
