package engine

import (
	"testing"
	"time"
)

func TestLatencyKeepsTheNewest(t *testing.T) {
	t.Parallel()
	var m LatencyMonitor
	for second := range int64(2 * MaxLatencySamples) {
		m.Record("e", second*1000, time.Second)
	}
	s := m.events["e"].Samples
	if len(s) != MaxLatencySamples || s[0].Second != MaxLatencySamples || s[len(s)-1].Second != 2*MaxLatencySamples-1 {
		t.Errorf("%d samples, from %d to %d", len(s), s[0].Second, s[len(s)-1].Second)
	}
}
