package commands

import (
	"fmt"
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
)

// parseLatencyGraph reads LATENCY GRAPH.
func parseLatencyGraph(in *Input) (Run, error) {
	event := in.Args[2]
	return func(x *Context) Reply {
		m := &x.Engine.Latency
		m.mu.Lock()
		defer m.mu.Unlock()
		s := m.events[event]
		if s == nil {
			return Fail(Error("ERR No samples available for event '" + cut(redisfmt.CString(event)) + "'"))
		}
		return Verbatim(s.graph(event, x.Now()/1000))
	}, nil
}

// The measures of a graph, in characters. A character shows one of three heights.
const (
	graphColumns = 80
	graphRows    = 4
	graphLevels  = graphRows * len(graphMarks)
	graphMarks   = "_o#"
)

// graph draws the samples as columns in the way Redis does, the oldest at the left; under each stands, from
// top to bottom, how long before the moment now (in seconds) it was taken.
func (s *latencySeries) graph(event string, now int64) string {
	least, most := s.samples[0].took, s.samples[0].took
	for _, sample := range s.samples {
		least, most = min(least, sample.took), max(most, sample.took)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s - high %d ms, low %d ms (all time high %d ms)\n", event, most, least, s.worst)
	out.WriteString(strings.Repeat("-", graphColumns) + "\n")
	first := true
	for samples := range slices.Chunk(s.samples, graphColumns) {
		if !first {
			out.WriteByte('\n')
		}
		first = false
		heights, ages := make([]int, len(samples)), make([]string, len(samples))
		longest := 0
		for i, sample := range samples {
			height := (sample.took - least) * int64(graphLevels) / max(most-least, 1)
			heights[i] = int(min(height, int64(graphLevels-1)))
			ages[i] = briefly(now - sample.second)
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

// graphMark is what a column of a graph shows in a row, height being counted from the row's foot.
func graphMark(height int) byte {
	switch {
	case height < 0:
		return ' '
	case height < len(graphMarks):
		return graphMarks[height]
	}
	return '|'
}

// briefly writes a number of seconds in the largest unit that it fills.
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
