package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/cluster/disk"
	"mayfly/cluster/entry"
	"mayfly/cluster/forming"
	"mayfly/cluster/topology"

	"go.etcd.io/raft/v3/raftpb"
)

// An entry that a newer program has written is no damage: the node says so, keeps all its files, and goes on
// with a program that knows it.
func TestEntryOfANewerProgram(t *testing.T) {
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("key", "value")
	c.converge()
	old := c.follower()
	id, at := old.View(), old.keyspace().Position()
	for _, n := range c.nodes { // no leader replaces the entry
		n.stop(t)
	}
	wal := filepath.Join(old.dir, "cluster", "wal")
	o := disk.Options{Dir: wal, Cluster: id.ClusterID, ID: id.Self().ID, Applied: at.Index, Term: at.Term, Keep: 1 << 20}
	log, err := disk.Open(o)
	check(t, err)
	last, err := log.Memory().LastIndex()
	check(t, err)
	hard, _, err := log.Memory().InitialState()
	check(t, err)
	index, term := last+1, hard.GetTerm()
	hard.Commit = &index
	check(t, log.Save(hard, []*raftpb.Entry{{Index: &index, Term: &term, Data: []byte{entry.Version + 1, 1, 2, 3}}}, nil))
	check(t, log.Close())
	identity, err := os.ReadFile(filepath.Join(old.dir, "cluster", forming.FileName))
	check(t, err)

	old.start(t)
	c.eventually("the node fails, and says why", func() bool {
		v := old.View()
		return v.Role == topology.Failed && strings.Contains(v.Cause, "unknown version 2")
	})
	old.stop(t)
	for _, name := range []string{"damaged-*", "replaced-*"} {
		if aside, err := filepath.Glob(filepath.Join(old.dir, "cluster", name)); err != nil || len(aside) > 0 {
			t.Errorf("files are set aside: %v, %v", aside, err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(old.dir, "cluster", forming.FileName)); err != nil || !bytes.Equal(now, identity) {
		t.Errorf("the identity has changed: %s, %v", now, err)
	}
	log, err = disk.Open(o)
	check(t, err)
	defer log.Close()
	if kept, err := log.Memory().Entries(index, index+1, 1<<20); err != nil || len(kept) != 1 || kept[0].GetData()[0] != entry.Version+1 {
		t.Errorf("the entry is gone: %v, %v", kept, err)
	}
}

// A folder of a newer program is refused at the start, and stays as it is.
func TestIdentityOfANewerProgram(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	n := c.nodes["a"]
	path := filepath.Join(n.dir, "cluster", forming.FileName)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	text := []byte("{\n  \"Version\": 99,\n  \"Later\": true\n}\n")
	check(t, os.WriteFile(path, text, 0o600))
	node, err := New(n.opt)
	if err == nil {
		t.Error("the node starts")
		check(t, node.Close(false))
	} else if !strings.Contains(err.Error(), "newer") || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the identity has changed: %s, %v", now, err)
	}
}
