package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
)

// modelHash is a key of the model.
type modelHash struct {
	fields   map[string]Element // the dead too; of a list by index
	ts, end  int64
	kind     Kind
	isString bool
}

func (h *modelHash) clone() *modelHash {
	c := *h
	c.fields = maps.Clone(h.fields)
	return &c
}

// hashModel is collections in two containers beside a model of them. The policies are those of the
// containers: how these rule is tested elsewhere.
type hashModel struct {
	*opened
	random *rand.Rand
	keys   map[place]*modelHash
}

func cloneKeys(keys map[place]*modelHash) map[place]*modelHash {
	c := make(map[place]*modelHash)
	for at, h := range keys {
		c[at] = h.clone()
	}
	return c
}

// living returns the living fields of a key, nil if it does not live.
func living(h *modelHash, p *expiry.Policy, now int64) map[string]Element {
	if h == nil || p.Dead(h.ts, h.end, now) {
		return nil
	}
	limit, all := p.DeadLimits(now).ByOwnTTL, map[string]Element{}
	for field, e := range h.fields {
		if !e.Dead(limit) {
			all[field] = e
		}
	}
	if len(all) == 0 && !h.isString {
		return nil
	}
	return all
}

var modelKeys = []string{"a", "b", "{a}x", "c", "d"}

func (m *hashModel) place() place {
	return place{[]string{"left", "right"}[m.random.IntN(2)], modelKeys[m.random.IntN(len(modelKeys))]}
}

func (m *hashModel) element(now int64) Element {
	e := Element{Field: fmt.Sprint("field", m.random.IntN(60)), Value: strings.Repeat("v", []int{0, 3, 20, 100, 300}[m.random.IntN(5)]) + fmt.Sprint(m.random.IntN(1000))}
	if m.random.IntN(40) == 0 {
		e.Value = strings.Repeat("long", 2000)
	}
	if m.random.IntN(4) == 0 {
		e.End = now + int64(1+m.random.IntN(20_000))
	}
	return e
}

// elementOf returns an element of a collection of a kind.
func (m *hashModel) elementOf(kind Kind, now int64) Element {
	e := m.element(now)
	switch kind {
	case SetKind:
		e.Value = ""
	case ZSetKind:
		e.Value = elements.Scored{Score: float64(m.random.IntN(20)-10) / 4}.Element().Value
	}
	return e
}

// entriesOf returns the entries of a list of the model.
func entriesOf(fields map[string]Element) (list []string) {
	for _, at := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, fields[at].Field)
	}
	return list
}

// editList changes a list and the model.
func (m *hashModel) editList(tx *Tx, at place, replaces bool) {
	c := tx.Container(at.container)
	x, kind := tx.EditList(c, at.id)
	if kind == Plain && !replaces {
		return
	}
	h, list, changed := m.keys[at], []string(nil), false
	if living(h, c.Policy(), tx.Now()) == nil || kind != ListKind {
		h = &modelHash{kind: ListKind}
	} else {
		list = entriesOf(h.fields)
	}
	if replaces {
		list, changed = nil, true
		for range m.random.IntN(60) {
			list = append(list, m.element(tx.Now()).Value)
		}
		x.Replace(func(yield func(Element) bool) {
			for _, entry := range list {
				yield(Element{Field: entry})
			}
		})
	}
	for range m.random.IntN([]int{3, 6, 80}[m.random.IntN(3)]) {
		n := len(list)
		if x.Len() != n {
			m.t.Fatalf("%v: Len is %d, want %d", at, x.Len(), n)
		}
		left, entry := m.random.IntN(2) == 0, m.element(tx.Now()).Value
		op := m.random.IntN(14)
		if n == 0 || op > 6 {
			changed = true
			if x.Push(left, entry); left {
				list = slices.Insert(list, 0, entry)
			} else {
				list = append(list, entry)
			}
			continue
		}
		did := false
		list, did = m.change(&x, op, left, entry, list)
		changed = changed || did
	}
	x.Close()
	if !changed {
		return
	}
	h.ts, h.fields = tx.Now(), map[string]Element{}
	for i, entry := range list {
		h.fields[fmt.Sprintf("%06d", i)] = Element{Field: entry}
	}
	if m.keys[at] = h; living(h, c.Policy(), tx.Now()) == nil {
		delete(m.keys, at)
	}
}

