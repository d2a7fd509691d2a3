package keyspace

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"mayfly/keyspace/record"
)

// Reading what can be read of a store:
//
//  1. The seals are looked up, wherever they stand. One that carries the mark of the file, names its
//     own place and matches the range it covers proves that range, whatever lies around it.
//  2. Proven ranges are read command by command; nothing can go wrong there.
//  3. In the ranges between them every set is judged by its record's own checksum. Where there is no
//     command any more, the next is looked for.

// remeasured is how many bytes are searched for the true end of a record with a wrong length.
const remeasured = 1 << 20

// store examines a store. With tail, what lies behind the last seal of a sound file is read, too.
func (w *walker) store(tail bool) error {
	_, end, err := scanStore(w.f, w.path, w.report.Bytes, nil)
	var damage *DamageError
	if errors.As(err, &damage) {
		w.report.State = Damaged
		return w.salvageStore(damage)
	}
	if err == nil && w.f.failed != nil { // in what looks like a torn end
		w.report.State = Damaged
		return w.salvageStore(&DamageError{w.path, w.f.at, w.f.to, w.f.failed.Error()})
	}
	if err != nil {
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

// salvageStore reads a damaged store.
func (w *walker) salvageStore(damage *DamageError) error {
	seals, standing, err := w.seals()
	if err != nil {
		return err
	}
	at := int64(0)
	seals = append(seals, seal{from: w.report.Bytes, at: -1}) // what is behind the last
	for _, s := range seals {
		if s.from < at {
			continue
		}
		if at < s.from {
			problems, err := w.unproven(at, s.from)
			if err != nil {
				return err
			}
			closed := slices.ContainsFunc(standing, func(z seal) bool { return z.from == at && z.at < s.from })
			switch {
			case problems > 0 && !closed:
				w.trouble(Problem{From: at, To: s.from, Reason: "its seal does not stand where this range should end: bytes have been inserted or taken out, and records with them"})
			case problems == 0:
				w.trouble(Problem{From: at, To: s.from, Reason: "the checksum of this range does not match, though all records in it do: deletes may be missing or wrong"})
			}
		}
		if s.at < 0 {
			break
		}
		if err := w.proven(s.from, s.at); err != nil {
			return err
		}
		at = s.at + sealSize
	}
	if len(w.report.Problems) == 0 {
		w.trouble(Problem{From: damage.From, To: damage.To, Reason: damage.Reason})
	}
	return nil
}

// proven reads a range that a seal proves.
func (w *walker) proven(from, to int64) error {
	c := newCommandReader(w.f, from, to)
	for {
		ch, err := w.command(c)
		switch {
		case err == io.EOF:
			return nil
		case ignoreBreakOff(err) == nil && err != nil:
			w.trouble(Problem{From: c.from, To: to, Reason: err.Error()})
			return nil
		case err != nil:
			return err
		}
		ch.proven = true
		if err := w.deliver(c.from, c.off, ch); err != nil {
			return err
		}
	}
}

// unproven reads a range in which anything may be wrong and tells how many problems it has met.
func (w *walker) unproven(from, to int64) (problems int, err error) {
	before := len(w.report.Problems)
	for at := from; at < to && err == nil; {
		at, err = w.stretch(at, to)
	}
	return len(w.report.Problems) - before, err
}

// stretch reads commands up to the first that is not right, and tells where to go on.
func (w *walker) stretch(from, to int64) (next int64, err error) {
	c := newCommandReader(w.f, from, to)
	for {
		ch, err := w.command(c)
		if err == io.EOF {
			return to, nil
		}
		if ignoreBreakOff(err) != nil {
			return 0, err
		}
		sound := err == nil && (ch.del || record.SumHolds(ch.key, ch.rec))
		if sound {
			if err := w.deliver(c.from, c.off, ch); err != nil {
				return 0, err
			}
			continue
		}
		return w.wrong(c, ch, to, err)
	}
}

// wrong deals with a command that is not right: as much of it as could be read is in ch.
func (w *walker) wrong(c *commandReader, ch finding, to int64, broken error) (next int64, err error) {
	key := strings.Clone(ch.key)
	if key == sealKey {
		key = ""
	}
	if rec, end, ok := w.remeasure(c.from, to, key); ok {
		w.trouble(Problem{From: c.from, To: end, Reason: "a length was wrong; the record could be read by its checksum", Key: key, Rescued: true})
		return end, w.deliver(c.from, end, finding{key: key, rec: rec})
	}
	reason := record.ErrSum.Error()
	whole := broken == nil
	if whole {
		whole, err = w.commandBegins(c.off, to)
	} else {
		reason = broken.Error()
	}
	next = c.off
	if !whole && err == nil {
		next, err = w.nextCommand(c.from+1, to)
	}
	if err != nil {
		return 0, err
	}
	if ch.key == sealKey && !ch.del {
		reason = "a seal is damaged"
	}
	w.trouble(Problem{From: c.from, To: next, Reason: reason, Key: key})
	return next, nil
}

// command reads a command as it stands there, with no regard to checksums.
func (w *walker) command(c *commandReader) (ch finding, err error) {
	cmd, err := c.next()
	if err != nil {
		return ch, err
	}
	ch.key, ch.del = record.View(cmd.key), cmd.del
	if cmd.del {
		return ch, nil
	}
	if cmd.value > c.size-c.off {
		return ch, c.failed(io.EOF)
	}
	w.buf = slices.Grow(w.buf[:0], int(cmd.value))
	err = c.value(cmd, func(b []byte) { w.buf = append(w.buf, b...) })
	ch.rec = record.View(w.buf)
	return ch, err
}

// remeasure tries to read a record whose length is wrong: it ends where its checksum holds. Without
// that a wrong length could swallow the records behind it, or a value that looks like records be
// taken for some.
func (w *walker) remeasure(from, to int64, key string) (rec string, end int64, ok bool) {
	if key == "" {
		return "", 0, false
	}
	start := from + int64(len(setHead)+len("$\r\n\r\n$")+len(key)+decimalLength(len(key)))
	window := make([]byte, max(0, min(to-start, remeasured)))
	n, err := w.f.ReadAt(window, start)
	if err != nil && err != io.EOF {
		return "", 0, false // reading it again will say why
	}
	window = window[:n]
	digits := bytes.Index(window[:min(n, 2*peekSize)], []byte("\r\n"))
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

func decimalLength(n int) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return digits
}

func beginsCommand(b []byte) bool {
	return bytes.HasPrefix(b, []byte(setHead)) || bytes.HasPrefix(b, []byte(delHead))
}

// commandBegins tells whether a command begins at a place, or the range ends there.
func (w *walker) commandBegins(at, to int64) (bool, error) {
	if at == to {
		return true, nil
	}
	b := make([]byte, min(int64(len(setHead)), to-at))
	if _, err := w.f.ReadAt(b, at); err != nil && err != io.EOF {
		return false, err
	}
	return beginsCommand(b), nil
}

// nextCommand looks for the next place at which a command stands that can be trusted: a set with a
// right checksum, or a delete of what could be a key with another command behind it.
func (w *walker) nextCommand(from, to int64) (int64, error) {
	const common = "\r\n$3\r\n" // of both commands
	before := int64(len("*3"))
	if from+before > to {
		return to, nil
	}
	var checker walker // has a buffer of its own
	checker.f = w.f
	at, ok, err := search(w.f, from+before, to, common, func(at int64) (bool, error) {
		c := newCommandReader(w.f, at-before, to)
		ch, err := checker.command(c)
		if err != nil {
			return false, ignoreBreakOff(err)
		}
		if !ch.del {
			return record.SumHolds(ch.key, ch.rec), nil
		}
		if w.fits(ch.key, "", true) != nil {
			return false, nil
		}
		return w.commandBegins(c.off, to)
	})
	if err != nil || !ok {
		return to, err
	}
	return at - before, nil
}

// seals finds the seals that prove something, and those that stand where they say, in the order of their places.
func (w *walker) seals() (proofs, standing []seal, err error) {
	var all []seal
	marks := make(map[uint32]int)
	size := w.report.Bytes
	_, _, err = search(w.f, 0, size, sealHead, func(at int64) (bool, error) {
		rec := make([]byte, sealRecordSize)
		if _, err := w.f.ReadAt(rec, at+int64(len(sealHead))); err != nil {
			if err == io.EOF {
				err = nil // cut short
			}
			return false, err
		}
		if s, ok := readSeal(string(rec)); ok && s.at == at && s.from <= at {
			all = append(all, s)
			marks[s.mark]++
		}
		return false, nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if marks[s.mark]*2 <= len(all) {
			continue // not the file's: a value can be made to look like a seal, but not know the mark
		}
		standing = append(standing, s)
		crc, err := sumRange(w.f, s.from, s.at)
		if err != nil {
			return nil, nil, err
		}
		if crc == s.crc {
			proofs = append(proofs, s)
		}
	}
	return proofs, standing, nil
}
