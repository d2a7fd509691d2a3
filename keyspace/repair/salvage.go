package repair

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
)

// What can be read of a file:
//
//  1. The seals are looked up, wherever they stand. One that carries the mark of the file, names its own place
//     and matches the range it covers proves that range, whatever lies around it.
//  2. Proven ranges are read command by command; nothing can go wrong there.
//  3. In the ranges between them each set is judged by its record's own checksum. Where there is no command any
//     more, the next is looked for.
//
// Stores and journals are read alike.

// remeasured is how many bytes are searched for the true end of a record with a wrong length.
const remeasured = 1 << 20

// store examines a store. With tail, what lies behind the last seal of a sound file is read, too.
func (w *examiner) store(tail bool) error {
	_, end, err := aof.Scan(w.f, w.path, w.report.Bytes, aof.Store, nil)
	if damaged, err := w.judge(err, w.report.Bytes); damaged || err != nil {
		return err
	}
	if err := w.proven(0, end); err != nil || end == w.report.Bytes {
		return err
	}
	if tail {
		// None of it was confirmed: it need not be right.
		quiet := *w
		quiet.problem = func(string, Problem) {}
		if _, err := quiet.unproven(end, w.report.Bytes); err != nil {
			return err
		}
	}
	w.torn(end)
	return nil
}

// journal examines a journal that follows the commit last (0: not known), and advances last.
func (w *examiner) journal(last *journal.LSN, newest bool) error {
	ignore := func(aof.Op) error { return nil }
	end, written, err := journal.Scan(w.f, w.path, w.report.Bytes, newest, last, ignore)
	if damaged, err := w.judge(err, written); damaged || err != nil {
		*last = max(*last, w.last)
		return err
	}
	if err := w.proven(0, end); err != nil {
		return err
	}
	if end < written {
		w.torn(end)
	}
	return nil
}

// judge takes the verdict of a start on a file, of which this many bytes were written. What can be read of a
// damaged one is read.
func (w *examiner) judge(verdict error, written int64) (damaged bool, err error) {
	var damage *aof.DamageError
	switch {
	case errors.As(verdict, &damage):
	case verdict == nil && w.f.failed != nil: // in what looks like a torn end
		damage = &aof.DamageError{File: w.path, From: w.f.at, To: w.f.to, Reason: w.f.failed.Error()}
	default:
		return false, verdict
	}
	w.report.State = Damaged
	return true, w.salvage(damage, written)
}

// salvage reads a damaged file, of which this many bytes were written.
func (w *examiner) salvage(damage *aof.DamageError, written int64) error {
	seals, standing, err := w.seals(written)
	if err != nil {
		return err
	}
	for _, s := range standing {
		w.last = max(w.last, journal.LSN(s.LSN))
	}
	at := int64(0)
	seals = append(seals, aof.Seal{From: written, At: -1}) // what is behind the last
	for _, s := range seals {
		if s.From < at {
			continue
		}
		if at < s.From {
			problems, err := w.unproven(at, s.From)
			if err != nil {
				return err
			}
			closed := slices.ContainsFunc(standing, func(z aof.Seal) bool { return z.From == at && z.At < s.From })
			switch {
			case problems > 0 && !closed:
				w.trouble(Problem{From: at, To: s.From, Reason: "its seal does not stand where this range should end: bytes have been inserted or taken out, and records with them"})
			case problems == 0:
				w.trouble(Problem{From: at, To: s.From, Reason: "the checksum of this range does not match, though all records in it do: deletes may be missing or wrong"})
			}
		}
		if s.At < 0 {
			break
		}
		if err := w.proven(s.From, s.At); err != nil {
			return err
		}
		at = s.At + aof.SealSize
	}
	if len(w.report.Problems) == 0 {
		w.trouble(Problem{From: damage.From, To: damage.To, Reason: damage.Reason})
	}
	return nil
}

