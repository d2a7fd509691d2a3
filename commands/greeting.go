package commands

// What programs with windows, and some libraries, ask of a server before they do anything else. Of ACL and
// MODULE there is nothing more: the one user may do everything, and there are no modules. CLUSTER and ROLE
// answer as in a Redis that is alone.

var aclCommand = Command{
	Name: "acl", Summary: "A container for Access List Control commands ",
	Group: "server", Since: "6.0.0", Arity: -2,
	Sub: []Command{
		withSince(helpRow("acl", "server"), "6.0.0"),
		{
			Name: "whoami", Summary: "Return the name of the user associated to the current connection",
			Group: "server", Since: "6.0.0", Arity: 2, Flags: NoScript | Loading | Stale,
			Differs: "There is only one user",
			Parse:   just(func(*Context) Reply { return Bulk(defaultUser) }),
		},
	},
}

var moduleCommand = Command{
	Name: "module", Summary: "A container for module commands",
	Group: "server", Since: "4.0.0", Arity: -2,
	Sub: []Command{
		withSince(helpRow("module", "server"), "5.0.0"),
		{
			Name: "list", Summary: "List all modules loaded by the server",
			Group: "server", Since: "4.0.0", Arity: 2, Flags: Admin | NoScript, Tips: "nondeterministic_output_order",
			Differs: "There are none",
			Parse:   just(func(*Context) Reply { return Array() }),
		},
	},
}

var roleCommand = Command{
	Name: "role", Summary: "Return the role of the instance in the context of replication",
	Group: "server", Since: "2.8.12", Arity: 1, Flags: NoScript | Loading | Stale | Fast, Categories: "admin dangerous",
	Parse: just(func(*Context) Reply { return Array(Bulk("master"), Integer(0), Array()) }), // no replicas
}

var clusterCommands = []Command{
	{
		Name: "cluster", Summary: "A container for cluster commands", Group: "cluster", Since: "3.0.0", Arity: -2,
		Sub: []Command{
			clusterRow("countkeysinslot", "slot", "Return the number of local keys in the specified hash slot", "3.0.0", 3, ""),
			withFlags(clusterRow("help", "", "Show helpful text about the different subcommands", "5.0.0", 2, ""), Loading|Stale),
			clusterRow("info", "", "Provides info about Redis Cluster node state", "3.0.0", 2, "nondeterministic_output"),
			clusterRow("keyslot", "key", "Returns the hash slot of the specified key", "3.0.0", 3, ""),
			clusterRow("myid", "", "Return the node id", "3.0.0", 2, ""),
			clusterRow("nodes", "", "Get Cluster config for the node", "3.0.0", 2, "nondeterministic_output"),
			clusterRow("shards", "", "Get array of cluster slots to node mappings", "7.0.0", 2, "nondeterministic_output"),
			clusterRow("slots", "", "Get array of Cluster slot to node mappings", "3.0.0", 2, "nondeterministic_output"),
		},
	},
	withCategories(withFlags(clusterRow("readonly", "", "Enables read queries for a connection to a cluster replica node", "3.0.0", 1, ""),
		Fast|Loading|Stale), "connection"),
	withCategories(withFlags(clusterRow("readwrite", "", "Disables read queries for a connection to a cluster replica node", "3.0.0", 1, ""),
		Fast|Loading|Stale), "connection"),
}

// clusterRow is a row that, as in Redis, says that there is no cluster.
func clusterRow(name, syntax, summary, since string, arity int, tips string) Command {
	return Command{
		Name: name, Syntax: syntax, Summary: summary, Group: "cluster", Since: since, Arity: arity, Flags: Stale, Tips: tips,
		Parse: func(*Input) (Run, error) { return nil, errNoCluster },
	}
}

func withFlags(c Command, flags Flags) Command {
	c.Flags = flags
	return c
}
