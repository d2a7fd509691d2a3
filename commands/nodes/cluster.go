package nodes

import (
	"context"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"mayfly/cluster/entry"
	"mayfly/cluster/topology"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// Clients of Redis Cluster see one shard with all slots: the leader is its master, the other nodes are its
// replicas.

// The errors of CLUSTER, in Redis' words where Redis has the case.
const (
	errSlot         = engine.Error("ERR Invalid slot")
	errSlotCount    = engine.Error("ERR Invalid slot or number of keys")
	errUnknownNode  = "ERR Unknown node %s"
	errNotReplica   = engine.Error("ERR You should send CLUSTER FAILOVER to a replica")
	errReplicasOf   = engine.Error("ERR The specified node is not a master")
	errNotManual    = "ERR CLUSTER %s does not apply: one group of nodes has all slots, and it agrees on its members itself. See CLUSTER HELP for ADD, REMOVE and TRANSFER"
	errNodeAddress  = "ERR invalid node '%s': legal is name=host:port, the port of cluster-addr"
	errNodeName     = "ERR invalid name of a node '%s': legal are 1 to 63 letters, digits, dots, dashes and underscores, the first a letter or a digit"
	errChangeFailed = "ERR CLUSTER %s failed: %s"
	memberTimeout   = 30 * time.Second // for a change of members
	transferTimeout = 10 * time.Second
)

var ClusterCommands = []engine.Command{
	{
		Name: "asking", Since: "3.0.0", Summary: "Sent by cluster clients after an -ASK redirect",
		Differs: "Has no effect: slots do not move",
		Flags:   engine.Fast | engine.OnNode, Categories: "connection",
		Parse: engine.NoParse(inCluster(func(*engine.Context, *topology.View) engine.Reply { return engine.OK })),
	},
	{
		Name: "cluster", Since: "3.0.0", Summary: "A container for cluster commands",
		Sub: []engine.Command{
			clusterChange("add", "name=host:port", "Announces a node, which may join then.", parseClusterAdd),
			clusterRefusal("addslots", "slot [slot ...]", "", "Assign new hash slots to receiving node"),
			clusterRefusal("addslotsrange", "start-slot end-slot [start-slot end-slot ...]", "7.0.0", "Assign new hash slots to receiving node"),
			engine.With(clusterRefusal("bumpepoch", "", "", "Advance the cluster config epoch"), func(c *engine.Command) {
				c.Tips = "nondeterministic_output"
			}),
			clusterRow(engine.Command{
				Name: "count-failure-reports", Syntax: "node-id", Summary: "Return the number of failure reports active for a given node",
				Differs: "Counts this node's own report", Flags: engine.Admin, Tips: "nondeterministic_output",
				Parse: engine.NoParse(inCluster(runClusterFailureReports)),
			}),
			clusterRow(engine.Command{
				Name: "countkeysinslot", Syntax: "slot", Summary: "Return the number of local keys in the specified hash slot",
				Differs: "Counts those of the selected database; takes time in proportion to its keys",
				Touches: engine.TouchesSelected, Flags: engine.OnLeader, Scope: engine.ScopeSweep, Parse: parseClusterCountKeys,
			}),
			clusterRefusal("delslots", "slot [slot ...]", "", "Set hash slots as unbound in receiving node"),
			clusterRefusal("delslotsrange", "start-slot end-slot [start-slot end-slot ...]", "7.0.0", "Set hash slots as unbound in receiving node"),
			clusterRow(engine.Command{
				Name: "digest", Since: engine.SinceFirst, Flags: engine.Admin,
				Summary: "Returns the position of this node in the log, and a digest of all items and containers. Nodes at the same position have the same digest.",
				Parse:   engine.NoParse(inCluster(runClusterDigest)),
			}),
			clusterRow(engine.Command{
				Name: "failover", Syntax: "[FORCE | TAKEOVER]", Summary: "Forces a replica to perform a manual failover of its master.",
				Differs: "Makes this node the leader once it has everything. The options change nothing", Flags: engine.Admin | engine.NoAsyncLoading,
				Parse: parseClusterFailover,
			}),
			clusterRefusal("flushslots", "", "", "Delete a node's own slots information"),
			clusterRefusal("forget", "node-id", "", "Remove a node from the nodes table"),
			clusterRow(engine.Command{
				Name: "getkeysinslot", Syntax: "slot count", Summary: "Return local key names in the specified hash slot",
				Differs: "Those of the selected database; takes time in proportion to its keys", Tips: "nondeterministic_output",
				Touches: engine.TouchesSelected, Flags: engine.OnLeader, Scope: engine.ScopeSweep, Parse: parseClusterGetKeys,
			}),
			clusterRow(engine.Command{
				Name: "help", Since: "5.0.0", Summary: "Show helpful text about the different subcommands",
				Differs: "Its text is generated from the table of commands", Flags: engine.Loading,
				Parse: engine.NoParse(inCluster(func(*engine.Context, *topology.View) engine.Reply { return engine.Help(engine.Table["cluster"]) })),
			}),
			clusterRow(engine.Command{
				Name: "info", Summary: "Provides info about Redis Cluster node state", Tips: "nondeterministic_output",
				Differs: "Without counts of messages", Parse: engine.NoParse(inCluster(runClusterInfo)),
			}),
			clusterRow(engine.Command{
				Name: "keyslot", Syntax: "key", Summary: "Returns the hash slot of the specified key",
				Parse: func(in *engine.Input) (engine.Run, error) {
					slot := topology.Slot(in.Args[2])
					return inCluster(func(*engine.Context, *topology.View) engine.Reply { return engine.Count(slot) }), nil
				},
			}),
			clusterRow(engine.Command{
				Name: "links", Since: "7.0.0", Summary: "Returns a list of all TCP links to and from peer nodes in cluster",
				Differs: "Times and sizes are 0", Tips: "nondeterministic_output", Parse: engine.NoParse(inCluster(runClusterLinks)),
			}),
			clusterRefusal("meet", "ip port [cluster_bus_port]", "", "Force a node cluster to handshake with another node"),
			clusterRow(engine.Command{
				Name: "myid", Summary: "Return the node id",
				Parse: engine.NoParse(inCluster(func(x *engine.Context, v *topology.View) engine.Reply {
					if self := v.Self(); self != nil {
						return engine.Bulk(v.NodeID(self))
					}
					return engine.Fail(x.Engine.NotLoaded())
				})),
			}),
			clusterRow(engine.Command{
				Name: "myshardid", Since: "7.2.0", Summary: "Returns the shard ID of a node.",
				Parse: engine.NoParse(inCluster(func(_ *engine.Context, v *topology.View) engine.Reply { return engine.Bulk(v.ShardID()) })),
			}),
			clusterRow(engine.Command{
				Name: "nodes", Summary: "Get Cluster config for the node", Tips: "nondeterministic_output",
				Parse: engine.NoParse(inCluster(runClusterNodes)),
			}),
			clusterChange("remove", "name", "Removes a node, or withdraws what ADD has announced.", parseClusterRemove),
			clusterRow(engine.Command{
				Name: "replicas", Syntax: "node-id", Since: "5.0.0", Summary: "List replica nodes of the specified master node",
				Flags: engine.Admin, Tips: "nondeterministic_output", Parse: engine.NoParse(inCluster(runClusterReplicas)),
			}),
			clusterRefusal("replicate", "node-id", "", "Reconfigure a node as a replica of the specified master node"),
			engine.With(clusterRefusal("reset", "[HARD | SOFT]", "", "Reset a Redis Cluster node"), func(c *engine.Command) {
				c.Flags = c.Flags&^engine.NoAsyncLoading | engine.NoScript
			}),
			clusterRefusal("saveconfig", "", "", "Forces the node to save cluster state on disk"),
			clusterRefusal("set-config-epoch", "config-epoch", "", "Set the configuration epoch in a new node"),
			clusterRefusal("setslot", "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>", "", "Bind a hash slot to a specific node"),
			clusterRow(engine.Command{
				Name: "shards", Since: "7.0.0", Summary: "Get array of cluster slots to node mappings", Tips: "nondeterministic_output",
				Parse: engine.NoParse(inCluster(runClusterShards)),
			}),
			clusterRow(engine.Command{
				Name: "slaves", Syntax: "node-id", Summary: "List replica nodes of the specified master node",
				Flags: engine.Admin, Tips: "nondeterministic_output", Parse: engine.NoParse(inCluster(runClusterReplicas)),
			}),
			clusterRow(engine.Command{
				Name: "slots", Summary: "Get array of Cluster slot to node mappings", Tips: "nondeterministic_output",
				Parse: engine.NoParse(inCluster(runClusterSlots)),
			}),
			clusterRow(engine.Command{
				Name: "status", Since: engine.SinceFirst, Tips: "nondeterministic_output",
				Summary: "Returns role, term, leader and position of this node, and each member with its lag.",
				Parse:   engine.NoParse(inCluster(runClusterStatus)),
			}),
			clusterChange("transfer", "[name]", "Makes a node the leader; without a name the most up to date of the others.", parseClusterTransfer),
		},
	},
	{
		Name: "readonly", Since: "3.0.0", Summary: "Enables read queries for a connection to a cluster replica node",
		Flags: engine.Fast | engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Parse: engine.NoParse(setReadonly(true)),
	},
	{
		Name: "readwrite", Since: "3.0.0", Summary: "Disables read queries for a connection to a cluster replica node",
		Flags: engine.Fast | engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Parse: engine.NoParse(setReadonly(false)),
	},
}

// clusterRow fills in what the subcommands of CLUSTER have in common.
func clusterRow(c engine.Command) engine.Command {
	c.Flags |= engine.Stale
	if c.Flags&engine.OnLeader == 0 {
		c.Flags |= engine.OnNode
	}
	return c
}

// clusterChange is the row of mayfly's own changes of the cluster.
func clusterChange(name, syntax, summary string, parse func(*engine.Input) (engine.Run, error)) engine.Command {
	return clusterRow(engine.Command{
		Name: name, Syntax: syntax, Since: engine.SinceFirst, Summary: summary,
		Flags: engine.Admin | engine.NoScript | engine.NoMulti, Parse: parse,
	})
}

// clusterRefusal is the row of a subcommand of Redis that has no meaning here.
func clusterRefusal(name, syntax, since, summary string) engine.Command {
	refusal := engine.Errorf(errNotManual, strings.ToUpper(name))
	return clusterRow(engine.Command{
		Name: name, Syntax: syntax, Since: since, Summary: summary, Differs: "Refused: one group of nodes has all slots",
		Flags: engine.Admin | engine.NoAsyncLoading, Parse: engine.NoParse(inCluster(func(*engine.Context, *topology.View) engine.Reply { return engine.Fail(refusal) })),
	})
}

// inCluster returns the Run of a command that needs a cluster. Without one it replies as Redis does.
func inCluster(run func(x *engine.Context, v *topology.View) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if x.Engine.Cluster == nil {
			return engine.Fail(engine.ErrNoCluster)
		}
		return run(x, x.Engine.Cluster.View())
	}
}

