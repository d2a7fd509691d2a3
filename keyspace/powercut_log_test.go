package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// deathLedger is the worker of a container with a log. It writes items that die, in transactions that each
// leave their number, and reads the log. Its ledger tells exactly which deaths the log must have after any of
// the transactions.
type deathLedger struct {
	r       *rand.Rand
	deletes bool // the log has what is deleted, too

	mu     sync.Mutex // protects what follows
	writes []mortal   // in the order of their transactions
	ledgerGuarantees
	unsure []seenEntry // entries that were read, but are not known to be on disk
}

// mortal is one write of an item.
type mortal struct {
	number int // of the transaction
	lsn    LSN // of the transaction; 0 until it is known
	id     string
	etag   uint64 // 0: the item was deleted
	ts     int64  // ms
	own    int64  // own end
	gone   int64  // ms; when it was deleted, if the log has that
}

// end returns the moment in ms at which an item dies by its own end or by the container's default.
func (m *mortal) end() int64 {
	if m.own == expiry.Inherit {
		return m.ts + 1000*ledgerTTL
	}
	return m.own
}

// dies reports whether an item has died by a moment in ms.
func (m *mortal) dies(now int64) bool { return m.etag != 0 && m.own != expiry.Never && m.end() <= now }

// death names a death in the container.
type death struct {
	id   string
	etag uint64
}

// seenEntry is an entry that was read.
type seenEntry struct {
	death
	at  streamid.ID
	lsn LSN // covers it
}

// ledgerGuarantees are what must survive a power cut: a transaction, and entries that were read.
type ledgerGuarantees struct {
	number int
	seen   map[death]streamid.ID
}

// The container of the ledger.
const (
	ledgerName = "mortal"
	ledgerTTL  = 1 // seconds
	ledgerIDs  = 24
)

func newDeathLedger(r *rand.Rand) *deathLedger {
	return &deathLedger{r: r, deletes: r.IntN(2) == 0, ledgerGuarantees: ledgerGuarantees{seen: make(map[death]streamid.ID)}}
}

// begin makes the container.
func (l *deathLedger) begin(ks *Keyspace) error {
	var tx Tx
	ks.BeginAll(&tx)
	c := tx.CreateContainer(ledgerName, ledgerTTL, expiry.Strict)
	err := tx.SetLog(c, LogSettings{Seconds: 1 << 30, MaxLen: 1_000_000, Bodies: true, Deletes: l.deletes})
	return errors.Join(err, ks.Wait(tx.Close()))
}

// transact writes in a transaction, or lets items die and reads the log.
func (l *deathLedger) transact(ks *Keyspace, c *clock.Manual, always bool) error {
	if l.r.IntN(3) == 0 {
		c.Advance(time.Duration(l.r.IntN(800)) * time.Millisecond)
		ks.PurgeOnce()
		return l.read(ks, always)
	}
	return l.write(ks, always)
}

// write writes in a transaction.
func (l *deathLedger) write(ks *Keyspace, always bool) error {
	ids := []string{numberID}
	for n := range ledgerIDs {
		ids = append(ids, fmt.Sprint("mortal-", n))
	}
	number := 1
	var tx Tx
	ks.BeginKeys(&tx, ids)
	c := tx.Container(ledgerName)
	if it, ok := tx.Get(c, numberID); ok {
		if _, err := fmt.Sscan(it.Body, &number); err != nil {
			return err
		}
		number++
	}
	var writes []mortal
	for range 1 + l.r.IntN(12) {
		m := mortal{number: number, id: ids[1+l.r.IntN(ledgerIDs)], ts: tx.Now()}
		if l.r.IntN(5) == 0 {
			tx.Delete(c, m.id)
		} else {
			m.own = []int64{expiry.Inherit, expiry.Never, tx.Now() + 1 + l.r.Int64N(1200)}[l.r.IntN(3)]
			size := l.r.IntN(100)
			if l.r.IntN(5) == 0 {
				size = l.r.IntN(2 * memtable.LargeBody)
			}
			m.etag = tx.Put(c, m.id, Plain, ledgerBody(size, number), m.own).Version
		}
		writes = append(writes, m)
	}
	tx.Put(c, numberID, Plain, fmt.Sprint(number), expiry.Never)
	l.mu.Lock()
	first := len(l.writes)
	l.writes = append(l.writes, writes...)
	l.mu.Unlock()
	lsn := tx.Close()
	l.mu.Lock()
	for i := range l.writes[first:] {
		l.writes[first+i].lsn = lsn
	}
	l.mu.Unlock()
	if l.r.IntN(3) == 0 {
		return nil
	}
	err := ks.Wait(lsn)
	if err == nil && always {
		l.mu.Lock()
		l.number = number
		l.mu.Unlock()
	}
	return err
}

func ledgerBody(size, number int) string { return fmt.Sprintf("%0*d", size, number) }

// read reads the log, as a consumer does.
func (l *deathLedger) read(ks *Keyspace, always bool) error {
	var tx Tx
	ks.BeginSweep(&tx)
	var found []seenEntry
	tx.Deaths(tx.Container(ledgerName)).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		found = append(found, seenEntry{death: death{e.Item, e.Etag}, at: e.ID})
		return true
	})
	lsn := tx.Close()
	if err := ks.Wait(lsn); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range found {
		if e.lsn = lsn; always {
			l.seen[e.death] = e.at
		} else {
			l.unsure = append(l.unsure, e)
		}
	}
	return nil
}

