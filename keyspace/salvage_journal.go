package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"mayfly/keyspace/record"
)

// journal examines a journal that follows a commit (0: not known), and gives the last commit in it.
func (w *walker) journal(after LSN, newest bool) (last LSN, err error) {
	// First as a start does, without visiting.
	r := replayer{last: after, visit: func(key, rec string, deleted bool) error { return w.fits(key, rec, deleted) }}
	written := w.report.Bytes
	if newest {
		if written, err = withoutZeros(w.f, written); err != nil {
			return 0, err
		}
	}
	end := written
	err = r.read(w.f, w.path, end)
	var broken *breakOff
	var damage *DamageError
	switch {
	case err == nil:
	case errors.As(err, &broken) && newest:
		if err = judgeJournal(w.f, w.path, broken, r.mark, end); err == nil {
			end = broken.at
		} else if !errors.As(err, &damage) {
			return 0, err
		}
	case errors.As(err, &broken), errors.As(err, &damage):
	case isSystemError(err):
		return 0, err
	}
	if err == nil && w.f.failed != nil { // in what looks like a torn end
		err, end = w.f.failed, written
	}
	if err != nil {
		w.report.State = Damaged
	}
	s := journalSalvage{walker: w, end: end, last: after}
	if failed := s.read(); failed != nil {
		return 0, failed
	}
	switch {
	case w.report.State == Damaged && len(w.report.Problems) == 0:
		w.trouble(Problem{To: end, Reason: err.Error()})
	case w.report.State == Sound && end < written:
		w.torn(end)
	}
	return s.last, nil
}

// isSystemError tells an error of the operating system from what is wrong with a file's content.
func isSystemError(err error) bool {
	var e interface{ Timeout() bool } // what all of them have in common
	return errors.As(err, &e)
}

// journalSalvage reads what can be read of a journal: of the commits between which all is as it was
// written, everything; of the ranges between them, each set that its own checksum proves.
type journalSalvage struct {
	*walker
	end  int64 // of what is read
	mark uint32
	last LSN
	r    replayer
}

func (s *journalSalvage) read() error {
	if err := s.findMark(); err != nil {
		return err
	}
	for at := int64(0); at < s.end; {
		c := newCommitReader(s.f, at, s.end)
		h, err := s.r.commit(c)
		if ignoreBreakOff(err) != nil {
			return err
		}
		if err == nil && at == 0 && h.isHead() {
			at = c.off
			continue
		}
		if err == nil && h.mark == s.mark && h.ticket > s.last {
			if s.last != 0 && h.ticket != s.last+1 {
				s.trouble(Problem{From: at, To: at, Reason: fmt.Sprintf("commits %d to %d are missing", s.last+1, h.ticket-1)})
			}
			entries := entries{journalSalvage: s, b: s.r.value[commitHeaderSize:], proven: true, aligned: true}
			entries.base = c.off - int64(len("\r\n")+len(entries.b))
			if err := entries.deliver(); err != nil {
				return err
			}
			s.last, at = h.ticket, c.off
			continue
		}
		reason := "there is a commit of another file"
		if err != nil {
			reason = err.Error()
		}
		if at, err = s.lost(at, reason); err != nil {
			return err
		}
	}
	return nil
}

// findMark finds the mark of the file: that of its first commit, or, if that one is damaged, of most
// behind it. What clients have written into it does not count.
func (s *journalSalvage) findMark() error {
	h, end, err := extent(s.f, 0, s.end)
	if ignoreBreakOff(err) != nil {
		return err
	}
	from := int64(0)
	if err == nil {
		if _, err := s.r.commit(newCommitReader(s.f, 0, s.end)); err == nil {
			s.mark = h.mark
			return nil
		} else if ignoreBreakOff(err) != nil {
			return err
		}
		s.mark, from = h.mark, end
	}
	marks := make(map[uint32]int)
	_, _, err = s.nextCommit(from, func(h commitHeader) bool {
		marks[h.mark]++
		if marks[h.mark] >= marks[s.mark] {
			s.mark = h.mark
		}
		return false
	})
	return err
}

// nextCommit looks for a commit that is right and that is the one wanted. What a right one holds is
// not searched: no other begins within it.
func (s *journalSalvage) nextCommit(from int64, wanted func(h commitHeader) bool) (at int64, ok bool, err error) {
	var r replayer
	return search(s.f, from, s.end, commitHead, func(at int64) (bool, error) {
		if at < from {
			return false, nil
		}
		c := newCommitReader(s.f, at, s.end)
		h, err := r.commit(c)
		if err != nil {
			return false, ignoreBreakOff(err)
		}
		from = c.off
		return wanted(h), nil
	})
}

