package journal

import (
	"fmt"
	"io"
	"os"

	"mayfly/keyspace/aof"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// ReplayOptions say how to replay.
type ReplayOptions struct {
	FS    vfs.FS
	Dir   string
	Log   zerolog.Logger
	Now   int64              // ms; names what is cut off
	Visit func(aof.Op) error // receives each change; its strings are valid during the call

	// Check is called when a file has been read up to its last seal, which has this mark and ends at end. It
	// returns how many bytes are known to be on disk. If it is nil, the seals tell.
	Check func(path string, mark uint32, end int64) (onDisk int64, err error)
}

// Replay visits the changes of all journals in a folder in the order in which they were committed. It returns
// the files and the last LSN, 0 if there is none.
//
// A crash may leave the newest journal with an end that is not confirmed. Replay cuts it off and keeps it
// aside. Commits that are not known to be on disk are written anew ([aof.Rewrite]). Any other difference from
// what was written is an *aof.DamageError; the caller then discards what was visited.
func Replay(opt ReplayOptions) (files []FileInfo, last LSN, err error) {
	if files, err = Files(opt.FS, opt.Dir); err != nil {
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
	f, err := opt.FS.OpenFile(file.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	seal, end, written, err := Scan(f, file.Path, file.Size, newest, last, opt.Visit)
	if err != nil {
		return err
	}
	onDisk := max(seal.OnDisk, headSize)
	if opt.Check != nil {
		known, err := opt.Check(file.Path, seal.Mark, end)
		if err != nil {
			return err
		}
		onDisk = max(onDisk, known)
	}
	size := file.Size
	file.Mark, file.Size = seal.Mark, end
	if !newest {
		return nil
	}
	// The next journal must not reach the disk before this one.
	if err := aof.Rewrite(f, aof.Journal, seal.Mark, onDisk, end); err != nil {
		return err
	}
	switch {
	case end < written:
		return aof.CutTail(opt.FS, f, end, size, opt.Now, opt.Log)
	case end < size: // preallocated
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Scan visits the confirmed changes of a journal's file that follows the commit last, 0 if that is not known,
// and advances last. It returns the last seal, and the offsets behind the last commit and behind what was
// written. In the newest file they may differ, and zeros may follow; any other file must end with a commit.
func Scan(f io.ReaderAt, name string, size int64, newest bool, last *LSN, visit func(aof.Op) error) (seal aof.Seal, end, written int64, err error) {
	if written = size; newest {
		if written, err = aof.TrimZeros(f, size); err != nil {
			return seal, 0, size, err
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
	seal, end, err = aof.Scan(f, name, written, aof.Journal, &aof.Confirmed{Visit: visit, OnSeal: inOrder})
	if err == nil && end < written && !newest {
		err = &aof.DamageError{File: name, From: end, To: written, Reason: "a finished journal does not end with a commit"}
	}
	return seal, end, written, err
}
