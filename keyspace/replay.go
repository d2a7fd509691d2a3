package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// replayJournals visits all entries of all journals in a folder, in the order in which they were
// committed, and gives the last generation and ticket, 0 if there are none. Key and record share
// one piece of memory that nothing else uses, so they may be kept; the record is empty for deletes.
//
// The newest journal may end in something that a crash kept from being written: that is cut off and
// kept aside under a name with the time now (ms). Anything else that is not as it was written is a
// *DamageError, and then what has been visited is of no use.
func replayJournals(dir string, log zerolog.Logger, now int64, visit func(key, rec string, deleted bool) error) (lastGeneration uint64, lastTicket LSN, err error) {
	files, err := journalFiles(dir)
	if err != nil {
		return 0, 0, err
	}
	r := replayer{visit: visit}
	for i, file := range files {
		if i > 0 && file.generation != lastGeneration+1 {
			return 0, 0, fmt.Errorf("%s is there, but not the journal before it", file.path)
		}
		lastGeneration = file.generation
		if i < len(files)-1 {
			err = r.whole(file)
		} else {
			err = r.newest(file, now, log)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return lastGeneration, r.last, nil
}

type replayer struct {
	visit func(key, rec string, deleted bool) error
	last  LSN    // of the last commit read; 0 before the first
	mark  uint32 // of the file that is being read; 0 before its first commit
	value []byte // of the commit that is being read
}

// whole replays a journal that was finished before the next was begun: it must be whole.
func (r *replayer) whole(file generationFile) error {
	f, err := os.Open(file.path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = r.read(f, file.path, file.size)
	var b *breakOff
	if errors.As(err, &b) {
		return b.damage(file.path)
	}
	return err
}

// newest replays the newest journal, whose end a crash may have kept from the disk.
func (r *replayer) newest(file generationFile, now int64, log zerolog.Logger) error {
	f, err := os.OpenFile(file.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := withoutZeros(f, file.size)
	if err != nil {
		return err
	}
	err = r.read(f, file.path, end)
	var b *breakOff
	if errors.As(err, &b) {
		if err := judgeJournal(f, file.path, b, r.mark, end); err != nil {
			return err
		}
		return cutTail(f, b.at, file.size, now, log)
	}
	if err != nil {
		return err
	}
	if end < file.size { // room for more commits
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	// After a kill it may be in the system's memory only. The next journal must not get to the disk
	// before it.
	return forceToDisk(f)
}

// read replays a file up to its end or to where it breaks off: *breakOff.
func (r *replayer) read(f io.ReaderAt, name string, size int64) error {
	c := newCommitReader(f, 0, size)
	r.mark = 0
	for {
		h, err := r.commit(c)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if c.from == 0 {
			r.mark = h.mark
			if h.isHead() {
				continue
			}
		}
		if r.last != 0 && h.ticket != r.last+1 || h.mark != r.mark {
			reason := fmt.Sprintf("commit %d of %08x follows commit %d of %08x: something is missing", h.ticket, h.mark, r.last, r.mark)
			return &DamageError{name, c.from, c.off, reason}
		}
		r.last = h.ticket
		if err := r.visitEntries(r.value[commitHeaderSize:]); err != nil {
			return fmt.Errorf("%s, commit %d: %w", name, h.ticket, err)
		}
	}
}

func newCommitReader(f io.ReaderAt, from, size int64) *commandReader {
	c := newCommandReader(f, from, size)
	c.keySize = commitKeySize
	return c
}

// commitHeader is what is known of a commit without its entries.
type commitHeader struct {
	ticket LSN
	mark   uint32 // of the file
	size   int64  // bytes of entries
	onDisk int64  // bytes of the file that were on disk when it was written
	crc    uint32 // CRC-32C of key and value
}

// isHead tells the head of a file from a commit, if it stands at the file's beginning.
func (h commitHeader) isHead() bool { return h.ticket == 0 && h.size == 0 }

// header reads a commit up to its entries, which are left of the command's value. The two places in
// which their size is written must agree: nothing is allocated on the word of one of them.
func (r *replayer) header(c *commandReader) (h commitHeader, cmd command, err error) {
	if cmd, err = c.next(); err != nil {
		return h, cmd, err
	}
	ticket, ok := record.ReadDecimal(string(cmd.key))
	if cmd.del || !ok || cmd.value < int64(commitHeaderSize) {
		return h, cmd, c.broken("there is an item that is not a commit")
	}
	r.value = r.value[:0]
	if err := c.read(int64(commitHeaderSize), r.keep); err != nil {
		return h, cmd, err
	}
	cmd.value -= int64(commitHeaderSize)
	v := string(r.value)
	crc, ok1 := record.ReadHex(v[commitSumFrom:commitSumTo])
	mark, ok2 := record.ReadHex(v[commitMarkFrom:commitMarkTo])
	size, ok3 := record.ReadDecimal(v[commitSizeFrom:commitSizeTo])
	onDisk, ok4 := record.ReadDecimal(v[commitOnDiskFrom:commitOnDiskTo])
	if v[0] != '1' || !ok1 || !ok2 || !ok3 || !ok4 || int64(size) != cmd.value {
		return h, cmd, c.broken("a commit's header is malformed")
	}
	return commitHeader{LSN(ticket), mark, int64(size), int64(onDisk), crc}, cmd, nil
}

// commit reads a commit into r.value and checks it.
func (r *replayer) commit(c *commandReader) (commitHeader, error) {
	h, cmd, err := r.header(c)
	if err != nil {
		return h, err
	}
	if h.size <= c.size-c.off {
		r.value = slices.Grow(r.value, int(h.size))
	}
	keep := r.keep
	if h.size > c.size-c.off {
		keep = nil // it is not all there
	}
	crc := crc32.Update(0, record.Castagnoli, cmd.key)
	if err := c.value(cmd, keep); err != nil {
		return h, err
	}
	if v := r.value; crc32.Update(crc, record.Castagnoli, v[commitSumTo:]) != h.crc || v[1] != ' ' {
		return h, &breakOff{before: c.from, at: c.from, to: c.off, reason: "a commit's checksum does not match"}
	}
	return h, nil
}

func (r *replayer) keep(b []byte) { r.value = append(r.value, b...) }

// judgeJournal decides about a newest journal that breaks off: nil if it may be cut there, because
// it shows what a crash leaves behind and no later commit says that this place was on disk.
//
// Later commits stand behind the broken one. What lies within it was written by clients, who may have
// made it look like commits, and is not searched as long as its header says where it ends.
func judgeJournal(f io.ReaderAt, name string, b *breakOff, mark uint32, size int64) error {
	from, marked := b.at+1, b.at > 0
	h, end, err := extent(f, b.at, size)
	switch {
	case err == nil && !marked:
		from, mark, marked = end, h.mark, true
	case err == nil && h.mark == mark:
		from = end
	case ignoreBreakOff(err) != nil:
		return err
	}
	var r replayer
	whole := from               // end of the last whole commit: no other begins within it
	budget := 4 * (size - from) // bytes to read; without a mark forged lengths could make it the square of that
	_, later, err := search(f, from, size, commitHead, func(at int64) (bool, error) {
		if at < whole || budget < 0 {
			return false, nil // what has not been read proves nothing
		}
		c := newCommitReader(f, at, size)
		h, cmd, err := r.header(c)
		budget -= int64(commitHeaderSize)
		if err != nil || marked && h.mark != mark || cmd.value > size-c.off {
			return false, ignoreBreakOff(err)
		}
		budget -= cmd.value
		c = newCommitReader(f, at, size)
		if _, err = r.commit(c); err != nil {
			return false, ignoreBreakOff(err)
		}
		whole = c.off
		return h.onDisk > b.at, nil
	})
	if err != nil {
		return err
	}
	return b.verdict(f, name, size, later)
}

// extent reads the header of a commit that may not be whole, and tells where the commit ends: at the
// file's end if that comes first. The two sizes agree, so the file was cut and no length has changed.
func extent(f io.ReaderAt, at, size int64) (h commitHeader, end int64, err error) {
	var r replayer
	c := newCommitReader(f, at, size)
	h, cmd, err := r.header(c)
	return h, min(c.off+cmd.value+int64(len("\r\n")), size), err
}

func ignoreBreakOff(err error) error {
	var b *breakOff
	if err == io.EOF || errors.As(err, &b) {
		return nil
	}
	return err
}

var errEntry = errors.New("an entry is malformed")

// visitEntries visits the entries of a commit in order.
func (r *replayer) visitEntries(entries []byte) error {
	for len(entries) > 0 {
		e, ok := cutEntry(entries)
		if !ok {
			return errEntry
		}
		text := string(e.text)
		entries = entries[e.size:]
		var err error
		if e.deleted {
			err = r.visit(text, "", true)
		} else {
			err = r.visit(text[:e.keySize], text[e.keySize+1:], false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commitEntry is an entry of a commit: what it says of one item.
type commitEntry struct {
	text    []byte // key, or key, space and record
	keySize int
	deleted bool
	size    int // bytes of the entry as a whole
}

// cutEntry reads the first of some entries; false if it is malformed.
func cutEntry(entries []byte) (e commitEntry, ok bool) {
	e.deleted = entries[0] == '-'
	if !e.deleted && entries[0] != '+' {
		return e, false
	}
	keySize, rest, ok := cutNumber(entries[1:])
	recSize := 0
	if !e.deleted && ok {
		recSize, rest, ok = cutNumber(rest)
		recSize++ // the space before it
	}
	if !ok || keySize+recSize >= len(rest) || rest[keySize+recSize] != '\n' {
		return e, false
	}
	e.text, e.keySize = rest[:keySize+recSize], keySize
	e.size = len(entries) - len(rest) + len(e.text) + 1
	return e, true
}

// cutNumber cuts a number of bytes and the space behind it off.
func cutNumber(b []byte) (n int, rest []byte, ok bool) {
	i := bytes.IndexByte(b[:min(len(b), maxDigits)], ' ')
	if i < 0 {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(b[:i]))
	return n, b[i+1:], err == nil && n >= 0
}
