package cluster

import (
	"fmt"
	"sync"

	"mayfly/cluster/core"
	"mayfly/expiry/clock"
	"mayfly/vfs"

	"go.etcd.io/raft/v3/raftpb"
)

// mostJoined is the number of bytes up to which the saver writes what waits in one go.
const mostJoined = 4 << 20

// raftLog is a [disk.Log] as the saver uses it.
type raftLog interface {
	Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error
	Compact(durable uint64, conf *raftpb.ConfState) error
}

// saver is the goroutine of an incarnation that writes the raft log, in the order of the loop. The loop goes
// on meanwhile: a slow disk delays no tick, and no heartbeat. What waits is bounded: a leader has one batch
// in flight, and the core of a follower takes a bounded number of bytes that are not applied.
type saver struct {
	log     raftLog
	send    func([]*raftpb.Message)
	saved   func(*core.Save)               // tells the loop
	install func(index, term uint64) error // decides that the next incarnation takes the stores that were received
	fail    func(error)                    // ends the incarnation
	stop    chan struct{}                  // closed when the incarnation ends

	mu      sync.Mutex // protects queue
	queue   []savings
	arrived chan struct{} // has room for one; something was added to the queue

	step vfs.Step // under way
}

// savings is a step of the saver: a Save, or a cut of the log.
type savings struct {
	save    *core.Save
	durable uint64
	conf    *raftpb.ConfState
}

// push adds a step. It never blocks.
func (s *saver) push(step savings) {
	s.mu.Lock()
	s.queue = append(s.queue, step)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// run saves until the incarnation ends, or until an error.
func (s *saver) run() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.arrived:
		}
		for step := s.next(); step != nil; step = s.next() {
			select {
			case <-s.stop:
				return
			default:
			}
			s.step.Begin(clock.Monotonic(), int64(step.size()))
			err := s.do(step)
			s.step.End()
			if err != nil {
				s.fail(err)
				return
			}
		}
	}
}

// next takes a step from the queue, with those joined that one write serves; nil: the queue is empty.
func (s *saver) next() *savings {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue = nil
		return nil
	}
	step := s.queue[0]
	s.queue = s.queue[1:]
	for size := step.size(); len(s.queue) > 0 && step.save != nil && s.queue[0].save != nil; {
		if size += s.queue[0].size(); size > mostJoined || !step.save.Join(s.queue[0].save) {
			break
		}
		s.queue = s.queue[1:]
	}
	return &step
}

func (s *savings) size() (bytes int) {
	if s.save != nil {
		for _, e := range s.save.Entries {
			bytes += len(e.GetData())
		}
	}
	return bytes
}

func (s *saver) do(step *savings) error {
	if step.save == nil {
		if err := s.log.Compact(step.durable, step.conf); err != nil {
			return fmt.Errorf("cutting the raft log: %w", err)
		}
		return nil
	}
	save := step.save
	meta := save.Snapshot.GetMetadata()
	if meta != nil {
		// Before the log: it can begin anew behind stores that it does not know, but not without those that
		// it knows.
		if err := s.install(meta.GetIndex(), meta.GetTerm()); err != nil {
			return err
		}
	}
	if err := s.log.Save(save.HardState, save.Entries, save.Snapshot); err != nil {
		return fmt.Errorf("saving the raft log: %w", err)
	}
	s.send(save.After)
	if meta != nil {
		return errInstall
	}
	s.saved(save)
	return nil
}
