package keyspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// The files of a data folder, beside the journal's.
const (
	lockName      = "LOCK"
	formatName    = "format"
	catalogueName = "catalogue.db"
)

// folderFormat is the version of the folder's layout as a whole. A newer one is refused.
const folderFormat = 1

// partitionFile is the name of a partition's store.
func partitionFile(n int) string { return fmt.Sprintf("partition-%03d.db", n) }

// dataDir is a data folder that belongs to this process until it is closed.
type dataDir struct {
	path       string
	partitions int
	lock       *os.File
}

// openDataDir takes possession of a data folder, making it if there is none. The number of
// partitions is fixed when the folder is made: if another is wanted later, the folder's is used
// and a warning logged.
func openDataDir(path string, partitions int, log zerolog.Logger) (*dataDir, error) {
	if err := refuseUnfinished(path); err != nil {
		return nil, err
	}
	return makeDataDir(path, partitions, log)
}

// makeDataDir is openDataDir for a folder that may be one that is being made.
func makeDataDir(path string, partitions int, log zerolog.Logger) (_ *dataDir, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	d := &dataDir{path: path}
	if d.lock, err = lockFile(filepath.Join(path, lockName)); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	text, err := os.ReadFile(filepath.Join(path, formatName))
	if errors.Is(err, os.ErrNotExist) {
		d.partitions = partitions
		return d, d.create(log)
	}
	if err != nil {
		return nil, err
	}
	if d.partitions, err = readFormat(string(text)); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	if d.partitions != partitions {
		log.Warn().Str("folder", path).Int("partitions", d.partitions).Int("asked", partitions).
			Msg("the number of partitions was fixed when the data folder was made; the one asked for is ignored")
	}
	for _, name := range d.stores() {
		store := filepath.Join(path, name)
		if _, err := os.Stat(store + ".prev"); err == nil {
			continue // it takes the store's place
		}
		if _, err := os.Stat(store); err != nil {
			return nil, fmt.Errorf("data folder %s is not complete: %w", path, err)
		}
	}
	return d, nil
}

// stores are the names of the stores' files.
func (d *dataDir) stores() []string {
	names := []string{catalogueName}
	for n := range d.partitions {
		names = append(names, partitionFile(n))
	}
	return names
}

// create fills a new folder. The file format comes last: while it is missing the folder holds
// nothing of value, unless it is one that somebody has damaged.
func (d *dataDir) create(log zerolog.Logger) error {
	for _, pattern := range []string{"*.db", "*.db.*"} {
		found, err := filepath.Glob(filepath.Join(d.path, pattern))
		if err != nil {
			return err
		}
		for _, name := range found {
			fi, err := os.Stat(name)
			if err != nil {
				return err
			}
			if fi.Size() > sealSize {
				return fmt.Errorf("data folder %s has no file %q, but %s holds data", d.path, formatName, name)
			}
		}
	}
	log.Info().Str("folder", d.path).Int("partitions", d.partitions).Msg("making a new data folder")
	names := d.stores()
	errs := make([]error, len(names))
	var wg sync.WaitGroup // at once: file systems force several files to disk for the price of one
	for i, name := range names {
		wg.Go(func() { errs[i] = createStore(filepath.Join(d.path, name)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	path := filepath.Join(d.path, formatName)
	if err := writeFile(path+".tmp", []byte(formatText(d.partitions))); err != nil {
		return err
	}
	if err := fsyncDir(d.path); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".tmp", path), fsyncDir(d.path))
}

// formatText is the content of the file format; its last line is the CRC-32C of those before.
func formatText(partitions int) string {
	text := fmt.Sprintf("mayfly data folder\nformat %d\npartitions %d\n", folderFormat, partitions)
	return fmt.Sprintf("%scrc32c %08x\n", text, record.Sum(0, text))
}

// readFormat reads the file format and gives the number of partitions.
func readFormat(text string) (partitions int, err error) {
	if format, newer := newerFormat(text); newer {
		return 0, fmt.Errorf("its format is %d, of a newer version of mayfly; this one reads up to format %d",
			format, folderFormat)
	}
	fmt.Sscanf(text, "mayfly data folder\nformat 1\npartitions %d\n", &partitions)
	if partitions < 1 || partitions > record.MaxPartitions || text != formatText(partitions) {
		return 0, fmt.Errorf("its file %q is damaged; for 16 partitions it would read %q", formatName, formatText(16))
	}
	return partitions, nil
}

// newerFormat tells whether the file format is one of a newer version, and which.
func newerFormat(text string) (format int, newer bool) {
	_, err := fmt.Sscanf(text, "mayfly data folder\nformat %d\n", &format)
	return format, err == nil && format > folderFormat
}

// close lets go of the folder.
func (d *dataDir) close() error { return d.lock.Close() }