// failInCluster returns the Run of a command with wrong arguments. Without a cluster it replies as Redis
// does.
func failInCluster(err error) (engine.Run, error) {
	return inCluster(func(*engine.Context, *topology.View) engine.Reply { return engine.Fail(err) }), nil
}

func setReadonly(on bool) engine.Run {
	return inCluster(func(x *engine.Context, _ *topology.View) engine.Reply {
		x.Session.Readonly = on
		return engine.OK
	})
}

// changeCluster leaves a change of the cluster for after the transaction. It replies OK once the change is
// committed.
func changeCluster(x *engine.Context, what string, limit time.Duration, change func(ctx context.Context, c engine.Cluster) error) engine.Reply {
	x.Outside = func() (engine.Reply, bool) {
		ctx, cancel := patience(x.Session, limit)
		defer cancel()
		x.Engine.Log.Info().Int64("client", x.Session.ID).Str("addr", x.Session.Addr).Msg("CLUSTER " + what)
		if err := change(ctx, x.Engine.Cluster); err != nil {
			return engine.Fail(engine.Errorf(errChangeFailed, what, err)), false
		}
		return engine.OK, false
	}
	return engine.Reply{}
}

func parseClusterAdd(in *engine.Input) (engine.Run, error) {
	name, addr, _ := strings.Cut(in.Args[2], "=")
	switch {
	case !entry.IsAddr(addr):
		return failInCluster(engine.Errorf(errNodeAddress, engine.Shown(in.Args[2])))
	case !entry.IsName(name):
		return failInCluster(engine.Errorf(errNodeName, engine.Shown(name)))
	}
	return inCluster(func(x *engine.Context, _ *topology.View) engine.Reply {
		name, addr := strings.Clone(name), strings.Clone(addr)
		return changeCluster(x, "ADD", memberTimeout, func(ctx context.Context, c engine.Cluster) error { return c.Add(ctx, name, addr) })
	}), nil
}

