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
	lists := pagesOfLists(keys)
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
		if k.Page || it.Kind.IsCollection() && !g.gather(k, &it, lists, &c.Policy, now) || c.Policy.Dead(it.TS, it.ExpireAt, now) {
			continue
		}
		if err := visit(c.Name, k.ID, it); err != nil {
			return err
		}
	}
	return nil
}

// pagesOfLists returns the keys of the pages of each list, by its number, in their order: that of the keys.
func pagesOfLists(sorted []string) map[uint64][]string {
	lists := make(map[uint64][]string)
	for _, key := range sorted {
		if k, err := record.SplitKey(key); err == nil && k.Page {
			if list, page, _ := record.SplitPageID(k.ID); elements.IsOfList(page) {
				lists[list] = append(lists[list], key)
			}
		}
	}
	return lists
}

// gather gives the item of a collection a body with all its living elements, wherever they lie, and the time
// of their last write. It returns false if there are none.
func (g *merged) gather(k record.Key, it *record.Item, lists map[uint64][]string, p *expiry.Policy, now int64) (lives bool) {
	if !elements.IsHead(it.Body) {
		return true
	}
	head, err := elements.ReadHead(it.Body)
	if err != nil {
		return false
	}
	dead, body := p.DeadLimits(now).ByOwnTTL, []byte(nil)
	keys := lists[head.Number]
	if it.Kind != record.List {
		keys = make([]string, 0, head.Buckets)
		for bucket := range uint64(head.Buckets) {
			keys = append(keys, string(record.AppendPageKey(nil, k.Container, string(head.PageID(nil, bucket)))))
		}
	}
	for _, key := range keys {
		state := g.items[key]
		if state == nil || state.rec == "" {
			continue
		}
		page, _, err := record.Decode(key, state.rec)
		if err != nil {
			continue
		}
		it.TS = max(it.TS, page.TS)
		of, _ := record.SplitKey(key)
		_, number, _ := record.SplitPageID(of.ID)
		for e := range elements.Each(head.Trim(number, page.Body)) {
			if !e.Dead(dead) {
				body = elements.Append(body, e)
			}
		}
	}
	it.Body = string(body)
	return len(body) > 0
}

// collectionState is what there is of a collection with pages.
type collectionState struct {
	pages   bool   // there are some
	owner   string // the key that names it last: of a rename the delete may be lost
	version uint64 // of that
}

// collections returns the collections with pages by number.
func (g *merged) collections() map[uint64]collectionState {
	all := make(map[uint64]collectionState)
	for key, v := range g.items {
		if k, err := record.SplitKey(key); err == nil && k.Page && v.rec != "" {
			number, _, _ := record.SplitPageID(k.ID)
			c := all[number]
			c.pages = true
			all[number] = c
		} else if number, version, ok := headOf(key, v.rec); ok && version >= all[number].version {
			all[number] = collectionState{all[number].pages, key, version}
		}
	}
	return all
}

// headOf returns the number of the collection of which a record is the head, and its version.
func headOf(key, rec string) (number, version uint64, ok bool) {
	it, _, err := record.Decode(key, rec)
	head, ok := elements.HeadOf(it.Body)
	return head.Number, it.Version, ok && err == nil && it.Kind.IsCollection()
}

// fitPopped returns the record of a key. That of a list does without what was popped off pages other than
// those that it means: they are not at its ends any more, older ones, as newer ones are lost, or newer.
func (g *merged) fitPopped(container uint32, key, rec string, lists map[uint64][]string) string {
	it, _, err := record.Decode(key, rec)
	if err != nil || it.Kind != record.List || !elements.IsHead(it.Body) {
		return rec
	}
	head, err := elements.ReadHead(it.Body)
	if err != nil {
		return rec
	}
	pages := slices.DeleteFunc(slices.Clone(lists[head.Number]), func(key string) bool { return g.items[key].rec == "" })
	fits := func(p elements.Popped, at int) bool {
		if p.Count == 0 || len(pages) == 0 {
			return false
		}
		page, _, _ := record.Decode(pages[at], g.items[pages[at]].rec)
		key := string(record.AppendPageKey(nil, container, string(head.PageID(nil, p.Page))))
		return pages[at] == key && page.Version < it.Version && elements.SumOf(page.Body).Count == int(p.Of)
	}
	if !fits(head.Left, 0) {
		head.Left = elements.Popped{}
	}
	if !fits(head.Right, len(pages)-1) {
		head.Right = elements.Popped{}
	}
	it.Body = string(head.Append(nil))
	return string(record.Append(nil, key, it))
}
