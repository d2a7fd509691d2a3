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

// beginTimersLocked sets the timers after the start. The locks of all partitions must be held.
func (ks *Keyspace) beginTimersLocked(now int64) {
	for _, c := range ks.catalogue.List() {
		if ks.punctual(c) {
			setTimersLocked([]*Container{c}, now)
		}
		if c.deaths != nil && ks.punctual(c.deaths.c) { // the list has no logs
			setTimersLocked([]*Container{c.deaths.c}, now)
		}
	}
}

// setTimersLocked sets the timers of containers that may have changed. The locks of all partitions must be
// held.
func setTimersLocked(list []*Container, now int64) {
	for _, c := range list {
		for t := range c.each {
			t.SetTimer(now)
		}
	}
}