// change changes a list that is not empty, and returns what it should be.
func (m *hashModel) change(x *ListEdit, op int, left bool, entry string, list []string) (is []string, changed bool) {
	i := m.random.IntN(len(list))
	switch op {
	case 0, 1, 2:
		want := list[len(list)-1]
		if left {
			want, list = list[0], list[1:]
		} else {
			list = list[:len(list)-1]
		}
		if got, ok := x.Pop(left); !ok || got != want {
			m.t.Fatalf("Pop is %.100q, %v, want %.100q", got, ok, want)
		}
	case 3:
		x.SetAt(i, entry)
		list[i] = entry
	case 4:
		x.InsertAt(i, entry)
		list = slices.Insert(list, i, entry)
	case 5:
		if i = m.random.IntN(min(len(list), 40) + 1); i == 0 {
			break
		}
		if x.Drop(left, i); left {
			list = list[i:]
		} else {
			list = list[:len(list)-i]
		}
	default:
		most, gone := 1+m.random.IntN(5), 0
		keep := func(entry string) (keeps, more bool) {
			if len(entry)%3 != 0 {
				return true, true
			}
			gone++
			return false, gone < most
		}
		x.Filter(left, keep)
		if !left {
			slices.Reverse(list)
		}
		gone = 0
		more := true
		list = slices.DeleteFunc(list, func(entry string) (gone bool) {
			if more {
				gone, more = keep(entry)
				gone = !gone
			}
			return gone
		})
		if !left {
			slices.Reverse(list)
		}
		return list, gone > 0
	}
	return list, op != 5 || i > 0
}

// edit changes a collection and the model.
func (m *hashModel) edit(tx *Tx, at place) {
	c := tx.Container(at.container)
	h := m.keys[at]
	want := []Kind{HashKind, SetKind, ZSetKind, ListKind}[m.random.IntN(4)]
	replaces := m.random.IntN(6) == 0
	if _, is, found := tx.Elements(c, at.id); found && is != Plain && !replaces {
		want = is
	}
	if want == ListKind {
		m.editList(tx, at, replaces)
		return
	}
	x, kind := tx.EditElements(c, at.id, want)
	lives := living(h, c.Policy(), tx.Now())
	if (kind != 0) != (lives != nil) {
		m.t.Fatalf("%v: kind %q, want %v", at, kind, lives)
	}
	if lives == nil || kind != want {
		h = &modelHash{fields: map[string]Element{}, kind: want}
	}
	if replaces {
		h.fields = map[string]Element{}
		for range m.random.IntN(60) {
			if e := m.elementOf(want, tx.Now()); m.random.IntN(4) > 0 || e.End == 0 {
				h.fields[e.Field] = e
			}
		}
		x.Replace(maps.Values(h.fields))
		x.Close()
		h.ts = tx.Now()
		if m.keys[at] = h; len(h.fields) == 0 {
			delete(m.keys, at)
		}
		return
	}
	if kind == Plain {
		return
	}
	changed := false
	edits := make([]Element, 1+m.random.IntN([]int{2, 4, 50, 200}[m.random.IntN(4)]))
	fields := make([]string, len(edits))
	for i := range edits {
		edits[i] = m.elementOf(want, tx.Now())
		fields[i] = edits[i].Field
	}
	for i := range x.ByPage(fields, 1) {
		e := edits[i]
		was, there := h.fields[e.Field]
		there = there && !was.Dead(c.Policy().DeadLimits(tx.Now()).ByOwnTTL)
		if got, ok := x.Get(e.Field); ok != there || ok && got != was {
			m.t.Fatalf("%v: %q is %.300s, %v, want %v, %.300s", at, e.Field, fmt.Sprint(got), ok, there, fmt.Sprint(was))
		}
		if m.random.IntN(3) > 0 {
			if isNew := x.Set(e); isNew == there {
				m.t.Fatalf("%v: %q is new: %v", at, e.Field, isNew)
			}
			h.fields[e.Field], changed = e, true
		} else {
			if x.Delete(e.Field) != there {
				m.t.Fatalf("%v: %q is deleted: %v", at, e.Field, !there)
			}
			if changed = changed || there; there {
				delete(h.fields, e.Field)
			}
		}
	}
	x.Close()
	if !changed {
		return
	}
	h.ts = tx.Now()
	m.keys[at] = h
	if living(h, c.Policy(), tx.Now()) == nil {
		delete(m.keys, at)
	}
}

