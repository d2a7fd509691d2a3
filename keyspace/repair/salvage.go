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

// A damaged file, store or journal, is read in three steps:
//
//  1. Find all seals. A seal with the mark of the file, its own offset and the right checksum proves its
//     range, whatever lies around it.
//  2. Read proven ranges command by command.
//  3. In the ranges between them, judge each set by the checksum of its record. Behind a broken command
//     search for the next one.

// remeasured is the number of bytes that are searched for the true end of a record with a wrong length.
const remeasured = 1 << 20

// store reads a store. With tail it also reads behind the last seal of a sound file.
func (r *fileReader) store(tail bool) error {
	last, end, err := aof.Scan(r.f, r.path, r.report.Bytes, aof.Store, nil)
	if damaged, err := r.judge(err, last.Mark, end, r.report.Bytes); damaged || err != nil {
		return err
	}
	if err := r.proven(0, end); err != nil || end == r.report.Bytes {
		return err
	}
	if tail {
		// It was never confirmed, so errors in it are no problems.
		quiet := *r
		quiet.problem = func(string, Problem) {}
		if _, err := quiet.unproven(end, r.report.Bytes); err != nil {
			return err
		}
	}
	r.torn(end)
	return nil
}

// journal reads a journal that follows the commit last (0: not known), and advances last.
func (r *fileReader) journal(last *journal.LSN, newest bool) error {
	ignore := func(aof.Op) error { return nil }
	seal, end, written, err := journal.Scan(r.f, r.path, r.report.Bytes, newest, last, ignore)
	if damaged, err := r.judge(err, seal.Mark, end, written); damaged || err != nil {
		*last = max(*last, r.last)
		return err
	}
	if err := r.proven(0, end); err != nil {
		return err
	}
	if end < written {
		r.torn(end)
	}
	return nil
}

// judge reports whether the file is damaged, by the verdict of a start or by the manifest. It salvages a
// damaged one. mark is that of the file, end is behind its last seal, and written is its size without the
// zeros at the end.
func (r *fileReader) judge(verdict error, mark uint32, end, written int64) (damaged bool, err error) {
	var damage *aof.DamageError
	switch {
	case errors.As(verdict, &damage):
	case verdict == nil && r.check != nil && errors.As(r.check(mark, end), &damage):
		r.report.State = Damaged
		err := r.salvage(damage, written)
		// What is missing came after everything that can be read.
		r.reportDamage(Problem{From: damage.From, To: damage.To, Reason: damage.Reason})
		return true, err
	case verdict == nil && r.f.failed != nil: // in what looks like a torn end
		damage = &aof.DamageError{File: r.path, From: r.f.at, To: r.f.to, Reason: r.f.reason()}
	default:
		return false, verdict
	}
	r.report.State = Damaged
	return true, r.salvage(damage, written)
}

// salvage reads a damaged file of this many bytes.
func (r *fileReader) salvage(damage *aof.DamageError, written int64) error {
	r.verdict = damage
	seals, standing, err := r.seals(written)
	if err != nil {
		return err
	}
	for _, s := range standing {
		r.last = max(r.last, journal.LSN(s.LSN))
	}
	at := int64(0)
	seals = append(seals, aof.Seal{From: written, At: -1}) // for the range behind the last
	for _, s := range seals {
		if s.From < at {
			continue
		}
		if at < s.From {
			problems, err := r.unproven(at, s.From)
			if err != nil {
				return err
			}
			closed := slices.ContainsFunc(standing, func(z aof.Seal) bool { return z.From == at && z.At < s.From })
			switch {
			case problems > 0 && !closed:
				r.doubtRange(at, s.From)
			case problems == 0 && s.At < 0:
				r.reportDamage(Problem{From: at, To: s.From, Reason: "no seal confirms this range, though all records in it are sound: deletes may be missing"})
			case problems == 0:
				r.reportDamage(Problem{From: at, To: s.From, Reason: "the checksum of this range does not match, though all records in it do: deletes may be missing or wrong"})
			}
		}
		if s.At < 0 {
			break
		}
		if err := r.proven(s.From, s.At); err != nil {
			return err
		}
		at = s.At + aof.SealSize
	}
	if r.found == 0 {
		r.reportDamage(Problem{From: damage.From, To: damage.To, Reason: damage.Reason})
	}
	return nil
}

// doubtRange reports that records may be missing in a range with problems, whose seal is not where it should
// end: bytes have been inserted or removed. It adds that to the first problem in the range.
func (r *fileReader) doubtRange(from, to int64) {
	for _, p := range r.report.Problems {
		if from < p.To && p.From < to {
			p.Key, p.Rescued = "", false
			r.reportDamage(p)
			return
		}
	}
}

// proven reads a range that a seal proves.
func (r *fileReader) proven(from, to int64) error {
	c := aof.NewReader(r.f, from, to)
	for {
		ch, err := r.command(c)
		switch {
		case err == io.EOF:
			return nil
		case ignoreBreak(err) == nil && err != nil:
			r.reportDamage(Problem{From: c.From, To: to, Reason: err.Error()})
			return nil
		case err != nil:
			return err
		}
		ch.proven = true
		if err := r.deliver(c.From, c.Off, ch); err != nil {
			return err
		}
	}
}

// unproven reads a range in which anything may be wrong and returns the number of problems in it.
func (r *fileReader) unproven(from, to int64) (problems int, err error) {
	before := r.found
	for at := from; at < to && err == nil; {
		at, err = r.soundCommands(at, to)
	}
	return r.found - before, err
}

