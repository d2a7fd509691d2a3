package repair

import (
	"maps"
	"path/filepath"
	"slices"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// Read visits the containers of a data folder that no server uses, by number, and then their living items, by
// partition and key. It changes nothing and refuses a damaged folder. The caller may keep what it gets.
//
// It needs the memory that a server needs for one partition and the journals.
func Read(fsys vfs.FS, dir string, clk clock.Clock, container func(record.Container) error, item func(container, id string, it record.Item) error, progress ...Progress) error {
	s, err := openFolder(fsys, dir, progress...)
	if err != nil {
		return err
	}
	defer s.close()
	m := &merger{folderReader: s}
	journals, err := m.readJournals()
	if err != nil {
		return err
	}
	catalogue, report, err := m.merge(-1)
	if err != nil {
		return err
	}
	if err := refuseDamage(dir, append(journals, s.format, s.listing, report)); err != nil {
		return err
	}
	names := newNames()
	for _, key := range sortedKeys(catalogue.items) {
		if err := names.apply(change{key: key, rec: catalogue.items[key].rec, del: catalogue.items[key].del}); err != nil {
			return err
		}
	}
	now := max(clk.Now(), names.clock, m.latest())
	for _, number := range slices.Sorted(maps.Keys(names.byNumber)) {
		c := names.byNumber[number]
		if c.Aside != nil || c.Hidden != nil {
			continue
		}
		if err := container(*c); err != nil {
			return err
		}
	}
	for n := range s.partitions {
		items, report, err := m.merge(n)
		if err != nil {
			return err
		}
		if err := refuseDamage(dir, []FileReport{report}); err != nil {
			return err
		}
		if err := items.visitLiving(names, now, item); err != nil {
			return err
		}
	}
	return nil
}

// refuseDamage is the error if any of the files is damaged.
func refuseDamage(dir string, files []FileReport) error {
	for _, f := range files {
		if f.State == Damaged {
			first := f.Problems[0]
			return &aof.DamageError{File: filepath.Join(dir, f.File), From: first.From, To: first.To, Reason: first.Reason}
		}
	}
	return nil
}

// latest returns the latest time in the journals, in ms. No time in a store is later than both that and the
// clock in the catalogue.
func (m *merger) latest() (ms int64) {
	for _, entries := range m.later {
		for _, e := range entries {
			if it, _, err := record.Decode(e.key, e.rec); err == nil {
				ms = max(ms, it.TS)
			}
		}
	}
	return ms
}

// visitLiving visits the items that live now (ms), in ascending order of their keys.
func (g *merged) visitLiving(names *names, now int64, visit func(container, id string, it record.Item) error) error {
	keys := sortedKeys(g.items)
	collections := g.collections(keys)
	for _, key := range keys {
		rec := g.items[key].rec
		if rec == "" {
			continue
		}
		k, err := record.SplitKey(key)
		if err != nil {
			return err
		}
		c := names.byNumber[k.Container]
		if c == nil || c.Aside != nil || c.Hidden != nil {
			continue // dropped, or no items of users
		}
		it, _, err := record.Decode(key, rec)
		if err != nil {
			return err
		}
		if k.Page || it.Kind.IsCollection() && !g.gather(k, &it, collections, &c.Policy, now) || c.Policy.Dead(it.TS, it.ExpireAt, now) {
			continue
		}
		if err := visit(c.Name, k.ID, it); err != nil {
			return err
		}
	}
	return nil
}

// collectionState is a collection with pages, as far as it is there.
type collectionState struct {
	pages   []string // their keys, of a list in the order of its pages
	owner   string   // the key that names it last: of a rename the delete may be lost
	version uint64   // of that
}

// collections returns the collections with pages, of sorted keys.
func (g *merged) collections(sorted []string) map[collectionID]*collectionState {
	all := make(map[collectionID]*collectionState)
	for _, key := range sorted {
		k, err := record.SplitKey(key)
		if err != nil || g.items[key].rec == "" {
			continue
		}
		it, _ := record.DecodeHeader(g.items[key].rec) // sound, as it was read before
		id, ok := collectionOf(k, &it)
		if !ok {
			continue
		}
		c := all[id]
		if c == nil {
			c = new(collectionState)
			all[id] = c
		}
		switch {
		case k.Page:
			c.pages = append(c.pages, key)
		case it.Version >= c.version:
			c.owner, c.version = key, it.Version
		}
	}
	return all
}

// gather gives the item of a collection a body with all its living elements, wherever they lie, and the time
// of their last write. It returns false if there are none.
func (g *merged) gather(k record.Key, it *record.Item, collections map[collectionID]*collectionState, p *expiry.Policy, now int64) (lives bool) {
	id, ok := collectionOf(k, it)
	if !ok {
		return true
	}
	head, _ := elements.HeadOf(it.Body)
	dead, body := p.DeadLimits(now).ByOwnTTL, []byte(nil)
	for _, key := range collections[id].pages {
		page, number := g.page(key)
		it.TS = max(it.TS, page.TS)
		for e := range elements.Each(head.Trim(number, page.Body)) {
			if !e.Dead(dead) {
				body = elements.Append(body, e)
			}
		}
	}
	it.Body = string(body)
	return len(body) > 0
}

// page returns the page under a key, and its number.
func (g *merged) page(key string) (page record.Item, number uint64) {
	k, _ := record.SplitKey(key)
	_, number, _ = record.SplitPageID(k.ID)
	page, _ = record.DecodeHeader(g.items[key].rec)
	return page, number
}

// fitPopped returns the record of a list's key. It does without what was popped off pages other than those
// that it means: they are not at its ends any more, older ones, as newer ones are lost, or newer.
func (g *merged) fitPopped(key, rec string, it record.Item, pages []string) string {
	head, _ := elements.HeadOf(it.Body)
	was := head
	fits := func(p elements.Popped, key string) bool {
		page, number := g.page(key)
		return p.Page == number && page.Version < it.Version && elements.SumOf(page.Body).Count == int(p.Of)
	}
	if !fits(head.Left, pages[0]) {
		head.Left = elements.Popped{}
	}
	if !fits(head.Right, pages[len(pages)-1]) {
		head.Right = elements.Popped{}
	}
	if head == was {
		return rec
	}
	it.Body = string(head.Append(nil))
	return string(record.Append(nil, key, it))
}
