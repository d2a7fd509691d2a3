package commands

import "mayfly/keyspace"

// A Lookahead is what commands that have arrived and not begun are going to look up, as far as it can be
// told from their first arguments. [Engine.Warm] makes that cheaper. It is advice only: a wrong one does
// no harm. Its zero value is ready. Not safe for concurrent use.
type Lookahead struct {
	prefetcher      keyspace.Prefetcher
	containers, ids []string
}

// LookaheadArgs is how many of a command's arguments a Lookahead has use for.
const LookaheadArgs = 3

// Add adds what a command of a session will look up. args are its first arguments, as views that stay
// valid until Warm.
func (a *Lookahead) Add(s *Session, args []string) {
	r := s.findCached(args[0])
	if r == nil || r.sub != nil || s.multi.open {
		return
	}
	switch first := r.items.First; {
	case first == 0 || first >= len(args):
	case first == 1:
		a.containers, a.ids = append(a.containers, s.database), append(a.ids, args[1])
	default: // what comes before the ids is their container
		a.containers, a.ids = append(a.containers, args[1]), append(a.ids, args[first])
	}
}

// WorthWarming tells whether a Lookahead is worth its while.
func (e *Engine) WorthPrefetching() bool { return e.Keyspace.BeyondCache() }

// Warm fetches from memory what the commands added will look up, and forgets them.
func (e *Engine) Prefetch(a *Lookahead) {
	if len(a.ids) > 1 { // for one there is nothing that could be done side by side
		a.prefetcher.Prefetch(e.Keyspace, a.containers, a.ids)
	}
	clear(a.containers)
	clear(a.ids)
	a.containers, a.ids = a.containers[:0], a.ids[:0]
}
