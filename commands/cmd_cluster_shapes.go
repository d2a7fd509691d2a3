package commands

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"mayfly/cluster/topology"
)

// The replies of CLUSTER in the shapes that clients of Redis Cluster 7.0 read.

// portOf returns the port of a member for clients.
func portOf(m *topology.Member) Reply {
	_, port := m.Split()
	n, _ := strconv.ParseInt(port, 10, 64) // the address was checked; 0 is an unknown port
	return Integer(n)
}

func hostOf(m *topology.Member) string {
	host, _ := m.Split()
	return host
}

// masterForClients returns the member that clients are to use. It is nil at a node outside of the cluster that knows no leader,
// and while the leader's address is not known: a client then asks another node.
func masterForClients(v *topology.View) *topology.Member {
	master := v.Master()
	outside := (v.Role == topology.Removed || v.Role == topology.Forming) && v.Leader == nil
	if outside || master == nil || master.Client == "" {
		return nil
	}
	return master
}

// runClusterSlots is CLUSTER SLOTS: one range of all slots, its master first. As in Redis, replicas that are down are
// left out.
func runClusterSlots(_ *Context, v *topology.View) Reply {
	master := masterForClients(v)
	if master == nil {
		return Fail(errOutside)
	}
	node := func(m *topology.Member) Reply {
		return Array(Bulk(hostOf(m)), portOf(m), Bulk(v.NodeID(m)), Map())
	}
	slots := []Reply{Integer(0), Integer(topology.Slots - 1), node(master)}
	for _, m := range v.Replicas() {
		if m.Up() && m.Voter && m.Client != "" {
			slots = append(slots, node(m))
		}
	}
	return Array(Array(slots...))
}

// runClusterShards is CLUSTER SHARDS: one shard.
func runClusterShards(_ *Context, v *topology.View) Reply {
	master := masterForClients(v)
	if master == nil {
		return Fail(errOutside)
	}
	node := func(m *topology.Member, role string) Reply {
		health := "online"
		switch {
		case !m.Up():
			health = "fail"
		case !m.Voter:
			health = "loading"
		}
		return Map(
			Bulk("id"), Bulk(v.NodeID(m)),
			Bulk("port"), portOf(m),
			Bulk("ip"), Bulk(hostOf(m)),
			Bulk("endpoint"), Bulk(hostOf(m)),
			Bulk("role"), Bulk(role),
			Bulk("replication-offset"), Integer(int64(v.Offset(m))),
			Bulk("health"), Bulk(health),
		)
	}
	nodes := []Reply{node(master, "master")}
	for _, m := range v.Replicas() {
		if m.Client != "" {
			nodes = append(nodes, node(m, "replica"))
		}
	}
	return Array(Map(
		Bulk("slots"), Array(Integer(0), Integer(topology.Slots-1)),
		Bulk("nodes"), Array(nodes...),
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
		flags, link = flags+",fail", "disconnected"
	}
	host, port := m.Split()
	return fmt.Sprintf("%s %s:%s@%s %s %s 0 %d %d %s%s\n",
		v.NodeID(m), host, port, cmp.Or(busPort, "0"), flags, of, pong, v.Term, link, slots)
}

func runClusterNodes(x *Context, v *topology.View) Reply {
	var text strings.Builder
	for i := range v.Members {
		text.WriteString(nodeLine(v, &v.Members[i], x.Now()))
	}
	return Verbatim(text.String())
}

func runClusterReplicas(x *Context, v *topology.View) Reply {
	m := v.MemberByID(x.Input.Args[2])
	switch {
	case m == nil:
		return Fail(errorf(errUnknownNode, shown(x.Input.Args[2])))
	case m != v.Master():
		return Fail(errReplicasOf)
	}
	lines := []Reply{}
	for _, m := range v.Replicas() {
		lines = append(lines, Bulk(strings.TrimSuffix(nodeLine(v, m, x.Now()), "\n")))
	}
	return Array(lines...)
}

func runClusterFailureReports(x *Context, v *topology.View) Reply {
	m := v.MemberByID(x.Input.Args[2])
	if m == nil {
		return Fail(errorf(errUnknownNode, shown(x.Input.Args[2])))
	}
	return Flag(!m.Up())
}

func runClusterLinks(_ *Context, v *topology.View) Reply {
	links := []Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Self || !m.Up() {
			continue
		}
		for _, direction := range []string{"to", "from"} {
			links = append(links, Map(
				Bulk("direction"), Bulk(direction),
				Bulk("node"), Bulk(v.NodeID(m)),
				Bulk("create-time"), Integer(0),
				Bulk("events"), Bulk("r"),
				Bulk("send-buffer-allocated"), Integer(0),
				Bulk("send-buffer-used"), Integer(0),
			))
		}
	}
	return Array(links...)
}

