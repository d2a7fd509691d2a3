package aof

import (
	"slices"
	"strconv"

	"mayfly/keyspace/record"
)

// Commands are commands in the order in which they are written. Large texts are not copied but referred to.
// The zero value is empty.
type Commands struct {
	before []string // the parts before Text; they do not change
	size   int64    // of those, bytes
	Text   []byte   // the last part
}

const (
	// copied is the size in bytes up to which a text is copied.
	copied = 32 << 10
	// piece is the size in bytes from which Text is not moved to larger memory but becomes a part, so that
	// those of a large transaction are written once, under its locks.
	piece = 256 << 10
)

// room makes room for size bytes in Text.
func (c *Commands) room(size int) {
	switch {
	case cap(c.Text)-len(c.Text) >= size:
	case len(c.Text) < piece/2:
		c.Text = room(c.Text, size)
	default:
		c.refer(c.Text)
		c.Text = make([]byte, 0, max(size, piece))
	}
}

// refer makes texts parts. Text goes on behind them.
func (c *Commands) refer(text []byte, more ...string) {
	c.before = append(append(c.before, record.View(text)), more...)
	c.size += int64(len(text))
	for _, m := range more {
		c.size += int64(len(m))
	}
}

// Set appends the command that sets a key. body is the rest of the record behind rec. If it is large it must
// not change any more.
func (c *Commands) Set(key, rec, body string) {
	if len(body) <= copied {
		c.room(int(SetSize(len(key), len(rec)+len(body))))
		c.Text = appendSet(c.Text, key, rec, body)
		return
	}
	dst := append(c.Text, setHead...)
	dst = appendBulk(dst, key)
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(rec)+len(body)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, rec...)
	c.refer(dst, body)
	c.Text = append(dst[len(dst):], "\r\n"...)
}

// Del appends the command that deletes a key.
func (c *Commands) Del(key string) {
	c.room(delSize(len(key)))
	c.Text = AppendDel(c.Text, key)
}

// Add appends the commands of o, whose last part may change afterwards.
func (c *Commands) Add(o *Commands) {
	if len(o.before) > 0 {
		c.refer(c.Text, o.before...)
		c.Text = c.Text[len(c.Text):]
	}
	if len(o.Text) > 0 {
		c.room(len(o.Text))
		c.Text = append(c.Text, o.Text...)
	}
}

// Reset removes all commands. It keeps the memory of a small transaction.
func (c *Commands) Reset() {
	if c.before != nil || cap(c.Text) > copied {
		*c = Commands{}
	}
	c.Text = c.Text[:0]
}

// Size returns the size of the commands in bytes.
func (c *Commands) Size() int64 { return int64(len(c.Text)) + c.size }

// Large reports whether there are several parts.
func (c *Commands) Large() bool { return len(c.before) > 0 }

// Sum returns the CRC-32C of the commands.
func (c *Commands) Sum() (crc uint32) {
	for _, part := range c.before {
		crc = record.Sum(crc, part)
	}
	return record.Sum(crc, record.View(c.Text))
}

// Parts returns the commands in parts. text is the last of them, or longer.
func (c *Commands) Parts(text []byte) []string {
	return append(slices.Clip(c.before), record.View(text))
}

// Flatten copies the parts, so that Text is all of the commands.
func (c *Commands) Flatten() {
	if !c.Large() {
		return
	}
	text := make([]byte, 0, c.Size()+int64(SealSize))
	for _, part := range c.Parts(c.Text) {
		text = append(text, part...)
	}
	*c = Commands{Text: text}
}
