package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"

	"mayfly/vfs"
)

// SeedName is the file with the seed of the hashes of ids. Cursors of scans belong to one seed; nothing else
// needs it.
const SeedName = "seed"

const seedHeader = "mayfly seed\n"

// ReadSeed returns the seed of the folder. kept is false if there is none or if it is damaged: then it is a
// new one.
func (d *Dir) ReadSeed() (seed [16]byte, kept bool) {
	text, err := vfs.ReadFile(d.FS, filepath.Join(d.Path, SeedName))
	digits, ok := strings.CutPrefix(string(text), seedHeader)
	if err == nil && ok {
		if data, err := hex.DecodeString(strings.TrimSuffix(digits, "\n")); err == nil && len(data) == len(seed) {
			return [16]byte(data), true
		}
	}
	rand.Read(seed[:])
	return seed, false
}

// WriteSeed keeps a seed in the folder.
func (d *Dir) WriteSeed(seed [16]byte) error {
	path := filepath.Join(d.Path, SeedName)
	if err := vfs.WriteFile(d.FS, path+".tmp", []byte(seedHeader+hex.EncodeToString(seed[:])+"\n")); err != nil {
		d.FS.Remove(path + ".tmp")
		return err
	}
	return errors.Join(d.FS.Rename(path+".tmp", path), vfs.SyncDir(d.FS, d.Path))
}
