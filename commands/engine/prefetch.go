package engine

import "mayfly/keyspace"

// Lookahead collects the keys of commands that have arrived and not begun, as far as their first arguments
// tell, and the arguments behind them, which may be fields. [Engine.Prefetch] makes their look-up cheaper. It
// is a hint: a wrong one does no harm. The zero value is ready. Not safe for concurrent use.
type Lookahead struct {
	prefetcher keyspace.Prefetcher
	Lookups    []keyspace.Lookup
}

// LookaheadArgs is the number of a command's arguments that a Lookahead reads.
const LookaheadArgs = 3

// Add adds the key of a session's command. args are its first arguments, views that stay valid until
// Prefetch.
func (a *Lookahead) Add(s *Session, args []string) {
	r := s.findCached(args[0])
	if r == nil || r.Subcommands != nil || r.Stores || s.Multi.Open || r.Items.First == 0 || r.Items.First >= len(args) {
		return
	}
	look := keyspace.Lookup{Container: s.Database, ID: args[r.Items.First]}
	if next := r.Items.First + 1; next > 2 && !r.Counted {
		look.Container = args[1] // it precedes the ids
	} else if next < len(args) {
		look.Field = args[next]
	}
	a.Lookups = append(a.Lookups, look)
}

// WorthPrefetching reports whether prefetching pays: the items do not fit into the processor's cache.
func (e *Engine) WorthPrefetching() bool {
	ks := e.Keyspace()
	return ks != nil && ks.BeyondCache()
}

// Prefetch fetches the collected keys into the processor's cache and clears the Lookahead.
func (e *Engine) Prefetch(a *Lookahead) {
	if len(a.Lookups) > 1 { // a single fetch has nothing to overlap with
		a.prefetcher.Prefetch(e.Keyspace(), a.Lookups)
	}
	clear(a.Lookups)
	a.Lookups = a.Lookups[:0]
}
