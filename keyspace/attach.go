package keyspace

import (
	"errors"
	"fmt"
	"io"
	"unsafe"
)

// Nobody reads from a store: its tree in buntdb is needed when a checkpoint changes it, or a compaction
// writes it out. To have buntdb build the tree from the file takes several times as long as reading
// the file, so a start only does the latter (read). buntdb follows in the background (attach), one store
// after the other, unless a checkpoint needs it earlier.
//
// buntdb makes strings of its own of all it reads. So that there is not everything twice, entries that
// are as they were read then go over to these (share), and the memory of what was read goes.

// read visits all changes that the file holds in order, before buntdb has read it. Key and record may be
// kept, but share memory with others; the record is empty for deletes.
func (s *store) read(visit func(key, rec string, deleted bool) error) error {
	c := newCommandReader(s.file.f, 0, s.sealed)
	var t texts
	for {
		key, value, quick := c.quick()
		if quick {
			text := append(append(t.room(len(key)+len(value), s.sealed-c.off), key...), value...)
			if err := visit(view(text[:len(key)]), view(text[len(key):]), false); err != nil {
				return err
			}
			continue
		}
		cmd, err := c.next()
		if err == io.EOF {
			return nil
		}
		if err == nil && cmd.del && string(cmd.key) != sealKey {
			if err := visit(string(cmd.key), "", true); err != nil {
				return err
			}
		}
		if err == nil && !cmd.del {
			err = s.readLong(c, cmd, &t, visit)
		}
		var b *breakOff
		if errors.As(err, &b) { // it was whole when it was checked
			return b.damage(s.path())
		}
		if err != nil {
			return err
		}
	}
}

// readLong reads the value of a command that quick does not read.
func (s *store) readLong(c *commandReader, cmd command, t *texts, visit func(key, rec string, deleted bool) error) error {
	if string(cmd.key) == sealKey {
		return c.value(cmd, nil)
	}
	n := len(cmd.key)
	text := append(t.room(n+int(cmd.value), s.sealed-c.off), cmd.key...)
	if err := c.value(cmd, func(b []byte) { text = append(text, b...) }); err != nil {
		return err
	}
	return visit(view(text[:n]), view(text[n:]), false)
}

// texts gives memory for texts that mostly go together: in blocks, each one object to the collector.
type texts struct{ block []byte }

const textBlock = 1 << 20 // bytes

// room gives room for n bytes, of which none is in use. rest says how much is to come besides, at the most.
func (t *texts) room(n int, rest int64) []byte {
	if n > textBlock/8 {
		return make([]byte, 0, n)
	}
	if n > cap(t.block)-len(t.block) {
		t.block = make([]byte, 0, min(textBlock, int64(n)+rest))
	}
	from := len(t.block)
	t.block = t.block[:from+n]
	return t.block[from:from:len(t.block)]
}

// attach has buntdb read the store's file, unless it has.
func (s *store) attach() error {
	if s.file.db != nil {
		return nil
	}
	if err := s.file.open(s.bytes.Load()); err != nil {
		return err
	}
	if s.share == nil {
		return nil
	}
	some := make([]op, 0, shareAtOnce)
	items := 0
	err := s.load(func(key, rec string) error {
		items++
		if some = append(some, op{key: key, rec: rec}); len(some) == cap(some) {
			s.share(some)
			some = some[:0]
		}
		return nil
	})
	s.share(some)
	s.share = nil
	if err == nil && items != s.items {
		err = fmt.Errorf("buntdb has found %d items, there are %d", items, s.items)
	}
	if err != nil {
		s.broken = fmt.Errorf("opening %s: %w", s.path(), err)
	}
	return s.broken
}

// attachStores has buntdb read the partitions' stores that it has not read yet.
func (ks *Keyspace) attachStores() {
	for _, p := range ks.partitions {
		select {
		case <-ks.stop:
			return
		default:
		}
		if err := ks.attachStore(p.store); err != nil {
			// A checkpoint that needs it tries again, and fails if that does.
			ks.opt.Log.Error().Err(err).Str("file", p.store.path()).Msg("buntdb cannot read a store")
		}
	}
}

func (ks *Keyspace) attachStore(s *store) error {
	ks.fold.mu.Lock()
	defer ks.fold.mu.Unlock()
	return s.attach()
}

// shareAtOnce is how many items go over under one lock: that takes microseconds.
const shareAtOnce = 64

// sharing finds the entries that are to go over. fold.mu protects it, and the partition's lock is held.
type sharing struct {
	ks       *Keyspace
	byNumber map[uint32]*Container
	ticket   Ticket // of the catalogue that byNumber shows
}

// table gives the table of a container in a partition, nil if there is none.
func (s *sharing) table(p *partition, number uint32) *table {
	c := s.byNumber[number]
	if cat := &s.ks.catalogue; (c == nil || c.number != number) && (s.byNumber == nil || cat.ticket != s.ticket) {
		s.byNumber, s.ticket = make(map[uint32]*Container, len(cat.byName)), cat.ticket
		for _, c := range cat.byName {
			s.byNumber[c.number] = c
		}
		c = s.byNumber[number]
	}
	if c == nil || c.number != number {
		return nil
	}
	return c.tables[p.number]
}

// share lets the entries of a partition go over to the texts of its store.
func (s *sharing) share(p *partition, items []op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range items {
		number, id, err := splitKey(o.key)
		if err != nil {
			continue // it was none at the start either
		}
		t := s.table(p, number)
		if t == nil {
			continue
		}
		if e := t.find(id); e != nil && e.key() == o.key && e.rec() == o.rec {
			e.keyStart, e.recStart = unsafe.StringData(o.key), unsafe.StringData(o.rec)
		}
	}
}
