package tools

import (
	"cmp"
	"strconv"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/repair"
	"mayfly/vfs"
)

// dryFolder stands for a data folder in which an import changes nothing. It knows the containers of the
// folder. Of its items it knows only how many there are, but for those on hold: another one that was written
// later does not show.
type dryFolder struct {
	*importer
	dir        string // empty: there is no folder yet
	containers map[string]*keyspace.ContainerRecord
	items      map[string]int      // by container
	held       map[[2]string]int64 // when items on hold were written (ms), by container and id
}

func (m *importer) newDryFolder(dir string) (*dryFolder, error) {
	d := &dryFolder{importer: m, containers: make(map[string]*keyspace.ContainerRecord), items: make(map[string]int), held: make(map[[2]string]int64)}
	for n := range keyspace.Databases {
		name := strconv.Itoa(n)
		d.containers[name] = &keyspace.ContainerRecord{Name: name, DB: uint32(n), Policy: expiry.Policy{Default: expiry.Forever}}
	}
	if have, err := datadir.Partitions(vfs.OS, dir); err != nil || have == 0 {
		return d, err
	}
	d.dir = dir
	return d, repair.Read(vfs.OS, dir, m.Clock, func(c keyspace.ContainerRecord) error {
		d.containers[c.Name] = &c
		return nil
	}, func(container, id string, it keyspace.Item) error {
		d.items[container]++
		d.hold(container, id, it.TS)
		return nil
	})
}

// hold keeps when an item was written, if its container is on hold.
func (d *dryFolder) hold(container, id string, ts int64) {
	if c := d.containers[container]; c != nil && c.Policy.Hold != "" {
		d.held[[2]string{container, id}] = ts
	}
}

func (d *dryFolder) container(s settings) (r received, err error) {
	has := d.containers[s.Name]
	if has == nil || has.DB < keyspace.Databases && d.items[s.Name] == 0 && has.Policy == (expiry.Policy{Default: expiry.Forever}) {
		d.containers[s.Name] = &s.ContainerRecord
		return received{number: s.DB}, nil
	}
	r.number = has.DB
	differences := s.differences(has.Policy)
	if len(differences) == 0 {
		return r, nil
	}
	if !d.apply {
		r.note = kept(differences)
		return r, nil
	}
	kills, err := d.kills(&s, has.Policy)
	if err = cmp.Or(s.refusedBy(has.Policy, d.items[s.Name] > 0), err, d.admit(s.Name, kills)); err != nil {
		return r, err
	}
	r.note = would(differences, kills)
	return r, nil
}

// kills counts the items of a container that other settings would kill.
func (d *dryFolder) kills(s *settings, has expiry.Policy) (kills int64, err error) {
	now := d.Clock.Now()
	next := has.Change(s.Policy.Default, s.Policy.Mode, now)
	err = repair.Read(vfs.OS, d.dir, d.Clock, func(keyspace.ContainerRecord) error { return nil }, func(container, _ string, it keyspace.Item) error {
		if container == s.Name && next.Dead(it.TS, it.ExpireAt, now) {
			kills++
		}
		return nil
	})
	return kills, err
}

func (d *dryFolder) item(_ place, e entry) (keyspace.Restored, error) {
	c := d.containers[e.container]
	if c == nil {
		return 0, missingContainer(e.container)
	}
	now := d.Clock.Now()
	if err := e.refusedBy(&c.Policy, now); err != nil {
		return 0, err
	}
	if c.Policy.Dead(min(e.item.TS, now), e.item.ExpireAt, now) {
		return keyspace.Dead, nil
	}
	if there, ok := d.held[[2]string{e.container, e.id}]; ok {
		return e.kept(c.Policy.Hold, there)
	}
	d.hold(e.container, e.id, e.item.TS)
	return keyspace.Stored, nil
}

func (d *dryFolder) flush() error { return nil }
func (d *dryFolder) close() error { return nil }
