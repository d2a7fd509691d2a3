package tools

import (
	"cmp"
	"fmt"
	"math"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/expiry/clock"
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

func newFolderTarget(dir string, partitions, maxContainers int, clock clock.Clock, wanted changes) (*folderTarget, error) {
	have, err := datadir.Partitions(vfs.OS, dir)
	if err != nil {
		return nil, err
	}
	if have != 0 && partitions != 0 && have != partitions {
		return nil, fmt.Errorf("data folder %s has %d partitions, which cannot be changed: import into a new one", dir, have)
	}
	ks, err := keyspace.Open(keyspace.Options{Dir: dir, Partitions: partitions, Clock: clock, Fsync: keyspace.No, Log: zerolog.Nop(), NoPurge: true})
	if err != nil {
		return nil, err
	}
	ks.SetMaxContainers(maxContainers)
	return &folderTarget{ks: ks, wanted: wanted}, nil
}

func (f *folderTarget) container(s settings) (r received, err error) {
	var tx keyspace.Tx
	f.ks.BeginAll(&tx)
	c := tx.Container(s.Name)
	limit, full := tx.ContainersFull()
	switch {
	case c == nil && full:
		err = fmt.Errorf("cannot create container %q: --max-containers allows %d", s.Name, limit)
	case c == nil || c.Untouched():
		if c, err = tx.RestoreContainer(s.ContainerRecord); err == nil {
			r.number = c.DB()
		}
	default:
		r.number = c.DB()
		r.note, err = f.settle(&tx, c, &s)
	}
	return r, cmp.Or(f.commit(tx.Close()), err)
}

// settle changes the settings of a container that exists, if that is wanted. The note says how they differ, or differed.
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
	if !tx.DeadlineFree(c, deadline) {
		return "", fmt.Errorf("container %q has items, whose ends are recorded: its deadline stays %q and does not become %q", s.Name, has.Deadline, deadline)
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
	case c == nil:
		err = missingContainer(e.container)
	case !e.accepted && refuses(c.Policy(), e.ignored):
		err = e.ignored
	default:
		if err = e.checkDeadline(c.Policy(), tx.Now()); err == nil {
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

// checkDeadline returns the error with which a container refuses the deadline of a document of another system, or nil.
func (e *entry) checkDeadline(p *expiry.Policy, now int64) error {
	if !e.fresh && !e.keepsLeft || p.Deadline == "" || e.item.Kind != keyspace.Document {
		return nil
	}
	doc := jsondoc.FromValid(e.item.Body, p.Deadline)
	return doc.CheckDeadline(p, now)
}

// refuses reports whether a container refuses a document that none has accepted before (rule 4).
func refuses(p *expiry.Policy, ignored error) bool {
	return ignored != nil && p.Mode == expiry.Strict && p.Default != expiry.Off
}

func (f *folderTarget) commit(t keyspace.LSN) error {
	if err := f.ks.Wait(t); err != nil {
		return fatal{err}
	}
	return nil
}

func (f *folderTarget) close() error { return f.ks.Close() }