// write makes a change in a transaction, which has locked everything.
func (m *hashModel) write(tx *Tx) {
	at := m.place()
	c := tx.Container(at.container)
	h, now := m.keys[at], tx.Now()
	lives := living(h, c.Policy(), now)
	switch m.random.IntN(9) {
	case 0:
		if was := tx.Delete(c, at.id); was != (lives != nil) {
			m.t.Fatalf("%v was deleted: %v, want %v", at, was, lives)
		}
		if lives != nil {
			delete(m.keys, at)
		} else if _, ok := tx.Get(c, at.id); ok {
			m.t.Fatalf("%v lives", at)
		} else if c.retention.Open(now) {
			delete(m.keys, at)
		}
	case 1:
		tx.Put(c, at.id, Plain, "text", expiry.Inherit)
		m.keys[at] = &modelHash{ts: now, isString: true}
	case 2: // EXPIRE, PERSIST
		if it, ok := tx.Get(c, at.id); ok {
			h.end = []int64{expiry.Never, expiry.Inherit, now + int64(1+m.random.IntN(20_000))}[m.random.IntN(3)]
			tx.Put(c, at.id, it.Kind, it.Body, h.end)
			h.ts = now
		}
	case 3, 4:
		to := m.place()
		if lives == nil || h.isString || to == at {
			return
		}
		copied := m.random.IntN(2) == 0
		tx.Move(c, at.id, tx.Container(to.container), to.id, h.end, copied)
		moved := &modelHash{fields: lives, ts: now, end: h.end, kind: h.kind}
		if tx.ks.partitionOf(at.id) == tx.ks.partitionOf(to.id) && at.container == to.container && !copied {
			moved.fields = maps.Clone(h.fields)
		} else {
			for field, e := range lives {
				if e.End != 0 {
					e.End = tx.Container(to.container).Policy().SleepOn(e.End)
					lives[field] = e
				}
			}
		}
		if m.keys[to] = moved; !copied {
			tx.Remove(c, at.id)
			delete(m.keys, at)
		}
		if living(moved, tx.Container(to.container).Policy(), now) == nil {
			delete(m.keys, to)
		}
	default:
		m.edit(tx, at)
	}
}

// letRest lets lists rest for so long, at times, that their pages are written without what was popped.
func (m *hashModel) letRest() {
	if m.random.IntN(4) == 0 {
		m.PurgeOnce() // it learns of them
		m.clock.Advance(poppedStay * time.Millisecond)
	}
}

func (m *hashModel) step() {
	switch m.random.IntN(20) {
	case 0, 1, 2:
		m.clock.Advance(time.Duration(m.random.IntN(4000)) * time.Millisecond)
	case 3:
		m.letRest()
		m.PurgeOnce()
	case 4:
		if err := m.Save(); err != nil {
			m.t.Fatal(err)
		}
		if m.random.IntN(2) == 0 {
			if err := m.storage.CompactAll(); err != nil {
				m.t.Fatal(err)
			}
		}
	case 5:
		if m.random.IntN(2) == 0 {
			m.reopen()
		} else {
			m.kill()
		}
	case 6: // a rollback
		before := cloneKeys(m.keys)
		var tx Tx
		m.BeginAll(&tx)
		if m.random.IntN(3) == 0 {
			m.rule(&tx)
		}
		for range 1 + m.random.IntN(6) {
			m.write(&tx)
		}
		tx.Rollback()
		m.keys = before
	case 7:
		m.catalogueTx(m.rule)
	case 8:
		m.checkBackup()
	default:
		var tx Tx
		m.BeginAll(&tx)
		for range 1 + m.random.IntN(3) {
			m.write(&tx)
		}
		m.commit(&tx)
	}
}

