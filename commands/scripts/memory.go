package scripts

import (
	"fmt"
	"unsafe"

	"mayfly/commands/scripts/compiled"

	lua "github.com/yuin/gopher-lua"
)

// DefaultMemory is the default of Limits.Memory in bytes.
const DefaultMemory = 64 << 20

// MemoryError ends a script that takes more memory than it may. Limit is in bytes.
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("ERR script stopped: its values take more than %d bytes", e.Limit)
}

// measure is called when what was allocated since the last walk may be above the limit. It walks all that the
// script can reach, which tells garbage from what is alive, and ends the script if that takes too much.
func (m *machine) measure(L *lua.LState, bytes int) {
	if int64(bytes) > m.limits.Memory || bytes < 0 {
		m.end(&MemoryError{m.limits.Memory})
	}
	w := walker{m: m, L: L.G.CurrentThread, seen: make(map[unsafe.Pointer]struct{}), limit: m.limits.Memory}
	alive := w.walk() + int64(bytes)
	if alive > m.limits.Memory {
		m.end(&MemoryError{m.limits.Memory})
	}
	m.used = alive
	// A quarter of the limit may be garbage, so that a script close to its limit does not walk all the time.
	m.allowed = max(m.limits.Memory, alive+m.limits.Memory/4)
	m.Work(L, len(w.seen)<<2)
}

// walker sums the bytes of all values that are reachable.
type walker struct {
	m     *machine
	L     *lua.LState
	seen  map[unsafe.Pointer]struct{}
	queue []lua.LValue
	bytes int64
	limit int64
}

func (w *walker) walk() int64 {
	w.proto(w.m.proto) // which is the cache's
	w.bytes = 0
	w.thread(w.m.L)
	w.add(w.L)
	w.add(w.m.globals)
	for id, name := range w.m.sources {
		w.bytes += sourceSize + int64(len(id)+len(name))
	}
	for len(w.queue) > 0 && w.bytes <= w.limit {
		v := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		switch v := v.(type) {
		case *lua.LTable:
			w.table(v)
		case *lua.LFunction:
			w.bytes += closureSize
			w.proto(v.Proto)
			for _, u := range v.Upvalues {
				if u != nil && w.first(unsafe.Pointer(u)) {
					w.bytes += upvalueSize
					w.add(u.Value())
				}
			}
		case *lua.LState:
			w.thread(v)
		}
	}
	return w.bytes
}

// proto counts the code of a function that the script has loaded.
func (w *walker) proto(p *lua.FunctionProto) {
	if p == nil || !w.first(unsafe.Pointer(p)) {
		return
	}
	w.bytes += compiled.FunctionSize + 16*int64(len(p.Code)) + 48*int64(len(p.Constants))
	for _, inner := range p.FunctionPrototypes {
		w.proto(inner)
	}
}

func (w *walker) first(p unsafe.Pointer) bool {
	if _, ok := w.seen[p]; ok {
		return false
	}
	w.seen[p] = struct{}{}
	return true
}

func (w *walker) add(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		w.bytes += stringSize
		if len(v) > stringSize && w.first(dataOf(string(v))) {
			w.bytes += int64(len(v))
		} else if len(v) <= stringSize {
			w.bytes += int64(len(v))
		}
	case *lua.LTable:
		if w.first(unsafe.Pointer(v)) {
			w.queue = append(w.queue, v)
		}
	case *lua.LFunction:
		if w.first(unsafe.Pointer(v)) {
			w.queue = append(w.queue, v)
		}
	case *lua.LState:
		if w.first(unsafe.Pointer(v)) {
			w.queue = append(w.queue, v)
		}
	}
}

func (w *walker) table(t *lua.LTable) {
	h := tableOf(t)
	w.bytes += tableSize + slotSize*int64(cap(h.Array)) + entrySize*int64(max(len(h.Keys)-8, 0))
	if h.StrDict != nil {
		w.bytes += mapSize
	}
	if h.Dict != nil {
		w.bytes += mapSize
	}
	if h.K2I != nil {
		w.bytes += keysSize
	}
	for _, v := range h.Array {
		w.add(v)
	}
	for _, k := range h.Keys {
		w.add(k)
	}
	for _, v := range h.StrDict {
		w.add(v)
	}
	for _, v := range h.Dict {
		w.add(v)
	}
	if meta, ok := t.Metatable.(*lua.LTable); ok {
		w.add(meta)
	}
}

func (w *walker) thread(L *lua.LState) {
	s := stateOf(L)
	w.bytes += threadSize + 16*int64(len(s.reg.array))
	for _, v := range s.reg.array[:s.reg.top] {
		if v != nil {
			w.add(v)
		}
	}
	for f := s.currentFrame; f != nil; f = f.Parent {
		w.add(f.Fn)
		w.bytes += frameSize
	}
	if s.Parent != nil {
		w.add(s.Parent)
	}
}

const (
	threadSize = 2048
	frameSize  = 104
	sourceSize = 160 // the name of a chunk beside its bytes
)
