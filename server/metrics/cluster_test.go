package metrics

import (
	"testing"

	"mayfly/cluster/topology"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestHealthOfANode(t *testing.T) {
	t.Parallel()
	members := []topology.Member{{Name: "a", Leader: true, Self: true}, {Name: "b"}}
	leader := &topology.View{Role: topology.Leader, Leader: &members[0], Members: members, Quorum: true}
	follower := &topology.View{Role: topology.Follower, Leader: &members[0], Members: members, Quorum: true}
	for _, tt := range []struct {
		name        string
		view        *topology.View
		any, leader string // the problems; empty: none
		role        string
	}{
		{"leader", leader, "", "", "leader"},
		{"follower", follower, "", "follower of a", "follower of a"},
		{"no leader", &topology.View{Role: topology.Candidate}, "no majority of nodes is reachable", "no majority of nodes is reachable", "candidate"},
		{"cut off", &topology.View{Role: topology.Follower, Leader: &members[0]}, "no majority of nodes is reachable", "no majority of nodes is reachable", "follower of a"},
		{"removed", &topology.View{Role: topology.Removed, Cause: "it was removed"}, "removed: it was removed", "removed: it was removed", "removed"},
	} {
		for _, wanted := range []struct {
			leader bool
			want   string
		}{{false, tt.any}, {true, tt.leader}} {
			got := ""
			if err := clusterProblem(tt.view, wanted.leader); err != nil {
				got = err.Error()
			}
			if got != wanted.want {
				t.Errorf("%s, leader wanted %v: %q, want %q", tt.name, wanted.leader, got, wanted.want)
			}
		}
		if got := clusterRole(tt.view); got != tt.role {
			t.Errorf("%s: role %q, want %q", tt.name, got, tt.role)
		}
	}
}

func TestMetricsOfANode(t *testing.T) {
	t.Parallel()
	members := []topology.Member{{Name: "a", Leader: true, Self: true, Voter: true}, {Name: "b", Lag: 7, Voter: true, Active: true}}
	out := make(chan prometheus.Metric, 100)
	collectCluster(out, &topology.View{Role: topology.Leader, Leader: &members[0], Members: members, Quorum: true, Term: 3, Commit: 12, Applied: 11, LogBytes: 99})
	close(out)
	got := map[string]float64{}
	for m := range out {
		var value dto.Metric
		check(t, m.Write(&value))
		name := m.Desc().String()
		for _, label := range value.GetLabel() {
			name += label.GetValue()
		}
		got[name] = value.GetGauge().GetValue()
	}
	for name, want := range map[string]float64{
		clusterLeader.String(): 1, clusterQuorum.String(): 1, clusterTerm.String(): 3, clusterCommit.String(): 12, clusterApplied.String(): 11,
		clusterLog.String(): 99, clusterVoters.String(): 2, clusterLag.String() + "b": 7, clusterActive.String() + "b": 1, clusterActive.String() + "a": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s: %v, want %v", name, value, want)
		}
	}
}
