//go:build invariants || race

package index

import "fmt"

// Check verifies the invariants of a tree and returns the first violation. It takes time in proportion to the
// entries.
func (t *Tree) Check() error {
	counts := make([]uint32, len(t.texts))
	entries, cut := 0, 0
	var last entry
	var err error
	t.items.Scan(func(e entry) bool {
		if entries > 0 && !t.less(last, e) {
			err = fmt.Errorf("entry %d is out of order", entries)
			return false
		}
		last = e
		entries++
		n := e.text()
		if id := t.order.of(t.ids(e.handle)); n == noText && e.more&lowMask != id {
			err = fmt.Errorf("an entry has number %d of its id, not %d", e.more&lowMask, id)
			return false
		}
		if n != noText {
			counts[n]++
		}
		if e.handle == probeHandle || n == probeText || n != noText && t.texts[n].text == "" {
			err = fmt.Errorf("an entry has handle %d and text %d", e.handle, n)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	bytes, free := int64(0), 0
	for n, counted := range counts {
		switch text := &t.texts[n]; {
		case counted != text.count:
			return fmt.Errorf("%d entries have text %d, counted are %d", counted, n, text.count)
		case counted > 0:
			bytes += int64(len(text.text))
		case text.text != "":
			return fmt.Errorf("text %d is kept for no entry", n)
		case n > probeText:
			free++
		}
	}
	c, ok := t.Range(nil, nil, false)
	for ; ok; ok = c.Next() {
		if k := c.Key(); k.isCut() {
			cut++
		}
	}
	switch {
	case entries != t.Len():
		return fmt.Errorf("%d entries, counted are %d", entries, t.Len())
	case bytes != t.bytes:
		return fmt.Errorf("texts have %d bytes, counted are %d", bytes, t.bytes)
	case free != len(t.free):
		return fmt.Errorf("%d texts are free, listed are %d", free, len(t.free))
	case cut < t.cut:
		return fmt.Errorf("%d keys may be cut, counted are %d", cut, t.cut)
	}
	return nil
}

// isCut reports whether a key of a tree may be cut.
func (k *Key) isCut() bool { return k.text != "" }
