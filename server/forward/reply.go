package forward

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// errProtocol is the error of bytes that are no reply.
var errProtocol = errors.New("the leader sends what is no reply")

// mostLine bounds a line that head returns. A buffer for replies holds one.
const mostLine = 16 << 10

// head returns the first line of the next reply with its end, valid until the next read. It does not consume
// it. Of a text that is longer than mostLine, such as scripts make, it is the beginning.
func head(r *bufio.Reader) ([]byte, error) {
	for n := 1; ; {
		line, err := r.Peek(n)
		if at := bytes.IndexByte(line, '\n'); at >= 0 {
			if at < 2 || line[at-1] != '\r' {
				return nil, errProtocol
			}
			return line[:at+1], nil
		}
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return nil, errProtocol
			}
			return nil, err
		}
		if n == mostLine {
			if strings.IndexByte("+-(", line[0]) < 0 {
				return nil, errProtocol
			}
			return line, nil
		}
		n = min(max(r.Buffered(), n+1), mostLine)
	}
}

// copyReply passes the bytes of one reply to emit, in pieces that are valid during the call.
func copyReply(r *bufio.Reader, emit func([]byte) error) error {
	for left := 1; left > 0; left-- {
		line, err := head(r)
		if err != nil {
			return err
		}
		size, elems, err := parseHead(line)
		if err != nil {
			return err
		}
		if err := copyLine(r, emit); err != nil {
			return err
		}
		if left > math.MaxInt-elems {
			return errProtocol
		}
		left += elems
		if err := copyBytes(r, size, emit); err != nil {
			return err
		}
	}
	return nil
}

// copyLine passes a line to emit.
func copyLine(r *bufio.Reader, emit func([]byte) error) error {
	for {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if err := emit(piece); err != nil {
			return err
		}
		if err == nil {
			return nil // the leader writes no other line feed into a text
		}
	}
}

// parseHead returns what follows the first line of a reply: bytes of a string with its end, or elements.
func parseHead(line []byte) (size, elems int, err error) {
	switch line[0] {
	case '+', '-', ':', ',', '#', '_', '(':
		return 0, 0, nil
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	switch {
	case err != nil || n < -1 || n > math.MaxInt32 && line[0] != '$':
		return 0, 0, fmt.Errorf("%w: %.40q", errProtocol, line)
	case n == -1:
		return 0, 0, nil
	}
	switch line[0] {
	case '$', '=', '!':
		if n > math.MaxInt-2 {
			return 0, 0, errProtocol
		}
		return n + 2, 0, nil
	case '*', '~', '>':
		return 0, n, nil
	case '%':
		return 0, 2 * n, nil
	}
	return 0, 0, fmt.Errorf("%w: %.40q", errProtocol, line)
}

// copyBytes passes n bytes to emit.
func copyBytes(r *bufio.Reader, n int, emit func([]byte) error) error {
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		piece, _ := r.Peek(min(n, r.Buffered()))
		if err := emit(piece); err != nil {
			return err
		}
		_, _ = r.Discard(len(piece)) // it is buffered
		n -= len(piece)
	}
	return nil
}
