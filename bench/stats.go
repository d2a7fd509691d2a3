package main

import (
	"math"
	"slices"
)

// spread is what repeated measurements of the same came to.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf gives the spread of values, NaN if there are none.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// ratioOf compares ours with theirs: the ratio of the medians, and the smallest and the largest ratio
// of two that were measured one after the other, while the machine was in the same mood.
func ratioOf(ours, theirs []float64) spread {
	pairs := make([]float64, min(len(ours), len(theirs)))
	for i := range pairs {
		pairs[i] = ours[i] / theirs[i]
	}
	s := spreadOf(pairs)
	s.Median = spreadOf(ours).Median / spreadOf(theirs).Median
	// The ratio of the medians need not lie between the ratios of the pairs.
	s.Min, s.Max = min(s.Min, s.Median), max(s.Max, s.Median)
	return s
}
