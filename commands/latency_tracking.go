package commands

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
func (e *Engine) SetLatencyTracking(on bool) { e.stats.latency.off.Store(!on) }

// SetLatencyPercentiles sets the percentiles, 0 to 100, that INFO latencystats shows in this order.
func (e *Engine) SetLatencyPercentiles(percentiles []float64) {
	list := slices.Clone(percentiles)
	e.stats.latency.percentiles.Store(&list)
}

// latencyStatsSection writes nothing while latency-tracking is off, as Redis does.
func (r *infoReport) latencyStatsSection() {
	tracking := &r.x.Engine.stats.latency
	if tracking.off.Load() {
		return
	}
	percentiles := defaultPercentiles
	if p := tracking.percentiles.Load(); p != nil {
		percentiles = *p
	}
	for _, c := range r.x.Engine.CommandStats() {
		if c.Durations.Count > 0 {
			r.field("latency_percentiles_usec_"+c.Name, c.Durations.describe(percentiles))
		}
	}
}

// describe returns percentiles in µs, "p50=1.007,p99.9=12.031".
func (h *Histogram) describe(percentiles []float64) string {
	var out strings.Builder
	for i, p := range percentiles {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("p" + FormatPercentile(p) + "=")
		out.WriteString(strconv.FormatFloat(microseconds(h.Percentile(p)), 'f', 3, 64))
	}
	return out.String()
}

// FormatPercentile formats a percentile as Redis does: six decimals without trailing zeros.
func FormatPercentile(p float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(p, 'f', 6, 64), "0"), ".")
}
