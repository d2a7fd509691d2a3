package forming

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// group is nodes with real folders and an HTTP server each.
type group struct {
	t       *testing.T
	servers map[string]*httptest.Server
	formers map[string]*Former
	dirs    map[string]string
	data    map[string]bool
	logs    map[string]*safeBuffer
	asked   map[string]chan struct{} // closed when the node has called another one
	mu      sync.Mutex
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newGroup(t *testing.T, names ...string) *group {
	t.Helper()
	g := &group{t: t, servers: map[string]*httptest.Server{}, formers: map[string]*Former{}, dirs: map[string]string{}, data: map[string]bool{}, logs: map[string]*safeBuffer{}, asked: map[string]chan struct{}{}}
	for _, name := range names {
		g.dirs[name] = t.TempDir()
		g.logs[name] = &safeBuffer{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			f := g.formers[name]
			g.mu.Unlock()
			if f == nil {
				http.Error(w, "down", http.StatusServiceUnavailable)
				return
			}
			f.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		g.servers[name] = server
	}
	return g
}

func (g *group) peers() (peers []Peer) {
	for name := range g.servers {
		peers = append(peers, Peer{name, g.addr(name)})
	}
	return peers
}

func (g *group) addr(name string) string { return strings.TrimPrefix(g.servers[name].URL, "http://") }

// start starts a node.
func (g *group) start(name string, change ...func(*Config)) *Former {
	g.t.Helper()
	asked := make(chan struct{})
	called := sync.OnceFunc(func() { close(asked) })
	config := Config{Dir: g.dirs[name], Name: name, Addr: g.addr(name), Client: name + ":6379", Peers: g.peers(), HasData: g.data[name],
		Log: zerolog.New(g.logs[name])}
	config.Call = func(ctx context.Context, addr, path string, request, answer any) error {
		called()
		return callHTTP(ctx, addr, path, request, answer)
	}
	for _, c := range change {
		c(&config)
	}
	f, err := New(config)
	drill.Check(g.t, err)
	g.mu.Lock()
	g.formers[name], g.asked[name] = f, asked
	g.mu.Unlock()
	return f
}

// callHTTP sends a request as the transport does.
func callHTTP(ctx context.Context, addr, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// formAll runs Form at nodes at the same time.
func (g *group) formAll(names ...string) map[string]*Identity {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	got := map[string]*Identity{}
	var wg sync.WaitGroup
	for _, name := range names {
		g.mu.Lock()
		f, asked := g.formers[name], g.asked[name]
		g.mu.Unlock()
		formed := make(chan struct{})
		wg.Go(func() {
			defer close(formed)
			identity, err := f.Form(ctx)
			if err != nil {
				g.t.Errorf("%s: %v", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[name] = identity
		})
		select { // the next one begins later
		case <-asked:
		case <-formed:
		}
	}
	wg.Wait()
	return got
}

// fixedMembership is raft with a fixed leader.
type fixedMembership struct {
	mu      sync.Mutex
	leader  string
	members []Member
	joined  int
	refuse  error
}

func (m *fixedMembership) Leader() (Member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if leader := named(m.members, m.leader); leader != nil {
		return *leader, true
	}
	return Member{}, false
}

func (m *fixedMembership) Members() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Member(nil), m.members...)
}

func (m *fixedMembership) Removed(uint64) bool { return false }

func (m *fixedMembership) Join(_ context.Context, joiner Member) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return m.refuse
	}
	if known := named(m.members, joiner.Name); known != nil {
		*known = joiner
	} else {
		m.members = append(m.members, joiner)
	}
	m.joined++
	return nil
}

// Three nodes form one cluster whatever the order of their start, and a fourth joins, as does one that has
// lost its disk.
func TestForm(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"abc", "cba", "bca"} {
		g := newGroup(t, "a", "b", "c")
		names := strings.Split(order, "")
		for _, name := range names {
			g.start(name)
		}
		got := g.formAll(names...)
		for _, name := range names {
			i := got[name]
			if i == nil || i.Cluster != got["a"].Cluster || i.Founder != "a" || i.FoundedWithData || i.Joined || len(i.Members) != 3 {
				t.Fatalf("%s: %s is %+v", order, name, i)
			}
			if read, err := Read(g.dirs[name]); err != nil || read.ID != i.ID || read.Stage != Formed {
				t.Fatalf("%s has %+v on disk, %v", name, read, err)
			}
		}
		raft := &fixedMembership{leader: "c", members: got["a"].Members}
		for _, name := range names {
			g.formers[name].Serve(raft)
		}

		// b has lost its disk: another id, by the leader.
		before := got["b"].ID
		g.dirs["b"] = t.TempDir()
		const empty = "the data folder is empty: this node joins the cluster of the others and gets everything from them"
		if strings.Contains(g.logs["b"].String(), empty) {
			t.Errorf("%s: a node of a new cluster logs %s", order, empty)
		}
		g.start("b")
		again := g.formAll("b")["b"]
		if again == nil || again.ID == before || again.Cluster != got["a"].Cluster || !again.Joined || raft.joined != 1 || named(again.Members, "b").ID != again.ID {
			t.Fatalf("b is %+v; %d have joined", again, raft.joined)
		}
		if n := strings.Count(g.logs["b"].String(), empty); n != 1 {
			t.Errorf("%s: %d lines say that the folder is empty:\n%s", order, n, g.logs["b"])
		}
	}
}

