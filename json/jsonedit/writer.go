package jsonedit

import (
	"errors"

	"mayfly/json/jsontext"
)

// Format is how JSON.GET spaces its reply: INDENT, NEWLINE and SPACE.
type Format struct {
	Indent, Newline, Space string
}

// pieceSize is the size in bytes of the pieces that a [Writer] sends.
const pieceSize = 64 << 10

// errMost ends a count beyond its limit.
var errMost = errors.New("jsonedit: the text is longer than the limit")

// A Writer writes compact values in a format: a new line before each member, element and closing bracket that
// is not empty, as many indents as it is deep, and the space after each colon. So a few bytes of a deep
// document may become many: a long text is written twice, first to count its bytes, then in pieces that are
// sent. Not safe for concurrent use.
type Writer struct {
	Format

	// Send, if not nil, gets the bytes whenever a piece is full. It must not keep the slice. Its first error
	// ends the writing.
	Send func(piece []byte) error

	Out   []byte // what is not sent
	Count bool   // bytes are counted only, up to Most and a little more
	Most  int    // 0: no limit
	Size  int    // bytes so far

	err error
}

// Text writes a text as it is.
func (w *Writer) Text(text string) {
	w.Size += len(text)
	if w.Count && w.Most > 0 && w.Size > w.Most {
		w.err = errMost
	}
	for !w.Count && w.err == nil && text != "" {
		n := len(text)
		if w.Send != nil {
			n = min(n, pieceSize-len(w.Out))
		}
		w.Out, text = append(w.Out, text[:n]...), text[n:]
		if w.Send != nil && len(w.Out) == pieceSize {
			_ = w.End()
		}
	}
}

// End sends what is not sent, and returns the first error of Send.
func (w *Writer) End() error {
	if w.err == nil && w.Send != nil {
		w.err = w.Send(w.Out)
		w.Out = w.Out[:0]
	}
	return w.err
}

// Failed reports whether Send has returned an error, or a count is beyond its limit.
func (w *Writer) Failed() bool { return w.err != nil }

// Line begins a new line at a depth.
func (w *Writer) Line(depth int) {
	w.Text(w.Newline)
	if w.Count {
		w.Size += depth * len(w.Indent)
		return
	}
	for range depth {
		w.Text(w.Indent)
	}
}

// Value writes a compact value that is at a depth.
func (w *Writer) Value(value string, depth int) {
	if w.Format == (Format{}) {
		w.Text(value)
		return
	}
	w.value(value, 0, depth)
}

// value writes the value at a position of a text and returns its end.
func (w *Writer) value(text string, i, depth int) (end int) {
	if c := text[i]; c != '{' && c != '[' {
		end = jsontext.ValueEnd(text, i)
		w.Text(text[i:end])
		return end
	}
	w.Text(text[i : i+1])
	walk := jsontext.WalkAt(text, i)
	members := 0
	for ; w.err == nil && walk.Step(); members++ {
		if members > 0 {
			w.Text(",")
		}
		w.Line(depth + 1)
		if !walk.Array {
			w.Text(text[walk.Start:walk.NameEnd])
			w.Text(":")
			w.Text(w.Space)
		}
		walk.Pos = w.value(text, walk.ValueFrom, depth+1)
	}
	if w.err != nil {
		return len(text)
	}
	if members > 0 {
		w.Line(depth)
	}
	w.Text(text[walk.Start : walk.Start+1])
	return walk.Start + 1
}
