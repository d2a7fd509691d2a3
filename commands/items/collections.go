package items

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// GetElements returns the elements of a key of the session's database, and counts the read. The error says
// that the key is not of the kind, or that the database was dropped.
func GetElements(x *engine.Context, key string, kind keyspace.Kind) (c *keyspace.Container, h keyspace.Elements, found bool, err error) {
	if c, err = x.Database(); err != nil {
		return nil, h, false, err
	}
	h, is, found := x.Tx.Elements(c, key)
	x.CountRead(c, key, found)
	if found && is != kind {
		return c, keyspace.Elements{}, true, engine.ErrWrongType
	}
	return c, h, found, nil
}

// OnElements returns the Run of a command that reads the elements of a key; see [GetElements].
func OnElements(kind keyspace.Kind, do func(x *engine.Context, h keyspace.Elements, found bool) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		_, h, found, err := GetElements(x, x.Input.Args[1], kind)
		if err != nil {
			return engine.Fail(err)
		}
		return do(x, h, found)
	}
}

// Length returns the Run of a command that counts the elements of a key.
func Length(kind keyspace.Kind) engine.Run {
	return OnElements(kind, func(_ *engine.Context, h keyspace.Elements, _ bool) engine.Reply { return engine.Count(h.Len()) })
}

// Deleting returns the Run of a command that deletes the elements that its arguments name.
func Deleting(kind keyspace.Kind, event string) engine.Run {
	told := []string{event}
	return OnChange(kind, func(x *engine.Context, h *Change) (engine.Reply, []string) {
		deleted, fields := 0, x.Input.Args[2:]
		for i := range h.ByPage(fields, 1) {
			if h.Delete(fields[i]) {
				deleted++
			}
		}
		if deleted == 0 {
			return engine.Count(0), nil
		}
		return engine.Count(deleted), told
	})
}

// Change is a change of the elements of a key under way.
type Change struct {
	keyspace.ElementsEdit
	C    *keyspace.Container
	x    *engine.Context
	key  string
	kind keyspace.Kind
}

// EventOf returns the kind of event of a command on collections of a kind.
func EventOf(kind keyspace.Kind, name string) events.Kind {
	switch kind {
	case keyspace.SetKind:
		return events.OfSet(name)
	case keyspace.ZSetKind:
		return events.OfSortedSet(name)
	case keyspace.ListKind:
		return events.OfList(name)
	}
	return events.Hash(name)
}

// BeginChange begins to change the elements of a key. Close ends it. The error says that the key is of
// another kind.
func BeginChange(x *engine.Context, c *keyspace.Container, key string, kind keyspace.Kind) (h Change, err error) {
	err = h.begin(x, c, key, kind)
	return h, err
}

func (h *Change) begin(x *engine.Context, c *keyspace.Container, key string, kind keyspace.Kind) error {
	h.C, h.x, h.key, h.kind = c, x, key, kind
	var was keyspace.Kind
	if h.ElementsEdit, was = x.Tx.EditElements(c, key, kind); was != 0 && was != kind {
		return engine.ErrWrongType
	}
	return nil
}

// changes keeps those that have ended for the next ones.
var changes = sync.Pool{New: func() any { return new(Change) }}

// OnChange returns the Run of a command that changes elements: do makes the changes and returns the reply and
// the events. The reply does not need the change.
func OnChange(kind keyspace.Kind, do func(x *engine.Context, h *Change) (engine.Reply, []string)) engine.Run {
	return func(x *engine.Context) engine.Reply { return change(x, kind, do) }
}

func change(x *engine.Context, kind keyspace.Kind, do func(x *engine.Context, h *Change) (engine.Reply, []string)) engine.Reply {
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	h := changes.Get().(*Change)
	if err = h.begin(x, c, x.Input.Args[1], kind); err != nil {
		return engine.Fail(err)
	}
	reply, told := do(x, h)
	h.Close(told...)
	*h = Change{}
	changes.Put(h)
	return reply
}

// OnCreate is OnChange of a command that creates what is missing.
func OnCreate(kind keyspace.Kind, do func(x *engine.Context, h *Change) (engine.Reply, []string)) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if reply, now := prepare(x); !now {
			return reply
		}
		return change(x, kind, do)
	}
}

// Creating returns the Run of a command that creates a missing collection.
func Creating(run engine.Run) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if reply, now := prepare(x); !now {
			return reply
		}
		return run(x)
	}
}

// prepare prepares the folder for its first collection. If that needs a moment without locks, the command
// runs again after it, and not now.
func prepare(x *engine.Context) (reply engine.Reply, now bool) {
	ks := x.Engine.Keyspace()
	if ks.CollectionsAllowed() {
		return reply, true
	}
	if c, err := x.Database(); err != nil {
		return engine.Fail(err), false
	} else if _, taken := x.Tx.Get(c, x.Input.Args[1]); taken {
		return reply, true // it is no collection
	}
	if !x.Queued {
		x.Outside = func() (reply engine.Reply, again bool) {
			if err := ks.AllowCollections(); err != nil {
				return engine.Fail(err), false
			}
			return reply, true
		}
		return reply, false
	}
	if err := ks.AllowCollections(); err != nil {
		return engine.Fail(err), false
	}
	return reply, true
}