// The founder with data, and the errors in words.
func TestFormWithData(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b", "c")
	g.data["c"] = true
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	for name, i := range g.formAll("a", "b", "c") {
		if i == nil || i.Founder != "c" || !i.FoundedWithData {
			t.Errorf("%s is %+v", name, i)
		}
	}

	g = newGroup(t, "a", "b", "c")
	g.data["b"], g.data["c"] = true, true
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	_, err := g.formers["a"].Form(context.Background())
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "the data folders of b, c have data") {
		t.Errorf("got %v", err)
	}
}

// Lists of peers that differ are an error on the side that asks and a line on the other.
func TestPeersThatDiffer(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b")
	g.start("a")
	g.start("b", func(c *Config) { c.Peers = append(c.Peers, Peer{"c", "127.0.0.1:1"}) })
	_, err := g.formers["a"].Form(context.Background())
	if err == nil || err.Error() != "cluster-peers differ: b names c=127.0.0.1:1, a does not" {
		t.Errorf("got %v", err)
	}
	if text := g.logs["b"].String(); !strings.Contains(text, "cluster-peers differ: b names c=127.0.0.1:1, a does not") {
		t.Errorf("b logs %q", text)
	}

	g = newGroup(t, "a", "b")
	g.start("a")
	g.start("b", func(c *Config) { c.Name = "x"; c.Dir = t.TempDir() })
	_, err = g.formers["a"].Form(context.Background())
	if err == nil || !strings.Contains(err.Error(), `calls itself "x", but cluster-peers calls it b`) {
		t.Errorf("got %v", err)
	}
	if text := g.logs["b"].String(); !strings.Contains(text, `takes this node, x, for \"b\"`) {
		t.Errorf("x logs %q", text)
	}
}

// A node that is not expected waits, and joins when it is.
func TestJoinRefused(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b")
	g.start("a", func(c *Config) { c.Peers = []Peer{{"a", c.Addr}} })
	a := g.formAll("a")["a"]
	raft := &fixedMembership{leader: "a", members: a.Members, refuse: errors.New("b is not a member: CLUSTER ADD it first")}
	g.formers["a"].Serve(raft)
	g.start("b")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := g.formers["b"].Form(ctx)
		ended <- err
	}()
	drill.Await(t, "the refusal", func() bool { return strings.Contains(g.logs["a"].String(), "b cannot join: b is not a member") }, g.logs["a"].String)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	raft.mu.Lock()
	raft.refuse = nil
	raft.mu.Unlock()
	chosen := g.formers["b"].Identity().ID
	g.start("b") // the id it has chosen stays
	if b := g.formAll("b")["b"]; b == nil || b.ID != chosen || !b.Joined || len(b.Members) != 2 {
		t.Errorf("b is %+v, it had chosen %d", b, chosen)
	}
}

// A member whose peers are all of another cluster does not take part: clients of that cluster would end up in
// its own.
func TestFolderOfAnotherCluster(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		g.start(name, func(c *Config) { c.Peers = []Peer{{name, c.Addr}} })
	}
	got := g.formAll("a", "b", "c")
	a := g.start("a")
	refused := (*RefusedError)(nil)
	want := fmt.Sprintf("belongs to cluster %x, but cluster-peers to others: b to %x, c to %x", got["a"].Cluster, got["b"].Cluster, got["c"].Cluster)
	if err := a.Conflict(context.Background()); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	// With one peer of its own it goes on, and says what is wrong.
	related := g.formers["b"]
	related.mu.Lock()
	related.identity.Cluster = got["a"].Cluster
	related.mu.Unlock()
	if err := a.Conflict(context.Background()); err != nil || !strings.Contains(g.logs["a"].String(), fmt.Sprintf("c to %x", got["c"].Cluster)) {
		t.Errorf("with a peer of its cluster: %v; it logs %s", err, g.logs["a"])
	}
	g.mu.Lock()
	g.formers["b"], g.formers["c"] = nil, nil
	g.mu.Unlock()
	if err := a.Conflict(context.Background()); err != nil {
		t.Errorf("without answers: %v", err)
	}
}