func parseClusterRemove(*engine.Input) (engine.Run, error) {
	return inCluster(func(x *engine.Context, _ *topology.View) engine.Reply {
		if !entry.IsName(x.Input.Args[2]) {
			return engine.Fail(engine.Errorf(errNodeName, engine.Shown(x.Input.Args[2])))
		}
		name := strings.Clone(x.Input.Args[2]) // the leader knows whether it exists
		return changeCluster(x, "REMOVE", memberTimeout, func(ctx context.Context, c engine.Cluster) error { return c.Remove(ctx, name) })
	}), nil
}

func parseClusterTransfer(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 3 {
		return failInCluster(engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "CLUSTER"))
	}
	return inCluster(func(x *engine.Context, v *topology.View) engine.Reply {
		name := ""
		if len(x.Input.Args) == 3 {
			name = strings.Clone(x.Input.Args[2])
		}
		if name != "" && len(v.Members) > 0 && v.Member(name) == nil {
			return engine.Fail(engine.Errorf(errUnknownNode, engine.Shown(name)))
		}
		return transfer(x, name)
	}), nil
}

// transfer makes a node the leader.
func transfer(x *engine.Context, name string) engine.Reply {
	return changeCluster(x, "TRANSFER", transferTimeout, func(ctx context.Context, c engine.Cluster) error { return c.Transfer(ctx, name) })
}

