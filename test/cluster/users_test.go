package cluster

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// startWithUsers starts the cluster of the manual's recipe, and returns its commands.
func startWithUsers(t *testing.T) (c *harness.Cluster, commands []string) {
	page := harness.Guides(t)["docs/security.md"]
	_, recipe, ok := strings.Cut(page, "**In a cluster**")
	if !ok {
		t.Fatal("there is no recipe")
	}
	secret := harness.WriteFile(t, "secret", strings.Repeat("not very secret ", 4))
	options := strings.Replace(harness.Blocks(recipe, "conf")[0], "cluster-secret-file secret", "cluster-secret-file "+secret, 1)
	c = harness.NewCluster(t, "--config", harness.WriteFile(t, "mayfly.conf", options))
	c.User, c.Password = "admin", "change-me"
	if drill.Pick(false, false, true) {
		c.Program = filepath.Join(t.TempDir(), "mayfly-race")
		if err := harness.Build(c.Program, "-race"); err != nil {
			t.Fatal(err)
		}
	}
	c.StartAll(3)
	for _, n := range c.Nodes {
		n.AwaitServing()
	}
	return c, strings.Split(strings.TrimSpace(harness.Blocks(recipe, "sh")[0]), "\n")
}

// TestClusterUsers plays the recipe of the manual, and then random rights that differ between nodes: through
// a follower a user can do what the follower and the leader allow.
func TestClusterUsers(t *testing.T) {
	t.Parallel()
	c, commands := startWithUsers(t)
	for _, line := range commands {
		command, want, _ := strings.Cut(line, "#")
		words := strings.Fields(strings.NewReplacer("'", "", " -p 700", " ").Replace(command))
		node := c.Nodes[words[1][0]-'1']
		host, port, _ := strings.Cut(node.ClientAddr, ":")
		args := append([]string{"-h", host, "-p", port, "--no-auth-warning"}, words[2:]...)
		if got := harness.Run(t, nil, harness.Need(t, "redis-cli"), args...); got != strings.TrimSpace(want) {
			t.Errorf("%s: %q", line, got)
		}
	}
	said := func(n *harness.Node) string {
		reply, _ := n.Ask(t.Context(), "CLUSTER", "STATUS")
		info, _ := n.Ask(t.Context(), "INFO", "cluster")
		_, differing, _ := strings.Cut(fmt.Sprint(info), "cluster_users_differ:")
		differing, _, _ = strings.Cut(differing, "\r")
		return fmt.Sprint(strings.Contains(fmt.Sprint(reply), "users users differ"), " ", differing)
	}
	c.Await("all nodes to have the same users", func() bool {
		return !slices.ContainsFunc(c.Nodes, func(n *harness.Node) bool { return said(n) != "false 0" })
	})
	leader := c.Leader()
	follower := c.Others(leader)[0]
	playRandomRights(t, leader, follower)
	c.Await("the leader to see that the follower has another user", func() bool { return said(leader) == "true 1" && strings.Contains(leader.Log(), "users differ") })
}

// someRights are rights of a user, and what they allow.
type someRights struct{ containers, ids, commands []string }

func (r *someRights) rules() []any {
	rules := []any{"ACL", "SETUSER", "u", "reset", "on", ">p", "resetdbs", "+select", "+eval", "+multi", "+exec", "+discard"}
	if len(r.containers) > 0 {
		rules = append(rules, "db="+strings.Join(r.containers, ","))
	}
	for _, id := range r.ids {
		rules = append(rules, "~"+id+"*")
	}
	for _, name := range r.commands {
		rules = append(rules, "+"+name)
	}
	return rules
}

func (r *someRights) allow(container, id, command string) bool {
	return slices.Contains(r.containers, container) && slices.Contains(r.ids, id[:1]) && slices.Contains(r.commands, command)
}

// some returns a random part of a list.
func some(r *rand.Rand, list ...string) (part []string) {
	for _, e := range list {
		if r.IntN(3) > 0 {
			part = append(part, e)
		}
	}
	return part
}

// playRandomRights gives the user of a connection to a follower random rights, others at the follower than at
// the leader, and compares what it can do with an oracle.
func playRandomRights(t *testing.T, leader, follower *harness.Node) {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(uint64(drill.Seed(t)), 1))
	ops := [2]*redis.Client{leader.Connect(), follower.Connect()}
	defer ops[0].Close()
	defer ops[1].Close()
	containers := []string{"carts", "orders", "0"}
	for _, name := range containers {
		if err := ops[0].Do(ctx, "CONTAINER.SET", name, "TTL", "-1").Err(); err != nil {
			t.Fatal(err)
		}
	}
	var user *redis.Client
	refused := 0
	const rounds = 40
	for round := range rounds {
		var rights [2]someRights
		for i := range rights {
			rights[i] = someRights{some(r, containers...), some(r, "a", "b"), some(r, "doc.put", "doc.get", "set", "get")}
			if err := ops[i].Do(ctx, rights[i].rules()...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if user == nil {
			o := follower.Options(follower.ClientAddr)
			o.Username, o.Password, o.PoolSize, o.DisableIdentity, o.Protocol = "u", "p", 1, true, 2
			user = redis.NewClient(o)
			defer user.Close()
		}
		for range 10 {
			container, id := containers[r.IntN(len(containers))], []string{"a", "b"}[r.IntN(2)]+fmt.Sprint(r.IntN(9))
			command, args := "doc.put", []any{"DOC.PUT", container, id, "{}"}
			switch r.IntN(4) {
			case 0:
				command, args = "doc.get", []any{"DOC.GET", container, id}
			case 1:
				container, command, args = "0", "set", []any{"SET", id + ":plain", "v"}
			case 2:
				container, command, args = "0", "get", []any{"GET", id + ":plain"}
			}
			wrapped := args
			if r.IntN(3) == 0 { // the leader judges what a script calls
				wrapped = append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, args...)
			}
			want := rights[0].allow(container, id, command) && (len(wrapped) > len(args) || rights[1].allow(container, id, command))
			var err error
			if r.IntN(3) == 0 {
				_, err = user.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Do(ctx, wrapped...); return nil })
			} else {
				err = user.Do(ctx, wrapped...).Err()
			}
			if err == redis.Nil {
				err = nil
			}
			denied := err != nil && slices.ContainsFunc([]string{"NOPERM", "EXECABORT", "The user executing the script"}, func(text string) bool {
				return strings.Contains(err.Error(), text)
			})
			if err != nil && !denied || denied == want {
				t.Fatalf("round %d: %q with %+v at the leader and %+v at the follower: %v, want it allowed: %t", round, wrapped, rights[0], rights[1], err, want)
			}
			if denied {
				refused++
			}
		}
	}
	if refused == 0 || refused == 10*rounds {
		t.Errorf("%d of %d commands were refused", refused, 10*rounds)
	}
	// A user whom the leader does not know may do nothing there.
	if err := ops[0].Do(ctx, "ACL", "DELUSER", "u").Err(); err != nil {
		t.Fatal(err)
	}
	if err := ops[1].Do(ctx, "ACL", "SETUSER", "u", "alldbs", "allkeys", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := user.Do(ctx, "DOC.GET", "carts", "a1").Err(); err == nil || !strings.Contains(err.Error(), "NOPERM the leader does not know the user") {
		t.Errorf("an unknown user: %v", err)
	}
}
