package keyspace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// buntdb's files are read by us instead of it: it does not check its files, and a single wrong digit in
// a length makes it drop data without a word, allocate what the digit says, or never return. The reader here takes exactly what we write,
//
//	*3\r\n$3\r\nset\r\n$<n>\r\n<key>\r\n$<n>\r\n<value>\r\n
//	*2\r\n$3\r\ndel\r\n$<n>\r\n<key>\r\n
//
// in one pass and with constant memory. What becomes of a file that breaks off is decided by
// those who know what has been confirmed in it: see seal.go and replay.go.

const (
	setHead = "*3\r\n$3\r\nset\r\n"
	delHead = "*2\r\n$3\r\ndel\r\n"

	maxDigits  = 15            // of a length in a file
	peekSize   = maxDigits + 2 // bytes looked at to find out whether a command goes on
	readSize   = 32 << 10      // bytes read at a time
	sectorSize = 512           // bytes; a power cut leaves whole sectors written or not
)

// commandSize is the size in bytes of a set command in a file.
func commandSize(key, value int) int64 {
	return int64(len(setHead) + len("$\r\n\r\n$\r\n\r\n") + digits(key) + key + digits(value) + value)
}

// digits is how many digits a length has.
func digits(length int) int {
	n := 1
	for ; length >= 10; length /= 10 {
		n++
	}
	return n
}

// DamageError reports bytes of a file that are not what was written. Nothing is changed then.
type DamageError struct {
	File     string
	From, To int64 // the range of bytes in which the damage lies, To excluded
	Reason   string
}

func (e *DamageError) Error() string {
	dir := filepath.Dir(e.File)
	return fmt.Sprintf("%s is damaged at bytes %d to %d: %s; \"mayfly check %s\" tells more, \"mayfly repair %s <newdir>\" copies what is sound",
		e.File, e.From, e.To, e.Reason, dir, dir)
}

// A breakOff is the place at which a file ceases to be a sequence of commands.
type breakOff struct {
	before int64 // start of the command before it: a wrong length may have led astray
	at     int64 // start of the command that is not whole
	to     int64 // end of that command or of the part that was read
	short  bool  // what there is of the command is right, but the file ends within it
	reason string
}

func (e *breakOff) Error() string { return e.reason }

func (e *breakOff) damage(file string) error {
	return &DamageError{File: file, From: e.before, To: e.to, Reason: e.reason}
}

// command is one command of a file up to its value, which is read next.
type command struct {
	from  int64
	del   bool
	key   []byte // valid until the reader goes on
	value int64  // bytes; 0 for del
}

// commandReader reads a file command by command.
type commandReader struct {
	r    *bufio.Reader
	size int64  // of the file
	off  int64  // of the next byte
	crc  uint32 // of the bytes read since it was last set
	from int64  // start of the current command
	prev int64  // start of the command before it
	key  []byte

	keySize int64 // if not 0, of every key
}

func newCommandReader(f io.ReaderAt, from, size int64) *commandReader {
	section := io.NewSectionReader(f, from, size-from)
	return &commandReader{r: bufio.NewReaderSize(section, readSize), size: size, off: from, from: from}
}

// next reads a command up to its value. Errors: io.EOF at the end of the file, *breakOff, and what
// the operating system says.
func (c *commandReader) next() (cmd command, err error) {
	if c.off == c.size {
		return cmd, io.EOF
	}
	c.prev, c.from = c.from, c.off
	cmd.from = c.off
	if b, err := c.r.Peek(2); err == nil && b[1] == '2' {
		cmd.del = true
	}
	head := setHead
	if cmd.del {
		head = delHead
	}
	if err := c.expect(head); err != nil {
		return cmd, err
	}
	n, err := c.length()
	if err != nil {
		return cmd, err
	}
	if n > int64(record.MaxKeyLength) || c.keySize != 0 && n != c.keySize {
		return cmd, c.broken("a key's length is out of range")
	}
	c.key = c.key[:0]
	if err := c.read(n, func(b []byte) { c.key = append(c.key, b...) }); err != nil {
		return cmd, err
	}
	cmd.key = c.key
	if err := c.expect("\r\n"); err != nil || cmd.del {
		return cmd, err
	}
	cmd.value, err = c.length()
	return cmd, err
}