func parseClusterFailover(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 3 {
		return failInCluster(engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "CLUSTER"))
	}
	if len(in.Args) == 3 && !redisfmt.EqualFold(in.Args[2], "FORCE") && !redisfmt.EqualFold(in.Args[2], "TAKEOVER") {
		return failInCluster(engine.ErrSyntax)
	}
	return inCluster(func(x *engine.Context, v *topology.View) engine.Reply {
		self := v.Self()
		if self == nil || v.Leads() {
			return engine.Fail(errNotReplica)
		}
		return transfer(x, self.Name)
	}), nil
}

// slotArg reads the slot of a subcommand.
func slotArg(text string) (int, bool) {
	n, ok := redisfmt.ParseInt(text)
	return int(n), ok && n >= 0 && n < topology.Slots
}

func parseClusterCountKeys(in *engine.Input) (engine.Run, error) {
	slot, ok := slotArg(in.Args[2])
	_, isNumber := redisfmt.ParseInt(in.Args[2])
	return inCluster(func(x *engine.Context, _ *topology.View) engine.Reply {
		switch {
		case !isNumber:
			return engine.Fail(engine.ErrNotInteger)
		case !ok:
			return engine.Fail(errSlot)
		}
		n := 0
		return inSlot(x, slot, func(string) { n++ }, func() engine.Reply { return engine.Count(n) })
	}), nil
}

func parseClusterGetKeys(in *engine.Input) (engine.Run, error) {
	slot, ok := slotArg(in.Args[2])
	_, isNumber := redisfmt.ParseInt(in.Args[2])
	most, isCount := redisfmt.ParseInt(in.Args[3])
	return inCluster(func(x *engine.Context, _ *topology.View) engine.Reply {
		switch {
		case !isNumber || !isCount:
			return engine.Fail(engine.ErrNotInteger)
		case !ok || most < 0:
			return engine.Fail(errSlotCount)
		}
		keys := []engine.Reply{}
		return inSlot(x, slot, func(key string) {
			if int64(len(keys)) < most {
				keys = append(keys, engine.Bulk(key))
			}
		}, func() engine.Reply { return engine.Array(keys...) })
	}), nil
}

// inSlot visits the keys of the selected database in a slot, and returns the reply then.
func inSlot(x *engine.Context, slot int, visit func(key string), reply func() engine.Reply) engine.Reply {
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	items.Scan(x, c, 0, math.MaxInt, func(id string, _ keyspace.Item) {
		if topology.Slot(id) == slot {
			visit(id)
		}
	})
	if x.Abandoned {
		return engine.Fail(engine.ErrAbandoned)
	}
	return reply()
}

func runClusterDigest(x *engine.Context, _ *topology.View) engine.Reply {
	if !x.Engine.Loaded() {
		return engine.Fail(x.Engine.NotLoaded()) // the keyspace of before is closed, and what it had may never be committed
	}
	ks := x.Engine.Keyspace()
	x.Outside = func() (engine.Reply, bool) {
		sum, items, at := ks.Digest()
		return engine.Map(
			engine.Bulk("index"), engine.Integer(int64(at.Index)),
			engine.Bulk("term"), engine.Integer(int64(at.Term)),
			engine.Bulk("moment"), engine.Integer(at.Moment),
			engine.Bulk("items"), engine.Integer(items),
			engine.Bulk("digest"), engine.Bulk(hex.EncodeToString(sum[:])),
		), false
	}
	return engine.Reply{}
}
