package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The load generators encode the protocol themselves. A client library would take more CPU time than the
// server that it measures.

// appendCommand appends a command in RESP.
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

// reply is a single value of RESP2.
type reply struct {
	kind byte  // + : or $
	n    int64 // of an integer; of a string its length, -1 for null
}

// readReply reads a reply and drops its text. An error reply is returned as an error.
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
