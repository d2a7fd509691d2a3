package forming

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"mayfly/expiry/clock"

	"github.com/rs/zerolog"
)

// Config is what a node knows of itself before it belongs to a cluster.
type Config struct {
	Dir     string // DIR/cluster
	Name    string
	Addr    string // of the other nodes' connections
	Client  string // of the clients' connections
	Peers   []Peer // cluster-peers, with this node
	HasData bool   // the folder has data

	Partitions  int           // of a data folder that the node makes
	NodeTimeout time.Duration // cluster-node-timeout
	// Call sends a control request, as transport.Listener does.
	Call func(ctx context.Context, addr, path string, request, answer any) error
	Log  zerolog.Logger
}

// Peer is a node as cluster-peers names it.
type Peer struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// Membership is what a node that takes part in raft knows. Safe for concurrent use.
type Membership interface {
	Leader() (leader Member, known bool) // this node's own ID if it leads
	Members() []Member                   // who are in the cluster or announced (ID 0)
	Removed(id uint64) bool
	// Join makes m a member in place of the one with its name, once raft has committed that. It returns nil
	// if m is one. Errors are one line, and shown at the node that wants to join. Only the leader is asked.
	Join(ctx context.Context, m Member) error
}

// Former answers the control requests of other nodes and brings this node into a cluster. Safe for concurrent
// use.
type Former struct {
	config Config
	write  func(clusterDir string, identity *Identity) error // tests replace it
	newID  func() uint64                                     // likewise
	one    bool                                              // ask one peer after the other; for tests
	run    uint64                                            // another one in each process

	mu         sync.Mutex
	identity   *Identity // as on disk
	membership Membership
	changed    chan struct{} // closed with each change of the identity

	said       string // the last reason that was logged; of the goroutine of Form
	saidAt     time.Duration
	complaints complaints
}

// New reads the identity. Serve it with transport.Listener.Handle before Form.
func New(config Config) (*Former, error) {
	identity, err := Read(config.Dir)
	if err != nil {
		return nil, err
	}
	if identity != nil && identity.Name != config.Name {
		return nil, fmt.Errorf("the data folder belongs to node %s of a cluster, not to %s: "+
			"set cluster-id to %s or use another folder", identity.Name, config.Name, identity.Name)
	}
	return &Former{config: config, write: write, newID: randomID, run: randomID(), identity: identity, changed: make(chan struct{})}, nil
}

// randomID returns an id that no other life of a disk has.
func randomID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]) >> 1; id != 0 {
			return id
		}
	}
}

// Identity returns a copy of this node's identity, nil for none.
func (f *Former) Identity() *Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.identity.clone()
}

// Serve makes the membership known from which answers are given; nil between two incarnations.
func (f *Former) Serve(m Membership) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.membership = m
}

// Lose forgets the id of this node, durably: its files are damaged or its id was removed. The node can only
// come back into the same cluster then, by Form, with another id. Call it before the files are set aside.
func (f *Former) Lose() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := &Identity{Name: f.config.Name, Stage: Lost}
	if f.identity != nil {
		lost.Cluster, lost.Members = f.identity.Cluster, f.identity.Members
	}
	return f.replaceLocked(lost)
}

// replaceLocked makes identity this node's, on disk first. f.mu must be held.
func (f *Former) replaceLocked(identity *Identity) error {
	if err := f.write(f.config.Dir, identity); err != nil {
		return err
	}
	f.identity = identity
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// hello returns what this node tells of itself.
func (f *Former) hello() *hello {
	f.mu.Lock()
	identity, membership := f.identity.clone(), f.membership
	f.mu.Unlock()
	h := &hello{Name: f.config.Name, Client: f.config.Client, Peers: f.config.Peers, HasData: f.config.HasData, Run: f.run,
		Partitions: f.config.Partitions, NodeTimeout: f.config.NodeTimeout.Milliseconds(), Identity: identity}
	if membership != nil && h.formed() {
		h.Members = membership.Members()
		if leader, known := membership.Leader(); known {
			h.Leader = &leader
		}
	}
	return h
}

// The pace of Form.
const (
	askEvery    = 250 * time.Millisecond
	askPatience = 2 * time.Second  // for one answer
	joinLimit   = 15 * time.Second // for raft to commit a join
	sayEvery    = 15 * time.Second // the same reason to wait
)

// Form returns once the node is a member of a cluster (Stage Formed). It tries until ctx ends. A
// *RefusedError is the error for what only people can settle: it is one line that names it.
func (f *Former) Form(ctx context.Context) (*Identity, error) {
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		identity, again, err := f.step(ctx)
		switch {
		case err != nil:
			return nil, err
		case identity != nil:
			f.config.Log.Info().Str("cluster", fmt.Sprintf("%x", identity.Cluster)).Str("node", identity.Name).
				Str("id", fmt.Sprintf("%x", identity.ID)).Msg("this node is a member of the cluster")
			return identity, nil
		case again:
			continue
		}
		pause := time.NewTimer(askEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-changed:
			pause.Stop()
		case <-pause.C:
		}
	}
}

