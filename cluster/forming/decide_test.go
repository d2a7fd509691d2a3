package forming

import (
	"strings"
	"testing"
)

// Nodes of the tests. Their ids in cluster X are 1, 2, 3, in others 10 and more.
var abc = []Peer{{"a", "h1:1"}, {"b", "h2:1"}, {"c", "h3:1"}}

const (
	clusterX = 0xaaaa
	clusterY = 0xbbbb
)

func membersABC(base uint64) (members []Member) {
	for i, p := range abc {
		members = append(members, Member{Name: p.Name, ID: base + uint64(i), Addr: p.Addr})
	}
	return members
}

// state makes a node from words: its name, then "data", "prepared:X:founder", "withdata", "formed:X:founder",
// "joining:X", "lost:X", "leads", "serves", "peers=ab", "partitions:4".
func state(t *testing.T, text string) *hello {
	t.Helper()
	words := strings.Fields(text)
	h := &hello{Name: words[0], Peers: abc}
	cluster := map[string]uint64{"X": clusterX, "Y": clusterY, "?": 0}
	base := map[string]uint64{"X": 1, "Y": 10}
	for _, word := range words[1:] {
		parts := strings.Split(word, ":")
		switch parts[0] {
		case "data":
			h.HasData = true
		case "withdata":
			h.Identity.FoundedWithData = true
		case "prepared", "formed":
			h.Identity = &Identity{Cluster: cluster[parts[1]], Name: h.Name, Stage: Stage(parts[0]), Founder: parts[2], Members: membersABC(base[parts[1]])}
			h.Identity.ID = named(h.Identity.Members, h.Name).ID
		case "joining":
			h.Identity = &Identity{Cluster: cluster[parts[1]], ID: 99, Name: h.Name, Stage: Joining, Joined: true}
		case "lost":
			h.Identity = &Identity{Cluster: cluster[parts[1]], Name: h.Name, Stage: Lost}
		case "serves":
			h.Members = h.Identity.Members
		case "replaced":
			h.Members = membersABC(50)
		case "partitions":
			h.Partitions = int(parts[1][0] - '0')
		case "leads":
			h.Members = h.Identity.Members
			h.Leader = named(h.Identity.Members, h.Name)
		case "peers":
			h.Peers = h.Peers[:len(parts[1])]
		case "moved":
			h.Peers = append([]Peer{}, abc...)
			h.Peers[2].Addr = "h4:1"
		default:
			t.Fatalf("word %q", word)
		}
	}
	return h
}

