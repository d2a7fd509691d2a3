package forming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// model is a cluster of nodes that crash, restart and lose their disks while they form.
type model struct {
	t      *testing.T
	random *rand.Rand
	nodes  map[string]*modelNode
	names  []string
	calls  []call // sent once already, may arrive again
	faults bool

	took   map[uint64]map[uint64]int // ids that have taken part in a cluster, with the life of their disk
	size   map[uint64]int            // first members of a cluster
	raft   map[uint64][]Member       // members of a cluster, as its leader has committed them
	gone   map[uint64]bool           // removed ids
	nextID uint64
}

type modelNode struct {
	name string
	data bool
	disk *Identity
	life int     // of the disk
	up   *Former // nil: down
}

type call struct {
	to, path string
	body     []byte
}

type crash struct{ name string }

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]*modelNode{},
		took: map[uint64]map[uint64]int{}, size: map[uint64]int{}, raft: map[uint64][]Member{}, gone: map[uint64]bool{}}
	for i := range 1 + m.random.IntN(4) {
		name := string(rune('a' + i))
		m.names = append(m.names, name)
		m.nodes[name] = &modelNode{name: name}
	}
	if m.random.IntN(3) == 0 {
		m.nodes[m.names[m.random.IntN(len(m.names))]].data = true
	}
	return m
}

func (m *model) peers() (peers []Peer) {
	for _, name := range m.names {
		peers = append(peers, Peer{name, name + ":1"})
	}
	return peers
}

// start starts a node, if it is down.
func (m *model) start(n *modelNode) {
	if n.up != nil {
		return
	}
	f := &Former{identity: n.disk.clone(), changed: make(chan struct{}), one: true}
	f.config = Config{Name: n.name, Addr: n.name + ":1", Peers: m.peers(), HasData: n.data, Log: zerolog.Nop()}
	f.newID = func() uint64 { m.nextID++; return m.nextID }
	f.run = f.newID()
	f.write = func(_ string, identity *Identity) error {
		m.mayCrash(n)
		n.disk = identity.clone()
		m.mayCrash(n)
		return nil
	}
	f.config.Call = func(_ context.Context, addr, path string, request, answer any) error {
		m.mayCrash(n)
		body, err := json.Marshal(request)
		drill.Check(m.t, err)
		return m.deliver(call{addr[:len(addr)-2], path, body}, answer)
	}
	n.up = f
	if f.identity != nil && f.identity.Stage == Formed {
		m.take(n)
	}
}

// mayCrash ends a node in the middle of a step.
func (m *model) mayCrash(n *modelNode) {
	if m.faults && m.random.IntN(40) == 0 {
		panic(crash{n.name})
	}
}

// deliver carries a request to its node, or not, and the answer back, or not.
func (m *model) deliver(c call, answer any) error {
	fault := -1
	if m.faults {
		fault = m.random.IntN(20)
	}
	if fault == 0 {
		return errors.New("lost")
	}
	if fault <= 3 && c.path != pathHello {
		m.calls = append(m.calls, c) // comes a second time
	}
	n := m.nodes[c.to]
	if n.up == nil {
		return errors.New("down")
	}
	var text []byte
	var err error
	if !m.survives(func() {
		var reply any
		if reply, err = n.up.answer(context.Background(), c.path, c.body); err == nil {
			text, err = json.Marshal(reply)
		}
	}) {
		return errors.New("connection reset")
	}
	if fault == 1 {
		return errors.New("answer lost")
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// survives runs a part of a node and reports whether the node did not crash in it.
func (m *model) survives(run func()) (alive bool) {
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(crash)
			if !ok {
				panic(r)
			}
			m.nodes[c.name].up = nil
			alive = false
		}
	}()
	run()
	return true
}

// step runs one step of a node that is up.
func (m *model) step(n *modelNode) {
	if n.up == nil {
		return
	}
	former := n.up
	m.survives(func() {
		identity, _, err := former.step(context.Background())
		if err != nil {
			m.t.Errorf("%s: %v", n.name, err)
		}
		if identity != nil {
			m.take(n)
		}
	})
}

// take lets a member take part in raft.
func (m *model) take(n *modelNode) {
	i := n.up.identity
	if m.took[i.Cluster] == nil {
		m.took[i.Cluster] = map[uint64]int{}
		m.size[i.Cluster] = len(i.Members)
		m.raft[i.Cluster] = slices.Clone(i.Members)
	}
	if life, ok := m.took[i.Cluster][i.ID]; ok && life != n.life {
		m.t.Errorf("%s: id %d of cluster %d has taken part in life %d of its disk and in %d", n.name, i.ID, i.Cluster, life, n.life)
	}
	m.took[i.Cluster][i.ID] = n.life
	n.up.Serve(modelMembership{m, n})
	able := 0
	for cluster, ids := range m.took {
		if 2*len(ids) > m.size[cluster] {
			able++
		}
	}
	if able > 1 {
		m.t.Errorf("%d clusters have had a majority: %v", able, m.took)
	}
}

