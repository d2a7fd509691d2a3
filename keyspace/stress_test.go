package keyspace

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestStress runs all operations on the same ids in many goroutines while the clock moves. It compares every
// result with an exact model, which has no locks of its own. The model of an id is touched only with the id's
// partition locked, the model of a container changed only with all locked. So a transaction that locks too
// little is a data race too.
//
// After each round the whole keyspace is compared with the model, and it is opened again.
func TestStress(t *testing.T) {
	t.Parallel()
	const workers, rounds = 12, 3
	operations := drill.Pick(100, 200, 5000)
	seed := drill.Seed(t)
	s := newStress(open(t, func(opt *Options) { opt.Partitions = 5 }))
	for round := range rounds {
		done := s.background()
		var wg sync.WaitGroup
		for n := range workers {
			w := newWorker(s, rand.New(rand.NewPCG(seed, uint64(round*workers+n))))
			wg.Go(func() {
				for range operations {
					w.step()
				}
			})
		}
		wg.Wait()
		done()
		if t.Failed() {
			return
		}
		s.audit()
		s.o.reopen()
		for _, f := range s.facts {
			f.change = nil // LSNs begin anew
		}
		s.audit()
	}
}

// The containers of the stress.
const (
	steady = "0"     // default -1 throughout; never emptied
	ruled  = "ruled" // its default changes
	brief  = "brief" // its default changes, and it is flushed, dropped and made again
)

const (
	stressIDs      = 60 // single ids a container, written by all workers
	stressFamilies = 15 // groups of ids a container, written in one transaction each
	familySize     = 5
	stressResident = 100 // ids in steady that are overwritten but never deleted and never die
)

// stress is the keyspace under test and the model.
type stress struct {
	o          *opened
	containers map[string]*modelContainer
	facts      map[place]*fact
}

// modelContainer is the model of a container: changed with all partitions locked, read with any.
type modelContainer struct {
	exists bool
	epoch  int    // counts the times it was emptied
	rules  []rule // since it was made, the present one last
}

type rule struct {
	from int64 // ms
	def  expiry.TTL
}

// fact is the model of an id, under the lock of its partition.
type fact struct {
	written bool // and not deleted since
	item    Item
	epoch   int // of the container when it was written
	rule    int // that ruled when it was written
	change  *change
}

// change is the transaction that wrote or deleted an id last. Its LSN is set without a lock when it has
// ended, and is 0 until then.
type change struct{ lsn atomic.Uint64 }

func newStress(o *opened) *stress {
	s := &stress{o: o, containers: make(map[string]*modelContainer), facts: make(map[place]*fact)}
	var tx Tx
	o.BeginAll(&tx)
	for _, name := range []string{steady, ruled, brief} {
		if name != steady {
			tx.CreateContainer(name, expiry.Forever, expiry.Strict)
		}
		s.containers[name] = &modelContainer{exists: true, rules: []rule{{tx.Now(), expiry.Forever}}}
		for n := range stressIDs {
			s.facts[place{name, singleID(n)}] = &fact{}
		}
		for n := range stressFamilies {
			for _, id := range family(n) {
				s.facts[place{name, id}] = &fact{}
			}
		}
	}
	for n := range stressResident {
		s.facts[place{steady, residentID(n)}] = &fact{}
	}
	o.commit(&tx)
	w := newWorker(s, rand.New(rand.NewPCG(0, 0)))
	for n := range stressResident {
		w.overwriteResident(n)
	}
	return s
}

func singleID(n int) string   { return fmt.Sprint("single-", n) }
func residentID(n int) string { return fmt.Sprint("resident-", n) }

// family returns ids in different partitions.
func family(n int) (ids []string) {
	for member := range familySize {
		ids = append(ids, fmt.Sprintf("family-%d-%d", n, member))
	}
	return ids
}

// everDead reports whether the item of a fact has been dead at any moment since its write, under any of the
// rules.
func (c *modelContainer) everDead(f *fact, now int64) bool {
	for i := f.rule; i < len(c.rules); i++ {
		until := now
		if i+1 < len(c.rules) {
			until = c.rules[i+1].from
		}
		switch def := c.rules[i].def; {
		case def == expiry.Off || f.item.ExpireAt == expiry.Never:
		case f.item.ExpireAt > expiry.Inherit:
			if f.item.ExpireAt <= until {
				return true
			}
		case f.item.ExpireAt < expiry.Never && -f.item.ExpireAt <= until:
			return true
		case def > 0 && f.item.TS+int64(def)*1000 <= until:
			return true
		}
	}
	return false
}

