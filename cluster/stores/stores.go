package stores

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// The folders and files in DIR/cluster.
const (
	Incoming = "incoming" // what Unpack has written
	Outgoing = "outgoing" // for backups that are about to be sent
	Replaced = "replaced" // the files before an installation
	marker   = "install"  // of an installation that has been decided
	contents = "contents" // in Incoming: it is whole
)

// Contents describes stores that have been unpacked as a whole.
type Contents struct {
	Index uint64 `json:"index,string"` // raft's position
	Term  uint64 `json:"term,string"`
	Files []File `json:"files"`
}

// File is one of the stores' files.
type File struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	CRC32 uint32 `json:"crc32c"` // Castagnoli
}

const (
	mostFiles = 10000
	mostList  = 4 << 20 // bytes of a list of files
)

// transferred are the names of the files of a backup. Like kept, it is made when it is needed first: a server
// without a cluster does not need it.
var transferred = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(format|seed|manifest|[a-z0-9-]{1,64}\.db)$`)
})

// kept are the names of all data files: those, and what starts, repairs and crashes leave beside them.
var kept = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(format|seed|manifest)(\.tmp)?$|\.db$|\.db\.|^repair-`)
})

// InvalidError says that a stream or a folder is not what Pack and Unpack make.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return "stores: " + e.Reason }

func invalid(format string, parts ...any) error { return &InvalidError{fmt.Sprintf(format, parts...)} }

// listFile is a list of files on disk, with its checksum.
type listFile struct {
	Phase string `json:"phase,omitempty"` // of an installation
	Contents
	Sum string `json:"crc32c"` // of the text with an empty one
}

func (l listFile) text() []byte {
	l.Sum = ""
	for range 2 {
		text, err := json.MarshalIndent(l, "", "  ")
		if err != nil {
			panic(err) // plain values
		}
		if l.Sum != "" {
			return append(text, '\n')
		}
		l.Sum = fmt.Sprintf("%08x", record.Sum(0, string(text)))
	}
	panic("unreachable")
}

// step is called before each change of the disk. Tests replace it to end the process there.
var step = func(what string) error { return nil }

// writeList writes a list durably, in place of the one that is there.
func writeList(path string, l listFile) error {
	if err := step("write " + path); err != nil {
		return err
	}
	if err := vfs.WriteFile(vfs.OS, path+".tmp", l.text()); err != nil {
		return errors.Join(err, os.Remove(path+".tmp"))
	}
	if err := rename(path+".tmp", path); err != nil {
		return err
	}
	return vfs.SyncDir(vfs.OS, filepath.Dir(path))
}

// readList reads a list, nil if there is none. The error for a damaged one is an *InvalidError.
func readList(path string) (*listFile, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi.Size() > mostList {
		return nil, invalid("%s has %d bytes", path, fi.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var l listFile
	if json.Unmarshal(text, &l) != nil || !bytes.Equal(l.text(), text) {
		return nil, invalid("%s is damaged", path)
	}
	return &l, nil
}

func rename(from, to string) error {
	if err := step("rename " + from); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func remove(path string) error {
	if err := step("remove " + path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return vfs.SyncDir(vfs.OS, filepath.Dir(path))
}

func removeAll(path string) error {
	if err := step("remove all " + path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// mkdir makes a folder, durably. One that is there is fine.
func mkdir(path string) error {
	if err := step("mkdir " + path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return vfs.SyncDir(vfs.OS, filepath.Dir(path))
}
