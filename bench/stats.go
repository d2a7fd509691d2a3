package main

import (
	"math"
	"slices"
)

// spread summarizes repeated measurements.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns the spread of values, NaN without values.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// ratioOf returns the ratio of the medians, ours to theirs, and the smallest and largest ratio of one
// round. The two samples of a round are neighbours in time and see the same machine.
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
