package keyspace

import (
	"errors"
	"fmt"
	"slices"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/replica"
)

// Applying a leader's batches
//
// A follower changes its memory as the loader does, but live:
//
//  1. Items go to the tables of their container's number, in the order of the batch. What is derived of items
//     follows: indexes, logs of deaths, groups, figures.
//  2. Then each container becomes what its last record says: see containerApplier.
//  3. Nothing is written twice: the journal gets the batch as it is.
//
// A batch holds the locks of all partitions, so readers see all of it or nothing.

// applier has what a follower needs from one batch to the next. One goroutine uses it.
type applier struct {
	ks       *Keyspace
	tx       *Tx // holds the locks while a batch is applied
	batch    replica.Batch
	byNumber map[uint32]*Container // all containers
	index    uint64                // of the last batch
	lsn      LSN                   // covers it
	now      int64                 // ms
	lookups  memtable.Prefetcher

	// Of the batch that is applied:
	last   *Container            // of the item before
	number uint32                // its number
	made   map[uint32]*Container // with the items of a new number until it is known what has them
	logged map[*Container]bool
	reload map[*Container]bool // groups to load again
}

// Apply changes memory and the local journal by a batch of the log that is committed, and moves to its
// position. A follower calls it for one batch after the other. After the error of a full disk it is to be
// called again with the same batch; any other is final.
func (ks *Keyspace) Apply(batch string, tail replica.Tail) error {
	a := ks.applier
	if a == nil || a.index != tail.Index { // else the journal only is to be tried again
		lsn, err := ks.applyBatch(batch, tail)
		if err != nil {
			return err
		}
		a = ks.applier
		a.index, a.lsn = tail.Index, lsn
	}
	return ks.settleApplied(a.lsn, tail)
}

// applyBatch changes memory by a batch, which joins the journal.
func (ks *Keyspace) applyBatch(batch string, tail replica.Tail) (LSN, error) {
	var b replica.Batch
	if a := ks.applier; a != nil {
		b = a.batch
	}
	if err := b.Read(batch); err != nil {
		return 0, err
	}
	if err := ks.allow(&b); err != nil {
		return 0, err
	}
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	defer locks.EndProcessOnPanic()
	if ks.applier == nil {
		ks.applier = &applier{ks: ks, byNumber: ks.catalogue.ByNumber()}
		for _, c := range ks.catalogue.unnumbered {
			ks.applier.byNumber[c.number] = c
		}
	}
	ks.applier.batch, ks.applier.tx = b, &tx
	if err := ks.applier.apply(tx.now); err != nil {
		return 0, err
	}
	return ks.storage.AppendReplicated(batch, tail)
}

// allow raises the version of the folder to the one that the records of a batch need.
func (ks *Keyspace) allow(b *replica.Batch) (err error) {
	if b.Undo {
		err = ks.storage.AllowUndo()
	}
	if b.Logs {
		err = errors.Join(err, ks.storage.AllowLogs(b.Deletes))
	}
	if b.Collections {
		err = errors.Join(err, ks.storage.AllowCollections())
	}
	return err
}

// apply changes memory by the batch that was read. The locks of all partitions must be held. After an error
// memory is of no use any more.
func (a *applier) apply(now int64) error {
	ks := a.ks
	a.now, a.last, a.made, a.logged, a.reload = now, nil, nil, nil, nil
	for items := range slices.Chunk(a.batch.Items, appliedAtOnce) {
		a.prefetch(items)
		for i := range items {
			if err := a.item(&items[i]); err != nil {
				return err
			}
		}
	}
	if len(a.batch.Records) > 0 {
		r := containerApplier{applier: a}
		if err := r.apply(); err != nil {
			return err
		}
	}
	for h := range a.reload {
		if a.byNumber[h.number] != h { // it is gone
			continue
		}
		if err := ks.readGroup(h); err != nil {
			return err
		}
	}
	if a.batch.Clock.TS != 0 {
		ks.noteClock(a.batch.Clock)
	}
	if report := ks.opt.OnLogged; report != nil {
		for c := range a.logged {
			report(c.name)
		}
	}
	for _, p := range ks.partitions {
		p.Version = max(p.Version, a.batch.Version)
	}
	return nil
}

// appliedAtOnce is the number of items that are prefetched together: their keys and records fit into the
// processor's nearest cache.
const appliedAtOnce = 32