// soundCommands reads commands up to the first broken one, and returns the offset of the next to try.
func (r *fileReader) soundCommands(from, to int64) (next int64, err error) {
	c := aof.NewReader(r.f, from, to)
	for {
		ch, err := r.command(c)
		if err == io.EOF {
			return to, nil
		}
		if ignoreBreak(err) != nil {
			return 0, err
		}
		sound := err == nil && (ch.del || record.SumHolds(ch.key, ch.rec))
		if sound {
			if err := r.deliver(c.From, c.Off, ch); err != nil {
				return 0, err
			}
			continue
		}
		return r.skipBroken(c, ch, to, err)
	}
}

// skipBroken rescues or reports a broken command and returns the offset of the next to try. ch has the part
// that could be read.
func (r *fileReader) skipBroken(c *aof.Reader, ch change, to int64, broken error) (next int64, err error) {
	key := strings.Clone(ch.key)
	if key == aof.SealKey {
		key = ""
	}
	if rec, end, ok := r.remeasure(c.From, to, key); ok {
		r.reportDamage(Problem{From: c.From, To: end, Reason: "a length was wrong; the record could be read by its checksum", Key: key, Rescued: true})
		return end, r.deliver(c.From, end, change{key: key, rec: rec})
	}
	reason := record.ErrSum.Error()
	whole := broken == nil
	if whole {
		whole, err = r.commandBegins(c.Off, to)
	} else {
		reason = broken.Error()
	}
	next = c.Off
	if !whole && err == nil {
		next, err = r.nextCommand(c.From+1, to)
	}
	if err != nil {
		return 0, err
	}
	if ch.key == aof.SealKey && !ch.del {
		reason = "a seal is damaged"
	}
	r.reportDamage(Problem{From: c.From, To: next, Reason: reason, Key: key})
	return next, nil
}

// command reads a command without verifying checksums.
func (r *fileReader) command(c *aof.Reader) (ch change, err error) {
	cmd, err := c.Next()
	if err != nil {
		return ch, err
	}
	ch.key, ch.del = record.View(cmd.Key), cmd.Del
	if cmd.Del {
		return ch, nil
	}
	r.buf, err = c.AppendValue(r.buf[:0], cmd)
	ch.rec = record.View(r.buf)
	return ch, err
}

// ignoreBreak returns nil for the end of a file or a place where it breaks off.
func ignoreBreak(err error) error {
	var b *aof.BreakError
	if err == io.EOF || errors.As(err, &b) {
		return nil
	}
	return err
}

// remeasure reads a record with a wrong length: it ends where its checksum is right. Otherwise a wrong length
// could hide the records behind it, or turn a value that looks like records into some.
func (r *fileReader) remeasure(from, to int64, key string) (rec string, end int64, ok bool) {
	if key == "" {
		return "", 0, false
	}
	start := from + aof.ValueOffset(len(key))
	window := make([]byte, max(0, min(to-start, remeasured)))
	n, err := r.f.ReadAt(window, start)
	if err != nil && err != io.EOF {
		return "", 0, false // the next read reports the error
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

// recordEnd returns the length of the record under a key that b begins with: its checksum is right up to
// there, and follows comes next.
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

// commandBegins reports whether a command begins at an offset, or the range ends there.
func (r *fileReader) commandBegins(at, to int64) (bool, error) {
	if at == to {
		return true, nil
	}
	b := make([]byte, min(16, to-at))
	if _, err := r.f.ReadAt(b, at); err != nil && err != io.EOF {
		return false, err
	}
	return aof.BeginsCommand(b), nil
}

// nextCommand returns the offset of the next command that can be trusted: a set with a right checksum, or a
// delete of a possible key with another command behind it.
func (r *fileReader) nextCommand(from, to int64) (int64, error) {
	const common = "\r\n$3\r\n" // of both commands
	before := int64(len("*3"))
	if from+before > to {
		return to, nil
	}
	var checker fileReader // has a buffer of its own
	checker.f = r.f
	at, ok, err := aof.Search(r.f, from+before, to, common, func(at int64) (bool, error) {
		c := aof.NewReader(r.f, at-before, to)
		ch, err := checker.command(c)
		if err != nil {
			return false, ignoreBreak(err)
		}
		if !ch.del {
			return record.SumHolds(ch.key, ch.rec), nil
		}
		if r.fits(ch.key, "", true) != nil {
			return false, nil
		}
		return r.commandBegins(c.Off, to)
	})
	if err != nil || !ok {
		return to, err
	}
	return at - before, nil
}

// seals returns the seals that prove their ranges, and all that lie at the offset they name, in ascending
// order.
func (r *fileReader) seals(written int64) (proofs, standing []aof.Seal, err error) {
	var all []aof.Seal
	err = aof.EachSeal(r.f, 0, written, func(s aof.Seal) (stop bool) {
		all = append(all, s)
		return false
	})
	if err != nil {
		return nil, nil, err
	}
	mark, known := markOf(all)
	for _, s := range all {
		if !known || s.Mark != mark {
			continue // a client can forge a seal in a value, but does not know the mark
		}
		standing = append(standing, s)
		sum, err := aof.SumRange(r.f, s.From, s.At)
		if err != nil {
			return nil, nil, err
		}
		if sum == s.Sum {
			proofs = append(proofs, s)
		}
	}
	return proofs, standing, nil
}

// markOf returns the mark of a file with these seals: that of the first seal, which no client can forge, or
// else that of more than half.
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
