package memtable

// words has a word beside each entry. Only blocks of which an entry has a word take memory, 4 bytes an entry.
// A released entry leaves 0.
type words [][]uint32 // by block

func (a words) at(h Handle) *uint32 {
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

// SetAccess sets the word of an entry, in which the owner keeps accesses.
func (t *Table) SetAccess(h Handle, word uint32) {
	*t.slab.word(&t.slab.access, h) = word
}

// word returns the word of an entry. It makes those of the handle's block if they are missing.
func (s *slab) word(w *words, h Handle) *uint32 {
	if at := w.at(h); at != nil {
		return at
	}
	block := int(h >> entryBits)
	for len(*w) <= block {
		*w = append(*w, nil)
	}
	(*w)[block] = make([]uint32, cap(s.blocks[block].entries))
	return w.at(h)
}

// free sets the word of a released entry to 0.
func (a words) free(h Handle) {
	if word := a.at(h); word != nil {
		*word = 0
	}
}

// freeBlock frees the words of a block.
func (a words) freeBlock(block int32) {
	if int(block) < len(a) {
		a[block] = nil
	}
}

// DropAccess frees all words.
func (t *Table) DropAccess() { t.slab.access = nil }
