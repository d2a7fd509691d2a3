package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// The files of a data folder, beside the journal's.
const (
	lockName = "LOCK"
	// FormatName is the file with the version of the layout and the number of partitions.
	FormatName = "format"
	// CatalogueName is the store of the catalogue.
	CatalogueName = "catalogue.db"
)

// The versions of the layout. Any other is refused. A folder gets a newer one when it is about to hold for
// the first time what servers of the older do not know: they would lose it, or bring back what is set aside.
const (
	formatVersion = 2
	undoVersion   = 3 // containers may be set aside
	logVersion    = 4 // and may have logs of deaths
	nodeVersion   = 5 // a node of a cluster: the catalogue may have a position in its log
	deleteVersion = 6 // and logs of deaths may have what clients deleted

	collectionVersion = 7 // items may have elements, in pages too
)

// newestVersion is the newest that is known.
const newestVersion = collectionVersion

// PartitionName returns the name of a partition's store.
func PartitionName(n int) string { return fmt.Sprintf("partition-%03d.db", n) }

// Dir is a data folder that belongs to this process until it is closed.
type Dir struct {
	FS         vfs.FS
	Path       string
	Partitions int
	lock       *Lock

	format  sync.Mutex // held while the file "format" is written
	version atomic.Int32
}

// Open locks a data folder, and makes it if there is none. The number of partitions is fixed when the folder
// is made: Open logs a warning if another is asked for later.
func Open(fsys vfs.FS, path string, partitions int, log zerolog.Logger) (*Dir, error) {
	if err := RefuseStaging(fsys, path); err != nil {
		return nil, err
	}
	return open(fsys, path, partitions, log)
}

// open is Open for a folder that may be a staging folder.
func open(fsys vfs.FS, path string, partitions int, log zerolog.Logger) (_ *Dir, err error) {
	if err := mkdirDurably(fsys, path); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	d := &Dir{FS: fsys, Path: path}
	d.version.Store(formatVersion)
	before, err := fsys.ReadDir(path)
	if err != nil {
		return nil, err
	}
	if d.lock, err = lock(fsys, path, false); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	// A process that was killed may have left names that are not on disk. Those of this process must not get
	// there before: the next journal without the one before it, or a journal without the manifest that
	// expects it.
	if err := vfs.SyncDir(fsys, path); err != nil {
		return nil, err
	}
	version := 0
	if d.Partitions, version, err = readFolder(fsys, path); err != nil {
		return nil, err
	}
	if d.Partitions == 0 {
		if d.Partitions = partitions; len(before) == 1 && before[0].Name() == lockName {
			log.Warn().Str("folder", path).
				Msg("the data folder has nothing but a lock: a first start was interrupted, or all data was removed")
		}
		return d, d.create(log)
	}
	d.version.Store(int32(version))
	if d.Partitions != partitions {
		log.Warn().Str("folder", path).Int("partitions", d.Partitions).Int("asked", partitions).
			Msg("the number of partitions was fixed when the data folder was made; the one asked for is ignored")
	}
	for _, name := range d.stores() {
		if _, err := fsys.Stat(filepath.Join(path, name)); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = &aof.DamageError{File: filepath.Join(path, name), Reason: "the file is missing"}
			}
			return nil, fmt.Errorf("data folder %s is not complete: %w", path, err)
		}
	}
	return d, nil
}

// stores returns the names of the stores.
func (d *Dir) stores() []string {
	names := []string{CatalogueName}
	for n := range d.Partitions {
		names = append(names, PartitionName(n))
	}
	return names
}

