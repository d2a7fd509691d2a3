package forming

import (
	"context"
	"testing"
)

func TestLeader(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	if name, _, known := g.formers["a"].Leader(t.Context()); known {
		t.Errorf("a node without a cluster knows the leader %q", name)
	}
	members := g.formAll("a", "b", "c")["a"].Members
	expect := func(what, want string) {
		t.Helper()
		name, list, known := g.formers["a"].Leader(t.Context())
		if name != want || known != (want != "") || known && len(list) != 3 {
			t.Errorf("%s: %q leads, members %v", what, name, list)
		}
	}
	expect("nobody takes part in raft", "")
	g.formers["b"].Serve(&fixedMembership{leader: "c", members: members})
	expect("b says that c leads", "c")
	g.formers["b"].Serve(&fixedMembership{leader: "a", members: members})
	expect("b says that this node leads", "")
	g.formers["c"].Serve(&fixedMembership{leader: "c", members: members})
	for range 10 { // whichever answers first
		g.formers["b"].Serve(&fixedMembership{leader: "c", members: members})
		expect("c says that it leads, and b too", "c")
	}
	g.formers["b"] = nil
	expect("b is down", "c")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, known := g.formers["a"].Leader(ctx); known {
		t.Error("it is known without a question")
	}
	stranger := g.formers["c"].Identity()
	stranger.Cluster++
	g.formers["c"].mu.Lock()
	g.formers["c"].identity = stranger
	g.formers["c"].mu.Unlock()
	expect("c belongs to another cluster", "")
}