// guarantees returns what must survive a power cut now. forced is the last commit that is on disk.
func (l *deathLedger) guarantees(forced LSN) ledgerGuarantees {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.writes {
		if m.lsn != 0 && m.lsn <= forced {
			l.number = max(l.number, m.number)
		}
	}
	l.unsure = slices.DeleteFunc(l.unsure, func(e seenEntry) bool {
		sure := e.lsn <= forced
		if sure {
			l.seen[e.death] = e.at
		}
		return sure
	})
	return ledgerGuarantees{l.number, maps.Clone(l.seen)}
}

// check compares a folder with the ledger, now and when all has died. It returns how many deaths the log has.
func (l *deathLedger) check(ks *Keyspace, c *clock.Manual, g ledgerGuarantees) (n int, err error) {
	for range 2 {
		for range 3 {
			ks.PurgeOnce()
		}
		if n, err = l.compare(ks, g); err != nil {
			return n, fmt.Errorf("the log: %w", err)
		}
		c.Advance(5 * time.Second)
	}
	return n, nil
}

// compare compares the container and its log with the ledger.
func (l *deathLedger) compare(ks *Keyspace, g ledgerGuarantees) (n int, err error) {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	number := 0
	found := make(map[string]Item)
	container := tx.Container(ledgerName)
	if container != nil {
		tx.Scan(container, 0, 1<<30, func(id string, it Item) { found[id] = it })
	}
	if it, ok := found[numberID]; ok {
		if _, err := fmt.Sscan(it.Body, &number); err != nil {
			return 0, err
		}
	}
	delete(found, numberID)
	if number < g.number {
		return 0, fmt.Errorf("transaction %d is the last, %d was guaranteed", number, g.number)
	}
	if container == nil {
		return 0, nil
	}
	lives, died := l.after(number, tx.Now())
	for id, m := range lives {
		if it, ok := found[id]; !ok || it.Version != m.etag || it.TS != m.ts || it.ExpireAt != m.own {
			return 0, fmt.Errorf("after transaction %d %s is %.200v (%t), want %+v", number, id, it, ok, m)
		}
	}
	if len(found) != len(lives) {
		return 0, fmt.Errorf("after transaction %d %d items live, want %d", number, len(found), len(lives))
	}
	var last streamid.ID
	logged := make(map[death]streamid.ID)
	tx.Deaths(container).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		at := death{e.Item, e.Etag}
		m, ok := died[at]
		if _, twice := logged[at]; twice || !ok || !last.Less(e.ID) || !m.isDeath(&e) {
			err = errors.Join(err, fmt.Errorf("after transaction %d at %d: %+v behind %v; twice: %t, died: %t, as %+v", number, tx.Now(), e, last, twice, ok, m))
		}
		logged[at], last = e.ID, e.ID
		return true
	})
	if len(logged) != len(died) {
		err = errors.Join(err, fmt.Errorf("%d deaths are logged, %d items have died", len(logged), len(died)))
	}
	for at, id := range g.seen {
		if logged[at] != id {
			err = errors.Join(err, fmt.Errorf("the entry of %v is %v, and was seen as %v", at, logged[at], id))
		}
	}
	if s, ok := tx.Deaths(container).State(); !ok || s.Length != int64(len(died)) || s.Added != s.Length || s.Length > 0 && s.Last.Less(last) {
		err = errors.Join(err, fmt.Errorf("the state is %+v; %d have died, %v is the last", s, len(died), last))
	}
	return len(logged), err
}

// isDeath reports whether an entry is that of the death of an item.
func (m *mortal) isDeath(e *deathlog.Entry) bool {
	cause, at := expiry.ByDocument, m.end()
	switch {
	case m.gone != 0:
		cause, at = deathlog.Deleted, m.gone
	case m.own == expiry.Inherit:
		cause = expiry.ByContainer
	}
	return e.At == at && e.TS == m.ts && e.Own == m.own && e.Cause == cause && e.Kind == record.Plain &&
		e.HasBody && e.Body == ledgerBody(len(e.Body), m.number)
}

// after returns the items that live, and those that have died by a moment in ms, if a transaction was the
// last.
func (l *deathLedger) after(number int, now int64) (lives map[string]*mortal, died map[death]*mortal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lives, died = make(map[string]*mortal), make(map[death]*mortal)
	bury := func(id string, now int64) {
		if m := lives[id]; m != nil && m.dies(now) {
			died[death{id, m.etag}] = m
			delete(lives, id)
		}
	}
	for i := range l.writes {
		m := l.writes[i]
		if m.number > number {
			break
		}
		bury(m.id, m.ts)
		if was := lives[m.id]; was != nil && m.etag == 0 && l.deletes {
			was.gone = m.ts
			died[death{m.id, was.etag}] = was
		}
		if delete(lives, m.id); m.etag != 0 {
			lives[m.id] = &m
		}
	}
	for id := range maps.Clone(lives) {
		bury(id, now)
	}
	return lives, died
}
