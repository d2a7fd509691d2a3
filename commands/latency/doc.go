// Package latency keeps how long things take: distributions of durations, samples of slow events, and the
// slow commands.
package latency
