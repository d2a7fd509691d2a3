package nodes

import (
	"fmt"
	"strconv"
	"strings"

	"mayfly/cluster/topology"
	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// Every node of a cluster answers clients as a Sentinel that watches the cluster. The one master goes by any
// name.

const (
	errNoGoodReplica  = engine.Error("NOGOODSLAVE No suitable replica to promote")
	errNotSentinel    = "ERR SENTINEL %s does not apply: the nodes of the cluster watch each other themselves"
	noQuorum          = "NOQUORUM %d usable Sentinels. Not enough available Sentinels to reach the majority and authorize a failover"
	quorum            = "OK %d usable Sentinels. Quorum and failover authorization can be reached"
	sentinelDownAfter = 1000 // ms; only shown
)

var SentinelCommand = engine.Command{
	Name: "sentinel", Since: "2.8.4", Summary: "A container for Sentinel commands", Flags: engine.OnlyInCluster,
	Sub: []engine.Command{
		sentinelRow("ckquorum", "master-name", "Check for a Sentinel quorum", runSentinelQuorum),
		sentinelRefusal("config", "<GET name | SET name value>", "6.2.0", "Configure Sentinel"),
		sentinelRow("failover", "master-name", "Force a failover", func(x *engine.Context, v *topology.View) engine.Reply {
			if len(v.Replicas()) == 0 {
				return engine.Fail(errNoGoodReplica)
			}
			return transfer(x, "")
		}),
		sentinelRefusal("flushconfig", "", "", "Rewrite configuration file"),
		sentinelRow("get-master-addr-by-name", "master-name", "Get port and address of a master", func(_ *engine.Context, v *topology.View) engine.Reply {
			if v.Leader == nil {
				return engine.NullArray
			}
			return engine.Bulks(v.Leader.Split())
		}),
		sentinelHelp(),
		sentinelRow("is-master-down-by-addr", "ip port current-epoch runid", "Check if a master is down", runSentinelMasterDown),
		sentinelRow("master", "master-name", "Shows the state of a master", func(x *engine.Context, v *topology.View) engine.Reply {
			if v.Master() == nil {
				return engine.Fail(x.Engine.NotLoaded())
			}
			return sentinelMaster(v, v.Master())
		}),
		sentinelRow("masters", "", "List the monitored masters", func(_ *engine.Context, v *topology.View) engine.Reply {
			if v.Master() == nil {
				return engine.Array()
			}
			return engine.Array(sentinelMaster(v, v.Master()))
		}),
		sentinelRefusal("monitor", "name ip port quorum", "", "Start monitoring"),
		sentinelRow("myid", "", "Get the Sentinel instance ID", func(_ *engine.Context, v *topology.View) engine.Reply {
			if self := v.Self(); self != nil {
				return engine.Bulk(v.NodeID(self))
			}
			return engine.Bulk(engine.RunID())
		}),
		sentinelRefusal("remove", "master-name", "", "Stop monitoring"),
		sentinelRow("replicas", "master-name", "List the monitored replicas", runSentinelReplicas),
		sentinelRefusal("reset", "pattern", "", "Reset masters by name matching a pattern"),
		sentinelRow("sentinels", "master-name", "List the Sentinel instances", runSentinelSentinels),
		sentinelRefusal("set", "master-name option value [option value ...]", "", "Change the configuration of a monitored master"),
		sentinelRow("slaves", "master-name", "List the monitored slaves", runSentinelReplicas),
	},
}

func sentinelRow(name, syntax, summary string, run func(x *engine.Context, v *topology.View) engine.Reply) engine.Command {
	return engine.Command{
		Name: name, Syntax: syntax, Summary: summary,
		Differs: "Every node of a cluster answers, for its own cluster and any name",
		Flags:   engine.Admin | engine.Loading | engine.Stale | engine.OnNode | engine.OnlyInCluster, Parse: engine.NoParse(inCluster(run)),
	}
}

// sentinelRefusal is the row of a subcommand that has no meaning here.
func sentinelRefusal(name, syntax, since, summary string) engine.Command {
	refusal := engine.Errorf(errNotSentinel, strings.ToUpper(name))
	c := sentinelRow(name, syntax, summary, func(*engine.Context, *topology.View) engine.Reply { return engine.Fail(refusal) })
	c.Since, c.Differs = since, "Refused: the nodes watch each other themselves"
	return c
}

func sentinelHelp() engine.Command {
	c := sentinelRow("help", "", "Show helpful text about the different subcommands", func(*engine.Context, *topology.View) engine.Reply { return engine.Help(engine.Table["sentinel"]) })
	c.Differs = "Its text is generated from the table of commands"
	return c
}

// sentinelFields begins the description of an instance.
func sentinelFields(v *topology.View, m *topology.Member, name, flags string) []engine.Reply {
	host, port := m.Split()
	if !m.Up() {
		flags = "s_down," + flags + ",disconnected"
	}
	contact := strconv.FormatInt(max(m.Contact(), 0), 10)
	return []engine.Reply{
		engine.Bulk("name"), engine.Bulk(name),
		engine.Bulk("ip"), engine.Bulk(host),
		engine.Bulk("port"), engine.Bulk(port),
		engine.Bulk("runid"), engine.Bulk(v.NodeID(m)),
		engine.Bulk("flags"), engine.Bulk(flags),
		engine.Bulk("link-pending-commands"), engine.Bulk("0"),
		engine.Bulk("link-refcount"), engine.Bulk("1"),
		engine.Bulk("last-ping-sent"), engine.Bulk("0"),
		engine.Bulk("last-ok-ping-reply"), engine.Bulk(contact),
		engine.Bulk("last-ping-reply"), engine.Bulk(contact),
		engine.Bulk("down-after-milliseconds"), engine.Bulk(strconv.Itoa(sentinelDownAfter)),
	}
}

// sentinelRole adds the role that an instance reports.
func sentinelRole(list []engine.Reply, role string) []engine.Reply {
	return append(list,
		engine.Bulk("info-refresh"), engine.Bulk("0"),
		engine.Bulk("role-reported"), engine.Bulk(role),
		engine.Bulk("role-reported-time"), engine.Bulk("0"),
	)
}

// sentinelMaster describes the master. While no leader is known, it is down.
func sentinelMaster(v *topology.View, m *topology.Member) engine.Reply {
	flags := "master"
	if v.Leader == nil {
		flags = "s_down,o_down,master"
	}
	list := sentinelRole(sentinelFields(v, m, v.Name, flags), "master")
	return engine.Map(append(list,
		engine.Bulk("config-epoch"), engine.Bulk(strconv.FormatUint(v.Term, 10)),
		engine.Bulk("num-slaves"), engine.Bulk(strconv.Itoa(len(v.Replicas()))),
		engine.Bulk("num-other-sentinels"), engine.Bulk(strconv.Itoa(len(v.Members)-1)),
		engine.Bulk("quorum"), engine.Bulk(strconv.Itoa(v.Voters()/2+1)),
		engine.Bulk("failover-timeout"), engine.Bulk("180000"),
		engine.Bulk("parallel-syncs"), engine.Bulk("1"),
	)...)
}

func runSentinelReplicas(_ *engine.Context, v *topology.View) engine.Reply {
	master := v.Master()
	if master == nil {
		return engine.Array()
	}
	host, port := master.Split()
	list := []engine.Reply{}
	for _, m := range v.Replicas() {
		link, name := "ok", m.Client
		if !m.Up() {
			link = "err"
		}
		list = append(list, engine.Map(append(sentinelRole(sentinelFields(v, m, name, "slave"), "slave"),
			engine.Bulk("master-link-down-time"), engine.Bulk("0"),
			engine.Bulk("master-link-status"), engine.Bulk(link),
			engine.Bulk("master-host"), engine.Bulk(host),
			engine.Bulk("master-port"), engine.Bulk(port),
			engine.Bulk("slave-priority"), engine.Bulk("100"),
			engine.Bulk("slave-repl-offset"), engine.Bulk(strconv.FormatUint(v.Offset(m), 10)),
			engine.Bulk("replica-announced"), engine.Bulk("1"),
		)...))
	}
	return engine.Array(list...)
}

func runSentinelSentinels(_ *engine.Context, v *topology.View) engine.Reply {
	list := []engine.Reply{}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Self {
			continue
		}
		list = append(list, engine.Map(append(sentinelFields(v, m, v.NodeID(m), "sentinel"),
			engine.Bulk("last-hello-message"), engine.Bulk(strconv.FormatInt(max(m.Contact(), 0), 10)),
			engine.Bulk("voted-leader"), engine.Bulk("?"),
			engine.Bulk("voted-leader-epoch"), engine.Bulk("0"),
		)...))
	}
	return engine.Array(list...)
}

func runSentinelQuorum(_ *engine.Context, v *topology.View) engine.Reply {
	usable := 0
	for i := range v.Members {
		if m := &v.Members[i]; m.Voter && m.Up() {
			usable++
		}
	}
	if usable < v.Voters()/2+1 || usable == 0 {
		return engine.Fail(engine.Error(fmt.Sprintf(noQuorum, usable)))
	}
	return engine.Status(fmt.Sprintf(quorum, usable))
}

// runSentinelMasterDown is SENTINEL IS-MASTER-DOWN-BY-ADDR. It casts no vote: the nodes elect their leader
// themselves.
func runSentinelMasterDown(x *engine.Context, v *topology.View) engine.Reply {
	ip, port := x.Input.Args[2], x.Input.Args[3]
	for _, number := range x.Input.Args[3:5] {
		if _, ok := redisfmt.ParseInt(number); !ok {
			return engine.Fail(engine.ErrNotInteger)
		}
	}
	up := false
	if v.Leader != nil {
		host, p := v.Leader.Split()
		up = host == ip && p == port
	}
	return engine.Array(engine.Flag(!up), engine.Bulk("*"), engine.Integer(0))
}
