package stores

import (
	"io"
)

// The folders and files in DIR/cluster.
const (
	Incoming = "incoming" // what Unpack has written
	Outgoing = "outgoing" // for a backup that is about to be sent
	Replaced = "replaced" // the files before an installation
)

// Contents describes stores that have been unpacked as a whole.
type Contents struct {
	Index, Term uint64 // raft's position
	Files       []File
}

// File is one of the stores' files.
type File struct {
	Name  string
	Size  int64
	CRC32 uint32 // Castagnoli
}

// Pack returns the files of a folder as a stream, and its exact length. Close ends it early.
func Pack(dir string) (stream io.ReadCloser, size int64, err error) { return nil, 0, nil }

// Unpack writes a stream into clusterDir/incoming, in place of what is there, durably. It reads at most size bytes.
func Unpack(clusterDir string, index, term uint64, size int64, stream io.Reader) error { return nil }

// Pending returns what clusterDir/incoming holds, nil if nothing is there as a whole. It removes what is not whole.
func Pending(clusterDir string) (*Contents, error) { return nil, nil }

// Mark decides that the pending stores replace the data files: from then on Install does it.
func Mark(clusterDir string) error { return nil }

// Marked reports whether Mark has decided and Install has not ended.
func Marked(clusterDir string) (bool, error) { return false, nil }

// Install replaces the data files of dir by the stores that Mark has chosen, if it has. It goes on where a crash has ended it.
// The folder must not be open.
func Install(dir string) (installed bool, err error) { return false, nil }

// Discard removes pending stores that are not marked.
func Discard(clusterDir string) error { return nil }
