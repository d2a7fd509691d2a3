package metrics

import (
	"errors"
	"fmt"

	"mayfly/cluster/topology"

	"github.com/prometheus/client_golang/prometheus"
)

// The figures of a node of a cluster.
var (
	clusterLeader  = describe("cluster_leader", "1 if this node leads.")
	clusterQuorum  = describe("cluster_quorum", "1 if this node leads or hears from a leader.")
	clusterServing = describe("cluster_serving", "1 if the node has its data open.")
	clusterTerm    = describe("cluster_term", "Term of raft: one more with each election.")
	clusterCommit  = describe("cluster_commit_index", "Index of the log that is known to be committed.")
	clusterApplied = describe("cluster_applied_index", "Index of the log that this node has applied.")
	clusterLog     = describe("cluster_log_bytes", "Entries of the replicated log in memory.")
	clusterUsers   = describe("cluster_users_differ", "Members that have other users than this node.")
	clusterVoters  = describe("cluster_voters", "Members that vote.")
	clusterLag     = describe("cluster_member_lag_entries", "Entries that a member does not have yet. The leader knows those of all.", "member")
	clusterDropped = describe("cluster_messages_dropped_total", "Published messages that this node could not send to another one.")
	clusterActive  = describe("cluster_member_active", "1 if this node is in contact with a member.", "member")
)

func collectCluster(out chan<- prometheus.Metric, v *topology.View) {
	flag := func(set bool) float64 {
		if set {
			return 1
		}
		return 0
	}
	for desc, n := range map[*prometheus.Desc]float64{
		clusterLeader: flag(v.Leads()), clusterQuorum: flag(v.Quorum), clusterServing: flag(v.Role.Open()),
		clusterTerm: float64(v.Term), clusterCommit: float64(v.Commit), clusterApplied: float64(v.Applied),
		clusterLog: float64(v.LogBytes), clusterVoters: float64(v.Voters()),
		clusterUsers: float64(v.OthersUsers()),
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n)
	}
	for i := range v.Members {
		m := &v.Members[i]
		if (v.Leads() || m.Self) && m.Lag >= 0 {
			out <- prometheus.MustNewConstMetric(clusterLag, prometheus.GaugeValue, float64(m.Lag), m.Name)
		}
		out <- prometheus.MustNewConstMetric(clusterActive, prometheus.GaugeValue, flag(m.Active), m.Name)
	}
}

// clusterProblem returns why a node does not serve clients or send them to the leader, or nil. With leader
// set it must lead.
func clusterProblem(v *topology.View, leader bool) error {
	switch {
	case v.Cause != "":
		return fmt.Errorf("%s: %s", v.Role, v.Cause)
	case v.Leader == nil || !v.Quorum:
		return errors.New("no majority of nodes is reachable")
	case leader && !v.Leads():
		return fmt.Errorf("%s of %s", v.Role, v.Leader.Name)
	}
	return nil
}

// clusterRole describes the role of a node that serves.
func clusterRole(v *topology.View) string {
	if v.Leads() || v.Leader == nil {
		return v.Role.String()
	}
	return fmt.Sprintf("%s of %s", v.Role, v.Leader.Name)
}