// quick reads the next command if it is a set, but not of a seal, that lies in the buffer as a whole: the
// usual case, for which next is slow. If it does not, or is not of the right form, nothing is read, and next
// tells which. Key and value are valid until the reader goes on.
func (c *commandReader) quick() (key, value []byte, ok bool) {
	b, _ := c.r.Peek(c.r.Buffered())
	rest, ok := bytes.CutPrefix(b, []byte(setHead))
	if !ok {
		return nil, nil, false
	}
	if key, rest, ok = cutBulk(rest); !ok || string(key) == sealKey || len(key) > record.MaxKeyLength {
		return nil, nil, false
	}
	if value, rest, ok = cutBulk(rest); !ok {
		return nil, nil, false
	}
	c.prev, c.from = c.from, c.off
	c.take(b[:len(b)-len(rest)])
	return key, value, true
}

// cutBulk cuts off what a length and \r\n stand before, and \r\n behind it.
func cutBulk(b []byte) (bulk, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != '$' || b[1] == '0' && len(b) > 2 && b[2] != '\r' {
		return nil, nil, false
	}
	n, i := 0, 1
	for ; i < len(b) && i <= maxDigits && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int(b[i]-'0')
	}
	if i == 1 || len(b)-i < n+len("\r\n\r\n") || b[i] != '\r' || b[i+1] != '\n' {
		return nil, nil, false
	}
	b = b[i+2:]
	return b[:n], b[n+2:], b[n] == '\r' && b[n+1] == '\n'
}

// value reads the value of a set command in pieces.
func (c *commandReader) value(cmd command, piece func(b []byte)) error {
	if err := c.read(cmd.value, piece); err != nil {
		return err
	}
	return c.expect("\r\n")
}

// sound checks the checksum of a record that quick has read.
func (c *commandReader) sound(key, rec []byte) error {
	if len(rec) >= record.SumTo && record.Begins(rec) {
		crc := crc32.Update(crc32.Update(0, record.Castagnoli, key), record.Castagnoli, rec[record.SumTo:])
		if want, ok := record.ReadHex(record.View(rec[record.SumFrom:record.SumTo])); ok && want == crc {
			return nil
		}
	}
	return c.badRecord()
}

func (c *commandReader) badRecord() error {
	return &breakOff{before: c.from, at: c.from, to: c.off, reason: record.ErrSum.Error()}
}

// record reads a value that is a record and checks its checksum.
func (c *commandReader) record(cmd command) error {
	var head [record.SumTo]byte
	have := 0
	crc := crc32.Update(0, record.Castagnoli, cmd.key)
	err := c.value(cmd, func(b []byte) {
		n := copy(head[have:], b)
		have += n
		crc = crc32.Update(crc, record.Castagnoli, b[n:])
	})
	if err != nil {
		return err
	}
	if want, ok := record.ReadHex(record.View(head[record.SumFrom:])); !ok || want != crc || !record.Begins(head[:]) {
		return c.badRecord()
	}
	return nil
}

// recordInto appends a value that is a record to dst, and checks its checksum.
func (c *commandReader) recordInto(dst []byte, cmd command) ([]byte, error) {
	if cmd.value > c.size-c.off {
		return dst, c.record(cmd) // which finds out in constant memory
	}
	dst = slices.Grow(dst, int(cmd.value))
	if err := c.value(cmd, func(b []byte) { dst = append(dst, b...) }); err != nil {
		return dst, err
	}
	return dst, c.sound(cmd.key, dst)
}

// expect reads what must stand here.
func (c *commandReader) expect(want string) error {
	b, err := c.r.Peek(len(want))
	if string(b) != want[:len(b)] {
		return c.broken("there is no command of the form that is written here")
	}
	if err != nil {
		return c.failed(err)
	}
	c.take(b)
	return nil
}

// length reads a length as we write it: $, digits without leading zeros, \r\n.
func (c *commandReader) length() (n int64, err error) {
	if err := c.expect("$"); err != nil {
		return 0, err
	}
	b, err := c.r.Peek(peekSize)
	digits := 0
	for digits < len(b) && digits <= maxDigits && b[digits] >= '0' && b[digits] <= '9' {
		n = n*10 + int64(b[digits]-'0')
		digits++
	}
	if digits == len(b) && err != nil {
		return 0, c.failed(err)
	}
	if digits == 0 || digits > maxDigits || b[0] == '0' && digits > 1 {
		return 0, c.broken("a length is malformed")
	}
	c.take(b[:digits])
	return n, c.expect("\r\n")
}

