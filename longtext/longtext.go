package longtext

import "unsafe"

// pieceSize is how many bytes are copied at once.
const pieceSize = 128 << 10

// Copy copies a text to the front of to, which has room for it and may begin before the text in the same
// buffer.
func Copy[T string | []byte](to []byte, text T) {
	for len(text) > pieceSize {
		copyPiece(to[:pieceSize], text[:pieceSize])
		to, text = to[pieceSize:], text[pieceSize:]
	}
	copy(to, text)
}

// copyPiece is a call, at which the runtime can interrupt.
//
//go:noinline
func copyPiece[T string | []byte](to []byte, piece T) { copy(to, piece) }

// Join returns parts one after the other. The text is a copy, also of a single part.
func Join(parts ...string) string {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	text := make([]byte, size)
	at := text
	for _, part := range parts {
		Copy(at, part)
		at = at[len(part):]
	}
	return unsafe.String(unsafe.SliceData(text), size)
}

// Repeat returns a text n times. The size must not overflow.
func Repeat(text string, n int) string {
	if n*len(text) == 0 {
		return ""
	}
	all := make([]byte, n*len(text))
	Copy(all, text)
	most := max(pieceSize/len(text), 1) * len(text)
	for done := len(text); done < len(all); {
		there := all[:min(done, most, len(all)-done)]
		Copy(all[done:], there)
		done += len(there)
	}
	return unsafe.String(unsafe.SliceData(all), len(all))
}
