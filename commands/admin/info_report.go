package admin

import (
	"fmt"

	"mayfly/commands/engine"
	"mayfly/keyspace"
)

// InfoField is a line of INFO.
type InfoField struct {
	Name  string
	Value any
}

// InfoReport is a reply of INFO under construction. Fields have the names and units of Redis where Redis
// has them. Figures that do not exist here are left out.
type InfoReport struct {
	X             *engine.Context
	Host          engine.ServerInfo
	Loaded        bool // a keyspace is open
	KeyspaceStats keyspace.Stats
	Fields        []InfoField

	containerStats []*keyspace.ContainerStats // valid if hasStats; see ReadContainerStats
	OldestDeath    int64                      // likewise, ms; now if nothing is dead
	hasStats       bool
}

func newInfoReport(x *engine.Context) *InfoReport {
	return &InfoReport{
		X: x, Host: x.Engine.Host.Info(), KeyspaceStats: x.Engine.KeyspaceStats(), Loaded: x.Session.Service != engine.ServeDetached,
	}
}

// Field writes a field.
func (r *InfoReport) Field(name string, value any) {
	r.Fields = append(r.Fields, InfoField{name, value})
}

// Fieldf writes a formatted field.
func (r *InfoReport) Fieldf(name, format string, parts ...any) {
	r.Field(name, fmt.Sprintf(format, parts...))
}

// BytesField writes an amount of memory twice, in bytes and readable.
func (r *InfoReport) BytesField(name string, n uint64) {
	r.Field(name, n)
	r.Field(name+"_human", humanBytes(n))
}

// FlagField writes 1 or 0.
func (r *InfoReport) FlagField(name string, on bool) { r.Field(name, engine.Flag(on).Int) }

// PercentField writes a share as a percentage, as Redis does.
func (r *InfoReport) PercentField(name string, share float64) {
	r.Field(name, fmt.Sprintf("%.2f%%", 100*share))
}

// StatusField writes ok, or err if failure is not empty.
func (r *InfoReport) StatusField(name, failure string) {
	if failure != "" {
		r.Field(name, "err")
	} else {
		r.Field(name, "ok")
	}
}

// ErrorField writes the text of an error on one line; empty if there is none.
func (r *InfoReport) ErrorField(name, failure string) { r.Field(name, engine.OneLine.Replace(failure)) }

// ReadContainerStats returns the statistics of all containers, read once for all sections.
func (r *InfoReport) ReadContainerStats() []*keyspace.ContainerStats {
	if !r.hasStats {
		r.hasStats = true
		r.containerStats, r.OldestDeath = r.X.Tx.AllStats()
	}
	return r.containerStats
}

// humanBytes formats an amount as Redis' bytesToHuman does.
func humanBytes(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f, unit := float64(n), -1
	for f >= 1024 && unit < len("KMGTP")-1 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%c", f, "KMGTP"[unit])
}
