package storage

import (
	"encoding/binary"

	"mayfly/keyspace/memtable"
)

// Seed returns the seed of the hashes of ids. It is the same after a restart.
func (e *Engine) Seed() memtable.Seed {
	return memtable.Seed{binary.LittleEndian.Uint64(e.seed[:]), binary.LittleEndian.Uint64(e.seed[8:])}
}

// keepSeed writes the seed of a new folder. Without it, cursors of scans end with this run.
func (e *Engine) keepSeed() {
	if e.seedKept {
		return
	}
	if err := e.folder.WriteSeed(e.seed); err != nil {
		e.Options.Log.Warn().Err(err).Msg("cannot keep the seed of the hashes of ids: cursors of scans end with this run")
	}
}
