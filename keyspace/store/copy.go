package store

import (
	"encoding/binary"
	"errors"
	"hash/maphash"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// CopyOptions say what Copy copies.
type CopyOptions struct {
	// Scan visits the file and verifies it. Copy calls it twice.
	Scan func(v aof.Visitor) error
	// Gone reports whether the last record of a key need not be copied. Its arguments are valid during the
	// call. It may be nil.
	Gone  func(key, rec []byte) bool
	Pacer *Pacer
}

// Copy makes a file of the live items of a store's file, sealed as a whole behind a first seal, and on disk:
// the last set of each key that no delete follows. It returns the mark and the end of the new file. After an
// error the new file may be there in part.
func Copy(fsys vfs.FS, to string, opt CopyOptions) (mark uint32, end int64, err error) {
	last := lastSets{pacer: opt.Pacer, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, at: make(map[hashedKey]int64)}
	if err := opt.Scan(&last); err != nil {
		return 0, 0, err
	}
	f, err := vfs.CreateNew(fsys, to)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() // what counts is on disk
	return copyLast(f, &last, opt)
}

func copyLast(f vfs.File, last *lastSets, opt CopyOptions) (mark uint32, end int64, err error) {
	c := lastCopier{lastSets: last, opt: opt, to: checksumWriter{f: f}}
	if err := errors.Join(c.to.begin(), opt.Scan(&c)); err != nil {
		return 0, 0, err
	}
	seal, err := c.to.finish(last.lsn)
	return seal.Mark, seal.At + aof.SealSize, err
}

// hashedKey stands for a key. Two keys share one with a probability of 2 to the power of -128.
type hashedKey [16]byte

// lastSets is a visitor that finds the last set of each key. It takes about 50 bytes a key.
type lastSets struct {
	pacer *Pacer
	seeds [2]maphash.Seed
	at    map[hashedKey]int64 // offset of the last set
	lsn   uint64              // of the last seal
}

func (l *lastSets) hash(key []byte) (h hashedKey) {
	binary.NativeEndian.PutUint64(h[:8], maphash.Bytes(l.seeds[0], key))
	binary.NativeEndian.PutUint64(h[8:], maphash.Bytes(l.seeds[1], key))
	return h
}

func (l *lastSets) Set(key, _ []byte, at aof.Range) error {
	l.at[l.hash(key)] = at.From
	l.pacer.Read(at.To - at.From)
	return nil
}

func (l *lastSets) Del(key []byte) error {
	delete(l.at, l.hash(key))
	return nil
}

func (l *lastSets) Sealed(s aof.Seal) error {
	l.lsn = s.LSN
	return nil
}

func (l *lastSets) Passed() error { return nil }

// lastCopier is a visitor that copies the last sets.
type lastCopier struct {
	*lastSets
	opt CopyOptions
	to  checksumWriter
}

func (c *lastCopier) Set(key, rec []byte, at aof.Range) error {
	c.pacer.Read(at.To - at.From)
	if from, ok := c.at[c.hash(key)]; !ok || from != at.From || c.opt.Gone != nil && c.opt.Gone(key, rec) {
		return nil
	}
	c.pacer.Wrote(at.To - at.From)
	return c.to.set(aof.Op{Key: record.View(key), Rec: record.View(rec)})
}

func (c *lastCopier) Del([]byte) error      { return nil }
func (c *lastCopier) Sealed(aof.Seal) error { return nil }
