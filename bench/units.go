package main

import (
	"fmt"
	"math"
)

// unit is the unit of a figure.
type unit string

const (
	perSecond unit = "/s"
	seconds   unit = "s"
	bytesEach unit = "B"
	share     unit = "%"
	times     unit = "x"
)

// format renders a value with three digits.
func (u unit) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == perSecond && v >= 1e6:
		return digits(v/1e6) + " M/s"
	case u == perSecond && v >= 1e3:
		return digits(v/1e3) + " k/s"
	case u == seconds && v < 1e-3:
		return digits(v*1e6) + " µs"
	case u == seconds && v < 1:
		return digits(v*1e3) + " ms"
	case u == share:
		return digits(v*100) + " %"
	}
	return digits(v) + " " + string(u)
}

// digits renders a number with three significant digits, or with all before the point.
func digits(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.01:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// formatSpread renders a median with the smallest and the largest value.
func (u unit) formatSpread(s spread) string {
	return u.format(s.Median) + " (" + u.format(s.Min) + " – " + u.format(s.Max) + ")"
}
