package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// members returns the elements of a reply, sorted, those of long lists too.
func members(r engine.Reply) (list []string) {
	for _, e := range flat(r) {
		list = append(list, e.Str)
	}
	slices.Sort(list)
	return list
}

// TestSetsBesideMaps plays random commands on sets of all sizes and compares them with maps.
func TestSetsBesideMaps(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 6, 300, func(t *testing.T, seed uint64) {
		w, r := newHarness(t), rand.New(rand.NewPCG(seed, 3))
		sets := map[string]map[string]bool{"a": {}, "b": {}, "c": {}}
		names := []string{"a", "b", "c"}
		expect := func(want int, args ...string) {
			t.Helper()
			w.expect(fmt.Sprintf("(integer) %d", want), args...)
		}
		for range 80 {
			name := names[r.IntN(3)]
			set, other := sets[name], sets[names[r.IntN(3)]]
			switch r.IntN(8) {
			case 0, 1, 2:
				args, added := []string{"SADD", name}, 0
				for range 1 + r.IntN([]int{5, 500, 5000}[r.IntN(3)]) {
					m := fmt.Sprint("member", r.IntN(20_000))
					if args = append(args, m); !set[m] {
						set[m] = true
						added++
					}
				}
				expect(added, args...)
			case 3:
				count := r.IntN(2 + len(set) + len(set)/4)
				popped := members(w.do(1, "SPOP", name, fmt.Sprint(count)))
				if len(popped) != min(count, len(set)) {
					t.Fatalf("SPOP %d of %d returns %d", count, len(set), len(popped))
				}
				for _, m := range popped {
					if !set[m] {
						t.Fatalf("SPOP returns %q, which is none or comes twice", m)
					}
					delete(set, m)
				}
			case 4, 5:
				a, b := names[r.IntN(3)], names[r.IntN(3)]
				got := map[string]bool{}
				command := []string{"SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"}[r.IntN(3)]
				for m := range sets[a] {
					if command == "SUNIONSTORE" || sets[b][m] == (command == "SINTERSTORE") {
						got[m] = true
					}
				}
				for m := range sets[b] {
					if command == "SUNIONSTORE" {
						got[m] = true
					}
				}
				if got2 := members(w.do(1, command[:len(command)-len("STORE")], a, b)); len(got2) != len(got) {
					t.Fatalf("%s has %d members without STORE, want %d", command, len(got2), len(got))
				}
				expect(len(got), command, name, a, b)
				sets[name] = got
			case 6:
				args, removed := []string{"SREM", name}, 0
				for range 1 + r.IntN([]int{1, 500, 5000}[r.IntN(3)]) {
					m := fmt.Sprint("member", r.IntN(20_000))
					if args = append(args, m); set[m] {
						delete(set, m)
						removed++
					}
				}
				expect(removed, args...)
			case 7:
				count := r.IntN(2 + len(other))
				if got := slices.Compact(members(w.do(1, "SRANDMEMBER", name, fmt.Sprint(count)))); len(got) != min(count, len(set)) {
					t.Fatalf("SRANDMEMBER %d of %d returns %d different ones", count, len(set), len(got))
				}
			}
			for name, set := range sets {
				expect(len(set), "SCARD", name)
				got := members(w.do(1, "SMEMBERS", name))
				if len(got) != len(set) {
					t.Fatalf("%s has %d members, want %d", name, len(got), len(set))
				}
				for _, m := range got {
					if !set[m] {
						t.Fatalf("%s has %q", name, m)
					}
				}
			}
		}
	})
}

// TestScansOutliveManyChanges scans collections while commands with many members remove and add others, page
// by page or by making all anew: what stays throughout is visited once.
func TestScansOutliveManyChanges(t *testing.T) {
	t.Parallel()
	const stays, others = 500, 600
	for _, c := range []struct {
		scan, add string
		scored    bool
		remove    []string // and the others, if they are not scored
	}{
		{"SSCAN", "SADD", false, []string{"SREM", "k"}},
		{"ZSCAN", "ZADD", true, []string{"ZREMRANGEBYRANK", "k", fmt.Sprint(stays), "-1"}},
	} {
		w := newHarness(t)
		first, again, remove := []string{c.add, "k"}, []string{c.add, "k"}, c.remove
		for n := range stays + others {
			m := []string{fmt.Sprint("member", n)}
			if c.scored {
				m = []string{fmt.Sprint(n), m[0]}
			}
			if first = append(first, m...); n >= stays {
				if again = append(again, m...); !c.scored {
					remove = append(remove, m...)
				}
			}
		}
		w.expect(fmt.Sprintf("(integer) %d", stays+others), first...)
		visits := map[string]int{}
		cursor, steps := "0", 0
		for {
			reply := w.do(1, c.scan, "k", cursor, "COUNT", "10")
			for _, m := range members(reply.Elems[1]) {
				visits[m]++
			}
			if cursor = strings.Clone(reply.Elems[0].Str); cursor == "0" {
				break
			}
			w.expect(fmt.Sprintf("(integer) %d", others), [][]string{remove, again}[steps%2]...)
			steps++
		}
		if steps < 20 {
			t.Errorf("%s has %d steps", c.scan, steps)
		}
		for n := range stays {
			if m := fmt.Sprint("member", n); visits[m] != 1 {
				t.Errorf("%s visits %s %d times", c.scan, m, visits[m])
			}
		}
	}
}

// TestRandomMembersAreUniform draws from a set of short members, of which pages have many, and with half of
// its pages split: each has the same chance.
func TestRandomMembersAreUniform(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const size = 3000
	args := []string{"SADD", "s"}
	for n := range size {
		args = append(args, fmt.Sprint(n))
	}
	w.expect(fmt.Sprintf("(integer) %d", size), args...)
	draws := drill.Pick(60, 60, 3000) * size
	counts := map[string]int{}
	for range draws / size {
		for _, m := range members(w.do(1, "SRANDMEMBER", "s", fmt.Sprint(-size))) {
			counts[m]++
		}
	}
	mean, sum := float64(draws)/size, 0.0
	for n := range size {
		d := float64(counts[fmt.Sprint(n)]) - mean
		sum += d * d / mean
	}
	// Chi-square with size-1 degrees of freedom has a deviation of sqrt(2 size), about 77.
	if sum > size+10*77 {
		t.Errorf("chi-square is %.0f, want about %d", sum, size)
	}
}

// The rank of no member is a null, with its score a null array, which are not the same in RESP2.
func TestRankOfNoMember(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("(integer) 1", "ZADD", "z", "1", "a")
	for _, command := range []string{"ZRANK", "ZREVRANK"} {
		for _, key := range []string{"z", "none"} {
			if r := w.do(1, command, key, "b"); r.Kind != engine.KindNull {
				t.Errorf("%s %s: %v", command, key, r.Kind)
			}
			if r := w.do(1, command, key, "b", "WITHSCORE"); r.Kind != engine.KindNullArray {
				t.Errorf("%s %s WITHSCORE: %v", command, key, r.Kind)
			}
		}
	}
}
