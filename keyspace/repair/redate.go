package repair

import (
	"slices"

	"mayfly/expiry"
	"mayfly/expiry/members"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/record"
)

// redating moves what is copied to a clock that was corrected. The zero value changes nothing.
type redating struct {
	now    int64 // ms; the corrected clock; 0: nothing is redated
	folder int64 // ms; the latest time in the folder

	collections map[collectionID]collection // with pages, of the partition that is copied
}

// Redated says what a corrected clock has changed.
type Redated struct {
	Ahead int64 `json:"ahead_ms"` // how far the folder was ahead of the clock
	Dead  int   `json:"dead"`     // items that were dead by the folder's time, and were left out
	Later int   `json:"later"`    // items that were written after the clock's time, and count as written now
}

// begin notes the folder's time. It does nothing unless that is ahead.
func (d *redating) begin(folder int64, report *Report) {
	if d.now == 0 || folder <= d.now {
		d.now = 0
		return
	}
	d.folder = folder
	report.Redated = &Redated{Ahead: folder - d.now}
}

// look notes the collections with pages of a partition. It does nothing unless the folder is ahead.
func (d *redating) look(g *merged, containers map[uint32]*record.Container) {
	if d.now == 0 {
		return
	}
	d.collections = make(map[collectionID]collection)
	for key, v := range g.items {
		k, err := record.SplitKey(key)
		if err != nil || v.rec == "" {
			continue
		}
		it, _, _ := record.Decode(key, v.rec) // sound, as it was read before
		if id, ok := collectionOf(k, &it); ok {
			c := d.collections[id]
			c.ts = max(c.ts, it.TS)
			if k.Page {
				c.lives = c.lives || len(elements.Shed(it.Body, d.dead(containers[k.Container]).ByOwnTTL)) > 0
			} else {
				c.expireAt = it.ExpireAt
			}
			d.collections[id] = c
		}
	}
}

// collectionID names a collection with pages.
type collectionID struct {
	container uint32
	number    uint64
}

// collection is what decides whether a collection with pages is dead.
type collection struct {
	ts       int64 // ms; the newest of the key and the pages
	expireAt int64 // of the key
	lives    bool  // an element does
}

// collectionOf returns the collection of a page, or of a key whose elements lie in pages.
func collectionOf(k record.Key, it *record.Item) (id collectionID, ok bool) {
	id.container = k.Container
	if k.Page {
		id.number, _, ok = record.SplitPageID(k.ID)
	} else if it.Kind.IsCollection() {
		var h elements.Head
		h, ok = elements.HeadOf(it.Body)
		id.number = h.Number
	}
	return id, ok
}

// dead returns the limits of what was dead in a container by the folder's time; nil: its record is lost.
func (d *redating) dead(c *record.Container) expiry.Limits {
	if c == nil {
		return expiry.NoLimits
	}
	return c.Policy.DeadLimits(d.folder)
}

// item returns the record of an item under the corrected clock; false if it was dead by the folder's time. A
// collection is dead as a whole.
func (d *redating) item(key, rec string, c *record.Container, report *Report) (string, bool) {
	if d.now == 0 {
		return rec, true
	}
	k, err1 := record.SplitKey(key)
	it, _, err2 := record.Decode(key, rec)
	if err1 != nil || err2 != nil {
		return rec, true // it was read before: it is sound
	}
	limits := d.dead(c)
	dead := limits.Select(it.TS, it.ExpireAt)
	if id, ok := collectionOf(k, &it); ok {
		is := d.collections[id]
		dead = !is.lives || limits.Select(is.ts, is.expireAt)
	}
	if !dead && k.Page {
		it = redatePage(it, limits.ByOwnTTL, max(it.TS-d.now, 0))
		dead = it.Body == ""
	}
	if dead {
		if !k.Page {
			report.Redated.Dead++
		}
		return "", false
	}
	if it.TS <= d.now {
		return string(record.Append(nil, key, it)), true
	}
	report.Redated.Later++
	switch {
	case c != nil && c.Policy.Deadline != "" && it.Kind == record.Document && members.Has(it.Body):
		ends := members.Read(it.Body, c.Policy.Deadline) // a deadline does not move with the clock
		it.ExpireAt = ends.ExpireAt(d.now)
	case c != nil && c.Hidden != nil && c.Hidden.IsGroup():
		it.Body = groups.Redated(k.ID, it.Body, d.now)
	case it.ExpireAt > 0 && !k.Page:
		it.ExpireAt = max(it.ExpireAt-(it.TS-d.now), 1)
	}
	it.TS = d.now
	return string(record.Append(nil, key, it)), true
}

// container returns a container under the corrected clock. The dead were left out, so no mark of a past
// policy is needed, and one from the future would end items that live.
func (d *redating) container(c record.Container) record.Container {
	if d.now != 0 {
		c.Created = min(c.Created, d.now)
		c.Policy.InheritDeadTo, c.Policy.OwnDeadTo = 0, 0
		if c.Aside != nil {
			c.Aside = &record.Aside{What: c.Aside.What, Until: min(c.Aside.Until, d.now), Order: c.Aside.Order}
		}
		c.History = slices.Clone(c.History)
		for i := range c.History {
			h := &c.History[i]
			h.At, h.Undo = min(h.At, d.now), min(h.Undo, d.now)
			h.Policy.InheritDeadTo, h.Policy.OwnDeadTo = 0, 0
		}
	}
	return c
}

// clock returns the time of the new folder.
func (d *redating) clock(latest int64) int64 {
	if d.now != 0 {
		return d.now
	}
	return latest
}

// redatePage moves the ends of the elements of a page, without those that are dead by a limit.
func redatePage(it record.Item, limit, by int64) record.Item {
	var body []byte
	for e := range elements.Each(it.Body) {
		if e.Dead(limit) {
			continue
		}
		if e.End != 0 {
			e.End = max(e.End-by, 1)
		}
		body = elements.Append(body, e)
	}
	it.Body, it.ExpireAt = string(body), expiry.Never
	if s := elements.SumOf(it.Body); s.Ending > 0 {
		it.ExpireAt = s.Earliest
	}
	return it
}