// Close ends the change and publishes its events. Without events nothing was changed.
func (h *Change) Close(told ...string) {
	isNew := !h.Exists()
	tell(h.x, h.C, h.key, h.kind, isNew, h.ElementsEdit.Close(), told)
}

// tell publishes the events of a change of a key that is new, or is gone with its last element.
func tell(x *engine.Context, c *keyspace.Container, key string, kind keyspace.Kind, isNew, gone bool, told []string) {
	if len(told) == 0 {
		return
	}
	if isNew {
		x.Notify(events.New, c, key)
		x.Engine.Waiters.Filled(c.Name(), key)
	}
	for _, e := range told {
		x.Notify(EventOf(kind, e), c, key)
	}
	if gone {
		x.Notify(events.Del, c, key)
	}
}

// ReplaceElements makes a collection of elements, which differ, under a key, whatever is there, and publishes
// its event. An empty one removes the key. The reply is their number.
func ReplaceElements(x *engine.Context, c *keyspace.Container, key string, kind keyspace.Kind, event string, all iter.Seq[keyspace.Element]) engine.Reply {
	h, _ := BeginChange(x, c, key, kind)
	n := h.Replace(all)
	h.End = expiry.Inherit
	if n == 0 {
		x.Remove(c, key)
	} else {
		h.Close(event)
		x.Engine.Waiters.Filled(c.Name(), key) // what was there may have been of another kind
	}
	return engine.Count(n)
}

// ListChange is Change of a list.
type ListChange struct {
	keyspace.ListEdit
	C   *keyspace.Container
	x   *engine.Context
	key string
}

// listChanges keeps those that have ended for the next ones.
var listChanges = sync.Pool{New: func() any { return new(ListChange) }}

// BeginListChange is [BeginChange] of a list.
func BeginListChange(x *engine.Context, c *keyspace.Container, key string) (h ListChange, err error) {
	err = h.begin(x, c, key)
	return h, err
}

func (h *ListChange) begin(x *engine.Context, c *keyspace.Container, key string) error {
	h.C, h.x, h.key = c, x, key
	var was keyspace.Kind
	if h.ListEdit, was = x.Tx.EditList(c, key); was != 0 && was != keyspace.ListKind {
		return engine.ErrWrongType
	}
	return nil
}

// Close is that of [Change].
func (h *ListChange) Close(told ...string) {
	isNew := !h.Exists()
	h.Tell(isNew, h.ListEdit.Close(), told...)
}

// Tell publishes the events of a change that was closed.
func (h *ListChange) Tell(isNew, gone bool, told ...string) {
	tell(h.x, h.C, h.key, keyspace.ListKind, isNew, gone, told)
}

// OnListChange is [OnChange] of a list.
func OnListChange(do func(x *engine.Context, h *ListChange) (engine.Reply, []string)) engine.Run {
	return OnDatabase(func(x *engine.Context, c *keyspace.Container) (reply engine.Reply) {
		h := listChanges.Get().(*ListChange)
		if err := h.begin(x, c, x.Input.Args[1]); err != nil {
			return engine.Fail(err)
		}
		reply, told := do(x, h)
		h.Close(told...)
		*h = ListChange{}
		listChanges.Put(h)
		return reply
	})
}

// Put sets an element.
func (h *Change) Put(field, value string, end int64) (isNew bool) {
	h.x.Work += int64(len(field) + len(value))
	return h.Set(keyspace.Element{Field: field, Value: value, End: end})
}

// IndexRange returns the indexes from one up to below another that a range of n elements has: start and stop
// count from the end if they are negative, and stop is in the range.
func IndexRange(start, stop int64, n int) (from, to int) {
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	if stop = min(stop, int64(n)-1); start > stop {
		return 0, 0
	}
	return int(start), int(stop + 1)
}

// WideRange is the Walks of a command with a range of indexes: whether that may have many elements.
func WideRange(args []string) bool {
	const many = 1000
	start, ok1 := redisfmt.ParseInt(args[2])
	stop, ok2 := redisfmt.ParseInt(args[3])
	return ok1 && ok2 && ((start < 0) != (stop < 0) || stop-start >= many)
}

// ParseScan parses a command that visits elements from a cursor on. own takes words of its own, nil: there
// are none. add adds an element to the reply.
func ParseScan(in *engine.Input, kind keyspace.Kind, own func(word string) bool, add func(*engine.List, keyspace.Element)) (engine.Run, error) {
	cursor, ok := redisfmt.ParseCursor(in.Args[2])
	if !ok {
		return nil, engine.ErrInvalidCursor
	}
	o, err := parseScanOptions(in.Args[3:], own)
	return OnElements(kind, func(x *engine.Context, h keyspace.Elements, found bool) engine.Reply {
		if found && err != nil { // as in Redis, a missing key hides wrong options
			return engine.Fail(err)
		}
		list := engine.List{Memory: x.Session.Memory}
		next := h.Scan(cursor, o.Count, func(e keyspace.Element) {
			if o.Selects(e.Field) {
				add(&list, e)
			}
		})
		return list.After(engine.Bulk(strconv.FormatUint(next, 10)))
	}), nil
}

