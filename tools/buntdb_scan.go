package tools

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// scanDatabase checks that a file of a size holds whole commands of buntdb and nothing else. buntdb does
// not check its files: a wrong digit in a length makes it drop the rest, allocate what the digits
// say, panic or read for ever.
//
// It takes memory for the keys whose TTL has passed, and returns how many there are: buntdb loads
// the others. now is in ms.
func scanDatabase(r io.Reader, size, now int64) (expired int, err error) {
	s := &databaseScanner{r: bufio.NewReaderSize(r, 64<<10), size: size, now: now, dead: make(map[string]struct{})}
	for {
		// buntdb skips zeros between commands.
		b, err := s.r.ReadByte()
		if err == io.EOF {
			return len(s.dead), nil
		}
		if err != nil {
			return 0, err
		}
		s.from = s.at
		s.at++
		if b == 0 {
			continue
		}
		s.at--
		if err := s.r.UnreadByte(); err != nil {
			return 0, err
		}
		if err := s.command(); err != nil {
			return 0, s.damage(err)
		}
	}
}

// databaseScanner reads a file command by command.
type databaseScanner struct {
	r        *bufio.Reader
	size, at int64 // of the file; of the next byte
	from     int64 // of the current command
	now      int64 // ms
	dead     map[string]struct{}
}

// errBadCommand stands for bytes that buntdb does not write.
var errBadCommand = errors.New("there is no command of buntdb's")

// damage describes an error within a command.
func (s *databaseScanner) damage(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends within a command, at bytes %d to %d: buntdb cuts such an end off when it opens the file", s.from, s.size)
	}
	return fmt.Errorf("the file is damaged at bytes %d to %d: %w", s.from, s.at, err)
}

// command reads a command: set key value [ae second], del key or flushdb.
func (s *databaseScanner) command() error {
	parts, err := s.number('*')
	if err != nil {
		return err
	}
	name, err := s.short()
	if err != nil {
		return err
	}
	switch strings.ToLower(name) + " " + strconv.FormatInt(parts, 10) {
	case "flushdb 1":
		clear(s.dead)
		return nil
	case "del 2":
		key, err := s.bulk(true)
		delete(s.dead, key)
		return err
	case "set 3", "set 5":
	default:
		return errBadCommand
	}
	key, err := s.bulk(true)
	if err != nil {
		return err
	}
	delete(s.dead, key)
	if _, err := s.bulk(false); err != nil || parts == 3 {
		return err
	}
	return s.expiry(key)
}

// expiry reads the second at which a key ends.
func (s *databaseScanner) expiry(key string) error {
	unit, err := s.short()
	if err != nil {
		return err
	}
	text, err := s.short()
	if err != nil {
		return err
	}
	second, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || second < 0:
		return fmt.Errorf("the end %s of a key is no second since 1970", strconv.Quote(text))
	case strings.EqualFold(unit, "ex"):
		return errors.New("a TTL is relative to the time of the file, as old versions of buntdb wrote it: let a new version open and shrink the file")
	case !strings.EqualFold(unit, "ae"):
		return errBadCommand
	case second <= s.now/1000:
		s.dead[key] = struct{}{}
	}
	return nil
}

// longestNumber is the most digits of a length: more than any file has.
const longestNumber = 15

// number reads a mark, digits and \r\n.
func (s *databaseScanner) number(mark byte) (n int64, err error) {
	for i := 0; ; i++ {
		b, err := s.r.ReadByte()
		if err != nil {
			return 0, err
		}
		s.at++
		switch {
		case i == 0 && b == mark:
		case i > 0 && b >= '0' && b <= '9' && i <= longestNumber:
			n = n*10 + int64(b-'0')
		case i > 1 && b == '\r':
			return n, s.expect("\n")
		default:
			return 0, errBadCommand
		}
	}
}

// short reads a part that is a word or a number.
func (s *databaseScanner) short() (string, error) {
	n, err := s.number('$')
	if err != nil {
		return "", err
	}
	if n > 20 {
		return "", errBadCommand
	}
	b := make([]byte, n)
	if err := s.read(b); err != nil {
		return "", err
	}
	return string(b), s.expect("\r\n")
}

// bulk reads a part of any length, and returns it if it is to be kept.
func (s *databaseScanner) bulk(keep bool) (string, error) {
	n, err := s.number('$')
	switch {
	case err != nil:
		return "", err
	case n > s.size-s.at:
		return "", fmt.Errorf("a length of %d is wrong, or the file has been cut off", n)
	}
	var text []byte
	if keep {
		text = make([]byte, n)
		err = s.read(text)
	} else {
		_, err = io.CopyN(io.Discard, s.r, n)
		s.at += n
	}
	if err != nil {
		return "", err
	}
	return string(text), s.expect("\r\n")
}

func (s *databaseScanner) expect(want string) error {
	got := make([]byte, len(want))
	if err := s.read(got); err != nil {
		return err
	}
	if !bytes.Equal(got, []byte(want)) {
		return errBadCommand
	}
	return nil
}

func (s *databaseScanner) read(b []byte) error {
	n, err := io.ReadFull(s.r, b)
	s.at += int64(n)
	return err
}
