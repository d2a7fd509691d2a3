package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// powerDisk is a disk whose power can be cut: a file system in a file. What was not forced down is in the
// page cache of that file system alone, and so a copy of the file does not have it.
type powerDisk struct {
	t           *testing.T
	image, path string
}

// newPowerDisk makes a disk and mounts it until the test ends.
func newPowerDisk(t *testing.T) *powerDisk {
	t.Helper()
	d := &powerDisk{t, filepath.Join(t.TempDir(), "image"), t.TempDir()}
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: power cuts, since only root can mount a disk")
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(512<<20), f.Close())
	}
	drill.Check(t, err)
	if out, err := exec.Command(harness.Need(t, "mkfs.ext4"), "-q", "-F", "-m", "0", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

func (d *powerDisk) mount() {
	d.t.Helper()
	// The file system must not write by itself while its image is copied.
	out, err := exec.Command("mount", "-o", "loop,commit=300", d.image, d.path).CombinedOutput()
	if err != nil {
		d.t.Skipf("NOT TESTED: power cuts, since no file can be mounted here: %v\n%s", err, out)
	}
}

func (d *powerDisk) unmount() {
	// Lazy, since a process that another test starts holds all files of this one until it executes its
	// program.
	if out, err := exec.Command("umount", "--lazy", d.path).CombinedOutput(); err != nil {
		d.t.Errorf("umount: %v\n%s", err, out)
	}
}

// save copies the disk as it is without power. No process may write meanwhile.
func (d *powerDisk) save() {
	d.t.Helper()
	if out, err := exec.Command("cp", "--sparse=always", d.image, d.image+".cut").CombinedOutput(); err != nil {
		d.t.Fatalf("cp: %v\n%s", err, out)
	}
}

// restore makes the disk that which save has copied.
func (d *powerDisk) restore() {
	d.t.Helper()
	d.unmount()
	drill.Check(d.t, os.Rename(d.image+".cut", d.image))
	d.mount()
}

// cutPower takes the power from nodes at once: whatever was not forced to their disks is gone.
func cutPower(disks map[*harness.Node]*powerDisk, nodes ...*harness.Node) {
	for _, n := range nodes {
		n.Signal(syscall.SIGSTOP)
	}
	for _, n := range nodes {
		disks[n].save()
	}
	for _, n := range nodes {
		n.Kill()
		disks[n].restore()
	}
}

// TestPowerDisk: a copy of the disk has what was forced down, and nothing else.
func TestPowerDisk(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	d := newPowerDisk(t)
	path := filepath.Join(d.path, "file")
	f, err := os.Create(path)
	drill.Check(t, err)
	_, err1 := f.WriteString("forced")
	err2 := f.Sync()
	_, err3 := f.WriteString(" lost")
	drill.Check(t, err1, err2, err3, os.WriteFile(path+"2", []byte("lost"), 0o600))
	d.save()
	_ = f.Close()
	d.restore()
	if text, err := os.ReadFile(path); string(text) != "forced" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := os.Stat(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the other file: %v", err)
	}
}

// TestClusterPowerCuts cuts the power of the leader, and of all nodes at once, under a ledger. What was not
// forced to a disk is lost with it.
func TestClusterPowerCuts(t *testing.T) {
	t.Parallel()
	c := harness.NewCluster(t, ledgerArgs...)
	c.NodeTimeout = harness.Brief
	disks := make(map[*harness.Node]*powerDisk)
	for range 3 {
		disk := newPowerDisk(t)
		n := c.Add()
		n.Dir = filepath.Join(disk.path, "data")
		disks[n] = disk
	}
	c.StartAll(0)
	seed := drill.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLedger(c, seed)
	l.begin()
	defer l.pause()
	var all, one durations
	cuts := drill.Pick(1, 1, 50)
	for cut := 1; cut <= cuts && !t.Failed(); cut++ {
		l.awaitSteps(1 + r.IntN(10))
		leader := c.Leader()
		cutPower(disks, leader)
		one = append(one, l.awaitSteps(5))
		leader.Start()
		leader.AwaitServing()

		l.awaitSteps(1 + r.IntN(10))
		began := time.Now()
		cutPower(disks, c.Nodes...)
		c.StartAll(0)
		l.awaitSteps(5)
		all = append(all, time.Since(began))
		for _, n := range c.Nodes {
			n.AwaitServing()
		}
		if cut%5 == 0 || cut == cuts {
			l.pause()
			l.verify()
			l.begin()
		}
	}
	l.pause()
	t.Logf("%d power cuts of the leader, writes went on after %v; %d of all nodes, after %v with their start", len(one), one, len(all), all)
	t.Log(l.figures())
}

// harms are what can happen to the files of a node.
var harms = []struct {
	name string
	do   func(dir string) error
}{
	{name: "all files are gone", do: os.RemoveAll},
	{name: "the raft log is gone", do: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "cluster", "wal")) }},
	{name: "the identity is gone", do: func(dir string) error { return os.Remove(filepath.Join(dir, "cluster", "identity.json")) }},
	{name: "the raft log is damaged", do: func(dir string) error { return flipBytes(filepath.Join(dir, "cluster", "wal", "*.wal")) }},
	{name: "the data are damaged", do: func(dir string) error { return flipBytes(filepath.Join(dir, "*.db")) }},
	{name: "the data are gone", do: func(dir string) error {
		files, err := filepath.Glob(filepath.Join(dir, "*.db"))
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		return err
	}},
}

