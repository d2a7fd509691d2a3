package commands

import (
	"context"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"mayfly/cluster/entry"
	"mayfly/cluster/topology"
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// Clients of Redis Cluster see one shard with all slots: the leader is its master, the other nodes are its replicas.

// The errors of CLUSTER, in Redis' words where Redis has the case.
const (
	errSlot         = Error("ERR Invalid slot")
	errSlotCount    = Error("ERR Invalid slot or number of keys")
	errUnknownNode  = "ERR Unknown node %s"
	errNotReplica   = Error("ERR You should send CLUSTER FAILOVER to a replica")
	errReplicasOf   = Error("ERR The specified node is not a master")
	errNotManual    = "ERR CLUSTER %s does not apply: one group of nodes has all slots, and it agrees on its members itself. See CLUSTER HELP for ADD, REMOVE and TRANSFER"
	errNodeAddress  = "ERR invalid node '%s': legal is name=host:port, the port of cluster-addr"
	errNodeName     = "ERR invalid name of a node '%s': legal are 1 to 63 letters, digits, dots, dashes and underscores, the first a letter or a digit"
	errChangeFailed = "ERR CLUSTER %s failed: %s"
	memberTimeout   = 30 * time.Second // for a change of members
	transferTimeout = 10 * time.Second
)

var clusterCommands = []Command{
	{
		Name: "asking", Since: "3.0.0", Summary: "Sent by cluster clients after an -ASK redirect",
		Differs: "Has no effect: slots do not move",
		Flags:   Fast | OnNode, Categories: "connection",
		Parse: noParse(inCluster(func(*Context, *topology.View) Reply { return OK })),
	},
	{
		Name: "cluster", Since: "3.0.0", Summary: "A container for cluster commands",
		Sub: []Command{
			clusterChange("add", "name=host:port", "Announces a node, which may join then.", parseClusterAdd),
			clusterRefusal("addslots", "slot [slot ...]", "", "Assign new hash slots to receiving node"),
			clusterRefusal("addslotsrange", "start-slot end-slot [start-slot end-slot ...]", "7.0.0", "Assign new hash slots to receiving node"),
			with(clusterRefusal("bumpepoch", "", "", "Advance the cluster config epoch"), func(c *Command) {
				c.Tips = "nondeterministic_output"
			}),
			clusterRow(Command{
				Name: "count-failure-reports", Syntax: "node-id", Summary: "Return the number of failure reports active for a given node",
				Differs: "Counts this node's own report", Flags: Admin, Tips: "nondeterministic_output",
				Parse: noParse(inCluster(runClusterFailureReports)),
			}),
			clusterRow(Command{
				Name: "countkeysinslot", Syntax: "slot", Summary: "Return the number of local keys in the specified hash slot",
				Differs: "Counts those of the selected database; takes time in proportion to its keys",
				Flags:   OnLeader, Scope: ScopeSweep, Parse: parseClusterCountKeys,
			}),
			clusterRefusal("delslots", "slot [slot ...]", "", "Set hash slots as unbound in receiving node"),
			clusterRefusal("delslotsrange", "start-slot end-slot [start-slot end-slot ...]", "7.0.0", "Set hash slots as unbound in receiving node"),
			clusterRow(Command{
				Name: "digest", Since: sinceFirst, Flags: Admin,
				Summary: "Returns the position of this node in the log, and a digest of all items and containers. Nodes at the same position have the same digest.",
				Parse:   noParse(inCluster(runClusterDigest)),
			}),
			clusterRow(Command{
				Name: "failover", Syntax: "[FORCE | TAKEOVER]", Summary: "Forces a replica to perform a manual failover of its master.",
				Differs: "Makes this node the leader once it has everything. The options change nothing", Flags: Admin | NoAsyncLoading,
				Parse: parseClusterFailover,
			}),
			clusterRefusal("flushslots", "", "", "Delete a node's own slots information"),
			clusterRefusal("forget", "node-id", "", "Remove a node from the nodes table"),
			clusterRow(Command{
				Name: "getkeysinslot", Syntax: "slot count", Summary: "Return local key names in the specified hash slot",
				Differs: "Those of the selected database; takes time in proportion to its keys", Tips: "nondeterministic_output",
				Flags: OnLeader, Scope: ScopeSweep, Parse: parseClusterGetKeys,
			}),
			clusterRow(Command{
				Name: "help", Since: "5.0.0", Summary: "Show helpful text about the different subcommands",
				Differs: "Its text is generated from the table of commands", Flags: Loading,
				Parse: noParse(inCluster(func(*Context, *topology.View) Reply { return help(table["cluster"]) })),
			}),
			clusterRow(Command{
				Name: "info", Summary: "Provides info about Redis Cluster node state", Tips: "nondeterministic_output",
				Differs: "Without counts of messages", Parse: noParse(inCluster(runClusterInfo)),
			}),
			clusterRow(Command{
				Name: "keyslot", Syntax: "key", Summary: "Returns the hash slot of the specified key",
				Parse: func(in *Input) (Run, error) {
					slot := topology.Slot(in.Args[2])
					return inCluster(func(*Context, *topology.View) Reply { return Count(slot) }), nil
				},
			}),
			clusterRow(Command{
				Name: "links", Since: "7.0.0", Summary: "Returns a list of all TCP links to and from peer nodes in cluster",
				Differs: "Times and sizes are 0", Tips: "nondeterministic_output", Parse: noParse(inCluster(runClusterLinks)),
			}),
			clusterRefusal("meet", "ip port [cluster_bus_port]", "", "Force a node cluster to handshake with another node"),
			clusterRow(Command{
				Name: "myid", Summary: "Return the node id",
				Parse: noParse(inCluster(func(x *Context, v *topology.View) Reply {
					if self := v.Self(); self != nil {
						return Bulk(v.NodeID(self))
					}
					return Fail(x.Engine.notLoaded())
				})),
			}),
			clusterRow(Command{
				Name: "myshardid", Since: "7.2.0", Summary: "Returns the shard ID of a node.",
				Parse: noParse(inCluster(func(_ *Context, v *topology.View) Reply { return Bulk(v.ShardID()) })),
			}),
			clusterRow(Command{
				Name: "nodes", Summary: "Get Cluster config for the node", Tips: "nondeterministic_output",
				Parse: noParse(inCluster(runClusterNodes)),
			}),
			clusterChange("remove", "name", "Removes a node, or withdraws what ADD has announced.", parseClusterRemove),
			clusterRow(Command{
				Name: "replicas", Syntax: "node-id", Since: "5.0.0", Summary: "List replica nodes of the specified master node",
				Flags: Admin, Tips: "nondeterministic_output", Parse: noParse(inCluster(runClusterReplicas)),
			}),
			clusterRefusal("replicate", "node-id", "", "Reconfigure a node as a replica of the specified master node"),
			with(clusterRefusal("reset", "[HARD | SOFT]", "", "Reset a Redis Cluster node"), func(c *Command) {
				c.Flags = c.Flags&^NoAsyncLoading | NoScript
			}),
			clusterRefusal("saveconfig", "", "", "Forces the node to save cluster state on disk"),
			clusterRefusal("set-config-epoch", "config-epoch", "", "Set the configuration epoch in a new node"),
			clusterRefusal("setslot", "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>", "", "Bind a hash slot to a specific node"),
			clusterRow(Command{
				Name: "shards", Since: "7.0.0", Summary: "Get array of cluster slots to node mappings", Tips: "nondeterministic_output",
				Parse: noParse(inCluster(runClusterShards)),
			}),
			clusterRow(Command{
				Name: "slaves", Syntax: "node-id", Summary: "List replica nodes of the specified master node",
				Flags: Admin, Tips: "nondeterministic_output", Parse: noParse(inCluster(runClusterReplicas)),
			}),
			clusterRow(Command{
				Name: "slots", Summary: "Get array of Cluster slot to node mappings", Tips: "nondeterministic_output",
				Parse: noParse(inCluster(runClusterSlots)),
			}),
			clusterRow(Command{
				Name: "status", Since: sinceFirst, Tips: "nondeterministic_output",
				Summary: "Returns role, term, leader and position of this node, and each member with its lag.",
				Parse:   noParse(inCluster(runClusterStatus)),
			}),
			clusterChange("transfer", "[name]", "Makes a node the leader; without a name the most up to date of the others.", parseClusterTransfer),
		},
	},
	{
		Name: "readonly", Since: "3.0.0", Summary: "Enables read queries for a connection to a cluster replica node",
		Flags: Fast | Loading | Stale | OnNode, Categories: "connection", Parse: noParse(setReadonly(true)),
	},
	{
		Name: "readwrite", Since: "3.0.0", Summary: "Disables read queries for a connection to a cluster replica node",
		Flags: Fast | Loading | Stale | OnNode, Categories: "connection", Parse: noParse(setReadonly(false)),
	},
}

// clusterRow fills in what the subcommands of CLUSTER have in common.
func clusterRow(c Command) Command {
	c.Flags |= Stale
	if c.Flags&OnLeader == 0 {
		c.Flags |= OnNode
	}
	return c
}

// clusterChange is the row of mayfly's own changes of the cluster.
func clusterChange(name, syntax, summary string, parse func(*Input) (Run, error)) Command {
	return clusterRow(Command{
		Name: name, Syntax: syntax, Since: sinceFirst, Summary: summary,
		Flags: Admin | NoScript | NoMulti, Parse: parse,
	})
}

// clusterRefusal is the row of a subcommand of Redis that has no meaning here.
func clusterRefusal(name, syntax, since, summary string) Command {
	refusal := errorf(errNotManual, strings.ToUpper(name))
	return clusterRow(Command{
		Name: name, Syntax: syntax, Since: since, Summary: summary, Differs: "Refused: one group of nodes has all slots",
		Flags: Admin | NoAsyncLoading, Parse: noParse(inCluster(func(*Context, *topology.View) Reply { return Fail(refusal) })),
	})
}

// inCluster returns the Run of a command that needs a cluster. Without one it replies as Redis does.
func inCluster(run func(x *Context, v *topology.View) Reply) Run {
	return func(x *Context) Reply {
		if x.Engine.Cluster == nil {
			return Fail(errNoCluster)
		}
		return run(x, x.Engine.Cluster.View())
	}
}

// failInCluster returns the Run of a command with wrong arguments. Without a cluster it replies as Redis does.
func failInCluster(err error) (Run, error) {
	return inCluster(func(*Context, *topology.View) Reply { return Fail(err) }), nil
}

func setReadonly(on bool) Run {
	return inCluster(func(x *Context, _ *topology.View) Reply {
		x.Session.readonly = on
		return OK
	})
}

// changeCluster leaves a change of the cluster for after the transaction. It replies OK once the change is committed.
func (x *Context) changeCluster(what string, limit time.Duration, change func(ctx context.Context, c Cluster) error) Reply {
	x.outside = func() (Reply, bool) {
		ctx, cancel := x.Session.patience(limit)
		defer cancel()
		x.Engine.Log.Info().Int64("client", x.Session.ID).Str("addr", x.Session.Addr).Msg("CLUSTER " + what)
		if err := change(ctx, x.Engine.Cluster); err != nil {
			return Fail(errorf(errChangeFailed, what, err)), false
		}
		return OK, false
	}
	return Reply{}
}

func parseClusterAdd(in *Input) (Run, error) {
	name, addr, _ := strings.Cut(in.Args[2], "=")
	switch {
	case !entry.IsAddr(addr):
		return failInCluster(errorf(errNodeAddress, shown(in.Args[2])))
	case !entry.IsName(name):
		return failInCluster(errorf(errNodeName, shown(name)))
	}
	return inCluster(func(x *Context, _ *topology.View) Reply {
		name, addr := strings.Clone(name), strings.Clone(addr)
		return x.changeCluster("ADD", memberTimeout, func(ctx context.Context, c Cluster) error { return c.Add(ctx, name, addr) })
	}), nil
}

func parseClusterRemove(*Input) (Run, error) {
	return inCluster(func(x *Context, _ *topology.View) Reply {
		if !entry.IsName(x.Input.Args[2]) {
			return Fail(errorf(errNodeName, shown(x.Input.Args[2])))
		}
		name := strings.Clone(x.Input.Args[2]) // the leader knows whether it exists
		return x.changeCluster("REMOVE", memberTimeout, func(ctx context.Context, c Cluster) error { return c.Remove(ctx, name) })
	}), nil
}

func parseClusterTransfer(in *Input) (Run, error) {
	if len(in.Args) > 3 {
		return failInCluster(errorf(errSubcommandCall, shown(in.Args[1]), "CLUSTER"))
	}
	return inCluster(func(x *Context, v *topology.View) Reply {
		name := ""
		if len(x.Input.Args) == 3 {
			name = strings.Clone(x.Input.Args[2])
		}
		if name != "" && len(v.Members) > 0 && v.Member(name) == nil {
			return Fail(errorf(errUnknownNode, shown(name)))
		}
		return x.transfer(name)
	}), nil
}

// transfer makes a node the leader.
func (x *Context) transfer(name string) Reply {
	return x.changeCluster("TRANSFER", transferTimeout, func(ctx context.Context, c Cluster) error { return c.Transfer(ctx, name) })
}

func parseClusterFailover(in *Input) (Run, error) {
	if len(in.Args) > 3 {
		return failInCluster(errorf(errSubcommandCall, shown(in.Args[1]), "CLUSTER"))
	}
	if len(in.Args) == 3 && !redisfmt.EqualFold(in.Args[2], "FORCE") && !redisfmt.EqualFold(in.Args[2], "TAKEOVER") {
		return failInCluster(errSyntax)
	}
	return inCluster(func(x *Context, v *topology.View) Reply {
		self := v.Self()
		if self == nil || v.Leads() {
			return Fail(errNotReplica)
		}
		return x.transfer(self.Name)
	}), nil
}

// slotArg reads the slot of a subcommand.
func slotArg(text string) (int, bool) {
	n, ok := redisfmt.ParseInt(text)
	return int(n), ok && n >= 0 && n < topology.Slots
}

func parseClusterCountKeys(in *Input) (Run, error) {
	slot, ok := slotArg(in.Args[2])
	_, isNumber := redisfmt.ParseInt(in.Args[2])
	return inCluster(func(x *Context, _ *topology.View) Reply {
		switch {
		case !isNumber:
			return Fail(errNotInteger)
		case !ok:
			return Fail(errSlot)
		}
		n := 0
		return x.inSlot(slot, func(string) { n++ }, func() Reply { return Count(n) })
	}), nil
}

func parseClusterGetKeys(in *Input) (Run, error) {
	slot, ok := slotArg(in.Args[2])
	_, isNumber := redisfmt.ParseInt(in.Args[2])
	most, isCount := redisfmt.ParseInt(in.Args[3])
	return inCluster(func(x *Context, _ *topology.View) Reply {
		switch {
		case !isNumber || !isCount:
			return Fail(errNotInteger)
		case !ok || most < 0:
			return Fail(errSlotCount)
		}
		keys := []Reply{}
		return x.inSlot(slot, func(key string) {
			if int64(len(keys)) < most {
				keys = append(keys, Bulk(key))
			}
		}, func() Reply { return Array(keys...) })
	}), nil
}

// inSlot visits the keys of the selected database in a slot, and returns the reply then.
func (x *Context) inSlot(slot int, visit func(key string), reply func() Reply) Reply {
	c, err := x.Database()
	if err != nil {
		return Fail(err)
	}
	x.scan(c, 0, math.MaxInt, func(id string, _ keyspace.Item) {
		if topology.Slot(id) == slot {
			visit(id)
		}
	})
	if x.abandoned {
		return Fail(errAbandoned)
	}
	return reply()
}

func runClusterDigest(x *Context, _ *topology.View) Reply {
	if !x.Engine.loaded() {
		return Fail(x.Engine.notLoaded()) // the keyspace of before is closed, and what it had may never be committed
	}
	ks := x.Engine.Keyspace()
	x.outside = func() (Reply, bool) {
		sum, items, at := ks.Digest()
		return Map(
			Bulk("index"), Integer(int64(at.Index)),
			Bulk("term"), Integer(int64(at.Term)),
			Bulk("moment"), Integer(at.Moment),
			Bulk("items"), Integer(items),
			Bulk("digest"), Bulk(hex.EncodeToString(sum[:])),
		), false
	}
	return Reply{}
}