// read reads n bytes in pieces.
func (c *commandReader) read(n int64, piece func(b []byte)) error {
	for n > 0 {
		b, err := c.r.Peek(int(min(n, readSize)))
		if err != nil {
			return c.failed(err)
		}
		if piece != nil {
			piece(b)
		}
		n -= int64(len(b))
		c.take(b)
	}
	return nil
}

// take goes on past bytes that have been peeked at.
func (c *commandReader) take(b []byte) {
	c.crc = crc32.Update(c.crc, record.Castagnoli, b)
	c.off += int64(len(b))
	c.r.Discard(len(b))
}

func (c *commandReader) broken(reason string) error {
	return &breakOff{before: c.prev, at: c.from, to: min(c.off+peekSize, c.size), reason: reason}
}

func (c *commandReader) failed(err error) error {
	if err == io.EOF {
		return &breakOff{before: c.prev, at: c.from, to: c.size, short: true, reason: "the file ends within a command"}
	}
	return err
}

// verdict is nil if the file may be cut where it breaks off: nothing proves that this place was whole
// once, and it shows what a crash leaves behind.
func (e *breakOff) verdict(f io.ReaderAt, name string, size int64, proved bool) error {
	if !proved {
		lost, err := unwritten(f, e, size)
		if lost || err != nil {
			return err
		}
	}
	return e.damage(name)
}

// unwritten tells whether a file shows from some place on what a crash leaves behind in bytes that
// were never forced to disk, and mere damage does not: it ends within a command, or sectors
// between from and to are nothing but zeros, or it ends in zeros.
func unwritten(f io.ReaderAt, b *breakOff, size int64) (bool, error) {
	if b.short {
		return true, nil
	}
	end := make([]byte, min(size-b.at, 16))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return false, err
	}
	if allZero(end) {
		return true, nil
	}
	sector := make([]byte, sectorSize)
	for at := b.at; at < b.to; {
		next := min(at-at%sectorSize+sectorSize, size)
		part := sector[:next-at]
		if _, err := f.ReadAt(part, at); err != nil && err != io.EOF {
			return false, err
		}
		if allZero(part) {
			return true, nil
		}
		at = next
	}
	return false, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// search looks for a pattern in a file from some place on and calls found with each place, until
// it says that this is it.
func search(f io.ReaderAt, from, size int64, pattern string, found func(at int64) (bool, error)) (at int64, ok bool, err error) {
	buf := make([]byte, min(readSize, size-from))
	for from+int64(len(pattern)) <= size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-from)], from)
		if err != nil && err != io.EOF {
			return 0, false, err
		}
		for i := 0; ; {
			k := bytes.Index(buf[i:n], []byte(pattern))
			if k < 0 {
				break
			}
			at := from + int64(i+k)
			if ok, err := found(at); ok || err != nil {
				return at, ok, err
			}
			i += k + 1
		}
		if n < len(pattern) {
			break
		}
		from += int64(n - len(pattern) + 1)
	}
	return 0, false, nil
}

// cutTail cuts a file off, keeping what is cut in a file beside it named by the time (ms). The copy
// is on disk before anything is cut.
func cutTail(f *os.File, from, size, now int64, log zerolog.Logger) error {
	path := f.Name()
	aside := path + ".torn-" + strconv.FormatInt(now, 10)
	kept, err := createNew(aside)
	for n := 2; errors.Is(err, os.ErrExist); n++ {
		aside = fmt.Sprintf("%s.torn-%d-%d", path, now, n)
		kept, err = createNew(aside)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(kept, io.NewSectionReader(f, from, size-from))
	if err = errors.Join(err, forceToDisk(kept), kept.Close()); err != nil {
		return err
	}
	if err := fsyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	log.Warn().Str("file", path).Int64("from", from).Int64("to", size).Str("kept", aside).
		Msg("the end of a file was not confirmed when the server last stopped: cut off and kept aside")
	if err := f.Truncate(from); err != nil {
		return err
	}
	return forceToDisk(f)
}
