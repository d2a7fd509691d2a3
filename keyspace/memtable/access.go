package memtable

// accessWords has a word beside each entry, in which the owner keeps accesses. Only blocks of which an entry has
// a word take memory, 4 bytes an entry. A released entry leaves 0.
type accessWords [][]uint32 // by block

func (a accessWords) at(h Handle) *uint32 {
	block, at := int(h>>entryBits), int(h&(1<<entryBits-1))
	if block >= len(a) || at >= len(a[block]) {
		return nil
	}
	return &a[block][at]
}

// Access returns the word that SetAccess has set last for an entry, 0 if none.
func (t *Table) Access(h Handle) uint32 {
	if word := t.slab.access.at(h); word != nil {
		return *word
	}
	return 0
}

// SetAccess sets the word of an entry.
func (t *Table) SetAccess(h Handle, word uint32) {
	at := t.slab.access.at(h)
	if at == nil {
		at = t.slab.openAccess(h)
	}
	*at = word
}

// openAccess makes the words of a handle's block.
func (s *slab) openAccess(h Handle) *uint32 {
	block := int(h >> entryBits)
	for len(s.access) <= block {
		s.access = append(s.access, nil)
	}
	s.access[block] = make([]uint32, cap(s.blocks[block].entries))
	return s.access.at(h)
}

// DropAccess frees all words.
func (t *Table) DropAccess() { t.slab.access = nil }
