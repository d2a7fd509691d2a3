package memtable

// A capture collects what the store has to learn since the last one. BeginCapture begins it, and Capture
// returns it in pieces, between which the lock can be released.

// MarkDirty notes that the store has to learn the state of an entry.
func (t *Table) MarkDirty(h Handle, e *Entry) {
	if e.has(dirty) {
		return
	}
	e.set(dirty)
	t.dirty = append(t.dirty, h)
	if !t.listed {
		t.listed = true
		t.shard.dirty = append(t.shard.dirty, t)
	}
}

// BeginCapture begins a capture of what is dirty now, and returns about how many changes that is. The one
// before must have ended.
func (s *Shard) BeginCapture() (n int) {
	s.captured, s.dirty, s.overwrites = s.dirty, nil, false
	for _, t := range s.captured {
		n += len(t.dirty)
	}
	return n + len(s.deleted)
}

// Overwrites reports whether MarkStored was called, since the last BeginCapture, for an item that the store
// had before.
func (s *Shard) Overwrites() bool { return s.overwrites }

// Deletes reports whether the next capture has items that the store must delete.
func (s *Shard) Deletes() bool { return len(s.deleted) > 0 }

// Capture returns the keys of all items that the store must delete. It calls set for about n of the items
// that the store must set, as KeyAndRecord returns them. All this is of one moment. The deletes are applied
// first: what is in a table is newer than what was removed from it. more reports whether the capture has to
// go on.
//
// Deletes are never left for the next piece. The item could return and be captured meanwhile, and the delete
// would be applied after that. An item that becomes dirty meanwhile counts only if its place on a list is
// still to come. So a capture ends.
func (s *Shard) Capture(n int, set func(key, rec, body string)) (deleted []string, more bool) {
	deleted, s.deleted = s.deleted, nil
	for left := n; left > 0 && len(s.captured) > 0; left-- {
		t := s.captured[0]
		if t.captured == nil {
			t.captured, t.dirty, t.listed = t.dirty, nil, false
		}
		if t.detached {
			t.captured = nil
		}
		piece := min(left, len(t.captured))
		t.captureDirty(t.captured[:piece], set)
		left -= piece
		if t.captured = t.captured[piece:]; len(t.captured) == 0 {
			t.captured, s.captured = nil, s.captured[1:]
		}
	}
	return deleted, len(s.captured) > 0
}

func (t *Table) captureDirty(list []Handle, set func(key, rec, body string)) {
	for _, h := range list {
		// The handle may be stale. Its entry's own mark decides; an entry that is listed twice has lost the
		// mark by the second time.
		e := t.slab.atStale(h)
		if e == nil || !e.has(dirty) {
			continue
		}
		e.clear(dirty)
		t.MarkStored(e)
		set(t.KeyAndRecord(e))
	}
}

// EachStored visits the items that the store has or is about to get, with their present records. It looks at
// about n entries from a cursor on (0 begins). more reports whether to go on with next.
func (t *Table) EachStored(cursor, n int, visit func(key, rec, body string)) (next int, more bool) {
	next = cursor
	for left := n; left > 0 && next < len(t.slab.blocks); next++ {
		entries := t.slab.blocks[next].entries
		for i := range entries {
			if e := &entries[i]; e.has(stored) {
				visit(t.KeyAndRecord(e))
			}
		}
		left -= 1 + len(entries)
	}
	return next, next < len(t.slab.blocks)
}
