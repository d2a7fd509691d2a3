package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"mayfly/redisfmt"
)

// Kind is the kind of a message.
type Kind byte

// The kinds of messages.
const (
	Channel Kind = iota + 1 // of PUBLISH
	Shard                   // of SPUBLISH
	Event                   // a keyspace event
	// The other kinds of frames.
	frameInterest
	framePing
)

// Message is a published message.
type Message struct {
	Kind    Kind
	Channel string // of an Event with the container's name
	// Numbered is the channel of an Event with the container's number; empty if the name is the number.
	Numbered string
	Text     string
}

// Prefixes of the channels of keyspace events.
const (
	KeyspacePrefix = "__keyspace@"
	KeyeventPrefix = "__keyevent@"
)

// Filter says which keyspace events the subscribers of a node may match. The zero value is none. Its slices
// are not modified.
type Filter struct {
	All      bool
	Channels []string
	Patterns []string
}

// Empty reports whether no event matches.
func (f *Filter) Empty() bool { return !f.All && len(f.Channels) == 0 && len(f.Patterns) == 0 }

// IsEventChannel reports whether keyspace events may come on a channel.
func IsEventChannel(name string) bool {
	return strings.HasPrefix(name, KeyspacePrefix) || strings.HasPrefix(name, KeyeventPrefix)
}

// MayMatchEvents reports whether a pattern may match a channel of keyspace events. It looks at what comes
// before the first wildcard.
func MayMatchEvents(pattern string) bool {
	literal := pattern
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		literal = pattern[:i]
	} else {
		return IsEventChannel(pattern)
	}
	for _, prefix := range []string{KeyspacePrefix, KeyeventPrefix} {
		if strings.HasPrefix(literal, prefix) || strings.HasPrefix(prefix, literal) {
			return true
		}
	}
	return false
}

// matcher is a filter that is ready for use.
type matcher struct {
	all      bool
	channels map[string]bool
	patterns []*redisfmt.Pattern
}

func newMatcher(f *Filter) *matcher {
	m := &matcher{all: f.All, channels: make(map[string]bool, len(f.Channels))}
	for _, name := range f.Channels {
		m.channels[name] = true
	}
	for _, pattern := range f.Patterns {
		m.patterns = append(m.patterns, redisfmt.Compile(pattern))
	}
	return m
}

// match reports whether an event on a channel, or on that with the container's number, is wanted.
func (m *matcher) match(channel, numbered string) bool {
	if m.all || m.channels[channel] || numbered != "" && m.channels[numbered] {
		return true
	}
	for _, p := range m.patterns {
		if p.Match(channel) || numbered != "" && p.Match(numbered) {
			return true
		}
	}
	return false
}

// A frame is its length in 4 bytes, big endian, and its body: a byte for the kind, and
//
//   - of Channel and Shard: the channel, the text.
//   - of Event: the channel, the numbered channel, the text.
//   - of an interest: its number in 8 bytes, a byte that is 1 if all events are wanted, the channels, the
//     patterns.
//   - of a ping: nothing.
//
// A string is its length as a varint and its bytes, the text of a message what is left. A list is its length
// as a varint and its strings. A kind that a node does not know is skipped.
const (
	frameHead = 4
	mostFrame = 513 << 20 // a value, and the names of channels
)

// errFrame is the error for a frame that no node sends.
var errFrame = errors.New("a frame cannot be read")

// appendMessage appends the frame of a message.
func appendMessage(b []byte, m *Message) []byte {
	b, start := beginFrame(b, m.Kind)
	b = appendText(b, m.Channel)
	if m.Kind == Event {
		b = appendText(b, m.Numbered)
	}
	return endFrame(append(b, m.Text...), start)
}

// appendInterest appends the frame of a filter.
func appendInterest(b []byte, number uint64, f *Filter) []byte {
	b, start := beginFrame(b, frameInterest)
	b = binary.BigEndian.AppendUint64(b, number)
	if f.All {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	for _, list := range [][]string{f.Channels, f.Patterns} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, text := range list {
			b = appendText(b, text)
		}
	}
	return endFrame(b, start)
}

func appendPing(b []byte) []byte {
	b, start := beginFrame(b, framePing)
	return endFrame(b, start)
}

func beginFrame(b []byte, kind Kind) (_ []byte, start int) {
	return append(b, 0, 0, 0, 0, byte(kind)), len(b)
}

func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-frameHead))
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// frame is the decoded body of one. Its strings are copies.
type frame struct {
	kind    Kind
	message Message
	number  uint64 // of an interest
	filter  Filter
}

// decode decodes the body of a frame.
func decode(body []byte) (f frame, err error) {
	if len(body) == 0 {
		return f, errFrame
	}
	f.kind = Kind(body[0])
	d := decoder{rest: body[1:]}
	switch f.kind {
	case Channel, Shard, Event:
		f.message.Kind, f.message.Channel = f.kind, d.text()
		if f.kind == Event {
			f.message.Numbered = d.text()
		}
		f.message.Text = string(d.rest)
	case frameInterest:
		f.number = d.number()
		f.filter.All = d.flag()
		f.filter.Channels, f.filter.Patterns = d.list(), d.list()
		if len(d.rest) > 0 {
			d.failed = true
		}
	}
	if d.failed {
		return f, fmt.Errorf("%w: kind %d of %d bytes", errFrame, f.kind, len(body))
	}
	return f, nil
}

// decoder reads the body of a frame. After a failure it returns zero values.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() { d.rest, d.failed = nil, true }

func (d *decoder) length() int {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > uint64(len(d.rest)-size) {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *decoder) text() string {
	n := d.length()
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

func (d *decoder) list() []string {
	n := d.length() // a string takes a byte at least, so the length bounds the list
	var list []string
	for range n {
		list = append(list, d.text())
		if d.failed {
			return nil
		}
	}
	return list
}

func (d *decoder) number() uint64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	n := binary.BigEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return n
}

func (d *decoder) flag() bool {
	if len(d.rest) == 0 || d.rest[0] > 1 {
		d.fail()
		return false
	}
	set := d.rest[0] == 1
	d.rest = d.rest[1:]
	return set
}
