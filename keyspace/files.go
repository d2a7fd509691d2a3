package keyspace

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

// forceToDisk is fsync, of a file or a folder of the data. Everybody uses it, so that a test can know
// what a power cut would leave (powercut_test.go).
var forceToDisk = (*os.File).Sync

// forceContent is the same for what is in a file. When it was written may stay in memory.
var forceContent = fdatasync

// faults lets a test play a disk that fails; nil or a nil function is the real disk.
type faults struct {
	write func() error           // called before a transaction is written; its error is the write's
	sync  func(f *os.File) error // called in place of fsync and fdatasync
}

func (x *faults) beforeWrite() error {
	if x == nil || x.write == nil {
		return nil
	}
	return x.write()
}

func (x *faults) fsync(f *os.File) error {
	if x == nil || x.sync == nil {
		return forceToDisk(f)
	}
	return x.sync(f)
}

func (x *faults) fdatasync(f *os.File) error {
	if x == nil || x.sync == nil {
		return forceContent(f)
	}
	return x.sync(f)
}

// endProcess panics where nobody can recover.
func endProcess(p any) {
	stack := debug.Stack()
	go panic(fmt.Sprintf("%v\n%s", p, stack))
	select {}
}

// createNew makes a file that must not exist yet.
func createNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// writeFile makes a file, or makes it anew, and forces it to disk. Its name is on disk once the
// folder has been forced there too: see fsyncDir.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, forceToDisk(f), f.Close())
}

// fsyncDir forces the names in a folder to disk.
func fsyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(forceToDisk(d), d.Close())
}
