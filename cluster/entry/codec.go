package entry

import "encoding/binary"

// writer appends the fields of an entry or a state.
type writer struct{ buf []byte }

func (w *writer) uint(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }
func (w *writer) int(n int64)   { w.buf = binary.AppendVarint(w.buf, n) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) bool(b bool) {
	if b {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0)
	}
}

func (w *writer) member(m Member) {
	w.uint(m.ID)
	w.string(m.Name)
	w.string(m.Addr)
	w.string(m.Client)
	w.bool(m.Leaving)
}

func (w *writer) members(members []Member) {
	w.uint(uint64(len(members)))
	for _, m := range members {
		w.member(m)
	}
}

func (w *writer) ids(ids []uint64) {
	w.uint(uint64(len(ids)))
	for _, id := range ids {
		w.uint(id)
	}
}

// reader takes the fields of an entry or a state. After the first field that is not there, all others are
// zero. It accepts only the bytes that writer writes: one encoding for each value.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) fail() { r.buf, r.bad = nil, true }

func (r *reader) end() error {
	if r.bad || len(r.buf) != 0 {
		return ErrDamaged
	}
	return nil
}

func (r *reader) byte() byte {
	if len(r.buf) == 0 {
		r.fail()
		return 0
	}
	b := r.buf[0]
	r.buf = r.buf[1:]
	return b
}

func (r *reader) uint() uint64 { return readVarint(r, binary.Uvarint) }
func (r *reader) int() int64   { return readVarint(r, binary.Varint) }

// readVarint takes an integer in its shortest form.
func readVarint[T uint64 | int64](r *reader, decode func([]byte) (n T, size int)) T {
	n, size := decode(r.buf)
	if size <= 0 || size > 1 && r.buf[size-1] == 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[size:]
	return n
}

func (r *reader) bool() bool {
	b := r.byte()
	if b > 1 {
		r.fail()
	}
	return b == 1
}

func (r *reader) string() string {
	n := r.uint()
	if n > uint64(len(r.buf)) {
		r.fail()
		return ""
	}
	s := string(r.buf[:n])
	r.buf = r.buf[n:]
	return s
}

func (r *reader) rest() []byte {
	rest := r.buf
	r.buf = nil
	return rest
}

func (r *reader) member() Member {
	return Member{ID: r.uint(), Name: r.string(), Addr: r.string(), Client: r.string(), Leaving: r.bool()}
}

// count reads the length of a list whose elements have at least size bytes.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.buf)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) members() (members []Member) {
	for range r.count(5) {
		m := r.member()
		if n := len(members); n > 0 && members[n-1].Name >= m.Name {
			r.fail()
		}
		members = append(members, m)
	}
	return members
}

func (r *reader) ids() (ids []uint64) {
	for range r.count(1) {
		id := r.uint()
		if n := len(ids); id == 0 || n > 0 && ids[n-1] >= id {
			r.fail()
		}
		ids = append(ids, id)
	}
	return ids
}
