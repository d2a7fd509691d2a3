package lua

import (
	"fmt"
	"reflect"
)

// MemoryError ends a script that takes more memory than it may. Limit is in bytes.
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("ERR script stopped: its values take more than %d bytes", e.Limit)
}

// Charge counts bytes that are about to be allocated. It ends the script if it takes more than it may.
func (m *Machine) Charge(bytes int) {
	if m.used += int64(bytes); m.used > m.allowed || bytes < 0 {
		m.measure(bytes)
	}
	m.Work(bytes >> 6)
}

// measure is called when what was allocated since the last walk may be above the limit. It walks all that the
// script can reach, which tells garbage from what is alive, and ends the script if that takes too much.
func (m *Machine) measure(bytes int) {
	if int64(bytes) > m.memory || bytes < 0 {
		m.End(&MemoryError{m.memory})
	}
	m.epoch++
	w := walker{m: m, seen: map[any]struct{}{}, bytes: int64(bytes) + m.hidden + int64(m.stack)*stackSize}
	w.walk()
	if w.bytes > m.memory {
		m.End(&MemoryError{m.memory})
	}
	m.used = w.bytes
	// As much again may be garbage, up to a quarter of the limit, so that a script does not walk all the
	// time.
	m.allowed = max(w.bytes+min(max(w.bytes, firstWalk), m.memory/4), min(m.memory, firstWalk))
	m.Tell(0)
	m.Work(w.steps << 1)
}

// firstWalk is how many bytes a script allocates before the first walk.
const firstWalk = 1 << 20

// Tell tells the Interrupt what the values may take, and bytes more beside them.
func (m *Machine) Tell(bytes int64) {
	if bytes += m.allowed; m.interrupt == nil || bytes == m.told {
		return
	}
	m.told = bytes
	if err := m.interrupt.Holds(bytes); err != nil {
		m.End(err)
	}
}

// walker sums the bytes of all values that are reachable.
type walker struct {
	m     *Machine
	seen  map[any]struct{} // texts by their address, and chunks
	queue []Value
	bytes int64
	steps int
}

func (w *walker) walk() {
	w.add(w.m.Globals)
	w.values(w.m.ret)
	w.values(w.m.held)
	w.calls(w.m.root)
	for th := range w.m.threads { // also those that nothing can resume: their stacks are there until the script ends
		w.add(th)
	}
	for id, name := range w.m.sources {
		w.bytes += int64(160 + len(id) + len(name))
	}
	for len(w.queue) > 0 && w.bytes <= w.m.memory {
		v := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		w.steps++
		switch v := v.(type) {
		case *Table:
			w.bytes += int64(tableSize + slotSize*v.array.cap() + entrySize*v.entries.cap())
			if v.index != nil {
				w.bytes += int64(indexedSize * v.entries.cap())
			}
			for i := range v.array.len() {
				w.add(*v.array.at(i))
			}
			for i := range v.entries.len() {
				e := v.entries.at(i)
				w.add(e.k)
				w.add(e.v)
			}
			w.steps += v.array.len() + v.entries.len()
			if v.meta != nil {
				w.add(v.meta)
			}
		case *Function:
			w.bytes += functionSize
			if p := v.proto; p != nil && p.chunk.loaded && w.first(p.chunk) {
				w.bytes += int64(p.chunk.size)
			}
			for _, u := range v.up {
				w.cell(u)
			}
			w.values(v.holds)
		case *Coroutine:
			w.bytes += threadSize + int64(v.stack)*stackSize
			w.add(v.fn)
			w.values(v.in)
			w.calls(v.root)
		}
	}
}

// calls adds what a call and those within it hold, and those that are kept for later.
func (w *walker) calls(c *Call) {
	for ; c != nil; c = c.child {
		w.steps++
		w.bytes += frameSize + int64(slotSize*(cap(c.buf)+len(c.varargs)))
		if c.fn != nil {
			w.add(c.fn)
		}
		w.values(c.regs)
		w.values(c.args)
		w.values(c.varargs)
		w.values(c.tailArgs)
	}
}

func (w *walker) values(list []Value) {
	w.steps += len(list)
	for _, v := range list {
		w.add(v)
	}
}

func (w *walker) cell(c *cell) {
	if c.mark != w.m.epoch {
		c.mark = w.m.epoch
		w.bytes += cellSize
		w.add(c.v)
	}
}

func (w *walker) first(key any) bool {
	if _, ok := w.seen[key]; ok {
		return false
	}
	w.seen[key] = struct{}{}
	return true
}

func (w *walker) add(v Value) {
	switch v := v.(type) {
	case string:
		w.bytes += StringSize
		if len(v) <= StringSize || w.first(reflect.ValueOf(v).Pointer()) {
			w.bytes += int64(len(v))
		}
	case *cell:
		w.cell(v)
	case *Table:
		if v.mark != w.m.epoch {
			v.mark = w.m.epoch
			w.queue = append(w.queue, v)
		}
	case *Function:
		if v != nil && v.mark != w.m.epoch {
			v.mark = w.m.epoch
			w.queue = append(w.queue, v)
		}
	case *Coroutine:
		if v.mark != w.m.epoch {
			v.mark = w.m.epoch
			w.queue = append(w.queue, v)
		}
	}
}
