package buntdbtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidwall/buntdb"
)

// OpenFolder reads a data folder, or a copy of one, into memory with buntdb alone: the stores, then the journals in
// order. A file may end unfinished if its server was killed or still ran.
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
		err = db.Load(bytes.NewReader(content))
		unfinished := err == io.ErrUnexpectedEOF || err == buntdb.ErrInvalid && i == len(files)-1
		if err != nil && !unfinished {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return db, nil
}
