package aof

import (
	"errors"
	"io"
	"sync"

	"mayfly/keyspace/record"
)

// Range is a range of a file in bytes, To excluded.
type Range struct{ From, To int64 }

// Visitor receives what is in a file, in order, seals apart. An error of a method ends the scan.
type Visitor interface {
	// Set visits a command that sets an item, and its range. The record's checksum is right.
	// Key and record are valid until Passed is called.
	Set(key, rec []byte, at Range) error
	// Del visits a command that deletes an item. The key is valid during the call.
	Del(key []byte) error
	// Sealed reports that all commands so far are confirmed.
	Sealed(s Seal) error
	// Passed reports that the keys and records visited so far are no longer valid.
	Passed() error
}

// discard is a [Visitor] that ignores everything.
type discard struct{}

func (discard) Set(key, rec []byte, at Range) error { return nil }
func (discard) Del(key []byte) error                { return nil }
func (discard) Sealed(s Seal) error                 { return nil }
func (discard) Passed() error                       { return nil }

// Use is what a file is for: it decides what its seals must say.
type Use int

// The uses of files.
const (
	Store   Use = iota // each range is on disk before its seal is written
	Journal            // begins with a seal of nothing; a range and its seal are written together
)

// Scan checks a file from its first byte to its last. It returns the last seal and the offset of its
// end: what follows was never confirmed. Damage is a *[DamageError] that names the file.
//
// It needs memory for the largest record. The visitor may be nil.
func Scan(f io.ReaderAt, name string, size int64, use Use, v Visitor) (last Seal, end int64, err error) {
	if v == nil {
		v = discard{}
	}
	return scan(f, name, 0, size, use, &scanner{v: v})
}

// scan scans a range of a file. A scanner that begins behind the first seal knows its mark and the end of the
// seal there.
func scan(f io.ReaderAt, name string, from, size int64, use Use, s *scanner) (last Seal, end int64, err error) {
	s.r, s.use = NewReader(f, from, size), use
	err = s.run()
	var broken *BreakError
	switch {
	case errors.As(err, &broken):
		err = judge(f, name, s.last.Mark, s.end, size, broken)
	case errors.Is(err, errSpliced):
		err = &DamageError{name, s.end, s.r.Off, err.Error()}
	}
	if err == nil && s.end == 0 {
		reason := "there is no seal in it"
		if size == 0 {
			reason = "it is empty"
		}
		err = &DamageError{name, 0, size, reason + ", although a seal is written when the file is made"}
	}
	return s.last, s.end, err
}

// errSpliced is the error for a whole seal that belongs to another place or another file.
var errSpliced = errors.New("there is a seal of another place, another file or another kind of file")

type scanner struct {
	r    *Reader
	use  Use
	v    Visitor
	last Seal
	end  int64  // of the last seal
	buf  []byte // record that does not fit the reader's buffer, or a seal's
}

// run reads up to the end of the file or to where it breaks off.
func (s *scanner) run() error {
	for {
		err := s.step()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step reads one command.
func (s *scanner) step() error {
	r := s.r
	sum := r.Sum // of what the next seal covers, if the next command is one
	if key, rec, ok := r.quick(); ok {
		if err := r.checkRecord(key, rec); err != nil {
			return err
		}
		return s.v.Set(key, rec, Range{r.From, r.Off})
	}
	if err := s.v.Passed(); err != nil {
		return err
	}
	cmd, err := r.Next()
	switch {
	case err != nil:
		return err
	case string(cmd.Key) == SealKey && !cmd.Del:
		return s.takeSeal(cmd, sum)
	case cmd.Del && string(cmd.Key) == SealKey:
		return r.broken("a seal is deleted")
	case cmd.Del:
		return s.v.Del(cmd.Key)
	}
	if s.buf, err = r.AppendValue(s.buf[:0], cmd); err != nil {
		return err
	}
	if err := r.checkRecord(cmd.Key, s.buf); err != nil {
		return err
	}
	return errors.Join(s.v.Set(cmd.Key, s.buf, Range{r.From, r.Off}), s.v.Passed())
}

// takeSeal reads a seal and compares it with the range that it covers, which has this checksum.
func (s *scanner) takeSeal(cmd Command, sum uint32) (err error) {
	if cmd.Value != int64(sealRecordSize) {
		return s.r.broken("there is a seal of a wrong form")
	}
	if s.buf, err = s.r.AppendValue(s.buf[:0], cmd); err != nil {
		return err
	}
	seal, ok := ReadSeal(record.View(s.buf))
	switch {
	case !ok:
		return &BreakError{Before: s.r.From, At: s.r.From, To: s.r.Off, Reason: "a seal is damaged"}
	case s.end > 0 && seal.Mark != s.last.Mark || seal.From != s.end || seal.At != cmd.From || !seal.fits(s.use):
		return errSpliced
	case seal.Sum != sum:
		return &BreakError{Before: s.end, At: s.end, To: s.r.Off, Reason: "the checksum of this range does not match"}
	}
	s.last, s.end, s.r.Sum = seal, s.r.Off, 0
	return s.v.Sealed(seal)
}

// Confirmed is a [Visitor] that keeps changes until a seal confirms them.
type Confirmed struct {
	Visit  func(Op) error   // receives each change; its strings are valid during the call
	OnSeal func(Seal) error // called before the changes that the seal confirms; nil: not called

	waiting []Op
	texts   []byte            // the current page
	pages   []*[pageSize]byte // hold all texts but the large ones
}

// Pages are reused: a start keeps the changes of many files until their seals, and would otherwise leave as
// much garbage as it loads data.
const pageSize = 64 << 10 // bytes

var pages = sync.Pool{New: func() any { return new([pageSize]byte) }}

// Set implements [Visitor].
func (c *Confirmed) Set(key, rec []byte, _ Range) error {
	text := c.keep(key, rec)
	c.waiting = append(c.waiting, Op{Key: text[:len(key)], Rec: text[len(key):]})
	return nil
}

// Del implements [Visitor].
func (c *Confirmed) Del(key []byte) error {
	c.waiting = append(c.waiting, Op{Key: c.keep(key, nil), Del: true})
	return nil
}

// keep copies a text in two parts into a page.
func (c *Confirmed) keep(key, rec []byte) string {
	size := len(key) + len(rec)
	switch free := cap(c.texts) - len(c.texts); {
	case size > pageSize:
		return record.View(append(append(make([]byte, 0, size), key...), rec...))
	case size > free:
		p := pages.Get().(*[pageSize]byte)
		c.pages = append(c.pages, p)
		c.texts = p[:0]
	}
	from := len(c.texts)
	c.texts = append(append(c.texts, key...), rec...)
	return record.View(c.texts[from:])
}

// Sealed implements [Visitor].
func (c *Confirmed) Sealed(s Seal) error {
	if c.OnSeal != nil {
		if err := c.OnSeal(s); err != nil {
			return err
		}
	}
	for i, o := range c.waiting {
		if err := c.Visit(o); err != nil {
			return err
		}
		c.waiting[i] = Op{} // frees a large text
	}
	c.waiting, c.texts = c.waiting[:0], nil
	for _, p := range c.pages {
		pages.Put(p)
	}
	c.pages = c.pages[:0]
	return nil
}

// Passed implements [Visitor].
func (c *Confirmed) Passed() error { return nil }