// step asks all peers once and does what follows. It returns the identity of a member; again asks for a step
// at once.
func (f *Former) step(ctx context.Context) (identity *Identity, again bool, err error) {
	self := f.hello() // before the answers, so that none of them is older than the identity
	if self.formed() {
		return self.Identity, false, nil
	}
	answers, err := f.ask(ctx, self)
	if err != nil {
		return nil, false, err
	}
	d := decide(*self, answers)
	switch d.action {
	case wait:
		f.say(d.reason)
		return nil, false, nil
	case refuse:
		return nil, false, &RefusedError{d.reason}
	case prepare:
		return nil, false, f.begin(ctx, self.Identity, answers)
	case join:
		return nil, false, f.join(ctx, self.Identity, d.ask)
	case choose:
		if self.Identity == nil {
			f.config.Log.Warn().Str("node", f.config.Name).Str("cluster", fmt.Sprintf("%x", d.cluster)).
				Msg("the data folder is empty: this node joins the cluster of the others and gets everything from them")
		}
	}
	return nil, true, f.change(self.Identity, f.next(self.Identity, d, answers))
}

// next returns the identity that a decision leads to. The answers are those of the peers, if it has any.
func (f *Former) next(own *Identity, d decision, answers map[string]*hello) *Identity {
	switch d.action {
	case found:
		identity := &Identity{Cluster: f.newID(), Name: f.config.Name, Stage: Prepared, Founder: f.config.Name, FoundedWithData: f.config.HasData}
		for _, p := range f.config.Peers {
			m := Member{Name: p.Name, ID: f.newID(), Addr: p.Addr}
			if p.Name == f.config.Name {
				m.Client, identity.ID = f.config.Client, m.ID
			}
			for _, answer := range answers {
				if answer.Name == p.Name {
					m.Client = answer.Client // else clients are redirected to nothing until it leads or announces itself
				}
			}
			identity.Members = append(identity.Members, m)
		}
		slices.SortFunc(identity.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
		return identity
	case become:
		identity := own.clone()
		identity.Stage = Formed
		return identity
	case choose:
		identity := &Identity{Cluster: d.cluster, ID: f.newID(), Name: f.config.Name, Stage: Joining, Joined: true}
		if own != nil {
			identity.Members = own.Members // they may be asked too
		}
		return identity
	}
	return nil // drop
}

// change replaces the identity if it is still own.
func (f *Former) change(own, identity *Identity) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !same(f.identity, own) {
		return nil // a founder has prepared this node meanwhile
	}
	return f.replaceLocked(identity)
}

// same reports whether two identities are the same stage of the same life.
func same(a, b *Identity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cluster == b.Cluster && a.ID == b.ID && a.Stage == b.Stage
}

// contacts returns whom a node asks: its peers, and before it comes back into its cluster the members too.
func (f *Former) contacts(own *Identity) []Peer {
	peers := slices.DeleteFunc(slices.Clone(f.config.Peers), func(p Peer) bool { return p.Name == f.config.Name })
	if own != nil && (own.Stage == Lost || own.Stage == Joining) {
		for _, m := range own.Members {
			if m.Name != f.config.Name && !slices.ContainsFunc(peers, func(p Peer) bool { return p.Name == m.Name }) {
				peers = append(peers, Peer{m.Name, m.Addr})
			}
		}
	}
	return peers
}

// each calls do for all peers, at the same time.
func (f *Former) each(peers []Peer, do func(Peer)) {
	if f.one {
		for _, p := range peers {
			do(p)
		}
		return
	}
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() { do(p) })
	}
	wg.Wait()
}

