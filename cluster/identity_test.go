package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/cluster/forming"
	"mayfly/test/drill"
)

// A node of whose files some are damaged or gone comes back with a new id and with what the others have.
// Damaged stores are set aside, all of them. Other files of its folder stay where they are.
func TestDamagedClusterFiles(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	for i := range 20 {
		c.mustPut(fmt.Sprint("key", i), "value")
	}
	aside := 0
	for name, damage := range map[string]func(t *testing.T, dir string){
		"all gone": func(t *testing.T, dir string) {
			check(t, os.RemoveAll(dir))
			check(t, os.Mkdir(dir, 0o700))
			c.mustPut("meanwhile", "1")
		},
		"data damaged": func(t *testing.T, dir string) {
			stores, err := filepath.Glob(filepath.Join(dir, "partition-*.db"))
			check(t, err)
			for _, path := range stores {
				text, err := os.ReadFile(path)
				check(t, err)
				text[len(text)/2] ^= 0xff
				check(t, os.WriteFile(path, text, 0o600))
			}
			aside = len(stores)
		},
		"identity damaged": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "cluster", "identity.json")
			text, err := os.ReadFile(path)
			check(t, err)
			check(t, os.WriteFile(path, []byte(strings.Replace(string(text), "formed", "formxd", 1)), 0o600))
		},
		"identity gone": func(t *testing.T, dir string) {
			check(t, os.Remove(filepath.Join(dir, "cluster", "identity.json")))
		},
		"raft log gone": func(t *testing.T, dir string) {
			check(t, os.RemoveAll(filepath.Join(dir, "cluster", "wal")))
		},
		"data gone": func(t *testing.T, dir string) {
			files, err := filepath.Glob(filepath.Join(dir, "*.db"))
			check(t, err)
			for _, path := range append(files, filepath.Join(dir, "format"), filepath.Join(dir, "manifest")) {
				check(t, os.Remove(path))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			hurt := c.follower()
			id := hurt.View().Member(hurt.name).ID
			eventually(t, "its folder is whole", func() bool {
				_, err := os.Stat(filepath.Join(hurt.dir, "manifest"))
				return err == nil
			})
			hurt.stop(t)
			other := filepath.Join(hurt.dir, "redis.conf")
			check(t, os.WriteFile(other, []byte("port 1\n"), 0o600))
			aside = 0
			damage(t, hurt.dir)
			hurt.start(t)
			eventually(t, "it votes with a new id", func() bool {
				self := c.leader().View().Member(hurt.name)
				return self != nil && self.Voter && self.ID != id
			})
			c.has(hurt, "key19", "value")
			if _, err := os.Stat(other); (err != nil) != (name == "all gone") {
				t.Error(err)
			}
			if found, err := filepath.Glob(filepath.Join(hurt.dir, "cluster", "damaged-*", "partition-*.db")); err != nil || len(found) < aside {
				t.Errorf("%d of %d damaged files are set aside: %v", len(found), aside, err)
			}
		})
	}
	c.converge()
}

// Files that are no data do not make a founder.
func TestForeignFilesAreNoData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "redis.conf"), nil, 0o600))
	if hasData(dir) {
		t.Error("they are data")
	}
	check(t, os.WriteFile(filepath.Join(dir, "format"), nil, 0o600))
	if !hasData(dir) {
		t.Error("a data folder is none")
	}
}

// What a crash has left of the note that a node has opened its files goes with the next one.
func TestMarkOpened(t *testing.T) {
	t.Parallel()
	n := &Node{options: Options{Dir: t.TempDir()}}
	id := &forming.Identity{ID: 0x12}
	check(t, os.Mkdir(n.path(), 0o700), os.WriteFile(n.path(openedFile+".tmp"), []byte("1"), 0o600), n.markOpened(id))
	if opened, err := n.opened(id); !opened || err != nil {
		t.Errorf("opened: %v, %v", opened, err)
	}
	if files, err := os.ReadDir(n.path()); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}
