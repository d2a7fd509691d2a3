package latency

import (
	"testing"
	"time"
)

func TestLatencyKeepsTheNewest(t *testing.T) {
	t.Parallel()
	var m Monitor
	for second := range int64(2 * MaxSamples) {
		m.Record("e", second*1000, time.Second)
	}
	s := m.events["e"].Samples
	if len(s) != MaxSamples || s[0].Second != MaxSamples || s[len(s)-1].Second != 2*MaxSamples-1 {
		t.Errorf("%d samples, from %d to %d", len(s), s[0].Second, s[len(s)-1].Second)
	}
}
