package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mayfly/expiry"
)

// databaseScanner checks that a file holds whole commands of buntdb and nothing else. buntdb does not
// check its files: one wrong digit makes it drop the rest, allocate what the digits say, panic or read for
// ever.
type databaseScanner struct {
	r        *bufio.Reader
	size, at int64               // of the file; of the next byte
	now      int64               // seconds
	expired  map[string]struct{} // keys that buntdb does not load: their TTL has passed
	far      map[string]int64    // seconds left of the keys that end too late for a document; buntdb drops some of them
}

// scanDatabase scans a file of a size. now is in ms. It returns the number of keys whose TTL has passed,
// and the seconds that are left of the keys that end too late for a document.
func scanDatabase(r io.Reader, size, now int64) (expired int, far map[string]int64, err error) {
	s := &databaseScanner{r: bufio.NewReader(r), size: size, now: now / 1000, expired: make(map[string]struct{}), far: make(map[string]int64)}
	for s.at < size {
		from := s.at
		err := s.command()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, fmt.Errorf("the file ends within a command, at bytes %d to %d: buntdb cuts such an end off when it opens the file", from, size)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("the file is damaged at bytes %d to %d: %w", from, s.at, err)
		}
	}
	return len(s.expired), s.far, nil
}

// errBadCommand stands for bytes that buntdb does not write.
var errBadCommand = errors.New("there is no command of buntdb's")

// command reads a command: set key value [ae second], del key or flushdb. buntdb skips zeros before it.
func (s *databaseScanner) command() error {
	if first, err := s.r.Peek(1); err != nil || first[0] == 0 {
		s.at++
		_, err = s.r.Discard(1)
		return err
	}
	count, err := s.length('*')
	if err != nil {
		return err
	}
	var parts [5]string
	if count > int64(len(parts)) {
		return errBadCommand
	}
	for i := range count {
		if parts[i], err = s.part(); err != nil {
			return err
		}
	}
	switch name := strings.ToLower(parts[0]); {
	case name == "flushdb" && count == 1:
		clear(s.expired)
		clear(s.far)
	case name == "del" && count == 2, name == "set" && count == 3:
		delete(s.expired, parts[1])
		delete(s.far, parts[1])
	case name == "set" && count == 5:
		return s.expiry(parts[1], parts[3], parts[4])
	default:
		return errBadCommand
	}
	return nil
}

// expiry checks the second at which a key ends.
func (s *databaseScanner) expiry(key, unit, text string) error {
	second, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || second < 0:
		return fmt.Errorf("the end %q of a key is no second since 1970", text)
	case strings.EqualFold(unit, "ex"):
		return errors.New("a TTL is relative to the time of the file, as old versions of buntdb wrote it: let a new version open and shrink the file")
	case !strings.EqualFold(unit, "ae"):
		return errBadCommand
	}
	delete(s.expired, key)
	delete(s.far, key)
	switch left := second - s.now; {
	case left <= 0:
		s.expired[key] = struct{}{}
	case left > int64(expiry.MaxTTL):
		s.far[key] = left
	}
	return nil
}

// length reads a mark, a length and \r\n.
func (s *databaseScanner) length(mark byte) (int64, error) {
	line, err := s.r.ReadSlice('\n')
	s.at += int64(len(line))
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errBadCommand
	}
	if err != nil {
		return 0, err
	}
	digits, ok := strings.CutSuffix(string(line[1:]), "\r\n")
	n, err := strconv.ParseUint(digits, 10, 63)
	if line[0] != mark || !ok || err != nil {
		return 0, errBadCommand
	}
	return int64(n), nil
}

// part reads a part of a command.
func (s *databaseScanner) part() (string, error) {
	n, err := s.length('$')
	if err != nil {
		return "", err
	}
	if n > s.size-s.at {
		return "", fmt.Errorf("a length of %d is wrong, or the file has been cut off", n)
	}
	b := make([]byte, n+int64(len("\r\n")))
	read, err := io.ReadFull(s.r, b)
	s.at += int64(read)
	text, ok := strings.CutSuffix(string(b), "\r\n")
	if err == nil && !ok {
		err = errBadCommand
	}
	return text, err
}