// ask says hello to all peers. Those that do not answer have a nil answer. With an error the other answers
// count, too.
func (f *Former) ask(ctx context.Context, self *hello) (map[string]*hello, error) {
	var mu sync.Mutex
	answers := map[string]*hello{}
	var wrong error
	f.each(f.contacts(self.Identity), func(p Peer) {
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		answer := &hello{}
		err := f.config.Call(ctx, p.Addr, pathHello, helloRequest{From: f.config.Name, To: p.Name, Peers: f.config.Peers}, answer)
		mu.Lock()
		defer mu.Unlock()
		answers[p.Name] = nil
		switch {
		case err != nil:
			f.complaints.say(f.config.Log, p.Name, fmt.Sprintf("no answer from %s at %s: %v", p.Name, p.Addr, err))
		case answer.Name != p.Name:
			wrong = &RefusedError{fmt.Sprintf("the node at %s calls itself %q, but cluster-peers calls it %s", p.Addr, shown(answer.Name), p.Name)}
		case answer.Identity != nil && answer.Identity.check() != nil:
			f.complaints.say(f.config.Log, p.Name, fmt.Sprintf("%s at %s answers nonsense: %v", p.Name, p.Addr, answer.Identity.check()))
		default:
			f.complaints.forget(p.Name)
			answers[p.Name] = answer
		}
	})
	if err := ctx.Err(); err != nil {
		return answers, err
	}
	return answers, wrong
}

// begin has all others write their ids, and begins the cluster when they have.
func (f *Former) begin(ctx context.Context, own *Identity, answers map[string]*hello) error {
	var mu sync.Mutex
	confirmed := 1
	f.each(f.contacts(own), func(p Peer) {
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		request := formRequest{*own.clone(), answers[p.Name].Run}
		request.Name, request.ID = p.Name, named(own.Members, p.Name).ID
		err := f.config.Call(ctx, p.Addr, pathForm, request, &struct{}{})
		if err != nil {
			f.complaints.say(f.config.Log, p.Name, fmt.Sprintf("%s at %s takes no id: %v", p.Name, p.Addr, err))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		confirmed++
	})
	if confirmed < len(own.Members) {
		return ctx.Err()
	}
	formed := own.clone()
	formed.Stage = Formed
	return f.change(own, formed)
}

// join asks the leader to make this node a member. Each member knows who leads.
func (f *Former) join(ctx context.Context, own *Identity, names []string) error {
	peers := f.contacts(own)
	request := Member{Name: f.config.Name, ID: own.ID, Addr: f.config.Addr, Client: f.config.Client}
	reason := "no member answers"
	for _, name := range names {
		at := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
		target := peers[at]
		for range 2 { // a member, and the leader that it names
			answer := &joinAnswer{}
			patience, cancel := context.WithTimeout(ctx, joinLimit)
			err := f.config.Call(patience, target.Addr, pathJoin, joinRequest{Cluster: own.Cluster, To: target.Name, Member: request}, answer)
			cancel()
			if err != nil {
				reason = fmt.Sprintf("%s does not let this node join: %v", target.Name, err)
				break
			}
			if answer.Joined {
				return f.joined(own, answer.Members, request)
			}
			if answer.Removed {
				return f.change(own, f.next(own, decision{action: choose, cluster: own.Cluster}, nil))
			}
			if answer.Leader == nil || answer.Leader.Addr == "" {
				reason = target.Name + " knows no leader at present"
				break
			}
			target = Peer{answer.Leader.Name, answer.Leader.Addr}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	f.say(reason)
	return nil
}

// joined makes this node a member.
func (f *Former) joined(own *Identity, members []Member, self Member) error {
	identity := own.clone()
	identity.Stage = Formed
	identity.Members = slices.DeleteFunc(members, func(m Member) bool { return m.Name == self.Name || m.Addr == self.Addr || m.ID == 0 })
	identity.Members = append(identity.Members, self)
	slices.SortFunc(identity.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	if err := identity.check(); err != nil {
		return fmt.Errorf("the leader answers nonsense: %w", err)
	}
	return f.change(own, identity)
}

// say logs why the node waits, when that changes and now and then.
func (f *Former) say(reason string) {
	now := clock.Monotonic()
	if reason == f.said && now-f.saidAt < sayEvery {
		return
	}
	f.said, f.saidAt = reason, now
	f.config.Log.Warn().Str("node", f.config.Name).Msg("this node is not in the cluster yet: " + reason)
}

// complaints logs what is wrong with a peer, when that changes.
type complaints struct {
	mu   sync.Mutex
	last map[string]string
}

func (c *complaints) say(log zerolog.Logger, name, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]string{}
	}
	if c.last[name] != text && len(c.last) < 4*mostMembers {
		c.last[name] = text
		log.Warn().Msg(text)
	}
}

func (c *complaints) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, name)
}

// shown shortens a name of a peer for an error.
func shown(name string) string { return name[:min(len(name), 64)] }

var _ http.Handler = (*Former)(nil)
