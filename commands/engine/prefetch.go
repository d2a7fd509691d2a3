package engine

import "mayfly/keyspace"

// Lookahead collects the keys of commands that have arrived and not begun, as far as their first
// arguments tell. [Engine.Prefetch] makes their look-up cheaper. It is a hint: a wrong one does no harm.
// The zero value is ready. Not safe for concurrent use.
type Lookahead struct {
	prefetcher      keyspace.Prefetcher
	Containers, IDs []string
}

// LookaheadArgs is the number of a command's arguments that a Lookahead reads.
const LookaheadArgs = 3

// Add adds the key of a session's command. args are its first arguments, views that stay valid until
// Prefetch.
func (a *Lookahead) Add(s *Session, args []string) {
	r := s.findCached(args[0])
	if r == nil || r.Subcommands != nil || s.Multi.Open {
		return
	}
	switch first := r.Items.First; {
	case first == 0 || first >= len(args) || r.Stores:
	case first == 1, r.Counted:
		a.Containers, a.IDs = append(a.Containers, s.Database), append(a.IDs, args[first])
	default: // the container precedes the ids
		a.Containers, a.IDs = append(a.Containers, args[1]), append(a.IDs, args[first])
	}
}

// WorthPrefetching reports whether prefetching pays: the items do not fit into the processor's cache.
func (e *Engine) WorthPrefetching() bool {
	ks := e.Keyspace()
	return ks != nil && ks.BeyondCache()
}

// Prefetch fetches the collected keys into the processor's cache and clears the Lookahead.
func (e *Engine) Prefetch(a *Lookahead) {
	if len(a.IDs) > 1 { // a single fetch has nothing to overlap with
		a.prefetcher.Prefetch(e.Keyspace(), a.Containers, a.IDs)
	}
	clear(a.Containers)
	clear(a.IDs)
	a.Containers, a.IDs = a.Containers[:0], a.IDs[:0]
}
