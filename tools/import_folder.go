package tools

import (
	"cmp"
	"fmt"

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
	pending keyspace.LSN
	items   int
}

// commitEvery is the number of items in a write to the journal.
const commitEvery = 1000

func newFolderTarget(dir string, partitions, maxContainers int, clock clock.Clock) (*folderTarget, error) {
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
	return &folderTarget{ks: ks}, nil
}

func (f *folderTarget) container(s keyspace.ContainerRecord) (number uint32, err error) {
	var tx keyspace.Tx
	f.ks.BeginAll(&tx)
	limit, full := tx.ContainersFull()
	if tx.Container(s.Name) == nil && full {
		tx.Close()
		return 0, fmt.Errorf("cannot create container %q: --max-containers allows %d", s.Name, limit)
	}
	c, err := tx.RestoreContainer(s)
	if err == nil {
		number = c.DB()
		if d := c.Policy().Deadline; s.Policy.Deadline != "" && s.Policy.Deadline != d {
			err = fmt.Errorf("container %q has items, whose ends are recorded: its deadline stays %q and does not become %q", s.Name, d, s.Policy.Deadline)
		}
	}
	return number, cmp.Or(f.commit(tx.Close()), err)
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
	case e.fresh && refuses(c.Policy(), e.ignored):
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

// checkDeadline returns the error with which a container refuses the deadline of a new document, or nil.
func (e *entry) checkDeadline(p *expiry.Policy, now int64) error {
	if !e.fresh || p.Deadline == "" || e.item.Kind != keyspace.Document {
		return nil
	}
	doc := jsondoc.FromValid(e.item.Body, p.Deadline)
	return doc.CheckDeadline(p, now)
}

// refuses reports whether a container refuses a new document (rule 4). An exported document was accepted
// once, and stays.
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
