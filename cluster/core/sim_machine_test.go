package core

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
)

type place struct{ index, term uint64 }

// machine is hardware: a disk, clocks, a network address. It runs one incarnation of the node or none.
type machine struct {
	w      *world
	number int
	id     uint64
	rate   float64       // of its monotonic clock; two clocks differ by less than a tenth
	step   time.Duration // of its wall clock
	disk   disk
	fresh  bool
	leaves bool
	gone   bool // was removed
	inc    *incarnation
	boots  int

	paused time.Duration // until
	slow   time.Duration
	full   bool
}

func (m *machine) name() string { return fmt.Sprintf("m%d", m.number) }

func (m *machine) member() entry.Member {
	return entry.Member{ID: m.id, Name: m.name(), Addr: m.addr(), Client: m.addr()}
}

func (m *machine) addr() string {
	return m.name() + ":1"
}

func (m *machine) local() time.Duration { return time.Duration(float64(m.w.now) * m.rate) }
func (m *machine) wall() int64          { return (100*time.Hour + m.w.now + m.step).Milliseconds() }

// after runs a function of the machine, which does nothing while it is paused.
func (m *machine) after(d time.Duration, run func()) {
	inc := m.inc
	m.w.after(d, func() {
		switch {
		case inc == nil || inc.dead:
		case m.w.now < m.paused:
			m.after(m.paused-m.w.now, run)
		default:
			run()
		}
	})
}

func (m *machine) pause(d time.Duration) {
	m.paused = max(m.paused, m.w.now+d)
	m.w.after(d, func() {
		if m.inc != nil {
			m.inc.drain()
		}
	})
}

// image is a raft log on disk.
type image struct {
	base    place
	entries []*raftpb.Entry
	hard    *raftpb.HardState
}

// record is one write to it.
type record struct {
	entry *raftpb.Entry
	hard  *raftpb.HardState
	mark  place
	reset bool // the mark begins the log anew
}

func (i *image) write(r record) {
	switch {
	case r.entry != nil:
		at := r.entry.GetIndex() - i.base.index - 1
		i.entries = append(i.entries[:at:at], r.entry)
	case r.hard != nil:
		i.hard = r.hard
	case r.reset:
		i.base, i.entries = r.mark, nil
	case r.mark.index > i.base.index:
		i.entries = slices.Clone(i.entries[r.mark.index-i.base.index:])
		i.base = r.mark
	}
}

func (i *image) last() uint64 { return i.base.index + uint64(len(i.entries)) }

func (i *image) term(index uint64) uint64 {
	if index == i.base.index {
		return i.base.term
	}
	return i.entries[index-i.base.index-1].GetTerm()
}

const keys = 3

// version is what the local files hold at a position.
type version struct {
	at      place
	regs    [keys]uint64
	moment  int64
	promise int64 // the end of the leased clock
	state   []byte
}

// disk is what a machine has stored.
type disk struct {
	log      image    // synced
	written  []record // not synced
	saving   []record // being written
	files    []version
	incoming *version // stores of a peer, whole, to be installed by the next incarnation
}

// begins gives the disk a log and files.
func (m *machine) begins(at place, state []byte) {
	m.disk = disk{
		log:   image{base: at, hard: &raftpb.HardState{Term: &at.term, Vote: new(uint64), Commit: &at.index}},
		files: []version{{at: at, state: state}},
	}
}

// wipe replaces the disk by an empty one. The node comes with another id.
func (m *machine) wipe() {
	m.w.newID(m)
	m.disk = disk{log: image{hard: &raftpb.HardState{}}, files: []version{{}}}
	m.fresh, m.leaves = true, false
}

// kill ends the process, or cuts the power: then what was not synced may be lost.
func (m *machine) kill(power bool) {
	if m.inc == nil {
		if power {
			m.disk.lose(m.w)
		}
		return
	}
	m.w.note("%s dies", m.name())
	m.inc.end()
	m.paused = 0
	d := &m.disk
	d.written = append(d.written, d.saving[:m.w.rand.IntN(len(d.saving)+1)]...)
	d.saving = nil
	if power {
		d.lose(m.w)
	}
}

// lose forgets what a power cut takes: a suffix of the log that was not synced, and some of the last versions
// of the files.
func (d *disk) lose(w *world) {
	d.written = d.written[:w.rand.IntN(len(d.written)+1)]
	d.files = d.files[:1+w.rand.IntN(len(d.files))]
}

func (m *machine) bootAfter(d time.Duration) {
	m.boots++
	boots := m.boots
	m.w.after(d, func() {
		if m.inc == nil && !m.gone && m.boots == boots {
			m.boot()
		}
	})
}

// boot starts an incarnation with what the disk has, as disk.Open does.
func (m *machine) boot() {
	d := &m.disk
	installed := d.incoming != nil
	if installed {
		d.files = []version{*d.incoming}
	}
	files := d.files[len(d.files)-1]
	d.files = []version{files}
	for _, r := range d.written {
		d.log.write(r)
	}
	d.written = nil
	switch {
	case files.at.index < d.log.base.index,
		!installed && files.at.index > d.log.last(),
		!installed && d.log.term(files.at.index) != files.at.term:
		m.w.fail("%s: files at %v, log from %v to %d", m.name(), files.at, d.log.base, d.log.last())
		return
	case files.at.index > d.log.last() || d.log.term(files.at.index) != files.at.term:
		term, vote := d.log.hard.GetTerm(), d.log.hard.GetVote()
		if files.at.term > term {
			term, vote = files.at.term, 0
		}
		d.log = image{base: files.at, hard: &raftpb.HardState{Term: &term, Vote: &vote, Commit: &files.at.index}}
	}
	d.incoming = nil
	if hs := d.log.hard; hs.GetCommit() < files.at.index {
		d.log.hard = &raftpb.HardState{Term: new(max(hs.GetTerm(), files.at.term)), Vote: new(hs.GetVote()), Commit: &files.at.index}
	}
	m.inc = newIncarnation(m, files)
	m.w.note("%s boots with id %d at %v, log to %d", m.name(), m.id, files.at, d.log.last())
}

func (m *machine) memory() *raft.MemoryStorage {
	log := raft.NewMemoryStorage()
	d := &m.disk
	if d.log.base.index > 0 {
		_ = log.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &d.log.base.index, Term: &d.log.base.term}})
	}
	if !raft.IsEmptyHardState(d.log.hard) {
		_ = log.SetHardState(d.log.hard)
	}
	_ = log.Append(slices.Clone(d.log.entries))
	return log
}
