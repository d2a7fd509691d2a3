package nodes

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"mayfly/cluster/topology"
	"mayfly/commands/engine"
)

// The replies of CLUSTER in the shapes that clients of Redis Cluster 7.0 read.

// portOf returns the port of a member for clients.
func portOf(m *topology.Member) engine.Reply {
	_, port := m.Split()
	n, _ := strconv.ParseInt(port, 10, 64) // the address was checked; 0 is an unknown port
	return engine.Integer(n)
}

func hostOf(m *topology.Member) string {
	host, _ := m.Split()
	return host
}

// masterForClients returns the member that clients are to use. It is nil at a node outside of the cluster
// that knows no leader, and while the leader's address is not known: a client then asks another node.
func masterForClients(v *topology.View) *topology.Member {
	master := v.Master()
	outside := (v.Role == topology.Removed || v.Role == topology.Forming) && v.Leader == nil
	if outside || master == nil || master.Client == "" {
		return nil
	}
	return master
}

// runClusterSlots is CLUSTER SLOTS: one range of all slots, its master first. As in Redis, replicas that are
// down are left out.
func runClusterSlots(_ *engine.Context, v *topology.View) engine.Reply {
	master := masterForClients(v)
	if master == nil {
		return engine.Fail(engine.ErrOutside)
	}
	node := func(m *topology.Member) engine.Reply {
		return engine.Array(engine.Bulk(hostOf(m)), portOf(m), engine.Bulk(v.NodeID(m)), engine.Map())
	}
	slots := []engine.Reply{engine.Integer(0), engine.Integer(topology.Slots - 1), node(master)}
	for _, m := range v.Replicas() {
		if m.Up() && m.Voter && m.Client != "" {
			slots = append(slots, node(m))
		}
	}
	return engine.Array(engine.Array(slots...))
}

// runClusterShards is CLUSTER SHARDS: one shard.
func runClusterShards(_ *engine.Context, v *topology.View) engine.Reply {
	master := masterForClients(v)
	if master == nil {
		return engine.Fail(engine.ErrOutside)
	}
	node := func(m *topology.Member, role string) engine.Reply {
		health := "online"
		switch {
		case !m.Up():
			health = "fail"
		case !m.Voter:
			health = "loading"
		}
		return engine.Map(
			engine.Bulk("id"), engine.Bulk(v.NodeID(m)),
			engine.Bulk("port"), portOf(m),
			engine.Bulk("ip"), engine.Bulk(hostOf(m)),
			engine.Bulk("endpoint"), engine.Bulk(hostOf(m)),
			engine.Bulk("role"), engine.Bulk(role),
			engine.Bulk("replication-offset"), engine.Integer(int64(v.Offset(m))),
			engine.Bulk("health"), engine.Bulk(health),
		)
	}
	nodes := []engine.Reply{node(master, "master")}
	for _, m := range v.Replicas() {
		if m.Client != "" {
			nodes = append(nodes, node(m, "replica"))
		}
	}
	return engine.Array(engine.Map(
		engine.Bulk("slots"), engine.Array(engine.Integer(0), engine.Integer(topology.Slots-1)),
		engine.Bulk("nodes"), engine.Array(nodes...),
	))
}

// nodeLine is a member's line in CLUSTER NODES. now is the time in ms.
func nodeLine(v *topology.View, m *topology.Member, now int64) string {
	master, isMaster := v.Master(), m == v.Master()
	_, busPort, _ := net.SplitHostPort(m.Addr) // the address was checked
	flags, of, link, slots := "slave", v.NodeID(master), "connected", ""
	if isMaster {
		flags, of, slots = "master", "-", fmt.Sprintf(" 0-%d", topology.Slots-1)
	}
	if m.Self {
		flags = "myself," + flags
	}
	pong := int64(0)
	switch {
	case m.Self:
	case m.LastContact >= 0:
		pong = now - m.LastContact.Milliseconds()
	}
	if !m.Up() {
		link = "disconnected"
		if v.Role != topology.Loading { // it has had no time to hear of the others
			flags += ",fail"
		}
	}
	host, port := m.Split()
	return fmt.Sprintf("%s %s:%s@%s %s %s 0 %d %d %s%s\n",
		v.NodeID(m), host, port, cmp.Or(busPort, "0"), flags, of, pong, v.Term, link, slots)
}