// lives reports whether an id lives by the model.
func (s *stress) lives(at place, now int64) bool {
	c, f := s.containers[at.container], s.facts[at]
	return c.exists && f.written && f.epoch == c.epoch && !c.everDead(f, now)
}

// container looks a container up and compares its existence with the model.
func (s *stress) container(tx *Tx, name string) *Container {
	c := tx.Container(name)
	if exists := s.containers[name].exists; exists != (c != nil) {
		s.o.t.Errorf("container %s: the keyspace has %v, the model says %v", name, c, exists)
		return nil
	}
	return c
}

// audit compares the whole keyspace with the model, at one moment.
func (s *stress) audit() {
	var tx Tx
	s.o.BeginAll(&tx)
	defer tx.Close()
	living := make(map[string]int)
	for at := range s.facts {
		if s.lives(at, tx.Now()) {
			living[at.container]++
		}
	}
	for name := range s.containers {
		c := s.container(&tx, name)
		if c == nil {
			continue
		}
		if n := tx.Count(c); n != living[name] {
			s.o.t.Errorf("at %d %d are counted in %s, the model has %d", tx.Now(), n, name, living[name])
		}
		scanned := 0
		tx.Scan(c, 0, 1<<30, func(id string, it Item) {
			scanned++
			at := place{name, id}
			if f := s.facts[at]; !s.lives(at, tx.Now()) || f.item != it {
				s.o.t.Errorf("at %d a scan finds %v %+v, the model says %+v", tx.Now(), at, it, f)
			}
		})
		if scanned != living[name] {
			s.o.t.Errorf("at %d a scan finds %d in %s, the model has %d", tx.Now(), scanned, name, living[name])
		}
	}
}

// background runs a server's background work at a high pace until done is called.
func (s *stress) background() (done func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	every := func(pause time.Duration, f func()) {
		wg.Go(func() {
			ticker := time.NewTicker(pause)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
					f()
				}
			}
		})
	}
	every(time.Millisecond, s.o.PurgeOnce)
	every(20*time.Millisecond, s.o.storage.Wake)
	every(5*time.Millisecond, s.o.Clean)
	return func() { close(stop); wg.Wait() }
}

// worker is one of the goroutines.
type worker struct {
	*stress
	r    *rand.Rand
	tx   Tx
	last LSN

	change *change   // the transaction under way
	saw    []*change // what it has seen
}

func newWorker(s *stress, r *rand.Rand) *worker {
	return &worker{stress: s, r: r, change: &change{}}
}

func (w *worker) step() {
	containers := [...]string{steady, ruled, ruled, brief}
	container := containers[w.r.IntN(len(containers))]
	id := singleID(w.r.IntN(stressIDs))
	switch n := w.r.IntN(1000); {
	case n < 300:
		w.o.BeginKey(&w.tx, id)
		w.put(container, id, Document, w.body(), w.expireAt())
	case n < 550:
		w.o.BeginKey(&w.tx, id)
		w.look(container, id)
	case n < 630:
		w.o.BeginKey(&w.tx, id)
		w.delete(container, id)
	case n < 700:
		w.changeFamily(container)
	case n < 820:
		w.lookAtFamily(container)
	case n < 870:
		w.overwriteResident(w.r.IntN(stressResident))
		return
	case n < 950:
		w.o.clock.Advance(time.Duration(w.r.IntN(400)) * time.Millisecond)
		return
	case n < 970:
		w.drawRandom(container)
	case n < 980:
		w.countWhileOthersWrite(container)
	case n < 984:
		w.scanWhileOthersWrite()
		return
	case n < 992:
		w.changeRule()
	case n < 995:
		w.emptyBrief()
	case n < 996:
		w.o.SetFsync([...]Fsync{EverySec, No, Always}[w.r.IntN(3)])
		return
	default:
		w.audit()
		return
	}
	w.commit()
}

// commit ends the transaction and checks that its LSN covers all changes it has seen. Like a connection, it
// does not wait for each LSN.
func (w *worker) commit() {
	t := w.tx.Close()
	w.change.lsn.Store(uint64(t))
	for _, c := range w.saw {
		if seen := c.lsn.Load(); seen > uint64(t) {
			w.o.t.Errorf("LSN %d was given to a transaction that has seen a change of %d", t, seen)
		}
	}
	w.change, w.saw = &change{}, w.saw[:0]
	w.last = max(w.last, t)
	if w.r.IntN(4) > 0 {
		return
	}
	if err := w.o.Wait(w.last); err != nil {
		w.o.t.Error(err)
	} else if !w.o.Committed(w.last) {
		w.o.t.Errorf("LSN %d is not committed after waiting for it", w.last)
	}
}

