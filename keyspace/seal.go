package keyspace

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"

	"mayfly/keyspace/record"
)

// A seal is an item of a store that confirms all that precedes it in the file. It is written after
// what it covers has been forced to disk, and counts once it has been forced to disk itself.
//
// Seals answer two questions that the file alone could not. Is a byte as it was written? buntdb's
// deletes carry no checksum, and neither do the lengths of its commands; a seal's checksum covers
// every byte since the seal before it. And: may the end of the file be cut? What follows the last
// seal was never confirmed, the journal still holds it, so it is cut whatever it is; but a seal
// behind a broken place proves that the place was whole once: that is damage and is never cut.
//
// All seals lie under one key: to buntdb there is only the last.
const sealKey = "seal"

// seal is what the body of a seal's record says, in fixed widths, so that every seal has the same
// size and nothing else can be taken for one.
type seal struct {
	mark uint32 // of the file, drawn when it was made: clients, who cannot know it, cannot forge seals
	from int64  // end of the seal before, 0 for the first
	at   int64  // where this seal starts: it covers from to at
	crc  uint32 // CRC-32C of the bytes from to at
}

func (s seal) record() string {
	body := []byte("00000000 0000000000000000 0000000000000000 00000000")
	record.PutHex(body[:8], s.mark)
	record.PutDecimal(body[9:25], uint64(s.from))
	record.PutDecimal(body[26:42], uint64(s.at))
	record.PutHex(body[43:], s.crc)
	return string(record.Append(nil, sealKey, Item{Kind: record.SealKind, Body: record.View(body)}))
}

// bytes is the seal as it lies in a file.
func (s seal) bytes() []byte {
	rec := s.record()
	return fmt.Appendf(nil, "%s$%d\r\n%s\r\n$%d\r\n%s\r\n", setHead, len(sealKey), sealKey, len(rec), rec)
}

// firstSeal is what a new store's file begins with: it covers nothing.
func firstSeal() seal { return seal{mark: rand.Uint32()} }

var (
	sealRecordSize = len(seal{}.record())
	sealSize       = commandSize(len(sealKey), sealRecordSize)
	sealHead       = string(seal{}.bytes()[:sealSize-int64(sealRecordSize)-2])
)

// readSeal is the inverse of record.
func readSeal(rec string) (s seal, ok bool) {
	it, _, err := record.Decode(sealKey, rec)
	if err != nil || it.Kind != record.SealKind {
		return s, false
	}
	f := strings.Split(it.Body, " ")
	if len(rec) != sealRecordSize || len(f) != 4 {
		return s, false
	}
	mark, ok1 := record.ReadHex(f[0])
	from, ok2 := record.ReadDecimal(f[1])
	at, ok3 := record.ReadDecimal(f[2])
	crc, ok4 := record.ReadHex(f[3])
	return seal{mark, int64(from), int64(at), crc}, ok1 && ok2 && ok3 && ok4
}

// storeVisitor is told what is in a store's file, seals apart.
type storeVisitor interface {
	// set visits a command that sets an item, and where it lies in the file. The record's checksum is right.
	// Key and record are valid until passed is called.
	set(key, rec []byte, at fileRange) error
	// del visits a command that deletes an item. The key is valid during the call.
	del(key []byte) error
	// sealed says that all commands so far are confirmed.
	sealed() error
	// passed says that what has been visited is not valid any longer.
	passed() error
}

// keepsNothing is a visitor that needs what it visits during the call only.
type keepsNothing struct{}

func (keepsNothing) passed() error { return nil }

// fileRange is a range of a file.
type fileRange struct{ from, to int64 } // to excluded

// scanStore checks a store's file from its first byte to its last and gives the last seal and its end:
// what follows was never confirmed. Damage is a *DamageError. It takes constant memory without a visitor,
// and the size of the largest value with one.
func scanStore(f io.ReaderAt, name string, size int64, v storeVisitor) (last seal, end int64, err error) {
	c := newCommandReader(f, 0, size)
	rec := make([]byte, 0, sealRecordSize)
	var large []byte
	for {
		crc := c.crc
		var cmd command
		var err error
		key, value, quick := c.quick()
		if !quick {
			if v != nil {
				err = v.passed()
			}
			if err == nil {
				cmd, err = c.next()
			}
		}
		if err == io.EOF {
			break
		}
		// A delete of the seal precedes a compaction that did not come to its end; what follows goes on.
		if quick {
			if err = c.sound(key, value); err == nil && v != nil {
				err = v.set(key, value, fileRange{c.from, c.off})
			}
		} else if err == nil && string(cmd.key) == sealKey && !cmd.del {
			rec = rec[:0]
			if err = c.sealValue(cmd, &rec); err == nil {
				s, ok := readSeal(string(rec))
				if end == 0 {
					last.mark = s.mark
				}
				if want := (seal{last.mark, end, cmd.from, crc}); !ok || s != want {
					return last, 0, &DamageError{name, end, c.off, "the checksum of this range does not match"}
				}
				last, end, c.crc = s, c.off, 0
				if v != nil {
					err = v.sealed()
				}
			}
		} else if err == nil && !cmd.del && v == nil {
			err = c.record(cmd)
		} else if err == nil && !cmd.del {
			if large, err = c.recordInto(large[:0], cmd); err == nil {
				err = errors.Join(v.set(cmd.key, large, fileRange{c.from, c.off}), v.passed())
			}
		} else if err == nil && v != nil && string(cmd.key) != sealKey {
			err = v.del(cmd.key)
		}
		if err != nil {
			if err := judgeStore(f, name, last.mark, end, size, err); err != nil {
				return last, 0, err
			}
			break
		}
	}
	if end == 0 {
		return last, 0, &DamageError{name, 0, size, "there is no seal in it, although one is written when the file is made"}
	}
	return last, end, nil
}

// sealValue reads the value of what may only be a seal.
func (c *commandReader) sealValue(cmd command, rec *[]byte) error {
	if cmd.value != int64(sealRecordSize) {
		return c.broken("there is a seal of a wrong form")
	}
	return c.value(cmd, func(b []byte) { *rec = append(*rec, b...) })
}

// judgeStore decides about a store's file that breaks off: nil if all from the end of the last seal
// on may be cut.
func judgeStore(f io.ReaderAt, name string, mark uint32, end, size int64, err error) error {
	var b *breakOff
	if !errors.As(err, &b) {
		return err
	}
	_, later, err := search(f, end, size, sealHead, func(at int64) (bool, error) {
		if at+sealSize > size {
			return false, nil // it is itself cut short
		}
		text := make([]byte, sealSize-int64(len(sealHead)))
		if _, err := f.ReadAt(text, at+int64(len(sealHead))); err != nil {
			return false, err
		}
		rec, whole := strings.CutSuffix(string(text), "\r\n") // what follows the record may be all that is missing
		s, ok := readSeal(rec)
		return whole && ok && s.mark == mark, nil
	})
	if err != nil {
		return err
	}
	return b.verdict(f, name, size, later)
}

// sumRange gives the CRC-32C of a range of a file.
func sumRange(f io.ReaderAt, from, to int64) (crc uint32, err error) {
	buf := make([]byte, readSize)
	for from < to {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 {
			return 0, err
		}
		crc = crc32.Update(crc, record.Castagnoli, buf[:n])
		from += int64(n)
	}
	return crc, nil
}
