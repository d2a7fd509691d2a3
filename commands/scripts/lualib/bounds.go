package lualib

import lua "github.com/yuin/gopher-lua"

// Bounds limits what a library does for one state of Lua. It must not be used by two goroutines at a time.
type Bounds struct {
	charge func(bytes int)
	steps  int
}

// NewBounds returns bounds that call charge before a library allocates, with the bytes, and with 0 after
// each 2048 steps. charge does not return if the script has to end: it panics, and no library recovers.
func NewBounds(charge func(bytes int)) *Bounds {
	return &Bounds{charge: charge}
}

// Charge counts bytes that a library is about to allocate.
func (b *Bounds) Charge(bytes int) { b.charge(bytes) }

// Work counts steps, each about as long as one instruction of Lua.
func (b *Bounds) Work(steps int) {
	for b.steps += steps; b.steps >= stepsBetweenCharges; b.steps -= stepsBetweenCharges {
		b.charge(0) // each stands for as much time
	}
}

// stepsBetweenCharges is about 20 µs.
const stepsBetweenCharges = 2048

// Sizes in bytes that libraries charge for what they create, beside the bytes of a string itself.
const (
	StringSize = 32  // a string: its header, and that of the value
	TableSize  = 128 // an empty table
	SlotSize   = 32  // an element of an array, with room for growth
	EntrySize  = 192 // an entry of a hash: two maps, a slice and room for growth
)

// IndexSize is what the next element of an array takes, in bytes: a table holds elements beyond lua.MaxArrayIndex in
// its hash.
func IndexSize(i int) int {
	if i < lua.MaxArrayIndex {
		return SlotSize
	}
	return EntrySize
}

// MaxStack is how many values a library may have on the stack of Lua at once, arguments and results included.
const MaxStack = 8000
