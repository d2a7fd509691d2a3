package resp

import (
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/redisfmt"

	"github.com/tidwall/redcon"
)

// AppendError renders an error, which begins with its code.
func AppendError(dst []byte, text string) []byte { return redcon.AppendError(dst, text) }

// AppendReply renders a reply for protocol 2 or 3, in the way Redis does.
func AppendReply(dst []byte, proto int, r *engine.Reply) []byte {
	switch r.Kind {
	case engine.KindNone:
		return dst
	case engine.KindStatus:
		return redcon.AppendString(dst, r.Str)
	case engine.KindError:
		return redcon.AppendError(dst, r.Str)
	case engine.KindInteger:
		return redcon.AppendInt(dst, r.Int)
	case engine.KindBulk:
		return redcon.AppendBulkString(dst, r.Str)
	case engine.KindNull, engine.KindNullArray:
		return appendNull(dst, proto, r.Kind)
	case engine.KindDouble:
		return appendDouble(dst, proto, r.Float())
	case engine.KindBool:
		return appendBool(dst, proto, r.Int != 0)
	case engine.KindVerbatim:
		if r.Int != 0 {
			return appendFormatted(dst, proto, r.Str)
		}
		return appendString(dst, proto, r)
	case engine.KindElement:
		return appendString(dst, proto, r)
	case engine.KindText:
		return redcon.AppendBulkString(dst, r.Text.String())
	case engine.KindElements:
		for digits, text := range r.Strings {
			dst = append(append(append(dst, '$'), digits...), '\r', '\n')
			dst = append(append(dst, text...), '\r', '\n')
		}
		return dst
	case engine.KindBigNumber:
		if proto < 3 {
			return redcon.AppendBulkString(dst, r.Str)
		}
		dst = append(append(dst, '('), r.Str...)
		return append(dst, '\r', '\n')
	}
	if r.Kind == engine.KindProtocol {
		proto = int(r.Int)
	}
	dst = appendAggregate(dst, proto, r)
	for i := range r.Elems {
		dst = AppendReply(dst, proto, &r.Elems[i])
	}
	return dst
}

// appendAggregate renders the header of an array, map, set or push. Several replies in a row, and a
// reply in a protocol of its own, have none.
func appendAggregate(dst []byte, proto int, r *engine.Reply) []byte {
	n := len(r.Elems)
	if r.Kind == engine.KindSeveral || r.Kind == engine.KindProtocol {
		return dst
	}
	if r.Int > 0 && r.Kind != engine.KindPush { // it is of a List
		n = int(r.Int)
	}
	if proto >= 3 {
		switch r.Kind {
		case engine.KindMap:
			return appendHeader(dst, '%', n/2)
		case engine.KindSet:
			return appendHeader(dst, '~', n)
		case engine.KindPush:
			return appendHeader(dst, '>', n)
		}
	}
	return redcon.AppendArray(dst, n)
}

// appendString renders a bulk or verbatim string.
func appendString(dst []byte, proto int, r *engine.Reply) []byte {
	dst = appendStringHead(dst, proto, r)
	dst = append(dst, r.Str...)
	return append(dst, stringTail(r)...)
}

// appendStringHead renders what comes before Str in a bulk or verbatim string.
func appendStringHead(dst []byte, proto int, r *engine.Reply) []byte {
	switch {
	case r.Kind == engine.KindElement:
		dst = appendHeader(dst, '$', len("[]")+len(r.Str))
		return append(dst, '[')
	case r.Kind != engine.KindVerbatim || proto < 3:
		return appendHeader(dst, '$', len(r.Str))
	}
	dst = appendHeader(dst, '=', len("txt:")+len(r.Str))
	return append(dst, "txt:"...)
}

// stringTail is what comes after Str in a bulk or verbatim string.
func stringTail(r *engine.Reply) string {
	if r.Kind == engine.KindElement {
		return "]\r\n"
	}
	return "\r\n"
}

