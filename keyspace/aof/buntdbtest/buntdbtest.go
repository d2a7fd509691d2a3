package buntdbtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"mayfly/keyspace/aof"

	"github.com/tidwall/buntdb"
)

// OpenFolder reads a data folder, or a copy of one, into memory with buntdb alone: the stores, then the journals in
// order. A file may end unfinished if its server was killed or still ran. Of the last journal nothing counts behind the
// last seal: it was never acknowledged, and the server cuts it off.
func OpenFolder(dir string) (*buntdb.DB, error) {
	db, err := buntdb.Open(":memory:")
	if err != nil {
		return nil, err
	}
	stores, _ := filepath.Glob(filepath.Join(dir, "partition-*.db"))
	journals, _ := filepath.Glob(filepath.Join(dir, "journal-*.db"))
	files := slices.Concat([]string{filepath.Join(dir, "catalogue.db")}, stores, journals)
	for i, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if i == len(files)-1 {
			end := int64(len(content))
			err := aof.EachSeal(bytes.NewReader(content), 0, end, func(s aof.Seal) bool {
				end = s.At + aof.SealSize
				return false
			})
			if err != nil {
				return nil, err
			}
			content = content[:end]
		}
		err = db.Load(bytes.NewReader(content))
		unfinished := err == io.ErrUnexpectedEOF || err == buntdb.ErrInvalid && i == len(files)-1
		if err != nil && !unfinished {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return db, nil
}
