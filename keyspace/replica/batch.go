package replica

import (
	"fmt"
	"slices"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// ItemChange says what becomes of an item.
type ItemChange uint8

// The changes of items.
const (
	ItemPut     ItemChange = iota
	ItemTouched            // a new header for the body that is there
	ItemRemoved            // whether there is an item or not
)

// ChangedItem is the change of an item. Its texts are views of the batch.
type ChangedItem struct {
	record.Key
	record.Item
	Change ItemChange
	Text   string // of ItemPut: the record as it is stored
	Base   uint64 // of ItemTouched: the version of the body
}

// Batch is the changes of a batch that a leader has journalled. It is checked as a whole before any of it is
// applied. Items keep their order; of each container the last record counts. To read it takes no lock, so a
// follower holds its locks for the changes in memory only. The zero value is ready to read one, and another
// after that. Not safe for concurrent use.
type Batch struct {
	Items   []ChangedItem
	Records map[uint32]*record.Container // the last of each container by number; nil: the container is removed
	Clock   record.Item                  // the last record of the clock; the zero value: there is none
	Version uint64                       // the latest
	Undo    bool                         // a record has the window of an undo
	Logs    bool                         // a record has a log
	Deletes bool                         // of what clients delete, too

	Collections bool // an item has elements
}

// mostItems is the number of items for which a batch keeps its memory.
const mostItems = 16 << 10

// Read reads a batch and verifies all its checksums. The error names what cannot be read.
func (b *Batch) Read(text string) error {
	items := b.Items[:0]
	if cap(items) > mostItems {
		items = nil
	}
	*b = Batch{Items: items}
	for size := len(text); text != ""; {
		o, rest, ok := aof.Cut(text)
		if !ok {
			return fmt.Errorf("a batch of %d bytes: there is no command of the journal at byte %d", size, size-len(text))
		}
		if err := b.read(o); err != nil {
			return fmt.Errorf("a batch of %d bytes, at byte %d: %w", size, size-len(text), err)
		}
		text = rest
	}
	return nil
}

// read reads a command.
func (b *Batch) read(o aof.Op) (err error) {
	if record.InCatalogue(o.Key) {
		return b.readRecord(o)
	}
	it := ChangedItem{Text: o.Rec}
	key, touched := record.TouchedKey(o.Key)
	if it.Key, err = record.SplitKey(key); err != nil {
		return fmt.Errorf("key %.100q: %w", o.Key, err)
	}
	switch {
	case o.Del && touched:
		return fmt.Errorf("key %.100q: a touch is deleted", o.Key)
	case o.Del:
		it.Change = ItemRemoved
	case touched:
		it.Change = ItemTouched
		it.Item, it.Base, err = record.ReadTouch(o.Key, o.Rec)
	default:
		it.Item, _, err = record.Decode(o.Key, o.Rec)
	}
	if err != nil {
		return fmt.Errorf("item %.100q: %w", o.Key, err)
	}
	b.Version = max(b.Version, it.Version)
	b.Collections = b.Collections || it.Kind.IsCollection() || it.Kind == record.Page
	b.Items = append(b.Items, it)
	return nil
}

// readRecord reads a record of the catalogue.
func (b *Batch) readRecord(o aof.Op) error {
	var it record.Item
	if !o.Del {
		var err error
		if it, _, err = record.Decode(o.Key, o.Rec); err != nil {
			return fmt.Errorf("record %q: %w", o.Key, err)
		}
	}
	if o.Key == record.ClockKey && !o.Del {
		b.Clock = it
		return nil
	}
	number, err := record.ContainerNumber(o.Key)
	if err != nil {
		return err
	}
	if b.Records == nil {
		b.Records = make(map[uint32]*record.Container)
	}
	if o.Del {
		b.Records[number] = nil
		return nil
	}
	c, err := record.ReadContainer(o.Key, it)
	if err != nil {
		return err
	}
	b.Records[number] = &c
	b.Version = max(b.Version, c.Etag)
	if c.Aside != nil {
		b.Version, b.Undo = max(b.Version, c.Aside.Order), true
	}
	for _, h := range c.History {
		b.Undo = b.Undo || h.Undo != 0
	}
	b.Logs = b.Logs || c.Log != nil || c.Hidden != nil
	b.Deletes = b.Deletes || c.Log != nil && c.Log.Deletes
	return nil
}

// Numbers returns the numbers of the containers that have a record, in ascending order.
func (b *Batch) Numbers() []uint32 {
	list := make([]uint32, 0, len(b.Records))
	for number := range b.Records {
		list = append(list, number)
	}
	slices.Sort(list)
	return list
}
