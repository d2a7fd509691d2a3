package aof

import (
	"io"
	"math/rand/v2"

	"mayfly/keyspace/record"
)

// SealKey is the key of all seals of a file. buntdb keeps only the last.
const SealKey = "seal"

// Seal confirms a range of a file: every byte from the end of the seal before up to its own place.
//
// In a journal each commit ends with its seal, and both are written with one system call. In a store a
// seal is written after its range has been forced to disk, and counts once it is on disk itself.
//
// The mark is random, so clients cannot write a value that passes for a seal.
type Seal struct {
	Mark   uint32 // of the file, drawn when it is made
	From   int64  // end of the seal before, 0 for the first
	At     int64  // where this seal starts: it covers From to At
	Sum    uint32 // CRC-32C of the bytes from From to At
	LSN    uint64 // journal: of the commit; store: all changes up to it are in the file
	OnDisk int64  // bytes of the file that were forced to disk before this seal was written
}

// sealBody shows the fixed widths of a seal's fields. Every seal has the same size.
const sealBody = "00000000 0000000000000000 0000000000000000 00000000 0000000000000000 0000000000000000"

// sealFields are the ranges of the fields in a seal's body.
var sealFields = [...][2]int{{0, 8}, {9, 25}, {26, 42}, {43, 51}, {52, 68}, {69, 85}}

// NewMark draws the mark of a new file. Tests replace it.
var NewMark = rand.Uint32

// FirstSeal returns the seal that a new file begins with. It covers nothing.
func FirstSeal(mark uint32) Seal { return Seal{Mark: mark} }

// AppendRecord appends the record of the seal.
func (s Seal) AppendRecord(dst []byte) []byte {
	start := len(dst)
	dst = record.AppendHeader(dst, record.Item{Kind: record.SealKind})
	at := len(dst)
	dst = append(dst, sealBody...)
	field := func(n int) []byte { return dst[at+sealFields[n][0] : at+sealFields[n][1]] }
	record.PutHex(field(0), s.Mark)
	record.PutDecimal(field(1), uint64(s.From))
	record.PutDecimal(field(2), uint64(s.At))
	record.PutHex(field(3), s.Sum)
	record.PutDecimal(field(4), s.LSN)
	record.PutDecimal(field(5), uint64(s.OnDisk))
	record.PutSum(SealKey, dst[start:])
	return dst
}

// Append appends the command that sets the seal.
func (s Seal) Append(dst []byte) []byte {
	dst = append(dst, sealHead...)
	dst = s.AppendRecord(dst)
	return append(dst, "\r\n"...)
}

var (
	sealRecordSize = len(Seal{}.AppendRecord(nil))

	// SealSize is the size in bytes of the command that sets a seal.
	SealSize = SetSize(len(SealKey), sealRecordSize)

	// sealHead is what the command of every seal begins with.
	sealHead = func() string {
		whole := AppendSet(nil, SealKey, string(make([]byte, sealRecordSize)))
		return string(whole[:len(whole)-sealRecordSize-len("\r\n")])
	}()
)

// ReadSeal is the inverse of [Seal.AppendRecord].
func ReadSeal(rec string) (s Seal, ok bool) {
	if len(rec) != sealRecordSize {
		return s, false
	}
	it, _, err := record.Decode(SealKey, rec)
	if err != nil || it.Kind != record.SealKind || len(it.Body) != len(sealBody) {
		return s, false
	}
	ok = true
	hex := func(n int) uint32 {
		v, valid := record.ReadHex(it.Body[sealFields[n][0]:sealFields[n][1]])
		ok = ok && valid
		return v
	}
	decimal := func(n int) uint64 {
		v, valid := record.ReadDecimal(it.Body[sealFields[n][0]:sealFields[n][1]])
		ok = ok && valid
		return v
	}
	s = Seal{Mark: hex(0), From: int64(decimal(1)), At: int64(decimal(2)), Sum: hex(3), LSN: decimal(4), OnDisk: int64(decimal(5))}
	for n := range sealFields[1:] {
		ok = ok && it.Body[sealFields[n+1][0]-1] == ' '
	}
	return s, ok
}

// fits reports whether the seal can be one of a file of this use.
func (s Seal) fits(use Use) bool {
	if use == Store {
		return s.OnDisk == s.At
	}
	return s.OnDisk <= s.From && (s.At == 0) == (s.LSN == 0) && (s.From > 0 || s.At == 0)
}

// EachSeal visits the whole seals that lie at the offset they name, starting at from. It stops when visit
// returns true.
func EachSeal(f io.ReaderAt, from, size int64, visit func(s Seal) (stop bool)) error {
	return eachSeal(f, from, size, func(s Seal, at int64) (stop bool) {
		return s.At == at && s.From <= at && visit(s)
	})
}

// eachSeal visits all whole seals with their offsets. Inserted or missing bytes move a seal away from the
// offset it names.
func eachSeal(f io.ReaderAt, from, size int64, visit func(s Seal, at int64) (stop bool)) error {
	text := make([]byte, SealSize-int64(len(sealHead)))
	_, _, err := Search(f, from, size, sealHead, func(at int64) (bool, error) {
		if at+SealSize > size {
			return false, nil // cut short
		}
		if _, err := f.ReadAt(text, at+int64(len(sealHead))); err != nil {
			return false, err
		}
		if string(text[sealRecordSize:]) != "\r\n" {
			return false, nil
		}
		s, ok := ReadSeal(string(text[:sealRecordSize]))
		return ok && visit(s, at), nil
	})
	return err
}