// lost deals with a range that begins with a damaged commit, and tells where the next right one is.
func (s *journalSalvage) lost(from int64, reason string) (next int64, err error) {
	next, ok, err := s.nextCommit(from+1, func(h commitHeader) bool { return h.mark == s.mark && h.ticket > s.last })
	if err != nil {
		return 0, err
	}
	if !ok {
		next = s.end
	}
	s.trouble(Problem{From: from, To: next, Reason: reason + "; what its sets' own checksums prove is read"})
	region := make([]byte, next-from)
	if _, err := s.f.ReadAt(region, from); err != nil && err != io.EOF {
		return 0, err
	}
	e := entries{journalSalvage: s, b: region, base: from}
	c := newCommitReader(s.f, from, s.end)
	if _, _, err := s.r.header(c); err == nil && c.off <= next {
		e.at, e.aligned = int(c.off-from), true
	}
	return next, e.deliver()
}

// entries are those of a commit, or what a range holds in which anything may be wrong.
type entries struct {
	*journalSalvage
	b       []byte
	base    int64 // of b in the file
	proven  bool
	at      int  // where to go on in b
	aligned bool // an entry begins there
}

// deliver hands on all that can be read.
func (e *entries) deliver() error {
	for e.at < len(e.b) && string(e.b[e.at:]) != "\r\n" {
		if !e.aligned && !e.find() {
			return nil
		}
		if err := e.one(); err != nil {
			return err
		}
	}
	return nil
}

// one deals with what should be an entry.
func (e *entries) one() error {
	from := e.at
	c := finding{proven: e.proven}
	entry, ok := cutEntry(e.b[from:])
	if ok {
		e.at += entry.size
		c.key, c.del = string(entry.text[:entry.keySize]), entry.deleted
		if !c.del {
			c.rec = string(entry.text[entry.keySize+1:])
		}
		ok = e.proven || e.begins(e.at)
	}
	if !ok || !c.del && !record.SumHolds(c.key, c.rec) {
		size := 0
		c.key, c.rec, size = remeasureEntry(e.b[from:])
		c.del = false
		e.aligned = size > 0 || ok
		switch {
		case size > 0:
			e.at = from + size
		case ok: // the next entry is where it should be: only this one is wrong
			c.key = string(entry.text[:entry.keySize])
			e.trouble(Problem{From: e.base + int64(from), To: e.base + int64(e.at), Reason: record.ErrSum.Error(), Key: c.key})
			return nil
		default:
			e.at = from + 1
			return nil
		}
	}
	return e.walker.deliver(e.base+int64(from), e.base+int64(e.at), c)
}

// remeasureEntry tries to read a set with a wrong length: it ends where its checksum holds. size is that
// of the entry; 0 if it cannot be read.
func remeasureEntry(b []byte) (key, rec string, size int) {
	if b[0] != '+' {
		return "", "", 0
	}
	keySize, rest, ok := cutNumber(b[1:])
	space := bytes.IndexByte(rest[:min(len(rest), maxDigits)], ' ')
	if !ok || space < 0 || keySize+1 >= len(rest)-space-1 {
		return "", "", 0
	}
	rest = rest[space+1:]
	key, value := string(rest[:keySize]), rest[keySize+1:]
	end, ok := recordEnd(key, value, "\n")
	if !ok {
		return "", "", 0
	}
	return key, string(value[:end]), len(b) - len(value) + end + 1
}

// begins tells whether what stands at a place can be an entry or the end of a commit.
func (e *entries) begins(at int) bool {
	if at == len(e.b) || bytes.HasPrefix(e.b[at:], []byte("\r\n")) {
		return true
	}
	_, ok := cutEntry(e.b[at:])
	return ok
}

// find goes to the next place at which an entry stands that can be trusted: a set with a right
// checksum, or a delete of what could be a key with something behind it that could be an entry.
func (e *entries) find() bool {
	for i := max(e.at, 1); i < len(e.b); i++ {
		if e.b[i] != '+' && e.b[i] != '-' || e.b[i-1] != '\n' && e.b[i-1] != ' ' {
			continue
		}
		entry, ok := cutEntry(e.b[i:])
		if !ok {
			continue
		}
		key := string(entry.text[:entry.keySize])
		if entry.deleted && e.fits(key, "", true) == nil && e.begins(i+entry.size) ||
			!entry.deleted && record.SumHolds(key, string(entry.text[entry.keySize+1:])) {
			e.at, e.aligned = i, true
			return true
		}
	}
	return false
}