// TestClusterLostDisks takes the disk of a follower, or damages it in several ways. It gets everything from
// the others, and counts for a majority again: writes go on while the other follower has the same fate. A
// drill plays all harms, all tests play some.
func TestClusterLostDisks(t *testing.T) {
	t.Parallel()
	c := startBrief(t, ledgerArgs...)
	seed := drill.Seed(t)
	l := newLedger(c, seed)
	l.begin()
	defer l.pause()
	var back durations
	var last *harness.Node
	lost := drill.Pick(2, 2, 60)
	for i := range lost {
		if t.Failed() {
			break
		}
		harm := harms[(i+int(seed%uint64(len(harms))))%len(harms)]
		l.awaitSteps(5)
		followers := c.Others(c.Leader())
		n := followers[0]
		if n == last {
			n = followers[1]
		}
		last = n
		if i%2 == 0 {
			n.Terminate()
		} else {
			n.Kill()
		}
		drill.Check(t, harm.do(n.Dir))
		l.awaitSteps(5)
		began := time.Now()
		n.Start()
		n.AwaitServing()
		back = append(back, time.Since(began))
		t.Logf("%s: serves after %v", harm.name, time.Since(began).Round(time.Millisecond))
		if i%6 == 5 || i == lost-1 {
			l.pause()
			l.verify()
			l.begin()
		}
	}
	l.pause()
	t.Logf("%d lost or damaged disks: the node serves after %v", len(back), back)
	t.Log(l.figures())
}

// flipBytes damages the middle of each file of a pattern.
func flipBytes(pattern string) error {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file %s", pattern)
	}
	for _, path := range files {
		text, failure := os.ReadFile(path)
		if failure == nil && len(strings.TrimRight(string(text), "\x00")) > 100 {
			end := len(strings.TrimRight(string(text), "\x00"))
			for i := range 8 {
				text[end/2+i] ^= 0xff
			}
			failure = os.WriteFile(path, text, 0o600)
		}
		err = errors.Join(err, failure)
	}
	return err
}

// TestClusterFullDisk fills the disk of a follower, and then that of the leader: writes go on, a node with
// room leads, and the node catches up when there is room again. While all disks are full, the lead stays
// where it is and reads go on. A drill also plays it without a reserve, where the raft log may be the first
// to find no room.
func TestClusterFullDisk(t *testing.T) {
	t.Parallel()
	for _, reserve := range []string{"16mb", "0"}[:drill.Pick(1, 1, 2)] {
		t.Run("reserve "+reserve, func(t *testing.T) { t.Parallel(); fillDisks(t, reserve) })
	}
}

func fillDisks(t *testing.T, reserve string) {
	c := harness.NewCluster(t, append([]string{"--disk-reserve", reserve}, ledgerArgs...)...)
	const size = 160 << 20
	for range 3 {
		n := c.Add()
		n.Dir = filepath.Join(harness.SmallDisk(t, size), "data")
	}
	c.StartAll(0)
	leader := c.Leader()
	l := newLedger(c, drill.Seed(t))
	l.begin()
	defer l.pause()
	value := strings.Repeat("x", 100_000)
	full := func(n *harness.Node) {
		t.Helper()
		drill.Check(t, harness.Fill(filepath.Dir(n.Dir)))
	}
	empty := func(n *harness.Node) {
		t.Helper()
		drill.Check(t, harness.Resize(filepath.Dir(n.Dir), size))
	}
	for _, n := range []*harness.Node{c.Others(leader)[0], leader} {
		l.awaitSteps(5)
		role := "a follower"
		if n == leader {
			role = "the leader"
		}
		full(n)
		began := time.Now()
		c.Await("the disk to be full", func() bool {
			for range 5 {
				do(c, "SET", "filling", value)
			}
			if n == leader {
				next := c.FindLeader(t.Context())
				return next != nil && next != n
			}
			return !hasRoom(n)
		})
		l.awaitSteps(5)
		took := time.Since(began)
		empty(n)
		n.AwaitServing()
		l.pause()
		l.verify()
		t.Logf("full disk of %s: all workers have written after %v", role, took.Round(time.Millisecond))
		l.begin()
	}
	l.pause()
	t.Log(l.figures())
	if reserve == "0" {
		return // then all writes are refused, and nodes that start again wait for room
	}
	leader = c.Leader()
	for _, n := range append(c.Others(leader), leader) { // the leader last: from then on nobody has room
		full(n)
	}
	passed := func() (times int) {
		for _, n := range c.Nodes {
			times += strings.Count(n.Log(), "passes the lead on")
		}
		return times
	}
	before := passed()
	c.Await("a refusal, which says that the leader is full and has looked for an heir", func() bool {
		for i := range 100 {
			if _, err := c.Leader().Ask(t.Context(), "SET", fmt.Sprint("filling:", i), value); err != nil {
				return strings.HasPrefix(err.Error(), "MISCONF ")
			}
		}
		return false
	})
	do(c, "GET", "filling:0")
	if now := passed(); now != before {
		t.Errorf("all disks are full, and the lead is passed on %d times", now-before)
	}
	for _, n := range c.Nodes {
		empty(n)
	}
	for _, n := range c.Nodes {
		c.Await("room on the disk of node "+n.Name, func() bool { return hasRoom(n) })
	}
	l.begin()
	l.awaitSteps(5)
	l.pause()
	l.verify()
}

// hasRoom reports whether a node says that its disk is not full.
func hasRoom(n *harness.Node) bool {
	info, err := n.Ask(n.T.Context(), "INFO", "persistence")
	return err == nil && strings.Contains(fmt.Sprint(info), "disk_full:0")
}
