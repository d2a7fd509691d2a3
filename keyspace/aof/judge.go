package aof

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"

	"mayfly/keyspace/record"
)

// SectorSize is the unit in bytes that a power cut leaves written or not.
const SectorSize = 512

// DamageError reports bytes of a file that differ from what was written. The file stays as it is.
type DamageError struct {
	File     string
	From, To int64 // the range of bytes in which the damage lies, To excluded
	Reason   string
}

func (e *DamageError) Error() string {
	if e.To == 0 { // all of it
		return fmt.Sprintf("%s is damaged: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s is damaged at bytes %d to %d: %s", e.File, e.From, e.To, e.Reason)
}

// BreakError reports where a file stops being a sequence of commands.
type BreakError struct {
	Before int64 // start of the command before it, which may have a wrong length
	At     int64 // start of the command that is not whole
	To     int64 // end of the part that was read
	Short  bool  // the file ends within a command that is right up to there
	Reason string
}

func (e *BreakError) Error() string { return e.Reason }

// judge returns nil if a file that breaks off may be cut behind its last seal, which ends at end.
//
// A crash leaves the last ranges of a file incomplete: the file ends early, or sectors that were never
// written are zeros. Two signs of damage exclude that:
//
//  1. A later seal says that bytes behind end were on disk when it was written. Then they were whole once.
//     In a store every seal says so of its own range.
//  2. The broken range has its own seal. Then the file does not end early, whatever a length says, and
//     only sectors of zeros explain the break.
func judge(f io.ReaderAt, name string, mark uint32, end, size int64, b *BreakError) error {
	proven, own := false, int64(0)
	err := eachSeal(f, end, size, func(s Seal, at int64) (stop bool) {
		if s.Mark != mark {
			return false // client data that looks like a seal, or another file's
		}
		if s.From == end {
			own = at
		}
		proven = s.OnDisk > end
		return proven
	})
	if err != nil {
		return err
	}
	if !proven {
		torn, err := unwritten(f, b, own, size)
		if torn || err != nil {
			return err
		}
	}
	return &DamageError{File: name, From: b.Before, To: b.To, Reason: b.Reason}
}

// unwritten reports whether a broken range shows what a crash leaves in bytes that were never forced to
// disk. own is the place of the range's own seal, 0 if there is none.
func unwritten(f io.ReaderAt, b *BreakError, own, size int64) (bool, error) {
	if own > 0 {
		return zeroSector(f, b.At, own, size)
	}
	if b.Short {
		return true, nil
	}
	tail := make([]byte, min(size-b.At, 16))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return false, err
	}
	if allZero(tail) {
		return true, nil
	}
	return zeroSector(f, b.At, b.To, size)
}

// zeroSector reports whether a range has a sector, or the part of one that it begins with, of zeros.
func zeroSector(f io.ReaderAt, from, to, size int64) (bool, error) {
	sector := make([]byte, SectorSize)
	for at := from; at < to; {
		next := min(at-at%SectorSize+SectorSize, size)
		part := sector[:next-at]
		if _, err := f.ReadAt(part, at); err != nil && err != io.EOF {
			return false, err
		}
		if allZero(part) {
			return true, nil
		}
		at = next
	}
	return false, nil
}

func allZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

// TrimZeros returns the offset at which the zeros at the end of a file begin. A file of nothing but zeros
// keeps its size.
func TrimZeros(f io.ReaderAt, size int64) (end int64, err error) {
	buf := make([]byte, min(readSize, size))
	for end = size; end > 0; {
		part := buf[:min(int64(len(buf)), end)]
		n, err := f.ReadAt(part, end-int64(len(part)))
		if n < len(part) {
			return 0, err
		}
		n = len(bytes.TrimRight(part, "\x00"))
		if end -= int64(len(part) - n); n > 0 {
			return end, nil
		}
	}
	return size, nil
}

// Search calls found with each offset of a pattern in a file, starting at from, until found returns true.
func Search(f io.ReaderAt, from, size int64, pattern string, found func(at int64) (bool, error)) (at int64, ok bool, err error) {
	buf := make([]byte, max(min(readSize, size-from), 0))
	for from+int64(len(pattern)) <= size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-from)], from)
		if err != nil && err != io.EOF {
			return 0, false, err
		}
		for i := 0; ; {
			k := bytes.Index(buf[i:n], []byte(pattern))
			if k < 0 {
				break
			}
			at := from + int64(i+k)
			if ok, err := found(at); ok || err != nil {
				return at, ok, err
			}
			i += k + 1
		}
		if n < len(pattern) {
			break
		}
		from += int64(n - len(pattern) + 1)
	}
	return 0, false, nil
}

// SumRange returns the CRC-32C of a range of a file.
func SumRange(f io.ReaderAt, from, to int64) (crc uint32, err error) {
	sum := crc32.New(record.Castagnoli)
	_, err = io.CopyN(sum, io.NewSectionReader(f, from, to-from), to-from)
	return sum.Sum32(), err
}