// TestDecide has every case of a first start and of a lost disk, seen by the first node of each row. "-" is a
// node that does not answer.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ nodes, want string }{
		// A first start: all empty.
		{"a|b|c", "found"},
		{"b|a|c", "wait: the founder, a, has not given out ids yet"},
		{"a|b|-c", "wait: no answer from c"},
		{"a|-b|-c", "wait: no answer from b, c"},
		{"b|a prepared:X:a|c", "wait: the founder, a, begins the cluster"},
		{"b|-a|c prepared:X:a", "wait: the founder, a, begins the cluster"},
		{"a prepared:X:a|b|c", "prepare"},
		{"a prepared:X:a|b prepared:X:a|c prepared:X:a", "prepare"},
		{"a prepared:X:a|b prepared:X:a|-c", "wait: no answer from c"},
		{"b prepared:X:a|a prepared:X:a|c", "wait: the founder, a, begins the cluster when all nodes have their id"},
		{"b prepared:X:a|-a|c", "wait: no answer from a, the founder"},
		{"b prepared:X:a|a formed:X:a|c prepared:X:a", "become"},
		{"b prepared:X:a|-a|c formed:X:a serves", "become"},
		{"b prepared:X:a|a lost:X|c prepared:X:a", "become"}, // only a member loses its files
		{"a formed:X:a|-b|-c", "ready"},
		// Data.
		{"a|b data|c", "wait: the founder, b, has not given out ids yet"},
		{"b data|a|c", "found"},
		{"b data|a data|c", "refuse: the data folders of a, b have data, and only one node of a new cluster may: empty the others"},
		{"c|a data|b data", "refuse: the data folders of a, b have data"},
		{"b data|a data|-c", "wait: no answer from c"},
		// The founder dies while it prepares, and loses its disk or not.
		{"b prepared:X:a|a|c prepared:X:a", "drop"},
		{"a|b prepared:X:a|c prepared:X:a", "found"},
		{"a|b prepared:X:a|-c", "wait: no answer from c"},
		{"a|b prepared:X:a withdata|c", "refuse: b awaits the data of this node"},
		{"a data|b prepared:X:a withdata|c", "found"},
		{"a prepared:X:a withdata|b|c", "refuse: this node began to found a cluster with its data, but the data folder is empty"},
		{"a data prepared:X:a|b|c", "drop"},
		{"a data prepared:X:a withdata|b|c", "prepare"},
		{"a prepared:X:a|b|c data", "drop"},
		// Two founders: one had data later.
		{"a prepared:X:a|b data prepared:Y:b withdata|c prepared:X:a", "drop"},
		{"b data prepared:Y:b withdata|a prepared:X:a|c prepared:X:a", "wait: a gives up a cluster that it prepares"},
		{"b data prepared:Y:b withdata|a|c prepared:X:a", "prepare"},
		{"c prepared:X:a|a|b data prepared:Y:b withdata", "drop"},
		{"a prepared:X:a|b prepared:Y:b|c", "wait: b gives up a cluster that it prepares"},
		{"b prepared:Y:b|a prepared:X:a|c", "drop"},
		{"a data prepared:X:a withdata|b data prepared:Y:b withdata|c", "refuse: the data folders of a, b have data"},
		{"a|b prepared:Y:b|c", "wait: the founder, b, begins the cluster"},
		// A list of peers that differs.
		{"a|b moved|c", "refuse: cluster-peers differ: a names c=h3:1, b names c=h4:1"},
		{"a|b peers:ab|c", "refuse: cluster-peers differ: a names c=h3:1, b does not"},
		{"a peers:ab|b", "refuse: cluster-peers differ: b names c=h3:1, a does not"},
		{"a|-b|c moved", "refuse: cluster-peers differ: a names c=h3:1, c names c=h4:1"},
		{"a prepared:X:a moved|b moved|c moved", "drop"},
		{"b moved|a formed:X:a leads|c formed:X:a", "choose aaaa"}, // it only comes back
		// Numbers of partitions that differ: no node has data, or one has.
		{"a partitions:8|b partitions:4|c partitions:8", "refuse: partitions differ: a has 8, b has 4; start all with the same"},
		{"b partitions:4|a partitions:8|c partitions:8", "refuse: partitions differ: b has 4, a has 8"},
		{"a partitions:8 prepared:X:a|b partitions:4|c partitions:8", "refuse: partitions differ: a has 8, b has 4"},
		{"a partitions:8|b partitions:8|c partitions:8", "found"},
		{"a partitions:8|-b|c partitions:4", "wait: no answer from b"},
		{"b data partitions:4|a partitions:8|c partitions:8", "found"},
		{"a partitions:4|b formed:X:a serves partitions:8|c formed:X:a leads partitions:8", "choose aaaa"},
		// A wiped node.
		{"b|a formed:X:a leads|c formed:X:a serves", "choose aaaa"},
		{"b|a formed:X:a|-c", "choose aaaa"},
		{"a|b formed:X:a serves|c formed:X:a leads", "choose aaaa"},
		{"b joining:X|a formed:X:a serves|c formed:X:a leads", "join c a"},
		{"b joining:X|-a|-c", "wait: this node has lost its files and needs a member of its cluster; no answer from a, c"},
		{"b data|a formed:X:a leads|c formed:X:a", "refuse: the data folder has data and belongs to no cluster, but the peers do: a to aaaa, c to aaaa"},
		{"b|a formed:X:a|c prepared:X:a", "choose aaaa"},
		{"a|b formed:X:a withdata|c formed:X:a withdata", "wait: the peers await the data with which this node founded cluster aaaa"},
		{"a|b formed:X:a withdata serves|c formed:X:a withdata", "choose aaaa"},
		// Two wiped nodes, and all.
		{"b|a formed:X:a serves|c", "wait: cluster aaaa has lost its majority for good: of 3 members only a has its files"},
		{"b|a formed:X:a leads|c", "choose aaaa"},
		{"b|a formed:X:a serves|-c", "choose aaaa"},
		{"b lost:X|a formed:X:a serves|c lost:X", "wait: cluster aaaa has lost its majority for good"},
		{"b lost:X|a lost:X|c lost:X", "wait: this node has lost its files and no peer is a member of its cluster: a is lost, c is lost"},
		{"b lost:X|a lost:X|c", "wait: this node has lost its files and no peer is a member of its cluster: a is lost, c is empty"},
		{"c|a lost:X|b lost:X", "wait: a was a member of a cluster and has lost its files, and no peer is a member"},
		// Damaged files, known or unknown cluster.
		{"b lost:X|a formed:X:a leads|c formed:X:a", "choose aaaa"},
		{"b lost:?|a formed:X:a leads|c formed:X:a", "choose aaaa"},
		{"b lost:?|a formed:X:a|c formed:Y:a", "refuse: the peers belong to several clusters: a to aaaa, c to bbbb"},
		{"b lost:?|a|c", "wait: this node has lost its files and no peer is a member of its cluster"},
		{"b lost:? data|a formed:X:a leads|c formed:X:a", "choose aaaa"},
		// Peers of another cluster.
		{"b lost:X|a formed:Y:a leads|c formed:Y:a", "refuse: this node belongs to cluster aaaa, its peers to another: a to bbbb, c to bbbb"},
		{"b joining:X|a formed:Y:a leads|c formed:Y:a", "refuse: this node belongs to cluster aaaa, its peers to another"},
		{"b|a formed:X:a|c formed:Y:a", "refuse: the peers belong to several clusters: a to aaaa, c to bbbb"},
		{"b prepared:X:a|a formed:X:a|c formed:Y:a", "refuse: the peers belong to several clusters"},
		{"b prepared:X:a|a|c formed:Y:a", "drop"},
		{"b prepared:X:a|a formed:X:a replaced|c formed:X:a", "drop"},
		{"a prepared:X:a|b formed:X:a|c formed:X:a", "drop"}, // its disk was set back
	} {
		parts := strings.Split(tt.nodes, "|")
		answers := map[string]*hello{}
		for _, part := range parts[1:] {
			if name, silent := strings.CutPrefix(part, "-"); silent {
				answers[name] = nil
				continue
			}
			h := state(t, part)
			answers[h.Name] = h
		}
		d := decide(*state(t, parts[0]), answers)
		got := d.action.String()
		switch d.action {
		case wait, refuse:
			got += ": " + d.reason
		case choose:
			got += map[uint64]string{clusterX: " aaaa", clusterY: " bbbb"}[d.cluster]
		case join:
			got += " " + strings.Join(d.ask, " ")
		}
		if !strings.HasPrefix(got, tt.want) || d.reason == "" && got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.nodes, got, tt.want)
		}
		if strings.Contains(d.reason, "\n") {
			t.Errorf("%s: several lines: %q", tt.nodes, d.reason)
		}
	}
}
