package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The load generators speak the protocol themselves: a client library would cost more than the server
// that it measures.

// appendCommand appends a command as clients send it.
func appendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, arg := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(arg)), 10)
		b = append(b, "\r\n"...)
		b = append(b, arg...)
		b = append(b, "\r\n"...)
	}
	return b
}

// reply is the answer to a command, of the types of RESP2 that single values have.
type reply struct {
	kind byte  // + : or $
	n    int64 // of an integer; of a string its length, -1 for null
}

// readReply reads a reply, of which it drops the text. An error reply is given as an error.
func readReply(r *bufio.Reader) (reply, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 {
		return reply{}, fmt.Errorf("reply %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return reply{kind: kind}, nil
	case '-':
		return reply{}, errors.New(string(text))
	case ':', '$':
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return reply{}, fmt.Errorf("reply %q", line)
		}
		if kind == '$' && n >= 0 {
			_, err = r.Discard(int(n) + 2)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
		}
		return reply{kind, n}, err
	}
	return reply{}, fmt.Errorf("reply of unexpected type %q", line)
}