// clusterState is ok if the node serves what a leader serves, or knows one that does, and nothing is wrong with it; else fail.
func clusterState(v *topology.View) string {
	if v.Quorum && v.Leader != nil && v.Role.Open() && v.Cause == "" {
		return "ok"
	}
	return "fail"
}

func runClusterInfo(_ *Context, v *topology.View) Reply {
	var text strings.Builder
	for _, field := range []InfoField{
		{"cluster_state", clusterState(v)},
		{"cluster_slots_assigned", topology.Slots},
		{"cluster_slots_ok", topology.Slots},
		{"cluster_slots_pfail", 0},
		{"cluster_slots_fail", 0},
		{"cluster_known_nodes", len(v.Members)},
		{"cluster_size", 1},
		{"cluster_current_epoch", v.Term},
		{"cluster_my_epoch", v.Term},
		{"cluster_stats_messages_sent", 0},
		{"cluster_stats_messages_received", 0},
		{"total_cluster_links_buffer_limit_exceeded", 0},
	} {
		fmt.Fprintf(&text, "%s:%v\r\n", field.Name, field.Value)
	}
	return Verbatim(text.String())
}

// contactOf is the time in ms since the last message of a member; -1: none yet.
func contactOf(m *topology.Member) int64 {
	if m.LastContact < 0 {
		return -1
	}
	return m.LastContact.Milliseconds()
}

func runClusterStatus(_ *Context, v *topology.View) Reply {
	members := []Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case !m.Voter:
			role = "learner"
		}
		index, lag := Null, Null // of the others only the leader knows them
		if m.Self || v.Leads() {
			index, lag = Integer(int64(v.Offset(m))), Integer(m.Lag)
		}
		members = append(members, Map(
			Bulk("name"), Bulk(m.Name),
			Bulk("role"), Bulk(role),
			Bulk("self"), Flag(m.Self),
			Bulk("addr"), Bulk(m.Addr),
			Bulk("client_addr"), Bulk(m.Client),
			Bulk("up"), Flag(m.Up()),
			Bulk("index"), index,
			Bulk("lag"), lag,
			Bulk("last_contact_ms"), Integer(contactOf(m)),
		))
	}
	announced := []Reply{}
	for _, m := range v.Announced {
		announced = append(announced, Map(Bulk("name"), Bulk(m.Name), Bulk("addr"), Bulk(m.Addr)))
	}
	name, leader := "", ""
	if self := v.Self(); self != nil {
		name = self.Name
	}
	if v.Leader != nil {
		leader = v.Leader.Name
	}
	return Map(
		Bulk("name"), Bulk(name),
		Bulk("cluster"), Bulk(fmt.Sprintf("%016x", v.ClusterID)),
		Bulk("role"), Bulk(v.Role.String()),
		Bulk("state"), Bulk(clusterState(v)),
		Bulk("cause"), textOrNull(v.Cause),
		Bulk("leader"), textOrNull(leader),
		Bulk("quorum"), Flag(v.Quorum),
		Bulk("term"), Integer(int64(v.Term)),
		Bulk("index"), Integer(int64(v.Index)),
		Bulk("commit"), Integer(int64(v.Commit)),
		Bulk("applied"), Integer(int64(v.Applied)),
		Bulk("moment"), Integer(v.Moment),
		Bulk("log_bytes"), Integer(v.LogBytes),
		Bulk("members"), Array(members...),
		Bulk("announced"), Array(announced...),
	)
}

