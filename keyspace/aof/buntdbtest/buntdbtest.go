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

// OpenFolder reads a data folder, or a copy of one, into memory with buntdb alone: the stores, then the
// journals in order. A file may end unfinished if its server was killed or still ran. Of the last journal
// nothing counts behind the last seal: it was never acknowledged, and the server cuts it off.
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
			content = content[:sealed(content)]
		}
		err = db.Load(bytes.NewReader(content))
		unfinished := err == io.ErrUnexpectedEOF || err == buntdb.ErrInvalid && i == len(files)-1
		if err != nil && !unfinished {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return db, nil
}

// sealed returns the end of the last whole seal of a journal; without one all of it counts.
func sealed(content []byte) int {
	for before := len(content); ; {
		const key = "\r\nseal\r\n"
		at := bytes.LastIndex(content[:before], []byte(key))
		if at < 0 {
			return len(content)
		}
		var size int
		if _, err := fmt.Sscanf(string(content[at+len(key):min(at+len(key)+16, len(content))]), "$%d\r\n", &size); err == nil {
			if end := at + len(key) + len(fmt.Sprintf("$%d\r\n", size)) + size + len("\r\n"); end <= len(content) {
				return end
			}
		}
		before = at
	}
}
