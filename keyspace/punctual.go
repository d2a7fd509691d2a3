package keyspace

// punctual reports whether the deaths of a container are to be found when they happen: they are logged, or
// someone hears of them. With a stepped clock the entries of logs go when their retention ends.
func (ks *Keyspace) punctual(c *Container) bool {
	return c.deaths != nil || c.hidden == nil && ks.heard.Load() || ks.opt.Stepped && c.isLog()
}

// ListenersChanged looks whether someone hears of deaths: see Options.DeathsHeard. The purge looks ten times
// a second too. It is cheap.
func (ks *Keyspace) ListenersChanged() {
	heard := ks.teller.broadcast.Load() || ks.opt.DeathsHeard != nil && ks.opt.DeathsHeard()
	if was := ks.heard.Swap(heard); heard && !was {
		ks.purge.Rescan(ks.tables.Len())
	}
}

// beginTimers sets the timers after the start.
func (tx *Tx) beginTimers() {
	for _, c := range tx.ks.catalogue.List() {
		if tx.ks.punctual(c) {
			tx.whole(c).setTimers(tx.now)
		}
		if c.deaths != nil && tx.ks.punctual(c.deaths.c) { // the list has no logs
			tx.whole(c.deaths.c).setTimers(tx.now)
		}
	}
}
