package stores

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"mayfly/keyspace/datadir"
	"mayfly/vfs"
)

// probe is an empty file that CheckMount moves.
const probe = "cluster.probe"

// CheckMount returns an error if dir/cluster is on another file system than dir: no file can be renamed from
// one to the other, as Install and SetAside do. Any other error shows where it matters.
func CheckMount(dir string) error {
	clusterDir := filepath.Join(dir, "cluster")
	from, to := filepath.Join(clusterDir, probe), filepath.Join(dir, probe)
	err := os.WriteFile(from, nil, 0o600)
	if err == nil {
		err = rename(from, to)
	}
	os.Remove(from)
	os.Remove(to)
	if errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%s and %s are on different file systems, and files move between them: put both on one", dir, clusterDir)
	}
	return nil
}

// The phases of an installation. The marker names the one that has begun.
const (
	phaseOut = "out" // the data files go to Replaced
	phaseIn  = "in"  // the stores take their place
	phaseLog = "log" // the raft log begins after them
)

// Pending returns what clusterDir/incoming holds, nil if nothing is there as a whole. It removes what is not
// whole.
func Pending(clusterDir string) (*Contents, error) {
	if marked, err := Marked(clusterDir); err != nil || marked {
		return nil, err
	}
	dir := filepath.Join(clusterDir, Incoming)
	list, err := readList(filepath.Join(dir, contents))
	if damaged := (*InvalidError)(nil); err != nil && !errors.As(err, &damaged) {
		return nil, err
	}
	if list != nil && complete(dir, list.Files) {
		return &list.Contents, nil
	}
	return nil, removeAll(dir)
}

// complete reports whether a folder has all files, with their sizes.
func complete(dir string, files []File) bool {
	return !slices.ContainsFunc(files, func(f File) bool { return !has(dir, f) })
}

func has(dir string, f File) bool {
	fi, err := os.Lstat(filepath.Join(dir, f.Name))
	return err == nil && fi.Mode().IsRegular() && fi.Size() == f.Size
}

// Mark decides that the pending stores replace the data files: from then on Install does it.
func Mark(clusterDir string) error {
	pending, err := Pending(clusterDir)
	if err != nil {
		return err
	}
	if pending == nil {
		marked, err := Marked(clusterDir)
		if err == nil && !marked {
			err = errors.New("stores: none have arrived")
		}
		return err
	}
	return writeList(filepath.Join(clusterDir, marker), listFile{Phase: phaseOut, Contents: *pending})
}

// Marked reports whether Mark has decided and Finish has not ended.
func Marked(clusterDir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(clusterDir, marker))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Install replaces the data files of dir by the stores that Mark has chosen, if it has. It goes on where a
// crash has ended it, and returns true until Finish: the raft log may not know the stores yet. The folder
// must not be open: Install locks it. The error for stores that are not whole any more is an *InvalidError:
// the folder holds no usable data then.
func Install(dir string) (installed bool, err error) {
	clusterDir := filepath.Join(dir, "cluster")
	path, replaced := filepath.Join(clusterDir, marker), filepath.Join(clusterDir, Replaced)
	if marked, err := Marked(clusterDir); err != nil {
		return false, err
	} else if !marked {
		return false, removeAll(replaced) // a crash may have left it
	}
	lock, err := datadir.LockExclusive(vfs.OS, dir)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	list, err := readList(path)
	if err != nil || list == nil { // another process has finished it
		return false, err
	}
	incoming := filepath.Join(clusterDir, Incoming)
	if list.Phase == phaseOut {
		if !complete(incoming, list.Files) {
			return false, invalid("%s is not whole any more", incoming)
		}
		if err := mkdir(replaced); err != nil {
			return false, err
		}
		if _, err := moveData(dir, replaced); err != nil {
			return false, err
		}
		list.Phase = phaseIn
		if err := writeList(path, *list); err != nil {
			return false, err
		}
	}
	if list.Phase == phaseIn {
		if err := moveIn(incoming, dir, list.Files); err != nil {
			return false, err
		}
		list.Phase = phaseLog
		if err := writeList(path, *list); err != nil {
			return false, err
		}
	}
	return true, errors.Join(removeAll(incoming), removeAll(replaced))
}

// Finish ends an installation: the raft log knows the stores.
func Finish(clusterDir string) error { return remove(filepath.Join(clusterDir, marker)) }

// moveIn moves the files of a list that have not been moved yet. The file "format", without which a folder is
// empty, is the last.
func moveIn(from, to string, files []File) error {
	last := func(f File) bool { return f.Name == "format" }
	files = append(slices.DeleteFunc(slices.Clone(files), last), slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !last(f) })...)
	for _, f := range files {
		switch {
		case has(from, f):
			if err := rename(filepath.Join(from, f.Name), filepath.Join(to, f.Name)); err != nil {
				return err
			}
		case !has(to, f):
			return invalid("%s is lost", filepath.Join(from, f.Name))
		}
	}
	return errors.Join(vfs.SyncDir(vfs.OS, to), vfs.SyncDir(vfs.OS, from))
}

// moveData moves the data files of a folder to another one, durably, and returns how many.
func moveData(dir, to string) (moved int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !kept().MatchString(e.Name()) {
			continue
		}
		if err := rename(filepath.Join(dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, errors.Join(vfs.SyncDir(vfs.OS, to), vfs.SyncDir(vfs.OS, dir))
}

// Discard removes pending stores that are not marked.
func Discard(clusterDir string) error {
	if marked, err := Marked(clusterDir); err != nil || marked {
		return err
	}
	return removeAll(filepath.Join(clusterDir, Incoming))
}

// setAside are the names in DIR/cluster that belong to one life of a disk.
var setAside = []string{"wal", "opened", "damaged-identity.json", Incoming, Outgoing, Replaced, marker, marker + ".tmp"}

// HasData reports whether a folder has data files. Other files, such as a configuration or lost+found, do not
// count.
func HasData(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Type().IsRegular() && kept().MatchString(e.Name()) }), err
}

// SetAside moves the data files of dir and what belongs to them in dir/cluster, the raft log among them, to a
// folder of that name in dir/cluster, and returns its path; empty if there was nothing. Nothing is deleted.
// The data folder must not be open: SetAside locks it. After a crash another call moves the rest, to a folder
// of its own.
func SetAside(dir, name string) (string, error) {
	clusterDir := filepath.Join(dir, "cluster")
	var found []string
	for _, part := range setAside {
		if _, err := os.Lstat(filepath.Join(clusterDir, part)); err == nil {
			found = append(found, part)
		}
	}
	data, err := HasData(dir)
	if err != nil || !data && len(found) == 0 {
		return "", err
	}
	lock, err := datadir.LockExclusive(vfs.OS, dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	to := filepath.Join(clusterDir, name)
	for n := 2; ; n++ {
		err := os.Mkdir(to, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
		to = filepath.Join(clusterDir, fmt.Sprintf("%s-%d", name, n))
	}
	for _, part := range found {
		if err := rename(filepath.Join(clusterDir, part), filepath.Join(to, part)); err != nil {
			return "", err
		}
	}
	if err := errors.Join(vfs.SyncDir(vfs.OS, to), vfs.SyncDir(vfs.OS, clusterDir)); err != nil {
		return "", err
	}
	_, err = moveData(dir, to)
	return to, err
}
