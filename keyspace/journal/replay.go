package journal

import (
	"fmt"
	"io"
	"os"

	"mayfly/keyspace/aof"

	"github.com/rs/zerolog"
)

// ReplayOptions say how to replay.
type ReplayOptions struct {
	Dir   string
	Log   zerolog.Logger
	Now   int64                                           // ms; names what is cut off
	Check func(path string, mark uint32, end int64) error // called when a file has been read up to its last seal; nil: not called
	Visit func(aof.Op) error                              // receives each change; its strings are valid during the call
}

// Replay visits the changes of all journals in a folder in the order in which they were committed. It returns the
// files and the last LSN, 0 if there is none.
//
// A crash may leave the newest journal with an end that is not confirmed. Replay cuts it off and keeps it aside.
// Any other difference from what was written is an *aof.DamageError; the caller then discards what was visited.
func Replay(opt ReplayOptions) (files []FileInfo, last LSN, err error) {
	if files, err = Files(opt.Dir); err != nil {
		return nil, 0, err
	}
	for i := range files {
		if i > 0 && files[i].Generation != files[i-1].Generation+1 {
			return nil, 0, &aof.DamageError{File: files[i].Path, Reason: "the journal before it is missing"}
		}
		if err := opt.replay(&files[i], i == len(files)-1, &last); err != nil {
			return nil, 0, err
		}
	}
	return files, last, nil
}

// replay replays a file, and notes its mark and its size.
func (opt *ReplayOptions) replay(file *FileInfo, newest bool, last *LSN) error {
	f, err := os.OpenFile(file.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	mark, end, written, err := Scan(f, file.Path, file.Size, newest, last, opt.Visit)
	if err == nil && opt.Check != nil {
		err = opt.Check(file.Path, mark, end)
	}
	if err != nil {
		return err
	}
	size := file.Size
	file.Mark, file.Size = mark, end
	switch {
	case !newest:
		return nil
	case end < written:
		return aof.CutTail(f, end, size, opt.Now, opt.Log)
	case end < size: // preallocated
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	// After a kill it may be in the system's memory only. The next journal must not reach the disk before it.
	return aof.Fsync(f)
}

// Scan visits the confirmed changes of a journal's file that follows the commit last, 0 if that is not known, and
// advances last. It returns the mark of the file, and the offsets behind the last commit and behind what was written.
// In the newest file they may differ, and zeros may follow; any other file must end with a commit.
func Scan(f io.ReaderAt, name string, size int64, newest bool, last *LSN, visit func(aof.Op) error) (mark uint32, end, written int64, err error) {
	if written = size; newest {
		if written, err = aof.TrimZeros(f, size); err != nil {
			return 0, 0, size, err
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
	seal, end, err := aof.Scan(f, name, written, aof.Journal, &aof.Confirmed{Visit: visit, OnSeal: inOrder})
	if err == nil && end < written && !newest {
		err = &aof.DamageError{File: name, From: end, To: written, Reason: "a finished journal does not end with a commit"}
	}
	return seal.Mark, end, written, err
}
