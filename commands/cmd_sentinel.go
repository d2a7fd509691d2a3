package commands

import (
	"fmt"
	"strconv"
	"strings"

	"mayfly/cluster/topology"
	"mayfly/commands/redisfmt"
)

// Every node of a cluster answers clients as a Sentinel that watches the cluster. The one master goes by any name.

const (
	errNoGoodReplica  = Error("NOGOODSLAVE No suitable replica to promote")
	errNotSentinel    = "ERR SENTINEL %s does not apply: the nodes of the cluster watch each other themselves"
	noQuorum          = "NOQUORUM %d usable Sentinels. Not enough available Sentinels to reach the majority and authorize a failover"
	quorum            = "OK %d usable Sentinels. Quorum and failover authorization can be reached"
	sentinelDownAfter = 1000 // ms; only shown
)

var sentinelCommand = Command{
	Name: "sentinel", Since: "2.8.4", Summary: "A container for Sentinel commands", Flags: OnlyInCluster,
	Sub: []Command{
		sentinelRow("ckquorum", "master-name", "Check for a Sentinel quorum", runSentinelQuorum),
		sentinelRefusal("config", "<GET name | SET name value>", "6.2.0", "Configure Sentinel"),
		sentinelRow("failover", "master-name", "Force a failover", func(x *Context, v *topology.View) Reply {
			if len(v.Replicas()) == 0 {
				return Fail(errNoGoodReplica)
			}
			return x.transfer("")
		}),
		sentinelRefusal("flushconfig", "", "", "Rewrite configuration file"),
		sentinelRow("get-master-addr-by-name", "master-name", "Get port and address of a master", func(_ *Context, v *topology.View) Reply {
			if v.Leader == nil {
				return NullArray
			}
			return Bulks(v.Leader.Split())
		}),
		sentinelHelp(),
		sentinelRow("is-master-down-by-addr", "ip port current-epoch runid", "Check if a master is down", runSentinelMasterDown),
		sentinelRow("master", "master-name", "Shows the state of a master", func(x *Context, v *topology.View) Reply {
			if v.Master() == nil {
				return Fail(x.Engine.notLoaded())
			}
			return sentinelMaster(v, v.Master())
		}),
		sentinelRow("masters", "", "List the monitored masters", func(_ *Context, v *topology.View) Reply {
			if v.Master() == nil {
				return Array()
			}
			return Array(sentinelMaster(v, v.Master()))
		}),
		sentinelRefusal("monitor", "name ip port quorum", "", "Start monitoring"),
		sentinelRow("myid", "", "Get the Sentinel instance ID", func(_ *Context, v *topology.View) Reply {
			if self := v.Self(); self != nil {
				return Bulk(v.NodeID(self))
			}
			return Bulk(runID())
		}),
		sentinelRefusal("remove", "master-name", "", "Stop monitoring"),
		sentinelRow("replicas", "master-name", "List the monitored replicas", runSentinelReplicas),
		sentinelRefusal("reset", "pattern", "", "Reset masters by name matching a pattern"),
		sentinelRow("sentinels", "master-name", "List the Sentinel instances", runSentinelSentinels),
		sentinelRefusal("set", "master-name option value [option value ...]", "", "Change the configuration of a monitored master"),
		sentinelRow("slaves", "master-name", "List the monitored slaves", runSentinelReplicas),
	},
}

func sentinelRow(name, syntax, summary string, run func(x *Context, v *topology.View) Reply) Command {
	return Command{
		Name: name, Syntax: syntax, Summary: summary,
		Differs: "Every node of a cluster answers, for its own cluster and any name",
		Flags:   Admin | Loading | Stale | OnNode | OnlyInCluster, Parse: noParse(inCluster(run)),
	}
}

// sentinelRefusal is the row of a subcommand that has no meaning here.
func sentinelRefusal(name, syntax, since, summary string) Command {
	refusal := errorf(errNotSentinel, strings.ToUpper(name))
	c := sentinelRow(name, syntax, summary, func(*Context, *topology.View) Reply { return Fail(refusal) })
	c.Since, c.Differs = since, "Refused: the nodes watch each other themselves"
	return c
}

func sentinelHelp() Command {
	c := sentinelRow("help", "", "Show helpful text about the different subcommands", func(*Context, *topology.View) Reply { return help(table["sentinel"]) })
	c.Differs = "Its text is generated from the table of commands"
	return c
}