func runClusterNodes(x *engine.Context, v *topology.View) engine.Reply {
	var text strings.Builder
	for i := range v.Members {
		text.WriteString(nodeLine(v, &v.Members[i], x.Now()))
	}
	return engine.Verbatim(text.String())
}

func runClusterReplicas(x *engine.Context, v *topology.View) engine.Reply {
	m := v.MemberByID(x.Input.Args[2])
	switch {
	case m == nil:
		return engine.Fail(engine.Errorf(errUnknownNode, engine.Shown(x.Input.Args[2])))
	case m != v.Master():
		return engine.Fail(errReplicasOf)
	}
	lines := []engine.Reply{}
	for _, m := range v.Replicas() {
		lines = append(lines, engine.Bulk(strings.TrimSuffix(nodeLine(v, m, x.Now()), "\n")))
	}
	return engine.Array(lines...)
}

func runClusterFailureReports(x *engine.Context, v *topology.View) engine.Reply {
	m := v.MemberByID(x.Input.Args[2])
	if m == nil {
		return engine.Fail(engine.Errorf(errUnknownNode, engine.Shown(x.Input.Args[2])))
	}
	return engine.Flag(!m.Up())
}

func runClusterLinks(_ *engine.Context, v *topology.View) engine.Reply {
	links := []engine.Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Self || !m.Up() {
			continue
		}
		for _, direction := range []string{"to", "from"} {
			links = append(links, engine.Map(
				engine.Bulk("direction"), engine.Bulk(direction),
				engine.Bulk("node"), engine.Bulk(v.NodeID(m)),
				engine.Bulk("create-time"), engine.Integer(0),
				engine.Bulk("events"), engine.Bulk("r"),
				engine.Bulk("send-buffer-allocated"), engine.Integer(0),
				engine.Bulk("send-buffer-used"), engine.Integer(0),
			))
		}
	}
	return engine.Array(links...)
}

func runClusterInfo(_ *engine.Context, v *topology.View) engine.Reply {
	var text strings.Builder
	for _, field := range []struct {
		Name  string
		Value any
	}{
		{Name: "cluster_state", Value: v.State()},
		{Name: "cluster_slots_assigned", Value: topology.Slots},
		{Name: "cluster_slots_ok", Value: topology.Slots},
		{Name: "cluster_slots_pfail", Value: 0},
		{Name: "cluster_slots_fail", Value: 0},
		{Name: "cluster_known_nodes", Value: len(v.Members)},
		{Name: "cluster_size", Value: 1},
		{Name: "cluster_current_epoch", Value: v.Term},
		{Name: "cluster_my_epoch", Value: v.Term},
		{Name: "cluster_stats_messages_sent", Value: 0},
		{Name: "cluster_stats_messages_received", Value: 0},
		{Name: "total_cluster_links_buffer_limit_exceeded", Value: 0},
	} {
		fmt.Fprintf(&text, "%s:%v\r\n", field.Name, field.Value)
	}
	return engine.Verbatim(text.String())
}

