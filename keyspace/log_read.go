package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/deaths"
	"mayfly/keyspace/streamid"
)

// expiredOf returns the limits of the entries of a log that have expired. A partition must be locked.
func (tx *Tx) expiredOf(log *deathLog) expiry.Limits { return log.c.Policy().DeadLimits(tx.now) }

// logOf returns the log of a container, nil if there is none, and the limits of its entries that have expired.
func (tx *Tx) logOf(c *Container) (log *deathLog, expired expiry.Limits) {
	tx.readCatalogue(func(*catalogue) {
		if log = c.deaths; log != nil {
			expired = tx.expiredOf(log)
		}
	})
	return log, expired
}

// Log is [Container.Log] for a transaction that may have locked nothing.
func (tx *Tx) Log(c *Container) (s LogSettings, ok bool) {
	tx.readCatalogue(func(*catalogue) { s, ok = c.Log() })
	return s, ok
}

// LogState returns the state of a container's log as of one moment. ok is false if there is none.
func (tx *Tx) LogState(c *Container) (s deaths.State, ok bool) {
	tx.withinAll(func() {
		tx.saw(tx.ks.catalogue.lsn)
		if ok = c.deaths != nil; !ok {
			return
		}
		for _, p := range tx.ks.partitions {
			tx.saw(p.lastWrite)
			if t := c.deaths.c.tables[p.number]; t != nil {
				s.Merge(t.part.State(tx.expiredOf(c.deaths)))
			}
		}
	})
	return s, ok
}

// LogMemory estimates the memory of a container's log in bytes, with its groups. It needs BeginAll.
func (tx *Tx) LogMemory(c *Container) (n int64) {
	for _, h := range c.hiddenLocked() {
		n += h.memory()
		for t := range h.each {
			n += t.Stats().Memory
		}
	}
	return n
}

// LogLast returns the greatest id that the container's log has given, in constant time; zero if there is no log.
func (tx *Tx) LogLast(c *Container) (last streamid.ID) {
	tx.readCatalogue(func(*catalogue) {
		if c.deaths != nil {
			last = c.deaths.ids.Last()
		}
	})
	return last
}

// LogRange visits the entries of a container's log with ids between two, both included, until visit returns false: the
// oldest first, or the newest first if reverse is true. It leaves out those that are added after it has begun. Texts are
// safe to keep. It locks one partition after the other, for pieces of some entries, unless the transaction has locked them.
func (tx *Tx) LogRange(c *Container, from, to streamid.ID, reverse bool, visit func(e deaths.Entry) (more bool)) {
	log, expired := tx.logOf(c)
	if log == nil {
		return
	}
	if last := log.ids.Last(); last.Less(to) {
		to = last
	}
	if !to.Less(from) {
		tx.readLog(log, deathlog.NewReader(len(tx.ks.partitions), from, to, expired, reverse), visit)
	}
}

// readLog visits the entries of a reader.
func (tx *Tx) readLog(log *deathLog, r *deathlog.Reader, visit func(e deaths.Entry) (more bool)) {
	r.Run(func(number int, take func(p *deathlog.Part)) {
		tx.within(tx.ks.partitions[number], func(p *partition) bool {
			tx.saw(p.lastWrite)
			if t := log.c.tables[p.number]; t != nil {
				take(t.part)
			}
			return true
		})
	}, visit)
}

// LogEntry returns the entry of an id in a container's log; false if there is none.
func (tx *Tx) LogEntry(c *Container, id streamid.ID) (found deaths.Entry, ok bool) {
	tx.LogRange(c, id, id, false, func(e deaths.Entry) bool {
		found, ok = e, true
		return false
	})
	return found, ok
}

// LogOf visits the entries of an item in a container's log, the newest first, until visit returns false. The partition of
// the item must be locked, or none.
func (tx *Tx) LogOf(c *Container, id string, visit func(e deaths.Entry) (more bool)) {
	tx.within(tx.ks.partitionOf(id), func(p *partition) bool {
		tx.saw(p.lastWrite)
		if log := c.deaths; log != nil {
			if t := log.c.tables[p.number]; t != nil {
				t.part.Of(id, tx.expiredOf(log), visit)
			}
		}
		return true
	})
}

// LogNewest returns the newest entry of an item in a container's log; false if there is none. It needs what LogOf needs.
func (tx *Tx) LogNewest(c *Container, id string) (newest deaths.Entry, ok bool) {
	tx.LogOf(c, id, func(e deaths.Entry) bool {
		newest, ok = e, true
		return false
	})
	return newest, ok
}

// LogDelete removes entries from a container's log, and returns how many it had. A container on hold keeps them: see Veto.
// It needs BeginAll.
func (tx *Tx) LogDelete(c *Container, ids []streamid.ID) (n int) {
	log, expired := tx.logOf(c)
	if log == nil {
		return 0
	}
	for t := range log.c.each {
		list, greatest := t.part.Entries(ids, expired)
		if len(list) > 0 && tx.vetoes(c, nil) {
			return 0
		}
		n += tx.removeEntries(t, list, greatest)
	}
	return n
}

// LogTrim removes the oldest entries from a container's log: those below an id, and as many as it has more than maxLen; -1:
// as many as there are. It removes at most limit, 0: any number, and returns how many it has removed. A container on hold keeps
// them: see Veto. It needs BeginAll.
func (tx *Tx) LogTrim(c *Container, maxLen int64, below streamid.ID, limit int64) (n int64) {
	s, ok := tx.LogState(c)
	if !ok {
		return 0
	}
	most := s.Length // by their number
	if maxLen >= 0 {
		most = max(s.Length-maxLen, 0)
	}
	cut, count := streamid.ID{}, int64(0)
	if most > 0 {
		tx.LogRange(c, streamid.ID{}, streamid.Max, false, func(e deaths.Entry) bool {
			if maxLen < 0 && !e.ID.Less(below) || limit > 0 && count == limit || count == most {
				return false
			}
			cut = e.ID
			count++
			return true
		})
	}
	if count == 0 || tx.vetoes(c, nil) {
		return 0
	}
	for t := range c.deaths.c.each {
		tx.removeEntries(t, t.part.Upto(cut), streamid.ID{})
	}
	return count
}
