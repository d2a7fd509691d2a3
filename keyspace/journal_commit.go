package keyspace

import (
	"fmt"
	"hash/crc32"
	"strconv"

	"mayfly/keyspace/record"
)

// The journal takes in every change before a reply reports or reveals it. It is a sequence of
// buntdb files, one a generation; an item of a file is one commit, written with one system call:
// whatever was handed in by then, of whomever (group commit).
//
//	key    0000000000000042                 the commit's ticket, one more than the one before
//	value  1 5d0c3b7e 9f3a11c0 0000000094 0000000000003790 +10 62 12:order-1 1 7c0f1a9b d …\n-10 12:order-2\n
//	       | |        |        |          |                | entries
//	       | |        |        |          | bytes of this file that were on disk when this was written
//	       | |        |        | bytes of entries
//	       | |        | mark of the file, drawn when it was made: clients cannot forge commits
//	       | | CRC-32C of the key and of all that follows the checksum
//	       | version of the format
const (
	commitKeySize    = 16
	commitHeaderSize = len("1 5d0c3b7e 9f3a11c0 0000000094 0000000000003790 ")
	commitSumFrom    = 2
	commitSumTo      = commitSumFrom + 8
	commitMarkFrom   = commitSumTo + 1
	commitMarkTo     = commitMarkFrom + 8
	commitSizeFrom   = commitMarkTo + 1
	commitSizeTo     = commitSizeFrom + 10
	commitOnDiskFrom = commitSizeTo + 1
	commitOnDiskTo   = commitOnDiskFrom + 16
	maxCommitSize    = 9_999_999_999 // bytes of entries

	// A file begins with its head: what looks like a commit of nothing with the ticket 0 and tells the
	// mark. It is on disk before anything follows, so that the mark is known even if the first commit
	// is torn: nothing that a client has written into it proves anything.
	journalHeadSize = int64(len(setHead+"$16\r\n\r\n$49\r\n\r\n") + commitKeySize + commitHeaderSize)

	commitHead = setHead + "$16\r\n0" // what every commit begins with
)

// appendSet appends an entry that sets an item.
func appendSet(dst []byte, key, rec string) []byte {
	dst = append(dst, '+')
	dst = strconv.AppendInt(dst, int64(len(key)), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(len(rec)), 10)
	dst = append(dst, ' ')
	dst = append(dst, key...)
	dst = append(dst, ' ')
	dst = append(dst, rec...)
	return append(dst, '\n')
}

// appendDel appends an entry that deletes an item.
func appendDel(dst []byte, key string) []byte {
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, int64(len(key)), 10)
	dst = append(dst, ' ')
	dst = append(dst, key...)
	return append(dst, '\n')
}

// journalHead is what a file with this mark begins with.
func journalHead(mark uint32) []byte {
	value := make([]byte, commitHeaderSize)
	key, err := encodeCommit(value, 0, mark, 0)
	if err != nil {
		panic(err) // it is not too large
	}
	return fmt.Appendf(nil, "%s$%d\r\n%s\r\n$%d\r\n%s\r\n", setHead, len(key), key, len(value), value)
}

// encodeCommit completes the value of a commit, which holds the entries behind room for the header, and
// makes its key.
func encodeCommit(value []byte, t LSN, mark uint32, onDisk int64) (key string, err error) {
	entries := len(value) - commitHeaderSize
	if int64(entries) > maxCommitSize {
		return "", fmt.Errorf("a commit of %d bytes is too large", entries)
	}
	k := make([]byte, commitKeySize)
	record.PutDecimal(k, uint64(t))
	header := value[:commitHeaderSize]
	for i := range header {
		header[i] = ' '
	}
	header[0] = '1'
	record.PutHex(header[commitMarkFrom:commitMarkTo], mark)
	record.PutDecimal(header[commitSizeFrom:commitSizeTo], uint64(entries))
	record.PutDecimal(header[commitOnDiskFrom:commitOnDiskTo], uint64(onDisk))
	crc := crc32.Update(crc32.Update(0, record.Castagnoli, k), record.Castagnoli, value[commitSumTo:])
	record.PutHex(header[commitSumFrom:commitSumTo], crc)
	return record.View(k), nil
}
