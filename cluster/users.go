package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"mayfly/cluster/topology"
)

// Each node has its own users. Nodes ask each other for a digest of theirs, so that an operator sees who has
// others.

// usersPath is the path at which a node says the digest of its users.
const usersPath = "/cluster/users"

// usersPeriod is the time between two rounds of questions.
const usersPeriod = 2 * time.Second

// users is the answer.
type users struct {
	Digest string `json:"digest"`
}

func (n *Node) answerUsers(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(users{n.ownUsers()}) // the other node may have gone
}

// compareUsers asks the other members for their users, and logs each change of who has others than this node,
// until the node is closed.
func (n *Node) compareUsers() {
	before := ""
	for n.ctx.Err() == nil {
		var differing []string
		for _, m := range n.View().Members {
			if m.Self || !m.Active {
				continue
			}
			ctx, cancel := context.WithTimeout(n.ctx, askTime)
			var answer users
			if n.listener.Call(ctx, m.Addr, usersPath, struct{}{}, &answer) == nil {
				n.users.Store(m.Name, answer.Digest)
			}
			cancel()
			if m.Users = n.usersOf(m.Name); m.Users != "" && m.Users != n.ownUsers() {
				differing = append(differing, m.Name)
			}
		}
		n.refresh()
		now := strings.Join(differing, " ")
		switch {
		case now == before:
		case now == "":
			n.options.Log.Info().Msg("all nodes have the same users again")
		default:
			n.options.Log.Warn().Str("nodes", now).Msg("users differ: other nodes have other users than this one; give each node the same")
		}
		before = now
		n.sleep(usersPeriod)
	}
}

func (n *Node) ownUsers() string {
	if n.options.Users == nil {
		return ""
	}
	return n.options.Users()
}

// usersOf returns the digest that a member has said last; empty if none.
func (n *Node) usersOf(name string) string {
	digest, _ := n.users.Load(name)
	text, _ := digest.(string)
	return text
}

// describeUsers adds the digests of users to a view.
func (n *Node) describeUsers(v *topology.View) {
	for i := range v.Members {
		if m := &v.Members[i]; m.Self {
			m.Users = n.ownUsers()
		} else {
			m.Users = n.usersOf(m.Name)
		}
	}
}
