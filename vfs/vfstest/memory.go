package vfstest

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/vfs"
)

// Memory is a file system in memory. It knows what a power cut leaves: of each file what was forced to disk,
// and of each folder the names that it had when it was. Newer changes may be left or not; see [Disk].
//
// The hooks are set before anything uses the file system. They are called with it locked: nothing gets to the
// disk meanwhile.
type Memory struct {
	// BeforeSync is called before each fsync of a file or folder, with its present path. The fsync fails with
	// its error, and what it was to force to disk is not there.
	BeforeSync func(d Disk, path string) error
	// AfterWrite is called after each write to a file, or the part of it for which there was room.
	AfterWrite func(d Disk)

	mu       sync.Mutex // protects what follows
	root     *node
	capacity int64 // bytes of all files; 0: no bound
	taken    int64 // by another program
}

// node is a file or a folder.
type node struct {
	parent *node // nil of the root, and of a file without a name
	name   string
	mode   fs.FileMode
	time   time.Time // see SetTime

	names, namesOnDisk map[string]*node // of a folder

	content
	size atomic.Int64 // of content, readable without the lock

	shared    int // locks
	exclusive bool
}

// Dir is a folder that every new file system has.
const Dir = "/data"

// NewMemory returns a file system with an empty folder [Dir].
func NewMemory() *Memory {
	m := &Memory{root: newFolder(0o700)}
	m.root.put(Dir[1:], newFolder(0o700))
	m.root.namesOnDisk = maps.Clone(m.root.names)
	return m
}

func newFolder(mode fs.FileMode) *node {
	return &node{mode: fs.ModeDir | mode, names: make(map[string]*node), namesOnDisk: make(map[string]*node)}
}

// path returns the present path of a node, empty if it has none.
func (n *node) path() string {
	switch {
	case n.parent != nil:
		return strings.TrimSuffix(n.parent.path(), "/") + "/" + n.name
	case n.mode.IsDir():
		return "/"
	}
	return ""
}

// put gives a node a name in a folder.
func (n *node) put(name string, child *node) {
	child.parent, child.name = n, name
	n.names[name] = child
}

// drop takes a name out of a folder.
func (n *node) drop(name string) {
	n.names[name].parent = nil
	delete(n.names, name)
}

// find returns the node of a path, and the folder in which its last name is or could be.
func (m *Memory) find(path string) (parent *node, name string, found *node, err error) {
	found = m.root
	for part := range strings.SplitSeq(strings.Trim(filepath.ToSlash(filepath.Clean(path)), "/"), "/") {
		if part == "" || part == "." {
			continue
		}
		if found == nil {
			return nil, "", nil, syscall.ENOENT
		}
		if !found.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		parent, name, found = found, part, found.names[part]
	}
	if found == nil {
		err = syscall.ENOENT
	}
	return parent, name, found, err
}

func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// Open implements [vfs.FS].
func (m *Memory) Open(path string) (vfs.File, error) { return m.OpenFile(path, os.O_RDONLY, 0) }

// OpenFile implements [vfs.FS].
func (m *Memory) OpenFile(path string, flag int, perm fs.FileMode) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, n, err := m.find(path)
	switch {
	case n == nil && parent != nil && flag&os.O_CREATE != 0:
		n, err = &node{mode: perm}, nil
		parent.put(name, n)
	case err == nil && flag&os.O_EXCL != 0:
		err = syscall.EEXIST
	case err == nil && n.mode.IsDir() && flag&(os.O_RDWR|os.O_WRONLY) != 0:
		err = syscall.EISDIR
	case err == nil && flag&os.O_TRUNC != 0:
		n.truncate(0)
		n.size.Store(0)
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	return &file{m: m, n: n, name: path, writes: flag&(os.O_RDWR|os.O_WRONLY) != 0}, nil
}

// Stat implements [vfs.FS].
func (m *Memory) Stat(path string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.find(path)
	if err != nil {
		return nil, failed("stat", path, err)
	}
	return info{n, filepath.Base(path), n.size.Load()}, nil
}

// Lstat implements [vfs.FS]. There are no links.
func (m *Memory) Lstat(path string) (fs.FileInfo, error) { return m.Stat(path) }

// ReadDir implements [vfs.FS].
func (m *Memory) ReadDir(path string) (entries []fs.DirEntry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.find(path)
	if err == nil && !n.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		child := n.names[name]
		entries = append(entries, fs.FileInfoToDirEntry(info{child, name, child.size.Load()}))
	}
	return entries, nil
}

// Mkdir implements [vfs.FS].
func (m *Memory) Mkdir(path string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, n, err := m.find(path)
	switch {
	case n != nil:
		return failed("mkdir", path, syscall.EEXIST)
	case parent == nil:
		return failed("mkdir", path, err)
	}
	parent.put(name, newFolder(perm))
	return nil
}

// MkdirAll implements [vfs.FS].
func (m *Memory) MkdirAll(path string, perm fs.FileMode) error {
	if fi, err := m.Stat(path); err == nil {
		if !fi.IsDir() {
			return failed("mkdir", path, syscall.ENOTDIR)
		}
		return nil
	}
	if above := filepath.Dir(path); above != path {
		if err := m.MkdirAll(above, perm); err != nil {
			return err
		}
	}
	return m.Mkdir(path, perm)
}