// sentinelFields begins the description of an instance.
func sentinelFields(v *topology.View, m *topology.Member, name, flags string) []Reply {
	host, port := m.Split()
	if !m.Up() {
		flags = "s_down," + flags + ",disconnected"
	}
	contact := strconv.FormatInt(max(contactOf(m), 0), 10)
	return []Reply{
		Bulk("name"), Bulk(name),
		Bulk("ip"), Bulk(host),
		Bulk("port"), Bulk(port),
		Bulk("runid"), Bulk(v.NodeID(m)),
		Bulk("flags"), Bulk(flags),
		Bulk("link-pending-commands"), Bulk("0"),
		Bulk("link-refcount"), Bulk("1"),
		Bulk("last-ping-sent"), Bulk("0"),
		Bulk("last-ok-ping-reply"), Bulk(contact),
		Bulk("last-ping-reply"), Bulk(contact),
		Bulk("down-after-milliseconds"), Bulk(strconv.Itoa(sentinelDownAfter)),
	}
}

// sentinelRole adds the role that an instance reports.
func sentinelRole(list []Reply, role string) []Reply {
	return append(list,
		Bulk("info-refresh"), Bulk("0"),
		Bulk("role-reported"), Bulk(role),
		Bulk("role-reported-time"), Bulk("0"),
	)
}

// sentinelMaster describes the master. While no leader is known, it is down.
func sentinelMaster(v *topology.View, m *topology.Member) Reply {
	flags := "master"
	if v.Leader == nil {
		flags = "s_down,o_down,master"
	}
	list := sentinelRole(sentinelFields(v, m, v.Name, flags), "master")
	return Map(append(list,
		Bulk("config-epoch"), Bulk(strconv.FormatUint(v.Term, 10)),
		Bulk("num-slaves"), Bulk(strconv.Itoa(len(v.Replicas()))),
		Bulk("num-other-sentinels"), Bulk(strconv.Itoa(len(v.Members)-1)),
		Bulk("quorum"), Bulk(strconv.Itoa(v.Voters()/2+1)),
		Bulk("failover-timeout"), Bulk("180000"),
		Bulk("parallel-syncs"), Bulk("1"),
	)...)
}

func runSentinelReplicas(_ *Context, v *topology.View) Reply {
	master := v.Master()
	if master == nil {
		return Array()
	}
	host, port := master.Split()
	list := []Reply{}
	for _, m := range v.Replicas() {
		link, name := "ok", m.Client
		if !m.Up() {
			link = "err"
		}
		list = append(list, Map(append(sentinelRole(sentinelFields(v, m, name, "slave"), "slave"),
			Bulk("master-link-down-time"), Bulk("0"),
			Bulk("master-link-status"), Bulk(link),
			Bulk("master-host"), Bulk(host),
			Bulk("master-port"), Bulk(port),
			Bulk("slave-priority"), Bulk("100"),
			Bulk("slave-repl-offset"), Bulk(strconv.FormatUint(v.Offset(m), 10)),
			Bulk("replica-announced"), Bulk("1"),
		)...))
	}
	return Array(list...)
}

func runSentinelSentinels(_ *Context, v *topology.View) Reply {
	list := []Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Self {
			continue
		}
		list = append(list, Map(append(sentinelFields(v, m, v.NodeID(m), "sentinel"),
			Bulk("last-hello-message"), Bulk(strconv.FormatInt(max(contactOf(m), 0), 10)),
			Bulk("voted-leader"), Bulk("?"),
			Bulk("voted-leader-epoch"), Bulk("0"),
		)...))
	}
	return Array(list...)
}

func runSentinelQuorum(_ *Context, v *topology.View) Reply {
	usable := 0
	for i := range v.Members {
		if m := &v.Members[i]; m.Voter && m.Up() {
			usable++
		}
	}
	if usable < v.Voters()/2+1 || usable == 0 {
		return Fail(Error(fmt.Sprintf(noQuorum, usable)))
	}
	return Status(fmt.Sprintf(quorum, usable))
}

// runSentinelMasterDown is SENTINEL IS-MASTER-DOWN-BY-ADDR. It casts no vote: the nodes elect their leader themselves.
func runSentinelMasterDown(x *Context, v *topology.View) Reply {
	ip, port := x.Input.Args[2], x.Input.Args[3]
	for _, number := range x.Input.Args[3:5] {
		if _, ok := redisfmt.ParseInt(number); !ok {
			return Fail(errNotInteger)
		}
	}
	up := false
	if v.Leader != nil {
		host, p := v.Leader.Split()
		up = host == ip && p == port
	}
	return Array(Flag(!up), Bulk("*"), Integer(0))
}
