package engine

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The events of the latency monitor, with the names of Redis.
const (
	LatencyOfCommand = "command"      // commands without the flag Fast
	LatencyOfFast    = "fast-command" // commands of constant or logarithmic time
	LatencyOfCommit  = "aof-write"    // waits of replies for their commit
)

// LatencyMonitor keeps samples of events that took at least latency-monitor-threshold. The zero value is
// off. Safe for concurrent use.
type LatencyMonitor struct {
	threshold

	mu     sync.Mutex // protects events
	events map[string]*LatencySeries
}

// LatencySeries are the newest samples of an event, at most one a second, the longest.
type LatencySeries struct {
	Samples []latencySample // the oldest first
	Worst   int64           // of all since the last reset, ms
}

type latencySample struct {
	Second int64 // since 1970
	Took   int64 // ms
}

const MaxLatencySamples = 160 // as in Redis

// SetThreshold sets the shortest duration that is recorded; 0 records nothing.
func (m *LatencyMonitor) SetThreshold(limit time.Duration) { m.shortest.Store(int64(limit)) }

// Record adds a sample; now is in ms.
func (m *LatencyMonitor) Record(event string, now int64, duration time.Duration) {
	second, took := now/1000, duration.Milliseconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.events[event]
	if s == nil {
		s = new(LatencySeries)
		if m.events == nil {
			m.events = make(map[string]*LatencySeries)
		}
		m.events[event] = s
	}
	s.Worst = max(s.Worst, took)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].Second == second {
		s.Samples[n-1].Took = max(s.Samples[n-1].Took, took)
		return
	}
	if len(s.Samples) == MaxLatencySamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, latencySample{second, took})
}

// Reset drops the samples of the events, of all if none is named. It returns the number of events that
// had samples.
func (m *LatencyMonitor) Reset(events []string) int {
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
func (m *LatencyMonitor) Each(visit func(event string, s *LatencySeries)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range slices.Sorted(maps.Keys(m.events)) {
		visit(event, m.events[event])
	}
}

// Of reads the samples of an event; nil: there are none.
func (m *LatencyMonitor) Of(event string, read func(s *LatencySeries)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	read(m.events[event])
}