func runClusterStatus(_ *engine.Context, v *topology.View) engine.Reply {
	members := []engine.Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case !m.Voter:
			role = "learner"
		}
		users := engine.Null
		if m.Users != "" {
			users = engine.Bulk(shownUsers(m.Users))
		}
		index, lag := engine.Null, engine.Null // of the others only the leader knows them
		if m.Self || v.Leads() {
			index, lag = engine.Integer(int64(v.Offset(m))), engine.OrNull(m.Lag, m.Lag >= 0)
		}
		members = append(members, engine.Map(
			engine.Bulk("name"), engine.Bulk(m.Name),
			engine.Bulk("role"), engine.Bulk(role),
			engine.Bulk("self"), engine.Flag(m.Self),
			engine.Bulk("addr"), engine.Bulk(m.Addr),
			engine.Bulk("client_addr"), engine.Bulk(m.Client),
			engine.Bulk("up"), engine.Flag(m.Up()),
			engine.Bulk("index"), index,
			engine.Bulk("lag"), lag,
			engine.Bulk("last_contact_ms"), engine.Integer(m.Contact()),
			engine.Bulk("users"), users,
		))
	}
	announced := []engine.Reply{}
	for _, m := range v.Announced {
		announced = append(announced, engine.Map(engine.Bulk("name"), engine.Bulk(m.Name), engine.Bulk("addr"), engine.Bulk(m.Addr)))
	}
	name, leader := "", ""
	if self := v.Self(); self != nil {
		name = self.Name
	}
	if v.Leader != nil {
		leader = v.Leader.Name
	}
	return engine.Map(
		engine.Bulk("name"), engine.Bulk(name),
		engine.Bulk("cluster"), engine.Bulk(fmt.Sprintf("%016x", v.ClusterID)),
		engine.Bulk("role"), engine.Bulk(v.Role.String()),
		engine.Bulk("state"), engine.Bulk(v.State()),
		engine.Bulk("cause"), engine.TextOrNull(v.Cause),
		engine.Bulk("leader"), engine.TextOrNull(leader),
		engine.Bulk("quorum"), engine.Flag(v.Quorum),
		engine.Bulk("term"), engine.Integer(int64(v.Term)),
		engine.Bulk("index"), engine.Integer(int64(v.Index)),
		engine.Bulk("commit"), engine.Integer(int64(v.Commit)),
		engine.Bulk("applied"), engine.Integer(int64(v.Applied)),
		engine.Bulk("moment"), engine.Integer(v.Moment),
		engine.Bulk("log_bytes"), engine.Integer(v.LogBytes),
		engine.Bulk("users"), engine.Bulk(usersWord(v)),
		engine.Bulk("members"), engine.Array(members...),
		engine.Bulk("announced"), engine.Array(announced...),
	)
}

// usersWord says whether all members have the users of this node.
func usersWord(v *topology.View) string {
	if v.OthersUsers() > 0 {
		return "users differ"
	}
	return "same"
}

// usersKey makes digests of users useless for guessing passwords: they can be compared only with others of
// the same node.
var usersKey = sync.OnceValue(rand.Text)

// shownUsers is what CLUSTER STATUS shows of a digest of users.
func shownUsers(digest string) string {
	sum := sha256.Sum256([]byte(usersKey() + digest))
	return hex.EncodeToString(sum[:8])
}

// runRole is ROLE. Without a cluster there is one master without replicas.
func runRole(x *engine.Context) engine.Reply {
	if x.Engine.Cluster == nil {
		return engine.Array(engine.Bulk("master"), engine.Integer(0), engine.Array())
	}
	v := x.Engine.Cluster.View()
	if v.Leads() {
		replicas := []engine.Reply{}
		for _, m := range v.Replicas() {
			if host, port := m.Split(); m.Up() {
				replicas = append(replicas, engine.Bulks(host, port, strconv.FormatUint(v.Offset(m), 10)))
			}
		}
		return engine.Array(engine.Bulk("master"), engine.Integer(int64(v.Applied)), engine.Array(replicas...))
	}
	host, port, state := "", engine.Integer(0), "connect"
	if m := v.Master(); m != nil && !m.Self {
		host, port = hostOf(m), portOf(m)
	}
	switch {
	case v.Role == topology.Loading:
		state = "sync"
	case v.State() == "ok":
		state = "connected"
	}
	return engine.Array(engine.Bulk("slave"), engine.Bulk(host), port, engine.Bulk(state), engine.Integer(int64(v.Applied)))
}

var RoleCommand = engine.Command{
	Name: "role", Since: "2.8.12", Summary: "Return the role of the instance in the context of replication",
	Flags: engine.NoScript | engine.Loading | engine.Stale | engine.Fast | engine.OnNode, Categories: "admin dangerous",
	Parse: engine.NoParse(runRole),
}