// A node whose cluster-node-timeout is not that of the others does not take part: a leader with a longer one
// would serve reads while the others have elected another.
func TestTimeoutsThatDiffer(t *testing.T) {
	t.Parallel()
	of := func(ms int64, takesPart bool) *hello {
		h := &hello{NodeTimeout: ms, Identity: &Identity{Cluster: 1, Stage: Formed}}
		if takesPart {
			h.Members = []Member{{}}
		}
		return h
	}
	for _, tt := range []struct {
		name    string
		self    int64
		answers map[string]*hello
		refused string // part of the error; empty: none
	}{
		{"alone", 1000, map[string]*hello{"b": nil, "c": nil}, ""},
		{"equal", 1000, map[string]*hello{"b": of(1000, true), "c": of(1000, false)}, ""},
		{"the others run", 200, map[string]*hello{"b": of(1000, true), "c": of(1000, true)}, "is 200 ms here and 1000 ms at b"},
		{"one of the others runs", 200, map[string]*hello{"b": nil, "c": of(1000, true)}, "1000 ms at c"},
		{"one of the others runs, and most agree", 200, map[string]*hello{"b": of(200, false), "c": of(1000, true)}, "1000 ms at c"},
		{"all start, the node is wrong", 200, map[string]*hello{"b": of(1000, false), "c": of(1000, false)}, "1000 ms at b"},
		{"all start, another one is wrong", 1000, map[string]*hello{"b": of(200, false), "c": of(1000, false)}, ""},
		{"two start", 1000, map[string]*hello{"b": of(200, false), "c": nil}, "200 ms at b"},
		{"another one waits for its correction", 1000, map[string]*hello{"b": of(200, false), "c": of(1000, true)}, ""},
		{"another cluster", 1000, map[string]*hello{"b": {NodeTimeout: 200, Identity: &Identity{Cluster: 2, Stage: Formed}}}, ""},
	} {
		err := timeouts(of(tt.self, false), tt.answers)
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
	}
}

// Two servers with one identity, because a folder was copied: the one that comes second does not take part.
func TestCopiedFolder(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b", "c", "copy of b")
	peers := []Peer{{"a", g.addr("a")}, {"b", g.addr("b")}, {"c", g.addr("c")}}
	atHome := func(c *Config) { c.Peers = peers }
	for _, name := range []string{"a", "b", "c"} {
		g.start(name, atHome)
	}
	members := g.formAll("a", "b", "c")["a"].Members
	raft := &fixedMembership{leader: "a", members: members}
	for _, name := range []string{"a", "b", "c"} {
		g.formers[name].Serve(raft)
		if err := g.formers[name].Conflict(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	drill.Check(t, os.CopyFS(g.dirs["copy of b"], os.DirFS(g.dirs["b"])))
	elsewhere := func(c *Config) {
		c.Name, c.Peers = "b", []Peer{{"a", g.addr("a")}, {"b", g.addr("copy of b")}, {"c", g.addr("c")}}
	}
	twin := g.start("copy of b", elsewhere)
	refused := (*RefusedError)(nil)
	if err := twin.Conflict(context.Background()); !errors.As(err, &refused) || !strings.Contains(err.Error(), g.addr("b")) {
		t.Errorf("the copy starts: %v", err)
	}
	g.mu.Lock()
	b := g.formers["b"]
	g.formers["b"] = nil
	g.mu.Unlock()
	if err := twin.Conflict(context.Background()); err != nil { // a node that has moved
		t.Errorf("b at another address: %v", err)
	}
	raft.mu.Lock()
	raft.members = slices.Clone(raft.members)
	named(raft.members, "b").Addr = g.addr("copy of b")
	raft.mu.Unlock()
	g.mu.Lock()
	g.formers["b"] = b
	g.mu.Unlock()
	if err := b.Conflict(context.Background()); !errors.As(err, &refused) || !strings.Contains(err.Error(), g.addr("copy of b")) {
		t.Errorf("b comes back beside its copy: %v", err)
	}
}

// Requests are bounded and only POST.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a")
	f := g.start("a")
	for _, tt := range []struct {
		method, body string
		status       int
	}{{"GET", "", http.StatusMethodNotAllowed}, {"POST", strings.Repeat(" ", mostRequest+1), http.StatusBadRequest}, {"POST", "{", http.StatusBadRequest}} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(tt.method, pathHello, strings.NewReader(tt.body)))
		if w.Code != tt.status {
			t.Errorf("%s of %d bytes: %d", tt.method, len(tt.body), w.Code)
		}
	}
}
