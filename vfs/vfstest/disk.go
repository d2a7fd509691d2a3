package vfstest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Disk is a [Memory] that is locked. Its methods return file systems as a process may find them, which change
// independently of it. Nothing in them is locked, and they have no hooks.
type Disk struct{ m *Memory }

// Look calls look with the disk locked.
func (m *Memory) Look(look func(d Disk)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(Disk{m})
}

// Clone returns the file system as the end of a process leaves it: what was not forced to disk can be read,
// but a power cut may still take it.
func (m *Memory) Clone() (clone *Memory) {
	m.Look(func(d Disk) { clone = d.Clone() })
	return clone
}

// Clone is [Memory.Clone].
func (d Disk) Clone() *Memory {
	copies := make(map[*node]*node)
	var of func(n *node) *node
	of = func(n *node) *node {
		if made := copies[n]; made != nil {
			return made
		}
		made := &node{mode: n.mode}
		copies[n] = made
		if n.names != nil {
			made.names, made.namesOnDisk = make(map[string]*node), make(map[string]*node)
			for name, child := range n.names {
				made.put(name, of(child))
			}
			for name, child := range n.namesOnDisk {
				made.namesOnDisk[name] = of(child)
			}
			return made
		}
		made.content = n.content.clone()
		made.size.Store(made.now.size)
		return made
	}
	return &Memory{root: of(d.m.root), capacity: d.m.capacity}
}

// Least returns the least that a power cut leaves: everything that was forced to disk.
func (d Disk) Least() *Memory {
	return d.image(func(n *node) map[string]*node { return n.namesOnDisk }, func(n *node) pages { return n.onDisk })
}

// Names returns all states that differ by the changes of names in one folder of which a power cut leaves
// some. The files have only what was forced to disk.
func (d Disk) Names(dir string) (images []*Memory) {
	_, _, folder, err := d.m.find(dir)
	if err != nil {
		return nil
	}
	changes := folder.changes()
	for left := range 1 << len(changes) {
		names := func(n *node) map[string]*node {
			if n != folder {
				return n.namesOnDisk
			}
			return n.choose(changes, func(i int) bool { return left>>i&1 > 0 })
		}
		images = append(images, d.image(names, func(n *node) pages { return n.onDisk }))
	}
	return images
}

// All returns what a power cut leaves if the system has written everything.
func (d Disk) All() *Memory {
	return d.image(func(n *node) map[string]*node { return n.names }, func(n *node) pages { return n.written(n.now.size) })
}

// Some returns another state that a power cut may leave: any of the changes of names, in any order, but a
// rename in one folder as a whole or not at all; and of each file a part of the appended bytes, or some of
// the sectors, that were written since its fsync.
func (d Disk) Some(r *rand.Rand) *Memory {
	names := func(n *node) map[string]*node { return n.choose(n.changes(), func(int) bool { return r.IntN(2) > 0 }) }
	return d.image(names, func(n *node) pages { return n.torn(r) })
}

// image returns a file system as a start finds it. A file with two names is one.
func (d Disk) image(names func(folder *node) map[string]*node, content func(file *node) pages) *Memory {
	made := make(map[*node]*node)
	var of func(n *node) *node
	of = func(n *node) *node {
		if left := made[n]; left != nil {
			return left
		}
		left := &node{mode: n.mode}
		made[n] = left
		if !n.mode.IsDir() {
			left.content = found(content(n))
			left.size.Store(left.now.size)
			return left
		}
		left.names = make(map[string]*node)
		chosen := names(n)
		for _, name := range slices.Sorted(maps.Keys(chosen)) { // in order: a seed repeats it
			left.put(name, of(chosen[name]))
		}
		left.namesOnDisk = maps.Clone(left.names)
		return left
	}
	return &Memory{root: of(d.m.root)}
}

// choose returns the names in a folder if some of the changes are on disk.
func (n *node) choose(changes [][]string, some func(i int) bool) map[string]*node {
	left := maps.Clone(n.namesOnDisk)
	for i, changed := range changes {
		if !some(i) {
			continue
		}
		for _, name := range changed {
			if child := n.names[name]; child != nil {
				left[name] = child
			} else {
				delete(left, name)
			}
		}
	}
	return left
}

// changes are the names that have changed since a folder was forced to disk. Both names of a rename come
// together.
func (n *node) changes() (groups [][]string) {
	groupOf := make(map[*node]int)
	all := maps.Clone(n.names)
	maps.Copy(all, n.namesOnDisk)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := n.namesOnDisk[name], n.names[name]
		if was == is {
			continue
		}
		group := len(groups)
		for _, child := range []*node{was, is} {
			if n, ok := groupOf[child]; ok && child != nil {
				group = min(group, n)
			}
		}
		if group == len(groups) {
			groups = append(groups, nil)
		}
		groups[group] = append(groups[group], name)
		groupOf[was], groupOf[is] = group, group
	}
	return groups
}

// Lose is a failed fsync of a file of another file system, of which this one is a clone. With r some of what
// it was to force to disk is there.
func (m *Memory) Lose(path string, r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, _, n, err := m.find(path); err == nil && !n.mode.IsDir() {
		n.lose(r)
	}
}