// create fills a new folder. The file "format" comes last: a folder without it has no data, unless it is
// damaged.
func (d *Dir) create(log zerolog.Logger) error {
	entries, err := d.FS.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".db") && !strings.Contains(e.Name(), ".db.") {
			continue
		}
		fi, err := d.FS.Stat(filepath.Join(d.Path, e.Name()))
		if err != nil {
			return err
		}
		if fi.Size() > aof.SealSize {
			return d.noFormat(e.Name() + " holds data")
		}
	}
	if err := d.refuseLost(); err != nil {
		return err
	}
	log.Info().Str("folder", d.Path).Int("partitions", d.Partitions).Msg("creating a new data folder")
	names := d.stores()
	errs, marks := make([]error, len(names)), make([]uint32, len(names))
	var wg sync.WaitGroup // in parallel: file systems force several files to disk for the price of one
	for i, name := range names {
		wg.Go(func() { marks[i], errs[i] = store.Create(d.FS, filepath.Join(d.Path, name)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m := NewManifest()
	m.Clean = true
	for i, name := range names {
		m.Stores[name] = []FileState{{Mark: marks[i], End: aof.SealSize}}
	}
	if err := m.Write(d.FS, d.Path); err != nil {
		return err
	}
	return d.WriteFormat()
}

// WithFormat calls f with the content of the file "format", which is not written meanwhile.
func (d *Dir) WithFormat(f func(text string) error) error {
	d.format.Lock()
	defer d.format.Unlock()
	return f(formatText(d.Partitions, int(d.version.Load())))
}

// AllowUndo raises the version of the folder to the first in which containers may be set aside, durably. It
// does nothing if its version is that or newer.
func (d *Dir) AllowUndo() error { return d.raise(undoVersion) }

// AllowLogs raises the version of the folder to the first in which containers may have logs of deaths, of
// what clients delete too if deletes is set, as AllowUndo does.
func (d *Dir) AllowLogs(deletes bool) error {
	if deletes {
		return d.raise(deleteVersion)
	}
	return d.raise(logVersion)
}

// AllowCollections raises the version of the folder to the first in which items may have elements, as
// AllowUndo does.
func (d *Dir) AllowCollections() error { return d.raise(collectionVersion) }

// CollectionsAllowed reports whether AllowCollections has nothing to do.
func (d *Dir) CollectionsAllowed() bool { return d.version.Load() >= collectionVersion }

// AllowReplicas raises the version of the folder to the first in which it may be that of a node of a cluster,
// as AllowUndo does.
func (d *Dir) AllowReplicas() error { return d.raise(nodeVersion) }

// raise raises the version of the folder. Nothing lowers it.
func (d *Dir) raise(version int32) error {
	if d.version.Load() >= version {
		return nil
	}
	d.format.Lock()
	defer d.format.Unlock()
	if d.version.Load() >= version {
		return nil
	}
	if err := d.writeFormatLocked(int(version)); err != nil {
		return err
	}
	d.version.Store(version)
	return nil
}

// WriteFormat writes the file "format", durably.
func (d *Dir) WriteFormat() error {
	d.format.Lock()
	defer d.format.Unlock()
	return d.writeFormatLocked(int(d.version.Load()))
}

// writeFormatLocked writes the file "format" with a version. d.format must be held.
func (d *Dir) writeFormatLocked(version int) error {
	path := filepath.Join(d.Path, FormatName)
	if err := vfs.WriteFile(d.FS, path+".tmp", []byte(formatText(d.Partitions, version))); err != nil {
		return err
	}
	if err := vfs.SyncDir(d.FS, d.Path); err != nil {
		return err
	}
	return errors.Join(d.FS.Rename(path+".tmp", path), vfs.SyncDir(d.FS, d.Path))
}

// refuseLost returns an error for a folder without the file "format" whose manifest names data: they are
// missing.
func (d *Dir) refuseLost() error {
	if _, err := d.FS.Lstat(filepath.Join(d.Path, ManifestName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m, err := ReadManifest(d.FS, d.Path)
	if err != nil {
		return d.noFormat(err.Error())
	}
	lost := len(m.Journals) > 0
	for _, states := range m.Stores {
		for _, s := range states {
			lost = lost || s.End > aof.SealSize
		}
	}
	if lost {
		return d.noFormat(fmt.Sprintf("the file %q names data, which are missing too", ManifestName))
	}
	return nil
}

// noFormat is the error for a folder that has lost the file "format". But is what proves that there was one.
func (d *Dir) noFormat(but string) error {
	return &aof.DamageError{File: filepath.Join(d.Path, FormatName), Reason: "the file is missing, but " + but}
}

// formatText returns the content of the file "format"; its last line is the CRC-32C of the others.
func formatText(partitions, version int) string {
	text := fmt.Sprintf("mayfly data folder\nformat %d\npartitions %d\n", version, partitions)
	return fmt.Sprintf("%scrc32c %08x\n", text, record.Sum(0, text))
}

// ReadFormat returns the number of partitions and the version in the content of the file "format". The error
// for a folder of an unknown version is a *[VersionError].
func ReadFormat(text string) (partitions, version int, err error) {
	_, err = fmt.Sscanf(text, "mayfly data folder\nformat %d\n", &version)
	if err == nil && version > 0 && (version < formatVersion || version > newestVersion) {
		return 0, 0, &VersionError{version}
	}
	fmt.Sscanf(text, "mayfly data folder\nformat %d\npartitions %d\n", &version, &partitions)
	if partitions < 1 || partitions > record.MaxPartitions || text != formatText(partitions, version) {
		return 0, 0, fmt.Errorf("its file %q is damaged; for 16 partitions it would read %q", FormatName, formatText(16, formatVersion))
	}
	return partitions, version, nil
}

// VersionError is the error for a folder whose layout has another version.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	if e.Version < formatVersion {
		return fmt.Sprintf("its format is %d, of a version of mayfly before the first release; this one reads formats %d to %d: "+
			"export the data with the version that wrote it, and import it", e.Version, formatVersion, newestVersion)
	}
	return fmt.Sprintf("its format is %d, of a newer version of mayfly; this one reads formats %d to %d", e.Version, formatVersion, newestVersion)
}

// Partitions returns the number of partitions of a data folder; 0 if there is no folder.
func Partitions(fsys vfs.FS, dir string) (int, error) {
	n, _, err := readFolder(fsys, dir)
	return n, err
}

// readFolder returns the number of partitions of a data folder and its version; 0 if there is no folder.
func readFolder(fsys vfs.FS, dir string) (partitions, version int, err error) {
	text, err := vfs.ReadFile(fsys, filepath.Join(dir, FormatName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	partitions, version, err = ReadFormat(string(text))
	if errors.As(err, new(*VersionError)) {
		return 0, 0, fmt.Errorf("data folder %s: %w", dir, err)
	}
	if err != nil {
		return 0, 0, &aof.DamageError{File: filepath.Join(dir, FormatName), To: int64(len(text)), Reason: err.Error()}
	}
	return partitions, version, nil
}

// mkdirDurably makes a folder and those above it that are missing, one after the other, each durably. A
// process that was killed may have made the lowest one that exists without forcing its name to disk, so that
// comes first.
func mkdirDurably(fsys vfs.FS, path string) error {
	var missing []string
	dir := filepath.Clean(path)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
	}
	if err := syncAbove(fsys, dir); errors.Is(err, syscall.EIO) { // others say that the folder is not ours to force to disk
		return err
	}
	for _, dir := range slices.Backward(missing) {
		if err := fsys.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := syncAbove(fsys, dir); err != nil {
			return err
		}
	}
	return fsys.MkdirAll(path, 0o700) // fails for a file
}

// syncAbove forces the name of a folder to disk.
func syncAbove(fsys vfs.FS, dir string) error {
	dir, err := filepath.Abs(dir) // of "." the name is not in the path
	if err != nil {
		return err
	}
	return vfs.SyncDir(fsys, filepath.Dir(dir))
}

// Close releases the folder.
func (d *Dir) Close() error { return d.lock.Close() }
