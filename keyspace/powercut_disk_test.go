package keyspace

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"mayfly/keyspace/aof"
)

// recordedDisk knows what a power cut leaves of a folder: each file as it was last forced to disk, and the names that
// the folder had when it was. Newer changes may be left or not; see [recordedDisk.some].
//
// A failed fsync of a file makes its dirty sectors clean without their being on disk: they can be read, but only writing
// them again brings them there. Names have no such model: file systems stop when they cannot write those.
type recordedDisk struct {
	t   *testing.T
	dir string

	// beforeFsync is called before each fsync of a file of the folder or of the folder itself, with mu
	// held: nothing gets to the disk meanwhile.
	beforeFsync func()

	mu     sync.Mutex               // protects what follows
	fails  func(name string) bool   // reports whether the fsync of a file of the folder fails; nil: none does
	syncs  *recordedFile            // the file that is being forced to disk; nil: the folder is
	known  []*recordedFile          // all files ever seen, open: so none is mistaken for a later one
	names  map[string]*recordedFile // as the folder is
	onDisk map[string]*recordedFile // as it was when it was last forced to disk
}

type recordedFile struct {
	f      *os.File
	info   os.FileInfo
	now    []byte
	onDisk []byte
	dirty  map[int]bool // sectors, by number, that were written since they were forced to disk
}

// recordDisk watches a folder until the test ends; its present content counts as being on disk. Its fsyncs are not
// real any more.
func recordDisk(t *testing.T, dir string, beforeFsync func()) *recordedDisk {
	t.Helper()
	d := &recordedDisk{t: t, dir: dir, beforeFsync: beforeFsync}
	d.observe()
	for _, f := range d.known {
		f.onDisk = f.now
		clear(f.dirty)
	}
	d.onDisk = maps.Clone(d.names)
	recordedDisks.Store(dir, d)
	return d
}

// isBehind has a folder that was copied from another one be on disk no further than that one is. failed is the file of
// that one whose fsync has failed, nil for none. If r is not nil, some of its sectors got to the disk before.
func (d *recordedDisk) isBehind(from *recordedDisk, failed *recordedFile, r *rand.Rand) {
	copies := make(map[*recordedFile]*recordedFile)
	for name, f := range from.names {
		copies[f] = d.names[name]
	}
	d.onDisk = make(map[string]*recordedFile)
	for name, f := range from.onDisk {
		if copies[f] == nil { // it has no name any more
			copies[f] = newRecordedFile(nil, nil)
			copies[f].now = f.now
		}
		d.onDisk[name] = copies[f]
	}
	for f, copied := range copies {
		copied.onDisk, copied.dirty = f.onDisk, maps.Clone(f.dirty)
	}
	if failed != nil && copies[failed] != nil {
		copies[failed].lose(r)
	}
}

// lose is a failed fsync: the dirty sectors become clean. Some of them are on disk, or none.
func (f *recordedFile) lose(r *rand.Rand) {
	image := f.written()
	for n := range f.dirty {
		if r == nil || r.IntN(2) == 0 {
			at := n * aof.SectorSize
			sector := image[at:min(at+aof.SectorSize, len(image))]
			clear(sector)
			copy(sector, f.onDisk[min(at, len(f.onDisk)):])
		}
	}
	clear(f.dirty)
	if r != nil {
		f.onDisk = image
	}
}

func newRecordedFile(f *os.File, info os.FileInfo) *recordedFile {
	return &recordedFile{f: f, info: info, dirty: make(map[int]bool)}
}

// recordedDisks are the watched disks, by folder.
var recordedDisks sync.Map

