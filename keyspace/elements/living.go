package elements

import "slices"

// Living is the members of an order that live. Ranks begin with 0.
type Living struct {
	order *Order
	dead  []int // their ranks in the order, ascending
}

// LivingOf returns the members of an order but the dead.
func LivingOf(o *Order, dead []Element) Living {
	s := Living{order: o}
	for _, e := range dead {
		s.dead = append(s.dead, o.RankOf(ScoredOf(e)))
	}
	slices.Sort(s.dead)
	return s
}

// Snapshot returns the same for use without locks, which does not change. It takes constant time.
func (s Living) Snapshot() Living { return Living{s.order.Copy(), s.dead} }

// Len returns the number of members.
func (s *Living) Len() int { return s.order.Len() - len(s.dead) }

// Rank returns how many members come before the first for which from holds. It holds for all that follow
// that.
func (s *Living) Rank(from func(Scored) bool) int {
	return s.without(s.order.Rank(from))
}

// RankOf returns how many members come before one.
func (s *Living) RankOf(member Scored) int { return s.without(s.order.RankOf(member)) }

// without returns a rank among the members that live, of one among all.
func (s *Living) without(rank int) int {
	dead, _ := slices.BinarySearch(s.dead, rank)
	return rank - dead
}

// At returns the member of a rank. There must be one.
func (s *Living) At(rank int) Scored { return s.order.At(s.place(rank)) }

// place returns a rank among all members, of one among those that live.
func (s *Living) place(rank int) int {
	for _, dead := range s.dead {
		if dead > rank {
			break
		}
		rank++
	}
	return rank
}

// Range yields the members of the ranks from one up to below another, or the same backwards.
func (s *Living) Range(from, to int, backwards bool) func(yield func(Scored) bool) {
	first, walk, step := from, s.order.Ascend, 1
	if backwards {
		first, walk, step = to-1, s.order.Descend, -1
	}
	return func(yield func(Scored) bool) {
		left := to - from
		if left <= 0 {
			return
		}
		place := s.place(first)
		for e := range walk(place) {
			if _, dead := slices.BinarySearch(s.dead, place); !dead {
				if left--; !yield(e) || left == 0 {
					return
				}
			}
			place += step
		}
	}
}
