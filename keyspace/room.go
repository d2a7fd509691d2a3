package keyspace

import (
	"errors"
	"io"
)

// Room is zeros behind the last commit of the newest journal. To make a file longer is work for the file
// system: it has to force its own notes of where the file ends, and of what blocks it has, to disk as well,
// which takes as long as the commit itself. Where zeros have been written and forced to disk before, a
// commit only takes their place. So with appendfsync always, and only then, the file is made longer by a
// piece at a time, by the commit that has used the last one up.
//
// Zeros mean nothing. They go when the file is no longer the newest one of a journal that forces each commit
// to disk. After a crash a start takes the file for one that ends where they begin (withoutZeros).

// roomAhead is how many bytes a file is made longer at a time; 0: not at all. Changed by tests, before
// anything is opened.
var roomAhead = int64(1 << 20)

// worthRoom is the part of a piece that a commit may take: for larger ones it is more work to write the
// zeros than to make the file longer.
const worthRoom = 16

var zeros [64 << 10]byte

// makeRoom writes zeros behind the last commit, which took so many bytes, if there are none left. The
// fsync that the commit needs anyway is to follow. The right to commit is held.
//
// When there is no room on the disk, it does without until the file is another one: the last bytes that
// there are belong to what has to be written.
func (j *journal) makeRoom(commit int64) {
	if j.cramped || j.file.room > 0 || commit > roomAhead/worthRoom {
		return
	}
	if err := j.file.makeRoom(roomAhead); err != nil {
		j.cramped = true
		j.log.Debug().Err(err).Msg("the journal goes on without room ahead")
	}
}

// endFile makes the newest file end with its last commit, and forces it to disk. The right to commit and
// syncMu are held, and all that has been handed in is written.
func (j *journal) endFile() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	cut, err := j.file.cutRoom()
	if cut {
		// All of it, not only what is needed to read the file: it may well be read without its new end.
		if err := j.file.fsync(); err != nil {
			return j.breakLocked(err)
		}
	}
	return errors.Join(err, j.syncLocked(j.committed()))
}

// makeRoom writes so many zeros behind the end of a file, or none: it is not to be taken for full.
func (d *dbFile) makeRoom(bytes int64) error {
	for at := int64(0); at < bytes; {
		n, err := d.f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], d.end+at)
		at += int64(n)
		if err != nil {
			_ = d.takeBack() // zeros that stay do no harm
			return err
		}
	}
	d.room = bytes
	return nil
}

// cutRoom cuts off what is behind the end of a file, and tells whether there was anything.
func (d *dbFile) cutRoom() (cut bool, err error) {
	fi, err := d.f.Stat()
	if err != nil || fi.Size() <= d.end {
		return false, err
	}
	if err := d.f.Truncate(d.end); err != nil {
		return false, err
	}
	d.room = 0
	return true, nil
}

// withoutZeros is where a file of some size ends if the zeros at its end do not count. A file of nothing
// but zeros has no end of its own: it is left as it is.
func withoutZeros(f io.ReaderAt, size int64) (end int64, err error) {
	buf := make([]byte, min(readSize, size))
	for end = size; end > 0; {
		part := buf[:min(int64(len(buf)), end)]
		n, err := f.ReadAt(part, end-int64(len(part)))
		if n < len(part) {
			return 0, err
		}
		for n > 0 && part[n-1] == 0 {
			n--
		}
		end -= int64(len(part) - n)
		if n > 0 {
			return end, nil
		}
	}
	return size, nil
}
