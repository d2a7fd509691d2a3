package aof

import (
	"strconv"

	"mayfly/keyspace/record"
)

// Commands are commands in the order in which they are written. Large texts are not copied but referred to. The zero
// value is empty.
type Commands struct {
	Text  []byte
	large []largeText
	size  int64 // of the large texts, bytes
}

// largeText is a text that belongs at an offset in the others.
type largeText struct {
	at   int
	text string
}

// copied is the size in bytes up to which a text is copied.
const copied = 32 << 10

// Set appends the command that sets a key. body is the rest of the record behind rec. If it is large it must not
// change any more.
func (c *Commands) Set(key, rec, body string) {
	if len(body) <= copied {
		c.Text = appendSet(c.Text, key, rec, body)
		return
	}
	dst := append(c.Text, setHead...)
	dst = appendBulk(dst, key)
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(rec)+len(body)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, rec...)
	c.large = append(c.large, largeText{len(dst), body})
	c.size += int64(len(body))
	c.Text = append(dst, "\r\n"...)
}

// Del appends the command that deletes a key.
func (c *Commands) Del(key string) { c.Text = AppendDel(c.Text, key) }

// Size returns the size of the commands in bytes.
func (c *Commands) Size() int64 { return int64(len(c.Text)) + c.size }

// Large reports whether there are large texts.
func (c *Commands) Large() bool { return len(c.large) > 0 }

// Sum returns the CRC-32C of the commands.
func (c *Commands) Sum() (crc uint32) {
	c.each(c.Text, func(part string) { crc = record.Sum(crc, part) })
	return crc
}

// Parts returns the commands in parts. text is that of the commands, or longer.
func (c *Commands) Parts(text []byte) (parts []string) {
	c.each(text, func(part string) { parts = append(parts, part) })
	return parts
}

func (c *Commands) each(text []byte, visit func(part string)) {
	from := 0
	for _, l := range c.large {
		visit(record.View(text[from:l.at]))
		visit(l.text)
		from = l.at
	}
	visit(record.View(text[from:]))
}

// Flatten copies the large texts, so that Text is all of the commands.
func (c *Commands) Flatten() {
	if !c.Large() {
		return
	}
	text := make([]byte, 0, c.Size()+int64(SealSize))
	c.each(c.Text, func(part string) { text = append(text, part...) })
	*c = Commands{Text: text}
}