// modelMembership is raft: the least member leads while a majority is up.
type modelMembership struct {
	m *model
	n *modelNode
}

func (s modelMembership) Leader() (Member, bool) {
	cluster := s.n.up.identity.Cluster
	var up []Member
	for _, member := range s.m.raft[cluster] {
		if n := s.m.nodes[member.Name]; n.up != nil && n.up.identity != nil && n.up.identity.ID == member.ID && n.up.identity.Stage == Formed {
			up = append(up, member)
		}
	}
	if 2*len(up) <= len(s.m.raft[cluster]) {
		return Member{}, false
	}
	return up[0], true
}

func (s modelMembership) Members() []Member {
	return slices.Clone(s.m.raft[s.n.up.identity.Cluster])
}
func (s modelMembership) Removed(id uint64) bool { return s.m.gone[id] }

func (s modelMembership) Join(_ context.Context, member Member) error {
	members := s.m.raft[s.n.up.identity.Cluster]
	known := named(members, member.Name)
	if known == nil {
		return fmt.Errorf("%s is not expected", member.Name)
	}
	if known.ID != member.ID {
		s.m.gone[known.ID] = true
		*known = member
	}
	return nil
}

// mayWipe reports whether a node can lose its disk without loss: nothing has begun, or all others are whole.
func (m *model) mayWipe(n *modelNode) bool {
	if n.data {
		return false
	}
	begun := false
	for _, other := range m.nodes {
		begun = begun || other.disk != nil && other.disk.Stage == Formed
	}
	for _, other := range m.nodes {
		if begun && other != n && (other.disk == nil || other.disk.Stage != Formed) {
			return false
		}
	}
	return len(m.names) > 2 || !begun
}

// fail lets something go wrong.
func (m *model) fail() {
	n := m.nodes[m.names[m.random.IntN(len(m.names))]]
	switch m.random.IntN(6) {
	case 0, 1, 2:
		m.start(n)
	case 3:
		n.up = nil
	case 4:
		if m.mayWipe(n) && m.random.IntN(4) == 0 {
			n.up, n.disk = nil, nil
			n.life++
		} else if n.disk != nil && n.disk.Stage == Formed && m.mayWipe(n) && m.random.IntN(2) == 0 {
			m.start(n)
			m.survives(func() {
				if err := n.up.Lose(); err != nil { // its files are damaged
					m.t.Error(err)
				}
				n.life++
			})
			if n.disk.Stage == Lost {
				n.up = nil
			}
		}
	case 5:
		if len(m.calls) > 0 {
			at := m.random.IntN(len(m.calls))
			c := m.calls[at]
			m.calls = slices.Delete(m.calls, at, at+1)
			_ = m.deliver(c, nil) // late
		}
	}
}

func (m *model) run() {
	m.faults = true
	for range 20 + m.random.IntN(400) {
		if m.random.IntN(3) == 0 {
			m.fail()
		} else {
			m.step(m.nodes[m.names[m.random.IntN(len(m.names))]])
		}
	}
	m.faults = false
	for _, n := range m.nodes {
		m.start(n)
	}
	for round := 0; !m.whole(); round++ {
		if round > 60 {
			for _, name := range m.names {
				m.t.Errorf("%s is %+v", name, m.nodes[name].disk)
			}
			m.t.Fatalf("no cluster after %d rounds", round)
		}
		for _, name := range m.names {
			m.step(m.nodes[name])
		}
	}
}

// whole reports whether all nodes are members of one cluster, with their present ids.
func (m *model) whole() bool {
	clusters := map[uint64]bool{}
	for _, n := range m.nodes {
		if n.disk == nil || n.disk.Stage != Formed {
			return false
		}
		clusters[n.disk.Cluster] = true
		if _, ok := m.took[n.disk.Cluster][n.disk.ID]; !ok {
			return false
		}
		if known := named(m.raft[n.disk.Cluster], n.name); known == nil || known.ID != n.disk.ID {
			m.t.Fatalf("%s has id %d, the cluster knows %+v", n.name, n.disk.ID, known)
		}
	}
	if len(clusters) > 1 {
		m.t.Fatalf("several clusters: %v", slices.Collect(maps.Keys(clusters)))
	}
	return true
}

// TestModel lets nodes crash between any two steps of forming, lose their disks and get requests late or
// twice. There are never two clusters, no id takes part twice, and there is one cluster when all are up.
func TestModel(t *testing.T) {
	t.Parallel()
	first := drill.Seed(t)
	for n := range drill.Pick[uint64](100, 400, 20_000) {
		newModel(t, first+n).run()
		if t.Failed() {
			t.Fatalf("-seed %d", first+n)
		}
	}
}
