package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"mayfly/tools/chart"
)

// Growth: the same reads and writes with more and more documents, mayfly alone. From some size on the
// table exceeds the processor's caches, trees become higher, and checkpoints have more to write.

// growthSizes are the numbers of documents; -quick leaves out the large ones.
var growthSizes = []int{10_000, 100_000, 1_000_000, 10_000_000}

const (
	// growthDepth is the depth of the pipelines. At depth 1 the network hides the differences.
	growthDepth = 16
	// growthSlack is the largest share by which throughput may differ from that with the fewest documents,
	// and by which memory a document may differ. Memory counts from growthMemoryFrom documents on: below, the
	// memory of the process itself hides it.
	growthSlack      = 0.25
	growthMemoryFrom = 100_000
	// Upper bounds in bytes a document, to find out beforehand whether a size fits.
	growthMemory, growthDisk = 1500, 1500
)

// growthResult holds the figures of one size.
type growthResult struct {
	documents int
	leftOut   string // why the size was not measured; empty if it was
	get, put  spread // requests a second
	memory    float64
	perSecond float64 // documents loaded
}

func benchGrowth(ctx context.Context, o options) error {
	var all []growthResult
	for _, n := range growthSizes {
		if o.quick && n > o.ids() {
			all = append(all, growthResult{documents: n, leftOut: "the run is a quick one"})
			continue
		}
		statusOf(ctx).next("%s documents", chart.Count(int64(n)))
		g, err := measureGrowth(ctx, o, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			g.leftOut, _, _ = strings.Cut(err.Error(), "\n")
		}
		all = append(all, g)
	}
	return o.publish(ctx, "growth", growthMarkdown(all))
}

// measureGrowth measures with n documents.
func measureGrowth(ctx context.Context, o options, n int) (growthResult, error) {
	g := growthResult{documents: n}
	if g.leftOut = roomFor(ctx, n); g.leftOut != "" {
		return g, nil
	}
	s, err := mayflyKind.start(ctx, o)
	if err != nil {
		return g, err
	}
	defer s.remove()
	empty, err := s.rss()
	if err != nil {
		return g, err
	}
	began := time.Now()
	if err := s.fill(ctx, mayflyKind, n, longTTL); err != nil {
		return g, err
	}
	g.perSecond = float64(n) / time.Since(began).Seconds()
	each := func() float64 {
		rss, failure := s.rss()
		if err == nil {
			err = failure
		}
		return (rss - empty) / float64(n)
	}
	var failure error
	if g.memory, failure = s.settle(ctx, each, o.span(5*time.Second)); err != nil || failure != nil {
		return g, fmt.Errorf("memory: %w", errors.Join(err, failure))
	}
	var gets, puts []float64
	for range o.rounds() {
		for _, m := range []struct {
			command  []string
			requests int
			into     *[]float64
		}{{docGet, 400_000, &gets}, {docPut, 250_000, &puts}} {
			if err := quiet(ctx, s); err != nil {
				return g, err
			}
			perSecond, _, err := throughput(ctx, s, growthDepth, o.scale(m.requests), n, m.command)
			if err != nil {
				return g, err
			}
			*m.into = append(*m.into, perSecond)
		}
	}
	g.get, g.put = spreadOf(gets), spreadOf(puts)
	return g, nil
}

// roomFor returns why memory or disk do not suffice for n documents, "" if they do.
func roomFor(ctx context.Context, n int) string {
	var kib float64
	if _, err := fmt.Sscanf(firstField("/proc/meminfo", "MemAvailable", ""), "%f kB", &kib); err == nil {
		if need := float64(n) * growthMemory; kib*1024 < need {
			return fmt.Sprintf("only %.1f GB of memory are free, %.1f may be needed", kib*1024/1e9, need/1e9)
		}
	}
	free := strings.Fields(output(ctx, "df", "--output=avail", "-B1", os.TempDir()))
	if len(free) > 0 {
		bytes, err := strconv.ParseFloat(free[len(free)-1], 64)
		if need := float64(n) * growthDisk; err == nil && bytes < need {
			return fmt.Sprintf("only %.1f GB of disk are free, %.1f may be needed", bytes/1e9, need/1e9)
		}
	}
	return ""
}

// growthMarkdown renders the section.
func growthMarkdown(all []growthResult) string {
	page := fmt.Sprintf("## Growth\n\nDocuments of %d bytes in a container with a default TTL, reads and writes of any of them by redis-benchmark at depth %d, "+
		"%d connections, mayfly alone; medians, smallest and largest in parentheses. In percent: of the median with the fewest documents.\n\n",
		bodySize, growthDepth, connections)
	percent := func(s, of spread) string {
		return fmt.Sprintf("%s, %.0f %%", perSecond.formatSpread(s), 100*s.Median/of.Median)
	}
	var rows [][]string
	var first *growthResult
	lowest, smallest, largest := 1.0, math.Inf(1), 0.0
	for i := range all {
		g := &all[i]
		if g.leftOut != "" {
			rows = append(rows, []string{fmt.Sprint(g.documents), "left out: " + g.leftOut, "", "", ""})
			continue
		}
		if first == nil {
			first = g
		}
		lowest = slices.Min([]float64{lowest, g.get.Median / first.get.Median, g.put.Median / first.put.Median})
		if g.documents >= growthMemoryFrom {
			smallest, largest = min(smallest, g.memory), max(largest, g.memory)
		}
		rows = append(rows, []string{
			fmt.Sprint(g.documents), percent(g.get, first.get), percent(g.put, first.put),
			bytesEach.format(g.memory), perSecond.format(g.perSecond),
		})
	}
	page += table([]string{"documents", "DOC.GET", "DOC.PUT", "memory a document", "loaded"}, rows)
	if first == nil {
		return page
	}
	page += fmt.Sprintf("\nTarget: throughput within %.0f %% of that with the fewest: %s.", 100*growthSlack, withinSlack(lowest))
	if largest > 0 {
		page += fmt.Sprintf(" Memory a document the same within %.0f %% from %d documents on: %s.",
			100*growthSlack, growthMemoryFrom, withinSlack(2-largest/smallest))
	}
	return page + "\n"
}

// withinSlack returns the verdict on the smallest share that was kept.
func withinSlack(kept float64) string {
	if kept >= 1-growthSlack {
		return fmt.Sprintf("met, the largest difference is %.0f %%", 100*(1-kept))
	}
	return fmt.Sprintf("**missed**, the largest difference is %.0f %%", 100*(1-kept))
}
