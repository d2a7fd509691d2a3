package topology

import "testing"

// Clients that ask a node without a leader are sent elsewhere if there is another node.
func TestMaster(t *testing.T) {
	t.Parallel()
	all := []Member{{Name: "a", Client: "h:1", Active: true, Self: true}, {Name: "b"}, {Name: "c", Client: "h:3"}, {Name: "d", Client: "h:4", Active: true}}
	for _, tt := range []struct {
		what         string
		members      []Member
		leader, last string
		want         string
	}{
		{"the leader", all, "b", "c", "b"},
		{"this node leads", all, "a", "c", "a"},
		{"the last leader", all, "", "c", "c"},
		{"the last leader was removed", all, "", "x", "d"},
		{"none was known", all, "", "", "d"},
		{"none is up", all[:3], "", "", "c"},
		{"no address is known", all[:2], "", "", "b"},
		{"no other node", all[:1], "", "", "a"},
		{"no members", nil, "", "", ""},
	} {
		v := &View{Members: tt.members, Last: tt.last}
		v.Leader = v.Member(tt.leader)
		got := ""
		if m := v.Master(); m != nil {
			got = m.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
