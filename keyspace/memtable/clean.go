package memtable

// cleanStep is how many bytes of a segment are cleaned in one step: some microseconds of work, and more than
// a write makes necessary.
const cleanStep = 8 << 10

// free frees an allocation and lists the table for cleaning if its arena has become wasteful.
func (t *Table) free(r ref) {
	before := t.arena.dead
	t.arena.free(r)
	t.countGarbage(before)
	if !t.unclean && t.arena.wasteful() {
		t.unclean = true
		t.shard.unclean = append(t.shard.unclean, t)
	}
}

// clean does one step of cleaning. After a panic in it the table is not usable.
func (t *Table) clean() {
	before := t.arena.dead
	t.arena.clean(&t.slab, cleanStep)
	t.countGarbage(before)
}

// countGarbage adds the garbage since before to the shard's, unless the table is detached.
func (t *Table) countGarbage(before int64) {
	if !t.detached {
		t.shard.garbage.Add(t.arena.dead - before)
	}
}

// Unclean reports whether Clean has something to do.
func (s *Shard) Unclean() bool { return len(s.unclean) > 0 }

// Clean does one step of cleaning in a table whose arena is wasteful. No replaced record may wait for
// FreeReplaced or Restore: the arena counts it as live, but no entry refers to it. After a panic in it the
// shard is not usable.
func (s *Shard) Clean() {
	for cleaned := false; len(s.unclean) > 0; {
		last := len(s.unclean) - 1
		t := s.unclean[last]
		switch {
		case t.detached || !t.arena.wasteful():
			t.unclean = false
			s.unclean[last] = nil
			s.unclean = s.unclean[:last]
		case cleaned:
			return
		default:
			t.clean()
			cleaned = true
		}
	}
}

// thoroughShare is what CleanFurther leaves dead: one part in thoroughShare of an arena.
const thoroughShare = 32

// CleanFurther does one step of a cleaning that is more thorough than writes make necessary. done counts the
// steps so far. It returns their new number and whether there are more. It ends after as many steps as the
// arena has, however much dies meanwhile. The conditions of Clean apply.
func (t *Table) CleanFurther(done int) (now int, more bool) {
	const steps = segmentSize / cleanStep // of a segment
	if t.detached || done >= steps*len(t.arena.segments) || t.arena.dead <= t.arena.used/thoroughShare+deadSlack {
		return done, false
	}
	t.clean()
	return done + 1, true
}