func (w *worker) overwriteResident(n int) {
	id := residentID(n)
	w.o.BeginKey(&w.tx, id)
	w.put(steady, id, Plain, w.body(), expiry.Never)
	w.commit()
}

func (w *worker) put(container, id string, kind Kind, body string, expireAt int64) {
	c := w.container(&w.tx, container)
	if c == nil {
		return
	}
	model := w.containers[container]
	*w.facts[place{container, id}] = fact{
		written: true, epoch: model.epoch, rule: len(model.rules) - 1, change: w.change,
		item: w.tx.Put(c, id, kind, body, expireAt),
	}
}

// look reads an id and compares it with the model.
func (w *worker) look(container, id string) (it Item, ok bool) {
	c := w.container(&w.tx, container)
	if c == nil {
		return Item{}, false
	}
	at := place{container, id}
	it, ok = w.tx.Get(c, id)
	f := w.facts[at]
	if f.change != nil {
		w.saw = append(w.saw, f.change)
	}
	if want := w.lives(at, w.tx.Now()); ok != want || ok && it != f.item {
		w.o.t.Errorf("at %d %v is %+v %v, the model says %+v %v under %+v", w.tx.Now(), at, it, ok, f, want, w.containers[container])
	}
	return it, ok
}

func (w *worker) delete(container, id string) {
	c := w.container(&w.tx, container)
	if c == nil {
		return
	}
	at := place{container, id}
	want := w.lives(at, w.tx.Now())
	if got := w.tx.Delete(c, id); got != want {
		w.o.t.Errorf("at %d Delete of %v is %v, the model says %+v under %+v", w.tx.Now(), at, got, w.facts[at], w.containers[container])
	}
	if want {
		w.facts[at].written, w.facts[at].change = false, w.change
	}
}

func (w *worker) body() string {
	return fmt.Sprintf(`{"n":%d,"pad":"%*d"}`, w.r.Uint64(), w.r.IntN(300), 0)
}

// expireAt returns an end for an item. A transaction must be open.
func (w *worker) expireAt() int64 {
	switch w.r.IntN(5) {
	case 0:
		return expiry.Never
	case 2:
		return expiry.CapAt(w.tx.Now() + 1 + w.r.Int64N(5000))
	case 1:
		return w.tx.Now() + 1 + w.r.Int64N(5000)
	}
	return expiry.Inherit
}

func (w *worker) changeFamily(container string) {
	ids := family(w.r.IntN(stressFamilies))
	w.o.BeginKeys(&w.tx, ids)
	if w.r.IntN(4) == 0 {
		for _, id := range ids {
			w.delete(container, id)
		}
		return
	}
	body, expireAt := w.body(), w.expireAt()
	for _, id := range ids {
		w.put(container, id, Document, body, expireAt)
	}
}

// lookAtFamily checks that the members of a family are equal: they are written, die and are deleted together.
func (w *worker) lookAtFamily(container string) {
	ids := family(w.r.IntN(stressFamilies))
	w.o.BeginKeys(&w.tx, ids)
	first, there := w.look(container, ids[0])
	for _, id := range ids[1:] {
		if it, ok := w.look(container, id); ok != there || it.Body != first.Body || it.TS != first.TS || it.ExpireAt != first.ExpireAt {
			w.o.t.Errorf("%s is %+v %v, its sibling %s %+v %v", id, it, ok, ids[0], first, there)
		}
	}
}

func (w *worker) drawRandom(container string) {
	w.o.BeginSweep(&w.tx)
	c := w.tx.Container(container)
	if c == nil {
		return
	}
	id, it, ok := w.tx.Random(c)
	switch {
	case !ok && container == steady:
		w.o.t.Error("no random item though many live throughout")
	case ok && w.facts[place{container, id}] == nil:
		w.o.t.Errorf("random item %q %+v was never written", id, it)
	case ok && c.Policy().Dead(it.TS, it.ExpireAt, w.tx.Now()) && container == steady:
		w.o.t.Errorf("random item %q %+v is dead", id, it)
	}
}

