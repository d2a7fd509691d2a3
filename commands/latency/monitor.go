package latency

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The events of the latency monitor, with the names of Redis.
const (
	OfCommand = "command"      // commands without the flag Fast
	OfFast    = "fast-command" // commands of constant or logarithmic time
	OfCommit  = "aof-write"    // waits of replies for their commit
)

// Monitor keeps samples of events that took at least latency-monitor-threshold. The zero value is
// off. Safe for concurrent use.
type Monitor struct {
	Threshold

	mu     sync.Mutex // protects events
	events map[string]*Series
}

// Series are the newest samples of an event, at most one a second, the longest.
type Series struct {
	Samples []sample // the oldest first
	Worst   int64    // of all since the last reset, ms
}

type sample struct {
	Second int64 // since 1970
	Took   int64 // ms
}

const MaxSamples = 160 // as in Redis

// SetThreshold sets the shortest duration that is recorded; 0 records nothing.
func (m *Monitor) SetThreshold(limit time.Duration) { m.Shortest.Store(int64(limit)) }

// Record adds a sample; now is in ms.
func (m *Monitor) Record(event string, now int64, duration time.Duration) {
	second, took := now/1000, duration.Milliseconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.events[event]
	if s == nil {
		s = new(Series)
		if m.events == nil {
			m.events = make(map[string]*Series)
		}
		m.events[event] = s
	}
	s.Worst = max(s.Worst, took)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].Second == second {
		s.Samples[n-1].Took = max(s.Samples[n-1].Took, took)
		return
	}
	if len(s.Samples) == MaxSamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, sample{second, took})
}

// Reset drops the samples of the events, of all if none is named. It returns the number of events that
// had samples.
func (m *Monitor) Reset(events []string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := len(m.events)
	if len(events) == 0 {
		clear(m.events)
	}
	for _, event := range events {
		delete(m.events, event)
	}
	return had - len(m.events)
}

// Each visits the events with samples, sorted by name.
func (m *Monitor) Each(visit func(event string, s *Series)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range slices.Sorted(maps.Keys(m.events)) {
		visit(event, m.events[event])
	}
}

// Of reads the samples of an event; nil: there are none.
func (m *Monitor) Of(event string, read func(s *Series)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	read(m.events[event])
}

// Threshold is the shortest duration that a log records. The zero value records nothing.
type Threshold struct{ Shortest atomic.Int64 } // ns; 0: none

// Off reports whether nothing is recorded.
func (t *Threshold) Off() bool { return t.Shortest.Load() == 0 }

// Exceeds reports whether a duration is recorded.
func (t *Threshold) Exceeds(took time.Duration) bool {
	shortest := t.Shortest.Load()
	return shortest > 0 && int64(took) >= shortest
}
