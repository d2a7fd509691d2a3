package forming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// The paths of the control requests. All are POST with JSON.
const (
	pathHello = "/cluster/hello"
	pathForm  = "/cluster/form"
	pathJoin  = "/cluster/join"
)

type helloRequest struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Peers []Peer `json:"peers"`
}

// formRequest gives a node its id. Run is that of its hello: a request that arrives late at a node whose disk
// was lost meanwhile must not bring its id back.
type formRequest struct {
	Identity
	Run uint64 `json:"run,string"`
}

type joinRequest struct {
	Cluster uint64 `json:"cluster,string"`
	To      string `json:"to"`
	Member  Member `json:"member"`
}

// joinAnswer is one of: the node is a member now; its id was removed before; another node leads; no leader is
// known.
type joinAnswer struct {
	Joined  bool     `json:"joined,omitempty"`
	Removed bool     `json:"removed,omitempty"`
	Members []Member `json:"members,omitempty"`
	Leader  *Member  `json:"leader,omitempty"`
}

// mostRequest bounds the body of a control request, in bytes.
const mostRequest = 256 << 10

// ServeHTTP answers control requests. Refusals are a status and one line.
func (f *Former) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostRequest))
	if err != nil {
		http.Error(w, "the request is too long or was cut", http.StatusBadRequest)
		return
	}
	answer, err := f.answer(r.Context(), r.URL.Path, body)
	if err != nil {
		status := http.StatusConflict
		if errors.Is(err, errRequest) {
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		f.config.Log.Debug().Err(err).Msg("cannot answer a control request")
	}
}

var errRequest = errors.New("not a control request")

// answer returns the answer to a request.
func (f *Former) answer(ctx context.Context, path string, body []byte) (any, error) {
	switch path {
	case pathHello:
		var request helloRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, errRequest
		}
		return f.answerHello(&request)
	case pathForm:
		var request formRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, errRequest
		}
		return struct{}{}, f.answerForm(&request)
	case pathJoin:
		var request joinRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, errRequest
		}
		return f.answerJoin(ctx, &request)
	}
	return nil, errRequest
}

// addressed returns an error for a request to a node of another name.
func (f *Former) addressed(to, from string) error {
	if to == f.config.Name {
		return nil
	}
	f.complaints.say(f.config.Log, "request for another", fmt.Sprintf("%q takes this node, %s, for %q: compare cluster-peers there",
		shown(from), f.config.Name, shown(to)))
	return fmt.Errorf("this node is %s, not %s: compare cluster-peers", f.config.Name, shown(to))
}

func (f *Former) answerHello(request *helloRequest) (*hello, error) {
	if len(request.Peers) > mostMembers {
		return nil, errRequest
	}
	h := f.hello()
	if request.To != f.config.Name {
		// The answer has the name of this node: the asking node says what is wrong.
		_ = f.addressed(request.To, request.From)
	} else if h.stage() == "" || h.stage() == Prepared {
		if text := differences(f.config.Name, f.config.Peers, shown(request.From), request.Peers); text != "" {
			f.complaints.say(f.config.Log, "peers", "cluster-peers differ: "+text)
		}
	}
	return h, nil
}

// answerForm makes the id that a founder has given this node its own.
func (f *Former) answerForm(r *formRequest) error {
	request := &r.Identity
	if err := request.check(); err != nil || request.Stage != Prepared || named(request.Members, request.Founder) == nil {
		return errRequest
	}
	if err := f.addressed(request.Name, request.Founder); err != nil {
		return err
	}
	if !samePeers(request.Members, f.config.Peers) {
		var peers []Peer
		for _, m := range request.Members {
			peers = append(peers, Peer{m.Name, m.Addr})
		}
		return fmt.Errorf("cluster-peers differ: %s", differences(request.Founder, peers, f.config.Name, f.config.Peers))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch own := f.identity; {
	case r.Run != f.run:
		return fmt.Errorf("%s has been started anew", f.config.Name)
	case request.Founder == f.config.Name:
		return errors.New("this node has given out no such ids")
	case f.config.HasData:
		return fmt.Errorf("the data folder of %s has data", f.config.Name)
	case own == nil:
		request.Joined = false
		return f.replaceLocked(request)
	case own.Stage == Prepared && own.Cluster == request.Cluster && own.ID == request.ID:
		return nil // asked again
	case own.Stage == Prepared:
		return fmt.Errorf("%s has an id of a cluster that %s prepares", f.config.Name, own.Founder)
	default:
		return fmt.Errorf("%s was a member of cluster %x before", f.config.Name, own.Cluster)
	}
}

// answerJoin makes another node a member if this node leads, else names the leader.
func (f *Former) answerJoin(ctx context.Context, request *joinRequest) (*joinAnswer, error) {
	m := request.Member
	if m.ID == 0 || checkMembers([]Member{m}) != nil {
		return nil, errRequest
	}
	if err := f.addressed(request.To, m.Name); err != nil {
		return nil, err
	}
	f.mu.Lock()
	own, membership := f.identity.clone(), f.membership
	f.mu.Unlock()
	switch {
	case own == nil || own.Stage != Formed:
		return nil, fmt.Errorf("%s is not a member of a cluster", f.config.Name)
	case own.Cluster != request.Cluster:
		f.complaints.say(f.config.Log, "join "+shown(m.Name), fmt.Sprintf("%s wants to join cluster %x, but this node belongs to %x",
			shown(m.Name), request.Cluster, own.Cluster))
		return nil, fmt.Errorf("%s belongs to cluster %x, not to %x", f.config.Name, own.Cluster, request.Cluster)
	case m.Name == f.config.Name:
		return nil, fmt.Errorf("this node is %s", f.config.Name)
	case membership == nil:
		return &joinAnswer{}, nil
	case membership.Removed(m.ID):
		return &joinAnswer{Removed: true}, nil
	}
	leader, known := membership.Leader()
	if !known {
		return &joinAnswer{}, nil
	}
	if leader.ID != own.ID {
		return &joinAnswer{Leader: &leader}, nil
	}
	err := f.confirm(ctx, own.Cluster, m)
	if err == nil {
		err = membership.Join(ctx, m)
	}
	if err != nil {
		f.complaints.say(f.config.Log, "join "+shown(m.Name), fmt.Sprintf("%s cannot join: %v", shown(m.Name), err))
		return nil, err
	}
	f.complaints.forget("join " + m.Name)
	members := slices.DeleteFunc(membership.Members(), func(m Member) bool { return m.ID == 0 })
	return &joinAnswer{Joined: true, Members: members}, nil
}

// confirm asks a node that wants to join whether it does: the cluster must reach it, and a request may be
// late.
func (f *Former) confirm(ctx context.Context, cluster uint64, m Member) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var answer hello
	if err := f.config.Call(ctx, m.Addr, pathHello, helloRequest{From: f.config.Name, To: m.Name, Peers: f.config.Peers}, &answer); err != nil {
		return fmt.Errorf("the leader, %s, gets no answer from %s at %s: %w", f.config.Name, m.Name, m.Addr, err)
	}
	if i := answer.Identity; answer.Name != m.Name || i == nil || i.Cluster != cluster || i.ID != m.ID {
		return fmt.Errorf("the node at %s is not %s, or has another id by now", m.Addr, m.Name)
	}
	return nil
}