// Rename implements [vfs.FS].
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldParent, oldName, n, err := m.find(from)
	newParent, newName, there, _ := m.find(to)
	switch {
	case err != nil:
	case newParent == nil:
		err = syscall.ENOENT
	case there == n:
		return nil
	case there != nil && there.mode.IsDir() && len(there.names) > 0:
		err = syscall.ENOTEMPTY
	case there != nil && there.mode.IsDir() != n.mode.IsDir():
		err = syscall.EISDIR
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if there != nil {
		newParent.drop(newName)
	}
	oldParent.drop(oldName)
	newParent.put(newName, n)
	return nil
}

// Remove implements [vfs.FS].
func (m *Memory) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, n, err := m.find(path)
	if err == nil && len(n.names) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return failed("remove", path, err)
	}
	parent.drop(name)
	return nil
}

// RemoveAll implements [vfs.FS].
func (m *Memory) RemoveAll(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if parent, name, n, _ := m.find(path); n != nil {
		parent.drop(name)
	}
	return nil
}

// SetTime sets the time at which a file was changed. Nothing else does.
func (m *Memory) SetTime(path string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, _, n, err := m.find(path); err == nil {
		n.time = at
	}
}

// Limit bounds the bytes of all files.
func (m *Memory) Limit(capacity int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = capacity
}

// Take makes another program take all but some bytes of the room.
func (m *Memory) Take(left int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken += max(m.room()-left, 0)
}

// GiveBack makes the other program give its room back.
func (m *Memory) GiveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = 0
}

// Room implements [vfs.FS].
func (m *Memory) Room(string) (free, size int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.room(), 0), 1 << 40, nil
}

// room returns the free bytes. m.mu must be held.
func (m *Memory) room() int64 {
	if m.capacity == 0 {
		return 1 << 40
	}
	return m.capacity - m.taken - m.root.bytes()
}

// bytes returns the sizes of all files in a folder.
func (n *node) bytes() (all int64) {
	for _, child := range n.names {
		all += child.bytes()
	}
	return all + n.now.size
}

// info is what is known of a node.
type info struct {
	n    *node
	name string
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return i.n.time }
func (i info) IsDir() bool        { return i.n.mode.IsDir() }
func (i info) Sys() any           { return i.n }

// file is an open node.
type file struct {
	m      *Memory
	n      *node
	name   string
	writes bool

	// The lock of the file system protects these.
	closed, shared, exclusive bool
}

func (f *file) Name() string { return f.name }

func (f *file) Stat() (fs.FileInfo, error) {
	return info{f.n, filepath.Base(f.name), f.n.size.Load()}, nil
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, failed("read", f.name, fs.ErrClosed)
	}
	n := f.n.read(b, at)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.writable(); err != nil {
		return 0, failed("write", f.name, err)
	}
	fits := b
	if f.m.capacity > 0 {
		lacks := max(at+int64(len(b))-f.n.now.size, 0) - max(f.m.room(), 0)
		fits = b[:max(int64(len(b))-max(lacks, 0), 0)]
	}
	if len(fits) > 0 {
		f.n.write(fits, at)
		f.n.size.Store(f.n.now.size)
		if f.m.AfterWrite != nil {
			f.m.AfterWrite(Disk{f.m})
		}
	}
	if len(fits) < len(b) {
		return len(fits), failed("write", f.name, syscall.ENOSPC)
	}
	return len(b), nil
}

// writable returns why the file cannot be changed, or nil.
func (f *file) writable() error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case !f.writes:
		return syscall.EBADF
	}
	return nil
}

func (f *file) Truncate(size int64) error { return f.resize("truncate", size) }

func (f *file) Allocate(bytes int64) error {
	if bytes <= f.n.size.Load() {
		return nil
	}
	return f.resize("allocate", bytes)
}

func (f *file) resize(op string, size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.writable()
	if err == nil && f.m.capacity > 0 && op == "allocate" && size-f.n.now.size > max(f.m.room(), 0) {
		err = syscall.ENOSPC
	}
	if err != nil {
		return failed(op, f.name, err)
	}
	f.n.truncate(size)
	f.n.size.Store(size)
	if op == "allocate" && f.m.AfterWrite != nil {
		f.m.AfterWrite(Disk{f.m})
	}
	return nil
}

func (f *file) SyncData() error { return f.Sync() }

// Sync guarantees only bytes that were written before the call.
func (f *file) Sync() error {
	size := f.n.size.Load()
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return failed("sync", f.name, fs.ErrClosed)
	}
	if f.m.BeforeSync != nil {
		if err := f.m.BeforeSync(Disk{f.m}, f.n.path()); err != nil {
			f.n.lose(nil)
			return failed("sync", f.name, err)
		}
	}
	if f.n.mode.IsDir() {
		f.n.namesOnDisk = maps.Clone(f.n.names)
	} else {
		f.n.force(size)
	}
	return nil
}

func (f *file) DropCache(int64, int64) {}

func (f *file) Lock(shared bool) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n.exclusive || !shared && f.n.shared > 0 {
		return vfs.ErrLocked
	}
	if f.shared, f.exclusive = shared, !shared; shared {
		f.n.shared++
	} else {
		f.n.exclusive = true
	}
	return nil
}

func (f *file) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return failed("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	if f.shared {
		f.n.shared--
	}
	f.n.exclusive = f.n.exclusive && !f.exclusive
	return nil
}