// rule changes the container as a whole.
func (m *hashModel) rule(tx *Tx) {
	name := []string{"left", "right"}[m.random.IntN(2)]
	c := tx.Container(name)
	switch m.random.IntN(8) {
	case 0, 1, 2:
		tx.SetPolicy(c, []expiry.TTL{expiry.Off, expiry.Forever, 3, 10}[m.random.IntN(4)], expiry.Strict)
	case 3:
		tx.SetHold(c, "a reason")
		if m.random.IntN(2) == 0 {
			tx.Release(c, c.Policy().Default, expiry.Strict, 0)
			return
		}
		for range 3 { // nothing changes what is there
			at := m.place()
			at.container = name
			_, kind, _ := tx.Elements(c, at.id)
			x, _ := tx.EditElements(c, at.id, kind)
			if kind != 0 && kind != Plain {
				x.Set(Element{Field: "new"})
				x.Close()
				if tx.Veto() == nil {
					m.t.Fatal("a hold vetoes nothing")
				}
				tx.veto = nil
			}
		}
		tx.Release(c, c.Policy().Default, expiry.Strict, 0)
	case 4:
		other := tx.Container(map[string]string{"left": "right", "right": "left"}[name])
		tx.Swap(c, other)
		swapped := make(map[place]*modelHash)
		for at, h := range m.keys {
			swapped[place{map[string]string{"left": "right", "right": "left"}[at.container], at.id}] = h
		}
		m.keys = swapped
	case 5:
		opens := tx.Count(c) > 0 // else an older flush is what Undo takes back
		tx.Flush(c)
		if opens && m.random.IntN(2) == 0 && !c.dropped {
			if _, err := tx.Undo(name, ""); err != nil {
				maps.DeleteFunc(m.keys, func(at place, _ *modelHash) bool { return at.container == name })
			}
			return
		}
		maps.DeleteFunc(m.keys, func(at place, _ *modelHash) bool { return at.container == name })
		m.storage.Wake()
	}
}

// compare compares all readers with the model.
func (m *hashModel) compare() {
	if err := m.sameAs(m.Keyspace, m.keys, true); err != nil {
		m.t.Fatal(err)
	}
}

func (m *hashModel) sameAs(ks *Keyspace, keys map[place]*modelHash, times bool) error {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	for _, name := range []string{"left", "right"} {
		c := tx.Container(name)
		if c == nil {
			return fmt.Errorf("%s is missing", name)
		}
		count := 0
		for _, id := range modelKeys {
			want := living(keys[place{name, id}], c.Policy(), tx.Now())
			h, kind, found := tx.Elements(c, id)
			if want != nil {
				count++
			}
			switch {
			case found != (want != nil):
				return fmt.Errorf("%s %s lives: %v, want %v", name, id, found, want != nil)
			case !found:
				continue
			case (kind == Plain) != keys[place{name, id}].isString, kind != Plain && kind != keys[place{name, id}].kind:
				return fmt.Errorf("%s %s is of kind %q", name, id, kind)
			}
			if it, _ := tx.Get(c, id); times && (it.TS != keys[place{name, id}].ts || it.ExpireAt != keys[place{name, id}].end) {
				return fmt.Errorf("%s %s is of %d and ends at %d, want %d and %d", name, id, it.TS, it.ExpireAt, keys[place{name, id}].ts, keys[place{name, id}].end)
			}
			same := sameHash
			switch kind {
			case ListKind:
				same = sameList
			case ZSetKind:
				same = sameSortedSet
			}
			if err := same(&h, want); err != nil {
				return fmt.Errorf("%s %s: %w", name, id, err)
			}
		}
		if n := tx.Count(c); n != count {
			return fmt.Errorf("%s: Count is %d, want %d", name, n, count)
		}
		if s := tx.Stats(c); s.Documents != count {
			return fmt.Errorf("%s: Stats has %d, want %d", name, s.Documents, count)
		}
		scanned := 0
		tx.Scan(c, 0, 1<<30, func(string, Item) { scanned++ })
		if _, _, ok := tx.Random(c); scanned != count || ok != (count > 0) {
			return fmt.Errorf("%s: Scan has %d, want %d; Random %v", name, scanned, count, ok)
		}
	}
	return nil
}

