package forward

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

// TestCopyReply: a reply passes through as it is, in pieces, and nothing of what follows.
func TestCopyReply(t *testing.T) {
	t.Parallel()
	const after = "+after\r\n"
	for _, reply := range []string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", "$0\r\n\r\n", "$5\r\nhe\nlo\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n", ",1.5\r\n", "#t\r\n",
		"=7\r\ntxt:abc\r\n", "*2\r\n*1\r\n:1\r\n$1\r\na\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", "~1\r\n+x\r\n", ">2\r\n+a\r\n+b\r\n",
		"$300000\r\n" + strings.Repeat("x\n", 150000) + "\r\n", "*3\r\n" + strings.Repeat("$40000\r\n"+strings.Repeat("y", 40000)+"\r\n", 3),
		"+" + strings.Repeat("x", mostLine-3) + "\r\n", "+" + strings.Repeat("x", mostLine-2) + "\r\n", "*2\r\n-ERR " + strings.Repeat("x", 300000) + "\r\n:1\r\n",
		"(" + strings.Repeat("7", 2*mostLine-2) + "\r\n",
	} {
		for name, source := range map[string]*bufio.Reader{
			"whole": bufio.NewReaderSize(strings.NewReader(reply+after), 2*mostLine),
			"torn":  bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(reply+after)), 2*mostLine),
		} {
			var got bytes.Buffer
			err := copyReply(source, func(b []byte) error { got.Write(b); return nil })
			rest, _ := source.ReadString('\n')
			if err != nil || got.String() != reply || rest != after {
				t.Errorf("%s: %.40q becomes %.40q (%d bytes of %d), %v, then %.40q", name, reply, got.String(), got.Len(), len(reply), err, rest)
			}
		}
	}
}

// TestNoReply: what is no reply is an error.
func TestNoReply(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"OK\r\n", "$x\r\n", "$-2\r\n", "*99999999999\r\n", "\r\n", "+OK\n", "+", "$3\r\nab", "$9223372036854775807\r\n", "?1\r\n",
		":" + strings.Repeat("1", 40000) + "\r\n", "+" + strings.Repeat("x", 40000)} {
		if err := copyReply(bufio.NewReaderSize(strings.NewReader(text), 2*mostLine), drop); err == nil {
			t.Errorf("%.40q is a reply", text)
		}
	}
}

// FuzzCopyReply feeds bytes to copyReply. What it accepts is a beginning of them.
func FuzzCopyReply(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n+a\r\n$-1\r\n", "-MOVED 1 a\r\n", "*1000000\r\n", "$3\r\nabc\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got bytes.Buffer
		_ = copyReply(bufio.NewReaderSize(bytes.NewReader(text), 2*mostLine), func(b []byte) error { got.Write(b); return nil })
		if !bytes.HasPrefix(text, got.Bytes()) {
			t.Errorf("%q becomes %q", text, got.Bytes())
		}
	})
}