// appendFormatted renders a verbatim string that begins with its format.
func appendFormatted(dst []byte, proto int, text string) []byte {
	const format = len("txt:")
	if proto < 3 {
		return redcon.AppendBulkString(dst, text[format:])
	}
	dst = appendHeader(dst, '=', len(text))
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

func appendNull(dst []byte, proto int, kind engine.Kind) []byte {
	switch {
	case proto >= 3:
		return append(dst, "_\r\n"...)
	case kind == engine.KindNullArray:
		return append(dst, "*-1\r\n"...)
	}
	return redcon.AppendNull(dst)
}

func appendBool(dst []byte, proto int, b bool) []byte {
	switch {
	case proto < 3 && b:
		return redcon.AppendInt(dst, 1)
	case proto < 3:
		return redcon.AppendInt(dst, 0)
	case b:
		return append(dst, "#t\r\n"...)
	}
	return append(dst, "#f\r\n"...)
}

func appendDouble(dst []byte, proto int, f float64) []byte {
	var room [32]byte
	digits := redisfmt.AppendDouble(room[:0], f)
	if proto < 3 {
		return redcon.AppendBulk(dst, digits)
	}
	dst = append(dst, ',')
	dst = append(dst, digits...)
	return append(dst, '\r', '\n')
}

// Exceeds reports whether a rendered reply takes more than size bytes, not counting its framing.
func Exceeds(r *engine.Reply, size int) bool { return remainder(r, size) < 0 }

// remainder is what a reply leaves of size bytes; negative if it needs more.
func remainder(r *engine.Reply, size int) int {
	size -= len(r.Str)
	if r.Kind == engine.KindText {
		size -= r.Text.Size
	}
	for i := 0; i < len(r.Elems) && size >= 0; i++ {
		const framing = 4
		size = remainder(&r.Elems[i], size-framing)
	}
	return size
}

// Sizes in [Stream], in bytes.
const (
	pieceSize = 64 << 10  // rendered bytes that are sent together
	chunkSize = 256 << 10 // of a long string, which is sent without being copied
)

// Stream renders a reply and sends it piece by piece, so that a large one is never in memory twice. room
// is memory to render into. The error is that of send.
func Stream(room []byte, proto int, r *engine.Reply, send func([]byte) error) error {
	s := stream{room[:0], proto, send}
	if err := s.reply(r); err != nil || len(s.out) == 0 {
		return err
	}
	return s.flush()
}

// A stream renders into out and sends that whenever a piece is full.
type stream struct {
	out   []byte
	proto int
	send  func([]byte) error
}

func (s *stream) flush() error {
	err := s.send(s.out)
	s.out = s.out[:0]
	return err
}

// sendPiece sends a piece that has been computed, and leaves the processor to others before the next one.
func (s *stream) sendPiece(piece []byte) error {
	err := s.send(piece)
	runtime.Gosched()
	return err
}

func (s *stream) reply(r *engine.Reply) error {
	switch {
	case !Exceeds(r, pieceSize), r.Kind == engine.KindStatus, r.Kind == engine.KindError, r.Kind == engine.KindProtocol:
		s.out = AppendReply(s.out, s.proto, r)
	case len(r.Elems) > 0:
		s.out = appendAggregate(s.out, s.proto, r)
		for i := range r.Elems {
			if err := s.reply(&r.Elems[i]); err != nil {
				return err
			}
		}
	case r.Kind == engine.KindElements:
		for _, text := range r.Strings {
			if err := s.reply(&engine.Reply{Kind: engine.KindBulk, Str: text}); err != nil {
				return err
			}
		}
	case r.Kind == engine.KindText:
		s.out = appendHeader(s.out, '$', r.Text.Size)
		if err := s.flush(); err != nil {
			return err
		}
		if err := r.Text.Render(s.sendPiece); err != nil {
			return err
		}
		s.out = append(s.out, "\r\n"...)
	default:
		s.out = appendStringHead(s.out, s.proto, r)
		if err := s.flush(); err != nil {
			return err
		}
		for chunk := range slices.Chunk(unsafe.Slice(unsafe.StringData(r.Str), len(r.Str)), chunkSize) {
			if err := s.send(chunk); err != nil {
				return err
			}
		}
		s.out = append(s.out, stringTail(r)...)
	}
	if len(s.out) < pieceSize {
		return nil
	}
	return s.flush()
}