func parseScanOptions(args []string, own func(word string) bool) (ScanOptions, error) {
	o := NewScanOptions()
	for len(args) > 0 {
		used, err := o.Parse(args)
		if used == 0 && err == nil && own != nil && own(args[0]) {
			used = 1
		}
		switch {
		case err != nil:
			return o, err
		case used == 0:
			return o, engine.ErrSyntax
		}
		args = args[used:]
	}
	return o, nil
}

// manyChosen is the number of random elements from which on they are chosen without locks.
const manyChosen = 1 << 10

const (
	errRange = engine.Error("ERR value is out of range")
	// errLongRange is the error for a count of random elements that has no opposite, in the words of Redis.
	errLongRange = engine.Error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
)

// ChoosesMany is the Reads of a command whose third argument, if it has one, is a count of random elements.
func ChoosesMany(args []string) bool {
	if len(args) < 3 {
		return false
	}
	n, ok := redisfmt.ParseInt(args[2])
	return ok && (n >= manyChosen || n <= -manyChosen)
}

// ParseRandom parses a command that returns a random element, or a count of them. After a count there may be
// a word, which asks for their values, too; "": there is none.
func ParseRandom(in *engine.Input, kind keyspace.Kind, word string, value func(keyspace.Element) engine.Reply) (engine.Run, error) {
	if len(in.Args) == 2 {
		return OnElements(kind, func(_ *engine.Context, h keyspace.Elements, found bool) engine.Reply {
			if !found {
				return engine.Null
			}
			return engine.Bulk(h.Random().Field)
		}), nil
	}
	if word == "" && len(in.Args) > 3 {
		return nil, engine.ErrSyntax
	}
	count, ok := redisfmt.ParseInt(in.Args[2])
	with := len(in.Args) == 4
	switch {
	case !ok:
		return nil, engine.ErrNotInteger
	case count < -math.MaxInt64:
		return nil, errLongRange
	case len(in.Args) > 4 || with && !redisfmt.EqualFold(in.Args[3], word):
		return nil, engine.ErrSyntax
	case with && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		return nil, errRange
	}
	return OnElements(kind, func(x *engine.Context, h keyspace.Elements, found bool) engine.Reply {
		if !found {
			return engine.Array()
		}
		list := engine.List{Memory: x.Session.Memory}
		return chooseElements(x, &h, count, func(e keyspace.Element) bool {
			switch {
			case with && x.Proto() == 3:
				list.Add(engine.Array(engine.Bulk(e.Field), value(e)))
			case with:
				list.Add(engine.Bulk(e.Field))
				list.Add(value(e))
			default:
				list.Add(engine.Bulk(e.Field))
			}
			return !list.Refused()
		}, list.Array)
	}), nil
}

// chooseElements is the reply of a command that adds count random elements to it: different ones, or -count
// of which some may be the same. It ends when add returns false. add and reply must not touch the keyspace.
func chooseElements(x *engine.Context, h *keyspace.Elements, count int64, add func(keyspace.Element) (more bool), reply func() engine.Reply) engine.Reply {
	size := int64(h.Len())
	if count < manyChosen && count > -manyChosen {
		chooseFew(h, size, count, add)
		return reply()
	}
	still := h.Snapshot()
	return x.Compute(engine.SlowBytes, func() engine.Reply {
		if watch := x.WatchClient(); count >= 0 {
			chooseSome(still.All(), size, count, add)
		} else if room := int(size * int64(unsafe.Sizeof(keyspace.Element{}))); !x.Session.Memory.Reserve(room) {
			return engine.Fail(engine.ErrClientMemory)
		} else {
			defer x.Session.Memory.Release(room)
			all := slices.Collect(still.All())
			for ; count < 0; count++ {
				if e := all[rand.IntN(len(all))]; watch.Abandoned(len(e.Field)) || !add(e) {
					break
				}
			}
		}
		return reply()
	})
}

// chooseFew is chooseElements for few of size elements.
func chooseFew(h *keyspace.Elements, size, count int64, add func(keyspace.Element) (more bool)) {
	if count >= 0 && 3*count >= size {
		chooseSome(h.All(), size, count, add)
		return
	}
	for seen := map[string]bool{}; count != 0; {
		e := h.Random()
		switch {
		case count < 0:
			count++
		case seen[e.Field]:
			continue
		default:
			seen[e.Field] = true
			count--
		}
		if !add(e) {
			return
		}
	}
}

// chooseSome adds count different ones of size elements, each with the chance that count of those left have.
func chooseSome(all iter.Seq[keyspace.Element], size, count int64, add func(keyspace.Element) (more bool)) {
	for e := range all {
		if count >= size || Chance(count, size) {
			count--
			if !add(e) {
				return
			}
		}
		size--
	}
}
