package forming

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// FileName is the identity's file in DIR/cluster.
const FileName = "identity.json"

// Stage is how far a node has come on its way into a cluster.
type Stage string

// The stages. A node takes part in raft at Formed only.
const (
	Prepared Stage = "prepared" // has its id from the founder; the cluster has not begun
	Joining  Stage = "joining"  // has chosen its id; the leader has not agreed yet
	Formed   Stage = "formed"   // is a member
	Lost     Stage = "lost"     // was a member and has lost its files; ID is 0, Cluster is 0 if that is lost too
)

// Identity is who a node is, for one life of its disk.
type Identity struct {
	Cluster uint64 `json:"cluster,string"`
	ID      uint64 `json:"id,string"`
	Name    string `json:"name"`
	Stage   Stage  `json:"stage"`
	// Founder is the name of the node that began the cluster, if this node was there; else empty.
	Founder string `json:"founder,omitempty"`
	// FoundedWithData reports that the founder's folder had data. Only the founder has a configuration at
	// first then; the others begin with an empty log and get its stores. Without data, all begin with raft's
	// snapshot at {1, 1}.
	FoundedWithData bool `json:"founded_with_data,omitempty"`
	// Joined reports that the node came later: it begins with an empty log and no configuration.
	Joined bool `json:"joined,omitempty"`
	// Members are those at the founding or, of a node that joined, those at that time, with itself. Ascending
	// by name.
	Members []Member `json:"members,omitempty"`
}

// Member is a node of a cluster.
type Member struct {
	Name   string `json:"name"`
	ID     uint64 `json:"id,string"`
	Addr   string `json:"addr"`
	Client string `json:"client,omitempty"`
}

func (i *Identity) clone() *Identity {
	if i == nil {
		return nil
	}
	c := *i
	c.Members = slices.Clone(i.Members)
	return &c
}

// named returns the member of a name, nil if there is none.
func named(members []Member, name string) *Member {
	if at := slices.IndexFunc(members, func(m Member) bool { return m.Name == name }); at >= 0 {
		return &members[at]
	}
	return nil
}

// fileVersion is the version of the file's form.
const fileVersion = 1

type identityFile struct {
	Version int `json:"version"`
	Identity
	Sum string `json:"crc32c"` // of the text with an empty one
}

// marshal returns the content of the file.
func (i *Identity) marshal() []byte {
	file := identityFile{Version: fileVersion, Identity: *i}
	file.Sum = fmt.Sprintf("%08x", record.Sum(0, string(file.text())))
	return file.text()
}

func (f *identityFile) text() []byte {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(err) // plain values
	}
	return append(text, '\n')
}

// unmarshal is the inverse of marshal.
func unmarshal(text []byte) (*Identity, error) {
	var file identityFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, errors.New("not an identity in JSON")
	}
	if file.Version > fileVersion {
		return nil, &VersionError{file.Version}
	}
	identity := file.Identity
	if !bytes.Equal(identity.marshal(), text) {
		return nil, errors.New("its checksum or its form is wrong")
	}
	if err := identity.check(); err != nil {
		return nil, err
	}
	return &identity, nil
}

// check returns an error for an identity that no node writes.
func (i *Identity) check() error {
	if !slices.Contains([]Stage{Prepared, Joining, Formed, Lost}, i.Stage) {
		return fmt.Errorf("stage %q is unknown", i.Stage)
	}
	if i.Stage == Lost {
		return nil
	}
	if i.Cluster == 0 || i.ID == 0 || i.Name == "" {
		return errors.New("cluster, id or name is missing")
	}
	if i.Stage == Joining {
		return nil
	}
	if err := checkMembers(i.Members); err != nil {
		return err
	}
	if m := named(i.Members, i.Name); m == nil || m.ID != i.ID {
		return fmt.Errorf("its members do not name %s with its id", i.Name)
	}
	return nil
}

// mostMembers is the most nodes of a cluster. It bounds what a request may make a node keep.
const mostMembers = 64

func checkMembers(members []Member) error {
	if len(members) == 0 || len(members) > mostMembers {
		return fmt.Errorf("%d members; legal are 1 to %d", len(members), mostMembers)
	}
	for i, m := range members {
		if m.Name == "" || m.Addr == "" || len(m.Name)+len(m.Addr)+len(m.Client) > 1024 {
			return fmt.Errorf("member %d has no name or no address, or they are too long", i)
		}
		for _, other := range members[:i] {
			if other.Name == m.Name || other.ID == m.ID && m.ID != 0 || other.Addr == m.Addr {
				return fmt.Errorf("members %s and %s have the same name, id or address", other.Name, m.Name)
			}
		}
	}
	return nil
}

// mostIdentity bounds the file that Read takes.
const mostIdentity = 1 << 20

// Read returns the identity in DIR/cluster, nil if there is none. A *DamageError is the error for a damaged
// one, a *VersionError for that of a newer program.
func Read(clusterDir string) (*Identity, error) {
	path := filepath.Join(clusterDir, FileName)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, mostIdentity+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	identity, err := unmarshal(text)
	if newer := (*VersionError)(nil); errors.As(err, &newer) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return nil, &DamageError{path, err.Error()}
	}
	return identity, nil
}

// write replaces the identity in DIR/cluster, durably; nil removes it. After an error either one is there.
func write(clusterDir string, identity *Identity) error {
	path := filepath.Join(clusterDir, FileName)
	if identity == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return vfs.SyncDir(vfs.OS, clusterDir)
	}
	if err := os.Mkdir(clusterDir, 0o700); err == nil {
		if err := vfs.SyncDir(vfs.OS, filepath.Dir(clusterDir)); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	return vfs.ReplaceFile(vfs.OS, path, identity.marshal())
}

// WriteLost makes a node one that has lost its files and its identity with them. It may then only join the
// cluster to which its peers belong. A damaged identity is kept beside it.
func WriteLost(clusterDir, name string) error {
	path := filepath.Join(clusterDir, FileName)
	if err := os.Rename(path, filepath.Join(clusterDir, "damaged-"+FileName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(clusterDir, &Identity{Name: name, Stage: Lost})
}