// sameList compares all readers of a list.
func sameList(h *Elements, fields map[string]Element) error {
	want := entriesOf(fields)
	for _, r := range [][2]int{{0, len(want)}, {len(want) / 3, len(want)/3 + 1}, {len(want) / 2, len(want)}, {0, 0}} {
		part := slices.Clone(want[r[0]:r[1]])
		if got := slices.Collect(h.Entries(r[0], r[1], false)); !slices.Equal(got, part) {
			return fmt.Errorf("%v has %.300q, want %.300q", r, got, part)
		}
		var bodies []string
		for e := range elements.Each(strings.Join(h.EntryBodies(r[0], r[1]), "")) {
			bodies = append(bodies, e.Field)
		}
		if !slices.Equal(bodies, part) {
			return fmt.Errorf("%v is stored as %.300q, want %.300q", r, bodies, part)
		}
		slices.Reverse(part)
		if got := slices.Collect(h.Entries(r[0], r[1], true)); !slices.Equal(got, part) {
			return fmt.Errorf("%v backwards has %.300q, want %.300q", r, got, part)
		}
	}
	var all []string
	for e := range h.All() {
		all = append(all, e.Field)
	}
	if h.Len() != len(want) || !slices.Equal(all, want) {
		return fmt.Errorf("it has %d entries, want %d", h.Len(), len(want))
	}
	return nil
}

// sameSortedSet compares all readers of a sorted set.
func sameSortedSet(h *Elements, fields map[string]Element) error {
	var want []elements.Scored
	for _, e := range fields {
		want = append(want, elements.ScoredOf(e))
	}
	slices.SortFunc(want, elements.Scored.Compare)
	s := h.Sorted()
	for _, s := range []elements.Living{s, s.Snapshot()} {
		for _, r := range [][2]int{{0, len(want)}, {len(want) / 3, len(want)/3 + 1}, {len(want) / 2, len(want)}, {0, 0}} {
			part := slices.Clone(want[r[0]:r[1]])
			if got := slices.Collect(s.Range(r[0], r[1], false)); !slices.Equal(got, part) {
				return fmt.Errorf("%v has %.300v, want %.300v", r, got, part)
			}
			slices.Reverse(part)
			if got := slices.Collect(s.Range(r[0], r[1], true)); !slices.Equal(got, part) {
				return fmt.Errorf("%v backwards has %.300v, want %.300v", r, got, part)
			}
		}
		for i, at := range want {
			if s.At(i) != at || s.Rank(func(e elements.Scored) bool { return !e.Before(at) }) != i {
				return fmt.Errorf("%v is not number %d", at, i)
			}
		}
		if s.Len() != len(want) {
			return fmt.Errorf("Len is %d, want %d", s.Len(), len(want))
		}
	}
	return sameHash(h, fields)
}

// sameHash compares all readers of a hash, or a set.
func sameHash(h *Elements, want map[string]Element) error {
	got := map[string]Element{}
	for e := range h.All() {
		if _, twice := got[e.Field]; twice {
			return fmt.Errorf("%q comes twice", e.Field)
		}
		got[e.Field] = e
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it has %d fields, want %d: %.500s", len(got), len(want), differing(got, want))
	}
	scanned := map[string]Element{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = h.Scan(cursor, 3, func(e Element) {
			if _, twice := scanned[e.Field]; !twice {
				scanned[e.Field] = e
			}
		})
	}
	if !maps.Equal(scanned, want) {
		return fmt.Errorf("Scan has %d fields, want %d: %.500s", len(scanned), len(want), differing(scanned, want))
	}
	if n := h.Len(); n != len(want) {
		return fmt.Errorf("Len is %d, want %d", n, len(want))
	}
	if len(want) == 0 {
		return nil
	}
	if e := h.Random(); want[e.Field] != e {
		return fmt.Errorf("Random is %+v, of %+v", e, want)
	}
	for field, e := range want {
		if is, ok := h.Get(field); !ok || is != e {
			return fmt.Errorf("%q is %+v, %v, want %+v", field, is, ok, e)
		}
	}
	_, ok := h.Get("none")
	if ok {
		return fmt.Errorf("a field that is not there is found")
	}
	return nil
}