// proven reads a range that a seal proves.
func (w *examiner) proven(from, to int64) error {
	c := aof.NewReader(w.f, from, to)
	for {
		ch, err := w.command(c)
		switch {
		case err == io.EOF:
			return nil
		case ignoreBreak(err) == nil && err != nil:
			w.trouble(Problem{From: c.From, To: to, Reason: err.Error()})
			return nil
		case err != nil:
			return err
		}
		ch.proven = true
		if err := w.deliver(c.From, c.Off, ch); err != nil {
			return err
		}
	}
}

// unproven reads a range in which anything may be wrong and returns how many problems it has met.
func (w *examiner) unproven(from, to int64) (problems int, err error) {
	before := len(w.report.Problems)
	for at := from; at < to && err == nil; {
		at, err = w.soundCommands(at, to)
	}
	return len(w.report.Problems) - before, err
}

// soundCommands reads commands up to the first that is not right, and returns where to go on.
func (w *examiner) soundCommands(from, to int64) (next int64, err error) {
	c := aof.NewReader(w.f, from, to)
	for {
		ch, err := w.command(c)
		if err == io.EOF {
			return to, nil
		}
		if ignoreBreak(err) != nil {
			return 0, err
		}
		sound := err == nil && (ch.del || record.SumHolds(ch.key, ch.rec))
		if sound {
			if err := w.deliver(c.From, c.Off, ch); err != nil {
				return 0, err
			}
			continue
		}
		return w.wrong(c, ch, to, err)
	}
}

// wrong deals with a command that is not right: as much of it as could be read is in ch.
func (w *examiner) wrong(c *aof.Reader, ch change, to int64, broken error) (next int64, err error) {
	key := strings.Clone(ch.key)
	if key == aof.SealKey {
		key = ""
	}
	if rec, end, ok := w.remeasure(c.From, to, key); ok {
		w.trouble(Problem{From: c.From, To: end, Reason: "a length was wrong; the record could be read by its checksum", Key: key, Rescued: true})
		return end, w.deliver(c.From, end, change{key: key, rec: rec})
	}
	reason := record.ErrSum.Error()
	whole := broken == nil
	if whole {
		whole, err = w.commandBegins(c.Off, to)
	} else {
		reason = broken.Error()
	}
	next = c.Off
	if !whole && err == nil {
		next, err = w.nextCommand(c.From+1, to)
	}
	if err != nil {
		return 0, err
	}
	if ch.key == aof.SealKey && !ch.del {
		reason = "a seal is damaged"
	}
	w.trouble(Problem{From: c.From, To: next, Reason: reason, Key: key})
	return next, nil
}

// command reads a command as it stands there, with no regard to checksums.
func (w *examiner) command(c *aof.Reader) (ch change, err error) {
	cmd, err := c.Next()
	if err != nil {
		return ch, err
	}
	ch.key, ch.del = record.View(cmd.Key), cmd.Del
	if cmd.Del {
		return ch, nil
	}
	w.buf, err = c.AppendValue(w.buf[:0], cmd)
	ch.rec = record.View(w.buf)
	return ch, err
}

// ignoreBreak returns nil for an error that tells where a file breaks off.
func ignoreBreak(err error) error {
	var b *aof.BreakError
	if err == io.EOF || errors.As(err, &b) {
		return nil
	}
	return err
}

// remeasure tries to read a record whose length is wrong: it ends where its checksum holds. Without
// that a wrong length could swallow the records behind it, or a value that looks like records be
// taken for some.
func (w *examiner) remeasure(from, to int64, key string) (rec string, end int64, ok bool) {
	if key == "" {
		return "", 0, false
	}
	start := from + aof.ValueOffset(len(key))
	window := make([]byte, max(0, min(to-start, remeasured)))
	n, err := w.f.ReadAt(window, start)
	if err != nil && err != io.EOF {
		return "", 0, false // reading it again will say why
	}
	window = window[:n]
	digits := bytes.Index(window[:min(n, 32)], []byte("\r\n"))
	if digits < 0 {
		return "", 0, false
	}
	value := window[digits+2:]
	begin := start + int64(digits+2)
	size, ok := recordEnd(key, value, "\r\n*")
	if !ok && begin+int64(len(value)) == to { // the last of the range
		size, ok = len(value)-len("\r\n"), record.SumHolds(key, record.View(value[:max(0, len(value)-len("\r\n"))]))
	}
	if !ok {
		return "", 0, false
	}
	return string(value[:size]), begin + int64(size+len("\r\n")), true
}