// prefetch prepares the look-ups of items.
func (a *applier) prefetch(items []replica.ChangedItem) {
	if len(items) == 1 || !a.ks.BeyondCache() {
		return
	}
	defer a.lookups.Reset()
	for i := range items {
		it := &items[i]
		if c := a.byNumber[it.Container]; c != nil {
			if t := c.tables[it.Partition(len(a.ks.partitions))]; t != nil {
				a.lookups.Add(&t.Table, it.ID)
			}
		}
	}
	a.lookups.Run(prefetchBytes)
}

// container returns the container that has a number, or is about to have it; nil if the batch leaves none.
func (a *applier) container(number uint32) *Container {
	if a.last != nil && a.number == number {
		return a.last
	}
	c := a.byNumber[number]
	r, recorded := a.batch.Records[number]
	switch {
	case recorded && r == nil:
		return nil
	case c == nil && recorded:
		if c = a.made[number]; c == nil {
			if a.made == nil {
				a.made = make(map[uint32]*Container)
			}
			c = newContainer(*r, len(a.ks.partitions))
			a.made[number] = c
		}
	}
	a.last, a.number = c, number
	return c
}

// item applies the change of an item.
func (a *applier) item(it *replica.ChangedItem) error {
	c := a.container(it.Container)
	if c == nil {
		if _, recorded := a.batch.Records[it.Container]; !recorded {
			return fmt.Errorf("item %.100q is of container %d, which is not here", it.ID, it.Container)
		}
		return nil // it is dropped after that
	}
	if it.Log != c.isLog() || it.Page && c.hidden != nil {
		return fmt.Errorf("item %.100q does not belong in container %d", it.ID, it.Container)
	}
	p := a.ks.partitions[it.Partition(len(a.ks.partitions))]
	t := c.tables[p.Number]
	if t == nil {
		if it.Change == replica.ItemRemoved {
			return nil
		}
		if t = a.ks.tables.Open(c, p); a.made[it.Container] != c && c.unlisted() { // the batch brings it back
			t.Hide()
		}
	}
	keys := t
	if it.Page || it.Kind.IsCollection() && elements.IsHead(it.Body) {
		keys.OpenPages()
	}
	if it.Page {
		t = keys.Pages
	}
	switch it.Change {
	case replica.ItemRemoved:
		if e := t.Find(it.ID); e != nil {
			t.Remove(e)
			t.Release(e)
		}
	case replica.ItemTouched:
		h, e := t.Lookup(it.ID)
		if e == nil || !it.Touches(it.Base, e.Version()) {
			return fmt.Errorf("item %.100q of container %d: the body that version %x touches is not here", it.ID, it.Container, it.Version)
		}
		t.Overwrite(h, e, it.ID, t.Item(e).Touched(it.Item), nil)
	default:
		h, e := t.Load(it.ID, it.Text, it.Item)
		if t.MarkDirty(h, e); it.Page {
			keys.RaiseKey(e)
		} else {
			keys.RaiseOf(e)
		}
	}
	p.Clean()
	if it.Change != replica.ItemRemoved {
		t.NoteDue(it.TS, it.ExpireAt)
	}
	if it.Page {
		a.alertKey(keys, it.ID)
		return nil
	}
	a.tx.alert(p, c, it.ID)
	if c.hidden != nil && c.partOf != nil { // else it is loaded as a whole
		return a.hiddenItem(t, it)
	}
	return nil
}

// alertKey alerts those who watch the key of a page.
func (a *applier) alertKey(t *table, page string) {
	if c := t.Pages.Collections.OfPage(page); c != nil && c.Key != 0 {
		a.tx.alert(t.P, t.C, t.ID(t.At(c.Key)))
	}
}

// hiddenItem follows the change of an item of a log or a group.
func (a *applier) hiddenItem(t *table, it *replica.ChangedItem) error {
	h := t.C
	if h.isLog() {
		h.partOf.ids.Raise(t.Part.Last())
		note(&a.logged, h.owner())
		return nil
	}
	before := h.group.Memory()
	gone, err := h.group.Apply(it.ID, it.Body, it.Change == replica.ItemRemoved)
	if err != nil {
		return fmt.Errorf("container %q: group %.100q: %w", h.owner().name, h.hidden.Group, err)
	}
	a.ks.catalogue.AddMemory(h.group.Memory() - before)
	if gone {
		note(&a.reload, h)
	}
	return nil
}

// note adds a container to a set.
func note(set *map[*Container]bool, c *Container) {
	if *set == nil {
		*set = make(map[*Container]bool)
	}
	(*set)[c] = true
}