// recordFsyncs reports all fsyncs to the recorded disks until the test ends. Those of other folders, the copies that a
// test opens, do nothing.
func recordFsyncs(t *testing.T) {
	fsync, fdatasync, writeAt := aof.Fsync, aof.Fdatasync, aof.WriteAt
	force := func(f *os.File) error {
		for _, dir := range []string{f.Name(), filepath.Dir(f.Name())} {
			if d, ok := recordedDisks.Load(dir); ok {
				return d.(*recordedDisk).force(f)
			}
		}
		return nil
	}
	aof.Fsync, aof.Fdatasync = force, force
	aof.WriteAt = func(f *os.File, b []byte, at int64) (int, error) {
		if d, ok := recordedDisks.Load(filepath.Dir(f.Name())); ok {
			return d.(*recordedDisk).write(f, b, at)
		}
		return f.WriteAt(b, at)
	}
	t.Cleanup(func() { aof.Fsync, aof.Fdatasync, aof.WriteAt = fsync, fdatasync, writeAt })
}

// release ends the watch.
func (d *recordedDisk) release() {
	recordedDisks.Delete(d.dir)
	for _, f := range d.known {
		f.f.Close()
	}
}

// force is fsync. It guarantees only bytes that were written before the call.
func (d *recordedDisk) force(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observe()
	if d.syncs = nil; !info.IsDir() {
		if d.syncs = d.fileOf(info); d.syncs == nil {
			d.t.Errorf("%s is forced to disk, but is not in the folder", f.Name())
			return nil
		}
	}
	d.beforeFsync()
	switch {
	case d.syncs == nil:
		d.onDisk = maps.Clone(d.names)
	case d.fails != nil && d.fails(d.nameOf(d.syncs)):
		d.syncs.lose(nil)
		return syscall.EIO
	default:
		d.syncs.force(info.Size())
	}
	return nil
}

// force brings the dirty sectors below a size to disk, and the size.
func (f *recordedFile) force(size int64) {
	image := make([]byte, min(int64(len(f.now)), size))
	copy(image, f.onDisk)
	f.copyDirty(image)
	f.onDisk = image
	for n := range f.dirty {
		if (n+1)*aof.SectorSize <= len(image) || len(image) == len(f.now) {
			delete(f.dirty, n)
		}
	}
}

// copyDirty copies the dirty sectors to an image of the file.
func (f *recordedFile) copyDirty(image []byte) {
	for n := range f.dirty {
		if at := n * aof.SectorSize; at < len(image) {
			copy(image[at:min(at+aof.SectorSize, len(image))], f.now[at:])
		}
	}
}

// written is the file if the system has written all dirty sectors.
func (f *recordedFile) written() []byte {
	image := make([]byte, len(f.now))
	copy(image, f.onDisk)
	f.copyDirty(image)
	return image
}

// write is WriteAt. The sectors become dirty, even if they had the same bytes before.
func (d *recordedDisk) write(f *os.File, b []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := f.WriteAt(b, at)
	info, failed := f.Stat()
	if failed != nil {
		return n, errors.Join(err, failed)
	}
	d.observe()
	if r := d.fileOf(info); r != nil {
		r.touch(int(at), int(at)+n)
	}
	return n, err
}

// touch makes the sectors of a range dirty.
func (f *recordedFile) touch(from, to int) {
	for n := from / aof.SectorSize; n*aof.SectorSize < to; n++ {
		f.dirty[n] = true
	}
}

func (d *recordedDisk) fileOf(info os.FileInfo) *recordedFile {
	for _, f := range d.known {
		if os.SameFile(f.info, info) {
			return f
		}
	}
	return nil
}

// nameOf returns the present name of a file, which may have had another when it was opened.
func (d *recordedDisk) nameOf(f *recordedFile) string {
	for name, named := range d.names {
		if named == f {
			return name
		}
	}
	return "a file without a name"
}

// observe records the present state of the folder and its files.
func (d *recordedDisk) observe() {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.names = make(map[string]*recordedFile)
	for _, e := range entries {
		if e.Name() == "LOCK" { // its content means nothing
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has just gone
		}
		r := d.fileOf(info)
		if r == nil {
			f, err := os.Open(filepath.Join(d.dir, e.Name()))
			if err != nil {
				continue
			}
			r = newRecordedFile(f, info)
			d.known = append(d.known, r)
		}
		d.names[e.Name()] = r
	}
	for _, f := range d.known {
		if err := f.observe(); err != nil {
			d.t.Error(err)
		}
	}
}

