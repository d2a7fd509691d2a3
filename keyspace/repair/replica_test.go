package repair

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
)

// majority is a [replica.Replicator] that commits all batches.
type majority struct{ index uint64 }

func (m *majority) Replicate(_ uint64, moment int64, _ []byte, _ time.Duration) (replica.Tail, error) {
	m.index++
	return replica.Tail{Position: replica.Position{Index: m.index, Term: 2, Moment: moment}, State: []byte("members")}, nil
}

func (m *majority) Confirm(time.Duration) error { return nil }

// newLivedLeader is newLived in the folder of a node that leads a cluster.
func newLivedLeader(t *testing.T, seed uint64) *lived {
	t.Helper()
	o := &opened{t: t, clock: clock.NewManual(aoftest.Epoch)}
	var err error
	o.Keyspace, err = keyspace.Open(keyspace.Options{FS: disk, Dir: newDir(t), Clock: o.clock, NoPurge: true, Partitions: 3, Replicator: &majority{index: 1}})
	drill.Check(t, err)
	t.Cleanup(o.stop)
	drill.Check(t, o.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}, State: []byte("members")}))
	drill.Check(t, o.Lead())
	return livedOf(o, seed)
}

// TestReadsFolderOfACluster: the folder of a node of a cluster is inspected and read as that of a single
// node.
func TestReadsFolderOfACluster(t *testing.T) {
	t.Parallel()
	l := newLivedLeader(t, 1)
	if tail, err := keyspace.ReadReplica(disk, l.dir); err != nil || tail.Index < 100 || string(tail.State) != "members" || tail.Next == 0 {
		t.Fatalf("the folder is at %+v: %v", tail, err)
	}
	before := fingerprint(t, l.dir)
	if in := mustInspect(t, l.dir); in.State != Sound {
		t.Errorf("%+v", in)
	}
	got := make(map[place]record.Item)
	var names []string
	err := Read(disk, l.dir, clock.NewManual(livedUntil), func(c record.Container) error {
		names = append(names, c.Name)
		return nil
	}, func(container, id string, it record.Item) error {
		got[place{container, id}] = it
		return nil
	})
	drill.Check(t, err)
	want := make(map[place]record.Item)
	for at, it := range l.state {
		if !strings.Contains(at.container, "log of ") {
			want[at] = it
		}
	}
	compare(t, "", want, got, nil)
	if !slices.Contains(names, "carts") || fingerprint(t, l.dir) != before {
		t.Errorf("the containers are %q, or the folder has changed", names)
	}
}

// TestRepairLosesThePlaceInALog: a repaired folder has what is readable, but no place in the log of the
// cluster: what it has lost may be any part of that place.
func TestRepairLosesThePlaceInALog(t *testing.T) {
	t.Parallel()
	l := newLivedLeader(t, 5)
	random := rand.New(rand.NewPCG(5, 1))
	journals := l.journals()
	last := journals[len(journals)-1]
	dirs := map[string]string{
		"sound":                     l.dir,
		"a wrong position":          l.flipIn(last, record.PositionKey+"\r\n", len(record.PositionKey)+len("\r\n$99\r\n1 ")),
		"a wrong state":             l.flipIn(last, "members", 2),
		"a wrong stored position":   l.flipIn(datadir.CatalogueName, record.PositionKey+"\r\n", len(record.PositionKey)+len("\r\n$99\r\n1 ")),
		"a wrong bit in a store":    l.copy(datadir.PartitionName(0), func(b []byte) []byte { b[random.IntN(len(b))] ^= 4; return b }),
		"a journal that is missing": l.without(journals[0]),
	}
	for what, dir := range dirs {
		damaged := mustInspect(t, dir).State == Damaged
		if damaged == (what == "sound") {
			t.Errorf("%s: the folder is damaged: %v", what, damaged)
		}
		to := filepath.Join(newDir(t), "new")
		if _, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil }); err != nil {
			t.Fatal(what, ": ", err)
		}
		if tail, err := keyspace.ReadReplica(disk, to); err != nil || tail.Index != 0 || tail.State != nil {
			t.Errorf("%s: the repaired folder is at %+v: %v", what, tail, err)
		}
		report, state := repaired(t, dir)
		if what == "sound" && !report.Clean() {
			t.Errorf("%+v", report)
		}
		named := namedIn(report)
		compare(t, what, l.state, state, func(at place) bool {
			_, there := state[at]
			return named[at] || !there && what != "sound" || report.Exposed > 0
		})
	}
}
