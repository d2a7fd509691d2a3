package admin

import (
	"fmt"
	"slices"
	"strings"

	"mayfly/commands/latency"
)

// latencyDoctor is the report of LATENCY DOCTOR.
func latencyDoctor(m *latency.Monitor) string {
	if m.Off() {
		return "Latency monitoring is off. Switch it on with CONFIG SET latency-monitor-threshold <milliseconds>.\n"
	}
	var out strings.Builder
	slow := map[string]bool{}
	m.Each(func(event string, s *latency.Series) {
		slow[event] = true
		average, deviation, period := summarize(s)
		fmt.Fprintf(&out, "%s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). Worst all time event %dms.\n",
			event, len(s.Samples), average, deviation, period, s.Worst)
	})
	if len(slow) == 0 {
		return "Nothing has taken longer than latency-monitor-threshold.\n"
	}
	if slow[latency.OfCommit] {
		out.WriteString("The disk is slow: check appendfsync and other writers.\n")
	}
	if slow[latency.OfCommand] || slow[latency.OfFast] {
		out.WriteString("Some commands are slow: SLOWLOG GET lists them, LATENCY HISTOGRAM shows how often.\n")
	}
	return out.String()
}

// summarize returns the mean of the samples and their mean deviation from it, in ms. period is the mean
// time between two samples in seconds.
func summarize(s *latency.Series) (average, deviation int64, period float64) {
	n := int64(len(s.Samples))
	for _, sample := range s.Samples {
		average += sample.Took
	}
	average /= n
	for _, sample := range s.Samples {
		deviation += max(sample.Took-average, average-sample.Took)
	}
	span := s.Samples[n-1].Second - s.Samples[0].Second
	return average, deviation / n, float64(span) / float64(max(n-1, 1))
}

// The size of a graph in characters. A character shows one of three heights.
const (
	graphColumns = 80
	graphRows    = 4
	graphLevels  = graphRows * len(graphMarks)
	graphMarks   = "_o#"
)

// latencyGraph draws the samples as columns, as Redis does, the oldest at the left. Below each column stands
// its age at the time now (seconds), top to bottom.
func latencyGraph(s *latency.Series, event string, now int64) string {
	low, high := s.Samples[0].Took, s.Samples[0].Took
	for _, sample := range s.Samples {
		low, high = min(low, sample.Took), max(high, sample.Took)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s - high %d ms, low %d ms (all time high %d ms)\n", event, high, low, s.Worst)
	out.WriteString(strings.Repeat("-", graphColumns) + "\n")
	first := true
	for samples := range slices.Chunk(s.Samples, graphColumns) {
		if !first {
			out.WriteByte('\n')
		}
		first = false
		heights, ages := make([]int, len(samples)), make([]string, len(samples))
		longest := 0
		for i, sample := range samples {
			height := (sample.Took - low) * int64(graphLevels) / max(high-low, 1)
			heights[i] = int(min(height, int64(graphLevels-1)))
			ages[i] = briefly(now - sample.Second)
			longest = max(longest, len(ages[i]))
		}
		for row := range graphRows {
			for _, height := range heights {
				out.WriteByte(graphMark(height - (graphRows-1-row)*len(graphMarks)))
			}
			out.WriteByte('\n')
		}
		out.WriteString(strings.Repeat(" ", len(samples)) + "\n")
		for row := range longest {
			for _, age := range ages {
				out.WriteByte((age + strings.Repeat(" ", longest))[row])
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// graphMark returns the character of a column in a row; height counts from the bottom of the row.
func graphMark(height int) byte {
	switch {
	case height < 0:
		return ' '
	case height < len(graphMarks):
		return graphMarks[height]
	}
	return '|'
}

// briefly formats seconds in the largest unit that fits.
func briefly(seconds int64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case seconds < minute:
		return fmt.Sprintf("%ds", seconds)
	case seconds < hour:
		return fmt.Sprintf("%dm", seconds/minute)
	case seconds < day:
		return fmt.Sprintf("%dh", seconds/hour)
	}
	return fmt.Sprintf("%dd", seconds/day)
}
