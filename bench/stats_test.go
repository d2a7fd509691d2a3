package main

import (
	"math"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{5, 1, 3}, spread{3, 1, 5}},
		{[]float64{4, 1, 2, 100}, spread{3, 1, 100}},
	} {
		if got := spreadOf(tt.values); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.values, got, tt.want)
		}
	}
	if got := spreadOf(nil); !math.IsNaN(got.Median) || !math.IsNaN(got.Min) || !math.IsNaN(got.Max) {
		t.Errorf("of nothing: %v", got)
	}
	values := []float64{2, 1}
	spreadOf(values)
	if values[0] != 2 {
		t.Error("the samples were sorted: they are no longer those of their rounds")
	}
}

func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		name         string
		ours, theirs []float64
		want         spread
	}{
		{"of the medians, between rounds", []float64{10, 20, 30}, []float64{10, 10, 10}, spread{2, 1, 3}},
		{"a slow machine slows both", []float64{10, 5, 10}, []float64{20, 10, 20}, spread{0.5, 0.5, 0.5}},
		{"the medians are of different rounds", []float64{1, 2, 9}, []float64{3, 4, 1}, spread{2.0 / 3, 1.0 / 3, 9}},
		{"the medians' ratio is outside those of the rounds", []float64{1, 2, 3}, []float64{2, 3, 1}, spread{1, 0.5, 3}},
	} {
		if got := ratioOf(tt.ours, tt.theirs); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := ratioOf([]float64{1}, nil); !math.IsNaN(got.Median) {
		t.Errorf("with nothing to compare: %v", got)
	}
}

func TestHistogram(t *testing.T) {
	a, b := newHistogram(), newHistogram()
	for i := range 1000 {
		h := a
		if i%2 == 1 {
			h = b
		}
		if err := h.RecordValue(int64(time.Duration(i+1) * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if dropped := a.Merge(b); dropped != 0 || a.TotalCount() != 1000 {
		t.Errorf("%d dropped, %d there", dropped, a.TotalCount())
	}
	for p, want := range map[float64]time.Duration{50: 500 * time.Millisecond, 99: 990 * time.Millisecond, 99.9: 999 * time.Millisecond} {
		if got := time.Duration(a.ValueAtPercentile(p)); got < want || got > want+want/500 {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, tt := range []struct {
		unit  unit
		value float64
		want  string
	}{
		{perSecond, 999, "999 /s"}, {perSecond, 81234, "81.2 k/s"}, {perSecond, 1.05e6, "1.05 M/s"},
		{seconds, 0.0000123, "12.3 µs"}, {seconds, 0.0456, "45.6 ms"}, {seconds, 2, "2.00 s"}, {seconds, 0, "0 µs"},
		{share, 0.0712, "7.12 %"}, {bytesEach, 462, "462 B"}, {times, 1.5, "1.50 x"}, {seconds, math.NaN(), "–"},
	} {
		if got := tt.unit.format(tt.value); got != tt.want {
			t.Errorf("%v %s: %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
}
