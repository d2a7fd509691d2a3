package datadir

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// Limits of the ends that earlier starts have cut off, in number and in bytes; the newest are kept. The very
// newest stays whatever its size, and so do all of the present start.
const (
	maxTornFiles = 300
	maxTornBytes = 256 << 20
)

// tornEnd is the end of a file that a start has cut off (aof.CutTail).
type tornEnd struct {
	path   string
	at     uint64 // ms; the time of the cut
	number uint64 // of several ends of one file with that time
	size   int64
}

// LimitTorn removes the oldest cut-off ends if there are too many, but none of the present start, which began
// at a time in ms. It logs each before its removal.
func LimitTorn(fsys vfs.FS, dir string, began int64, log zerolog.Logger) error {
	ends, err := tornEnds(fsys, dir)
	if err != nil {
		return err
	}
	slices.SortFunc(ends, func(a, b tornEnd) int { // newest first
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.number, a.number), strings.Compare(a.path, b.path))
	})
	kept := int64(0)
	var errs []error
	for i, end := range ends {
		kept += end.size
		if i == 0 || end.at >= uint64(began) || i < maxTornFiles && kept <= maxTornBytes {
			continue
		}
		kept -= end.size
		log.Warn().Str("file", end.path).Int64("bytes", end.size).Uint64("cut_at", end.at).
			Msg("removing an end that an earlier start has cut off: newer ones take the space reserved for them")
		errs = append(errs, fsys.Remove(end.path))
	}
	return errors.Join(errs...)
}

// tornEnds lists the cut-off ends in a folder.
func tornEnds(fsys vfs.FS, dir string) (ends []tornEnd, err error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		file, rest, ok := strings.Cut(e.Name(), ".db"+aof.TornSuffix)
		at, number, several := strings.Cut(rest, "-")
		end := tornEnd{path: filepath.Join(dir, e.Name()), number: 1}
		if !ok || file == "" || !e.Type().IsRegular() {
			continue
		}
		if end.at, ok = record.ReadDecimal(at); !ok {
			continue
		}
		if several {
			if end.number, ok = record.ReadDecimal(number); !ok {
				continue
			}
		}
		fi, err := e.Info()
		if err != nil {
			return nil, err
		}
		end.size = fi.Size()
		ends = append(ends, end)
	}
	return ends, nil
}