// recordEnd finds the place at which the record ends that lies under a key and begins with b: its
// checksum holds up to there, and this follows.
func recordEnd(key string, b []byte, follows string) (end int, ok bool) {
	if len(b) < record.SumTo {
		return 0, false
	}
	want, ok := record.ReadHex(record.View(b[record.SumFrom:record.SumTo]))
	if !ok {
		return 0, false
	}
	crc, end := record.Sum(0, key), record.SumTo
	for {
		k := bytes.Index(b[end:], []byte(follows))
		if k < 0 {
			return 0, false
		}
		crc, end = crc32.Update(crc, record.Castagnoli, b[end:end+k]), end+k
		if crc == want {
			return end, true
		}
		crc, end = crc32.Update(crc, record.Castagnoli, b[end:end+1]), end+1
	}
}

// commandBegins reports whether a command begins at a place, or the range ends there.
func (w *examiner) commandBegins(at, to int64) (bool, error) {
	if at == to {
		return true, nil
	}
	b := make([]byte, min(16, to-at))
	if _, err := w.f.ReadAt(b, at); err != nil && err != io.EOF {
		return false, err
	}
	return aof.BeginsCommand(b), nil
}

// nextCommand looks for the next place at which a command stands that can be trusted: a set with a
// right checksum, or a delete of what could be a key with another command behind it.
func (w *examiner) nextCommand(from, to int64) (int64, error) {
	const common = "\r\n$3\r\n" // of both commands
	before := int64(len("*3"))
	if from+before > to {
		return to, nil
	}
	var checker examiner // has a buffer of its own
	checker.f = w.f
	at, ok, err := aof.Search(w.f, from+before, to, common, func(at int64) (bool, error) {
		c := aof.NewReader(w.f, at-before, to)
		ch, err := checker.command(c)
		if err != nil {
			return false, ignoreBreak(err)
		}
		if !ch.del {
			return record.SumHolds(ch.key, ch.rec), nil
		}
		if w.fits(ch.key, "", true) != nil {
			return false, nil
		}
		return w.commandBegins(c.Off, to)
	})
	if err != nil || !ok {
		return to, err
	}
	return at - before, nil
}

// seals finds the seals that prove something, and those that stand where they say, in the order of their places.
func (w *examiner) seals(written int64) (proofs, standing []aof.Seal, err error) {
	var all []aof.Seal
	err = aof.EachSeal(w.f, 0, written, func(s aof.Seal) (stop bool) {
		all = append(all, s)
		return false
	})
	if err != nil {
		return nil, nil, err
	}
	mark, known := markOf(all)
	for _, s := range all {
		if !known || s.Mark != mark {
			continue // a value can be made to look like a seal, but clients do not know the mark
		}
		standing = append(standing, s)
		sum, err := aof.SumRange(w.f, s.From, s.At)
		if err != nil {
			return nil, nil, err
		}
		if sum == s.Sum {
			proofs = append(proofs, s)
		}
	}
	return proofs, standing, nil
}

// markOf returns the mark of a file by the seals that stand in it: that of the seal it begins with, or else of
// more than half. No value of a client stands at the beginning.
func markOf(seals []aof.Seal) (mark uint32, ok bool) {
	count := make(map[uint32]int)
	for _, s := range seals {
		if s.At == 0 {
			return s.Mark, true
		}
		count[s.Mark]++
	}
	for mark, n := range count {
		if 2*n > len(seals) {
			return mark, true
		}
	}
	return 0, false
}
