package store

// WasteSince returns the time in ms at which the oldest waste of the file became known, 0 if there is none.
// Waste is what is overwritten or deleted, and the deletes themselves; seals are not.
func (s *Store) WasteSince() int64 { return s.waste.Load() }

// NoteWaste notes that the file has waste which became known at a time in ms. The earliest counts until a
// compaction.
func (s *Store) NoteWaste(at int64) { s.waste.CompareAndSwap(0, at) }

// WithOldestWaste returns the store whose waste became known first, if that was at or before a time in ms;
// else nil.
func WithOldestWaste(stores []*Store, latest int64) (oldest *Store) {
	for _, s := range stores {
		if since := s.WasteSince(); since > 0 && since <= latest {
			oldest, latest = s, since
		}
	}
	return oldest
}