// observe reads the content of the file.
func (f *recordedFile) observe() error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	now := make([]byte, info.Size())
	n, err := f.f.ReadAt(now, 0)
	if err != nil && err != io.EOF { // it may have been cut since
		return err
	}
	now = now[:n]
	for at := 0; at < n; at += aof.SectorSize {
		end := min(at+aof.SectorSize, n)
		if end > len(f.now) || !bytes.Equal(now[at:end], f.now[at:end]) {
			f.touch(at, end)
		}
	}
	maps.DeleteFunc(f.dirty, func(sector int, _ bool) bool { return sector*aof.SectorSize >= n }) // the file was cut
	f.now = now                                                                                   // the image of the disk may share its memory
	return nil
}

// folderImage is the content of a folder after a power cut.
type folderImage map[string][]byte

// least is the least that is left: everything that was forced to disk.
func (d *recordedDisk) least() folderImage {
	left := make(folderImage)
	for name, f := range d.onDisk {
		left[name] = f.onDisk
	}
	return left
}

// all is the image if the system has written everything.
func (d *recordedDisk) all() folderImage {
	left := make(folderImage)
	for name, f := range d.names {
		left[name] = f.written()
	}
	return left
}

// now is the folder as a process reads it.
func (d *recordedDisk) now() folderImage {
	left := make(folderImage)
	for name, f := range d.names {
		left[name] = f.now
	}
	return left
}

// some is another possible image: any of the changes of names, in any order, but a rename entirely or not at all; and
// of each file a part of the appended bytes, or some of the sectors, that were written since its fsync.
func (d *recordedDisk) some(r *rand.Rand) folderImage {
	names := maps.Clone(d.onDisk)
	for _, changed := range d.changes() {
		if r.IntN(2) == 0 {
			continue
		}
		for _, name := range changed {
			if f := d.names[name]; f != nil {
				names[name] = f
			} else {
				delete(names, name)
			}
		}
	}
	contents := make(map[*recordedFile][]byte) // of a file with two names: the same
	left := make(folderImage)
	for name, f := range names {
		if contents[f] == nil {
			contents[f] = f.torn(r)
		}
		left[name] = contents[f]
	}
	return left
}

// changes are the names that have changed since the folder was forced to disk. Both names of a rename come together.
func (d *recordedDisk) changes() (groups [][]string) {
	groupOf := make(map[*recordedFile]int)
	all := maps.Clone(d.names)
	maps.Copy(all, d.onDisk)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := d.onDisk[name], d.names[name]
		if was == is {
			continue
		}
		group := len(groups)
		for _, f := range []*recordedFile{was, is} {
			if n, ok := groupOf[f]; ok && f != nil {
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

// torn is the file with some of the bytes that were not forced to disk.
func (f *recordedFile) torn(r *rand.Rand) []byte {
	if len(f.now) < len(f.onDisk) { // it has been cut meanwhile
		return [][]byte{f.now, f.onDisk}[r.IntN(2)]
	}
	left := f.written()
	if from := len(f.onDisk) + r.IntN(len(f.now)-len(f.onDisk)+1); r.IntN(2) == 0 {
		return left[:from]
	}
	for at := 0; at < len(left); at += aof.SectorSize {
		sector := left[at:min(at+aof.SectorSize, len(left))]
		was := make([]byte, len(sector)) // zeros where there was nothing
		if at < len(f.onDisk) {
			copy(was, f.onDisk[at:])
		}
		if r.IntN(2) == 0 {
			copy(sector, was)
		}
	}
	return left
}

// write writes the image to a folder.
func (i folderImage) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range i {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
