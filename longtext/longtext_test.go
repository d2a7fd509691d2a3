package longtext

import (
	"bytes"
	"strings"
	"testing"
)

// A text of any number of pieces is copied whole, also towards the front of its own buffer.
func TestCopy(t *testing.T) {
	t.Parallel()
	text := make([]byte, 3*pieceSize)
	for i := range text {
		text[i] = byte(i % 251)
	}
	for _, n := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 2 * pieceSize, 3 * pieceSize} {
		to := bytes.Repeat([]byte{255}, n+1)
		Copy(to, text[:n])
		if !bytes.Equal(to[:n], text[:n]) || to[n] != 255 {
			t.Errorf("%d bytes are not copied as they are, or more", n)
		}
		for _, by := range []int{1, pieceSize - 1, pieceSize + 1} {
			buf := bytes.Clone(text)
			from := buf[min(by, len(buf)-n):][:n]
			want := bytes.Clone(from)
			if Copy(buf, from); !bytes.Equal(buf[:n], want) {
				t.Errorf("%d bytes are not moved by %d as they are", n, by)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", pieceSize)
	for _, parts := range [][]string{nil, {""}, {"a"}, {"a", "", "b"}, {long, ",", long}} {
		if got := Join(parts...); got != strings.Join(parts, "") {
			t.Errorf("%d parts become a text of %d bytes", len(parts), len(got))
		}
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "abc", strings.Repeat("long", pieceSize)} {
		for _, n := range []int{0, 1, 2, 3, 1000, 100_001} {
			if len(text)*n > 1<<22 {
				continue
			}
			if got := Repeat(text, n); got != strings.Repeat(text, n) {
				t.Errorf("%d bytes %d times become %d", len(text), n, len(got))
			}
		}
	}
}
