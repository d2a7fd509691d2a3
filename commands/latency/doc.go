// Package latency keeps how long things take: distributions of durations, and samples of slow events.
package latency