// differing describes the fields in which hashes differ.
func differing(got, want map[string]Element) string {
	var list []string
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if is, ok := got[field]; !ok || is != want[field] {
			list = append(list, fmt.Sprintf("%.200s, want %.200s", fmt.Sprint(is, ok), fmt.Sprint(want[field])))
		}
	}
	for field := range got {
		if _, ok := want[field]; !ok {
			list = append(list, fmt.Sprintf("%q is too much", field))
		}
	}
	return strings.Join(list, "; ")
}

// checkBackup opens a backup, which has the same hashes.
func (m *hashModel) checkBackup() {
	dir := fmt.Sprint("/backup-", dirs.Add(1))
	if err := m.Backup(dir); err != nil {
		m.t.Fatal(err)
	}
	opt := m.opt
	opt.Dir = dir
	ks, err := Open(opt)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.sameAs(ks, m.keys, true); err != nil {
		m.t.Fatal("a backup: ", err)
	}
	if err := ks.Check(); err != nil {
		m.t.Fatal("a backup: ", err)
	}
	if err := ks.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// TestHashModel takes random steps and compares all readers with a model after each.
func TestHashModel(t *testing.T) {
	t.Parallel()
	first := drill.Seed(t)
	for n := range drill.Pick[uint64](3, 8, 300) {
		seed := first + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &hashModel{
				opened: open(t, func(o *Options) { o.Partitions = 1 + int(seed%3) }),
				random: rand.New(rand.NewPCG(seed, 7)), keys: make(map[place]*modelHash),
			}
			if err := m.AllowCollections(); err != nil {
				t.Fatal(err)
			}
			if seed%2 == 0 {
				if err := m.SetUndoWindow(undo.MaxWindow); err != nil {
					t.Fatal(err)
				}
			}
			m.policy("left", 30)
			m.policy("right", expiry.Forever)
			for range 300 {
				m.step()
				m.compare()
				if err := m.Check(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestHashScanOnce: a scan meets each field once that is there throughout, while pages split and merge.
func TestHashScanOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	r := rand.New(rand.NewPCG(drill.Seed(t), 1))
	for range 20 {
		var tx Tx
		o.BeginKey(&tx, "k")
		c := tx.Container("0")
		x, _ := tx.EditElements(c, "k", HashKind)
		for n := range 100 {
			x.Set(Element{Field: fmt.Sprint("stays", n), Value: "value"})
		}
		x.Close()
		met := map[string]int{}
		grows := r.IntN(2) == 0
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			h, _, _ := tx.Elements(c, "k")
			cursor = h.Scan(cursor, 1+r.IntN(10), func(e Element) { met[e.Field]++ })
			x, _ := tx.EditElements(c, "k", HashKind)
			for range r.IntN(60) {
				if field := fmt.Sprint("other", r.IntN(400)); grows == (r.IntN(4) > 0) {
					x.Set(Element{Field: field, Value: strings.Repeat("x", r.IntN(40))})
				} else {
					x.Delete(field)
				}
			}
			x.Close()
		}
		for n := range 100 {
			if field := fmt.Sprint("stays", n); met[field] != 1 {
				t.Errorf("%s was met %d times", field, met[field])
			}
		}
		for field, n := range met {
			if n > 1 && !strings.HasPrefix(field, "other") {
				t.Errorf("%s was met %d times", field, n)
			}
		}
		o.commit(&tx)
	}
}
