package tools

import (
	"cmp"
	"fmt"
	"math"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/datadir"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// folderTarget imports into a data folder.
type folderTarget struct {
	ks      *keyspace.Keyspace
	wanted  changes
	pending keyspace.LSN
	items   int
}

// commitEvery is the number of items in a write to the journal.
const commitEvery = 1000

func (m *importer) newFolderTarget(dir string) (*folderTarget, error) {
	have, err := datadir.Partitions(vfs.OS, dir)
	if err != nil {
		return nil, err
	}
	if have != 0 && m.partitions != 0 && have != m.partitions {
		return nil, fmt.Errorf("data folder %s has %d partitions, which cannot be changed: import into a new one", dir, have)
	}
	ks, err := keyspace.Open(keyspace.Options{Dir: dir, Partitions: m.partitions, Clock: m.Clock, Fsync: keyspace.No, Log: zerolog.Nop(), NoPurge: true})
	if err != nil {
		return nil, err
	}
	if have == 0 {
		fmt.Fprintf(m.Err, "%s is a new data folder\n", dir)
	}
	ks.SetMaxContainers(m.maxContainers)
	return &folderTarget{ks: ks, wanted: m.changes}, nil
}

func (f *folderTarget) container(s settings) (r received, err error) {
	var tx keyspace.Tx
	f.ks.BeginAll(&tx)
	c := tx.Container(s.Name)
	limit, full := tx.ContainersFull()
	switch {
	case c == nil && full:
		err = fmt.Errorf("cannot create container %q: --max-containers allows %d", s.Name, limit)
	case c == nil || tx.Untouched(c):
		if c, err = tx.RestoreContainer(s.ContainerRecord); err == nil {
			r.number = c.DB()
		}
	default:
		r.number = c.DB()
		r.note, err = f.settle(&tx, c, &s)
	}
	return r, cmp.Or(f.commit(tx.Close()), err)
}

// settle changes the settings of a container that exists, if that is wanted. The note says how they differ,
// or differed.
func (f *folderTarget) settle(tx *keyspace.Tx, c *keyspace.Container, s *settings) (note string, err error) {
	has := *c.Policy()
	differences := s.differences(has)
	if len(differences) == 0 || !f.wanted.apply {
		tx.RestoreIndexes(c, s.Indexes)
		if len(differences) > 0 {
			note = kept(differences)
		}
		return note, nil
	}
	if !s.hasMode {
		s.Policy.Mode = has.Mode
	}
	deadline := cmp.Or(s.Policy.Deadline, has.Deadline)
	if err := s.refusedBy(has, !tx.DeadlineFree(c, deadline)); err != nil {
		return "", err
	}
	kills := int64(tx.CountKills(c, has.Change(s.Policy.Default, s.Policy.Mode, tx.Now()), math.MaxInt))
	if err := f.wanted.admit(s.Name, kills); err != nil {
		return "", err
	}
	tx.SetDeadline(c, deadline)
	tx.SetCounted(c, s.Policy.Default, s.Policy.Mode, kills)
	if s.Policy.Hold != "" {
		tx.SetHold(c, s.Policy.Hold)
	}
	tx.RestoreIndexes(c, s.Indexes)
	return changed(differences, kills), tx.Veto()
}

func (f *folderTarget) item(_ place, e entry) (keyspace.Restored, error) {
	var tx keyspace.Tx
	f.ks.BeginKey(&tx, e.id)
	c := tx.Container(e.container)
	var done keyspace.Restored
	var err error
	switch {
	case e.item.Kind.IsCollection() && f.ks.AllowCollections() != nil:
		err = fatal{f.ks.AllowCollections()}
	case c == nil:
		err = missingContainer(e.container)
	default:
		if err = e.refusedBy(c.Policy(), tx.Now()); err == nil {
			done = tx.Restore(c, e.id, e.item)
			err = tx.Veto()
		}
	}
	f.pending = max(f.pending, tx.Close())
	if f.items++; err == nil && f.items%commitEvery == 0 {
		return done, f.commit(f.pending)
	}
	return done, err
}

// refusedBy returns the error with which a container refuses an item, or nil (rule 4). A document that a
// container has had with its ttl or its deadline is not refused.
func (e *entry) refusedBy(p *expiry.Policy, now int64) error {
	if e.ignored != nil && !e.accepted && p.Mode == expiry.Strict && p.Default != expiry.Off {
		return e.ignored
	}
	if !e.fresh && !e.keepsLeft || p.Deadline == "" || e.item.Kind != keyspace.Document {
		return nil
	}
	doc := jsondoc.FromValid(e.item.Body, p.Deadline)
	return doc.CheckDeadline(p, now)
}

func (f *folderTarget) commit(t keyspace.LSN) error {
	if err := f.ks.Wait(t); err != nil {
		return fatal{err}
	}
	return nil
}

func (f *folderTarget) flush() error { return f.commit(f.pending) }

func (f *folderTarget) close() error { return f.ks.Close() }