// runRole is ROLE. Without a cluster there is one master without replicas.
func runRole(x *Context) Reply {
	if x.Engine.Cluster == nil {
		return Array(Bulk("master"), Integer(0), Array())
	}
	v := x.Engine.Cluster.View()
	if v.Leads() {
		replicas := []Reply{}
		for _, m := range v.Replicas() {
			if host, port := m.Split(); m.Up() {
				replicas = append(replicas, Bulks(host, port, strconv.FormatUint(v.Offset(m), 10)))
			}
		}
		return Array(Bulk("master"), Integer(int64(v.Applied)), Array(replicas...))
	}
	host, port, state := "", Integer(0), "connect"
	if v.Leader != nil {
		host, port = hostOf(v.Leader), portOf(v.Leader)
	}
	switch {
	case v.Role == topology.Loading:
		state = "sync"
	case clusterState(v) == "ok":
		state = "connected"
	}
	return Array(Bulk("slave"), Bulk(host), port, Bulk(state), Integer(int64(v.Applied)))
}

// replicationFields are the fields of INFO that Redis shows of a node of a replication.
func replicationFields(v *topology.View) []InfoField {
	var list []InfoField
	field := func(name string, value any) { list = append(list, InfoField{name, value}) }
	if v.Leads() {
		field("role", "master")
	} else {
		host, port, contact := "", "0", int64(-1)
		if v.Leader != nil {
			host, port = v.Leader.Split()
			contact = contactOf(v.Leader)
		}
		link := "down"
		if clusterState(v) == "ok" {
			link = "up"
		}
		field("role", "slave")
		field("master_host", host)
		field("master_port", port)
		field("master_link_status", link)
		field("master_last_io_seconds_ago", max(contact, -1000)/1000)
		field("master_sync_in_progress", Flag(v.Role == topology.Loading).Int)
		field("slave_read_repl_offset", v.Applied)
		field("slave_repl_offset", v.Applied)
		if link == "down" {
			field("master_link_down_since_seconds", max(contact, -1000)/1000)
		}
		field("slave_priority", 100)
		field("slave_read_only", 1)
		field("replica_announced", 1)
	}
	up := 0
	for _, m := range v.Replicas() {
		if m.Up() {
			up++
		}
	}
	if !v.Leads() {
		up = 0
	}
	field("connected_slaves", up)
	if v.Leads() {
		n := 0
		for _, m := range v.Replicas() {
			if !m.Up() {
				continue
			}
			host, port := m.Split()
			state := "online"
			if !m.Voter {
				state = "send_bulk"
			}
			field(fmt.Sprintf("slave%d", n), fmt.Sprintf("ip=%s,port=%s,state=%s,offset=%d,lag=%d",
				host, port, state, v.Offset(m), max(contactOf(m), 0)/1000))
			n++
		}
	}
	field("master_failover_state", "no-failover")
	field("master_replid", v.ShardID())
	field("master_replid2", strings.Repeat("0", 40))
	field("master_repl_offset", v.Applied)
	field("second_repl_offset", -1)
	field("repl_backlog_active", 1)
	field("repl_backlog_size", v.LogBytes)
	field("repl_backlog_first_byte_offset", max(int64(v.Applied)-v.LogBytes+1, 1))
	field("repl_backlog_histlen", v.LogBytes)
	return list
}

// clusterFields are mayfly's fields of INFO about the cluster.
func clusterFields(v *topology.View) []InfoField {
	name, leader, lag := "", "", int64(0)
	if self := v.Self(); self != nil {
		name, lag = self.Name, self.Lag
	}
	if v.Leader != nil {
		leader = v.Leader.Name
	}
	up := 0
	for i := range v.Members {
		if v.Members[i].Up() {
			up++
		}
	}
	list := []InfoField{
		{"cluster_state", clusterState(v)},
		{"cluster_node", name},
		{"cluster_role", v.Role.String()},
		{"cluster_leader", leader},
		{"cluster_is_leader", Flag(v.Leads()).Int},
		{"cluster_has_quorum", Flag(v.Quorum).Int},
		{"cluster_members", len(v.Members)},
		{"cluster_members_up", up},
		{"cluster_term", v.Term},
		{"cluster_index", v.Index},
		{"cluster_commit_index", v.Commit},
		{"cluster_applied_index", v.Applied},
		{"cluster_lag_entries", lag},
		{"cluster_log_bytes", v.LogBytes},
		{"cluster_cause", oneLine.Replace(v.Cause)},
	}
	return list
}
