package aof

import (
	"bufio"
	"bytes"
	"hash/crc32"
	"io"
	"slices"

	"mayfly/keyspace/record"
)

const (
	maxDigits = 15            // of a length in a file
	peekSize  = maxDigits + 2 // bytes that hold the longest length and its end of line
	readSize  = 32 << 10      // bytes read at a time
)

// Command is one command of a file up to its value, which is read next.
type Command struct {
	From  int64
	Del   bool
	Key   []byte // valid until the next read
	Value int64  // bytes; 0 for a delete
}

// Reader reads a file command by command, in one pass and with constant memory. It accepts exactly the
// form that this package writes.
type Reader struct {
	Off  int64  // offset of the next byte
	From int64  // start of the current command
	Sum  uint32 // CRC-32C of the bytes read since the caller last set it

	r    *bufio.Reader
	size int64
	prev int64 // start of the command before the current one
	key  []byte
}

// NewReader returns a reader of the range of a file. From must be the start of a command.
func NewReader(f io.ReaderAt, from, to int64) *Reader {
	section := io.NewSectionReader(f, from, to-from)
	buffer := min(readSize, to-from+peekSize) // larger than a short range, so that Peek meets its end
	return &Reader{r: bufio.NewReaderSize(section, int(buffer)), size: to, Off: from, From: from}
}

// Next reads a command up to its value. Errors: io.EOF at the end, *[BreakError], and what the operating
// system says.
func (r *Reader) Next() (cmd Command, err error) {
	if r.Off == r.size {
		return cmd, io.EOF
	}
	r.prev, r.From = r.From, r.Off
	cmd.From = r.Off
	if b, err := r.r.Peek(2); err == nil && b[1] == '2' {
		cmd.Del = true
	}
	head := setHead
	if cmd.Del {
		head = delHead
	}
	if err := r.expect(head); err != nil {
		return cmd, err
	}
	n, err := r.length()
	if err != nil {
		return cmd, err
	}
	if n > int64(record.MaxKeyLength) {
		return cmd, r.broken("a key's length is out of range")
	}
	if r.key, err = r.appendBytes(r.key[:0], n); err != nil {
		return cmd, err
	}
	cmd.Key = r.key
	if err := r.expect("\r\n"); err != nil || cmd.Del {
		return cmd, err
	}
	cmd.Value, err = r.length()
	return cmd, err
}

// AppendValue appends the value of a set command to dst. It allocates nothing for a length that the file
// cannot hold.
func (r *Reader) AppendValue(dst []byte, cmd Command) ([]byte, error) {
	if cmd.Value > r.size-r.Off {
		return dst, r.failed(io.EOF)
	}
	dst, err := r.appendBytes(slices.Grow(dst, int(cmd.Value)), cmd.Value)
	if err != nil {
		return dst, err
	}
	return dst, r.expect("\r\n")
}

// quick reads the next command if it is a set that lies whole in the buffer, but not of a seal: the usual
// case, for which Next is slow. Otherwise it reads nothing, and Next reports why. Key and value are valid
// until the next read.
func (r *Reader) quick() (key, value []byte, ok bool) {
	b, _ := r.r.Peek(r.r.Buffered())
	rest, ok := bytes.CutPrefix(b, []byte(setHead))
	if !ok {
		return nil, nil, false
	}
	if key, rest, ok = cutBulk(rest); !ok || string(key) == SealKey || len(key) > record.MaxKeyLength {
		return nil, nil, false
	}
	if value, rest, ok = cutBulk(rest); !ok {
		return nil, nil, false
	}
	r.prev, r.From = r.From, r.Off
	r.take(b[:len(b)-len(rest)])
	return key, value, true
}

// cutBulk cuts a bulk string off: its length, \r\n, the string, \r\n.
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

// checkRecord verifies the checksum of a record.
func (r *Reader) checkRecord(key, rec []byte) error {
	if record.Begins(rec) && record.SumHolds(record.View(key), record.View(rec)) {
		return nil
	}
	return &BreakError{Before: r.From, At: r.From, To: r.Off, Reason: record.ErrSum.Error()}
}

// expect reads what must come next.
func (r *Reader) expect(want string) error {
	b, err := r.r.Peek(len(want))
	if string(b) != want[:len(b)] {
		return r.broken("there is no command of the form that is written here")
	}
	if err != nil {
		return r.failed(err)
	}
	r.take(b)
	return nil
}

// length reads a length as this package writes it: $, digits without leading zeros, \r\n.
func (r *Reader) length() (n int64, err error) {
	if err := r.expect("$"); err != nil {
		return 0, err
	}
	b, err := r.r.Peek(peekSize)
	digits := 0
	for digits < len(b) && digits <= maxDigits && b[digits] >= '0' && b[digits] <= '9' {
		n = n*10 + int64(b[digits]-'0')
		digits++
	}
	if digits == len(b) && err != nil {
		return 0, r.failed(err)
	}
	if digits == 0 || digits > maxDigits || b[0] == '0' && digits > 1 {
		return 0, r.broken("a length is malformed")
	}
	r.take(b[:digits])
	return n, r.expect("\r\n")
}

// appendBytes appends the next n bytes to dst.
func (r *Reader) appendBytes(dst []byte, n int64) ([]byte, error) {
	for n > 0 {
		b, err := r.r.Peek(int(min(n, int64(r.r.Size()))))
		if err != nil {
			return dst, r.failed(err)
		}
		dst = append(dst, b...)
		n -= int64(len(b))
		r.take(b)
	}
	return dst, nil
}

// take consumes bytes that were peeked at.
func (r *Reader) take(b []byte) {
	r.Sum = crc32.Update(r.Sum, record.Castagnoli, b)
	r.Off += int64(len(b))
	r.r.Discard(len(b))
}

func (r *Reader) broken(reason string) error {
	return &BreakError{Before: r.prev, At: r.From, To: min(r.Off+peekSize, r.size), Reason: reason}
}

func (r *Reader) failed(err error) error {
	if err == io.EOF {
		return &BreakError{Before: r.prev, At: r.From, To: r.size, Short: true, Reason: "the file ends within a command"}
	}
	return err
}

// BeginsCommand reports whether b begins as a command does.
func BeginsCommand(b []byte) bool {
	return bytes.HasPrefix(b, []byte(setHead)) || bytes.HasPrefix(b, []byte(delHead))
}