func (w *worker) countWhileOthersWrite(container string) {
	w.o.BeginSweep(&w.tx)
	c := w.tx.Container(container)
	if c == nil {
		return
	}
	least, most := 0, stressIDs+stressFamilies*familySize
	if container == steady {
		least, most = stressResident, most+stressResident
	}
	s := w.tx.Stats(c)
	if s.Documents < least || s.Documents > most || s.Plain != least || s.ByOwnTTL+s.ByDefault > s.Documents {
		w.o.t.Errorf("figures of %s, which holds %d to %d items, %d of them plain keys: %+v", container, least, most, least, s)
	}
}

// scanWhileOthersWrite checks that a scan visits all items that live throughout, and none twice.
func (w *worker) scanWhileOthersWrite() {
	seen := make(map[string]int)
	for cursor := uint64(0); ; {
		w.o.BeginSweep(&w.tx)
		cursor = w.tx.Scan(w.tx.Container(steady), cursor, 1+w.r.IntN(40), func(id string, it Item) {
			seen[id]++
			if w.facts[place{steady, id}] == nil {
				w.o.t.Errorf("a scan finds %q %+v, which was never written", id, it)
			}
		})
		w.commit()
		if cursor == 0 {
			break
		}
	}
	for n := range stressResident {
		if id := residentID(n); seen[id] == 0 {
			w.o.t.Errorf("%s lives throughout but was not visited", id)
		}
	}
	for id, times := range seen {
		if times > 1 {
			w.o.t.Errorf("%s was visited %d times in one scan", id, times)
		}
	}
}

func (w *worker) changeRule() {
	name := [...]string{ruled, brief}[w.r.IntN(2)]
	def := [...]expiry.TTL{expiry.Off, expiry.Forever, expiry.TTL(1 + w.r.IntN(8))}[w.r.IntN(3)]
	w.o.BeginAll(&w.tx)
	c := w.container(&w.tx, name)
	if c == nil {
		return
	}
	w.tx.SetPolicy(c, def, expiry.Strict)
	model := w.containers[name]
	model.rules = append(model.rules, rule{w.tx.Now(), def})
}

// emptyBrief flushes the brief container, drops it or makes it again.
func (w *worker) emptyBrief() {
	w.o.BeginAll(&w.tx)
	c, model := w.container(&w.tx, brief), w.containers[brief]
	switch {
	case !model.exists:
		def := expiry.TTL(1 + w.r.IntN(8))
		if w.tx.CreateContainer(brief, def, expiry.Strict) == nil {
			w.o.t.Error("a missing container cannot be created")
		}
		*model = modelContainer{exists: true, epoch: model.epoch + 1, rules: []rule{{w.tx.Now(), def}}}
	case w.r.IntN(2) == 0:
		w.tx.Flush(c)
		model.epoch++
	default:
		w.tx.Drop(c)
		model.exists = false
	}
}

// TestRandomWhileOthersWrite: while an item lives there is a random item, even if most counted items are
// deleted before the draw. The LSN covers the drawn item, even if it was written after the count.
func TestRandomWhileOthersWrite(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put(steady, residentID(0), "resident", expiry.Inherit)
	var ids []string
	for n := range 100 {
		ids = append(ids, singleID(n))
	}
	written := make(map[string]LSN) // by body
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var tx Tx
		for round := 0; ; round++ {
			body := fmt.Sprint(round)
			o.BeginKeys(&tx, ids)
			for _, id := range ids {
				tx.Put(tx.Container(steady), id, Document, body, expiry.Inherit)
			}
			written[body] = tx.Close()
			o.Wait(written[body])
			o.BeginKeys(&tx, ids)
			for _, id := range ids {
				tx.Delete(tx.Container(steady), id)
			}
			tx.Close()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	drawn := make(map[string]LSN) // the least, by body
	for n := range 5000 {
		var tx Tx
		o.BeginSweep(&tx)
		_, it, ok := tx.Random(tx.Container(steady))
		lsn := tx.Close()
		if !ok {
			t.Errorf("draw %d finds nothing", n)
			break
		}
		if least, again := drawn[it.Body]; !again || lsn < least {
			drawn[it.Body] = lsn
		}
	}
	close(stop)
	wg.Wait()
	for body, lsn := range drawn {
		if lsn < written[body] {
			t.Errorf("LSN %d was given to a draw of a write of %d", lsn, written[body])
		}
	}
}
