package engine

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// latencyTracking are the options latency-tracking and latency-tracking-info-percentiles. The zero value
// tracks, with the percentiles of Redis. Safe for concurrent use.
type latencyTracking struct {
	off         atomic.Bool
	percentiles atomic.Pointer[[]float64] // nil: defaultPercentiles
}

var defaultPercentiles = []float64{50, 99, 99.9}

// SetLatencyTracking says whether the durations of commands are counted, for INFO latencystats and LATENCY
// HISTOGRAM. Durations that were counted stay until CONFIG RESETSTAT.
func (e *Engine) SetLatencyTracking(on bool) { e.Stats.latency.off.Store(!on) }

// SetLatencyPercentiles sets the percentiles, 0 to 100, that INFO latencystats shows in this order.
func (e *Engine) SetLatencyPercentiles(percentiles []float64) {
	list := slices.Clone(percentiles)
	e.Stats.latency.percentiles.Store(&list)
}

// LatencyPercentiles returns the percentiles of SetLatencyPercentiles. on is false while durations are not
// counted.
func (e *Engine) LatencyPercentiles() (percentiles []float64, on bool) {
	percentiles = defaultPercentiles
	if p := e.Stats.latency.percentiles.Load(); p != nil {
		percentiles = *p
	}
	return percentiles, !e.Stats.latency.off.Load()
}

// FormatPercentile formats a percentile as Redis does: six decimals without trailing zeros.
func FormatPercentile(p float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(p, 'f', 6, 64), "0"), ".")
}
