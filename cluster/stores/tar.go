package stores

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mayfly/vfs"
)

// sumsName is the last entry of a stream: a line for each file, in order.
const sumsName = "sums"

// castagnoli returns the table of the checksums. A server that is alone does not make it.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// sumLine is the line of a file. Its length depends on the name alone, so that the length of a stream is
// known before it is read.
func sumLine(f File) string { return fmt.Sprintf("%08x %016x %s\n", f.CRC32, f.Size, f.Name) }

const (
	block   = 512       // of a tar
	trailer = 2 * block // at its end
)

// padded returns the room of an entry of a tar: its header and its content in whole blocks.
func padded(size int64) int64 { return block + (size+block-1)/block*block }

// header returns the header of an entry. GNU's format has sizes of any length in one block.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatGNU}
}

// Pack returns the files of a folder, a backup, as a stream, and its exact length. Close ends it early.
func Pack(dir string) (stream io.ReadCloser, size int64, err error) {
	files, err := dataFiles(dir)
	if err != nil {
		return nil, 0, err
	}
	var sums int64
	for _, f := range files {
		size += padded(f.Size)
		sums += int64(len(sumLine(f)))
	}
	if len(files) == 0 || len(files) > mostFiles {
		return nil, 0, invalid("%s has %d data files; 1 to %d can be sent", dir, len(files), mostFiles)
	}
	size += padded(sums) + trailer
	r, w := io.Pipe()
	go func() { w.CloseWithError(pack(w, dir, files)) }()
	return r, size, nil
}

// dataFiles returns the files of a folder that a backup has, without their checksums.
func dataFiles(dir string) (files []File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !transferred().MatchString(e.Name()) {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: e.Name(), Size: fi.Size()})
	}
	return files, nil
}

// pack writes a stream. files get their checksums.
func pack(w io.Writer, dir string, files []File) error {
	t := tar.NewWriter(w)
	var sums strings.Builder
	for i := range files {
		if err := packFile(t, dir, &files[i]); err != nil {
			return err
		}
		sums.WriteString(sumLine(files[i]))
	}
	if err := t.WriteHeader(header(sumsName, int64(sums.Len()))); err != nil {
		return err
	}
	if _, err := io.WriteString(t, sums.String()); err != nil {
		return err
	}
	return t.Close()
}

func packFile(t *tar.Writer, dir string, file *File) error {
	f, err := os.Open(filepath.Join(dir, file.Name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(header(file.Name, file.Size)); err != nil {
		return err
	}
	crc := crc32.New(castagnoli())
	n, err := io.CopyBuffer(onlyWriter{io.MultiWriter(t, crc)}, io.LimitReader(f, file.Size), make([]byte, 256<<10))
	if err == nil && n < file.Size {
		err = invalid("%s ends after %d of %d bytes", f.Name(), n, file.Size)
	}
	file.CRC32 = crc.Sum32()
	return err
}

// onlyWriter hides ReadFrom, so that the given buffer is used.
type onlyWriter struct{ io.Writer }

// spare is how much of the disk stores leave free.
const spare = 64 << 20

// RoomError is the error for stores that do not fit on the disk, which is full for them.
type RoomError struct{ Size, Free int64 }

func (e *RoomError) Error() string {
	return fmt.Sprintf("stores: %d bytes do not fit on the disk, which has %d free, %d of them to spare", e.Size, e.Free, int64(spare))
}

func (e *RoomError) Unwrap() error { return syscall.ENOSPC }

// Missing returns how many bytes more must be free.
func (e *RoomError) Missing() int64 { return e.Size + spare - e.Free }

// Fits returns a *RoomError unless the disk of a data folder has room for a backup of it.
func Fits(fsys vfs.FS, dir string) error {
	files, err := dataFiles(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the journal has deleted a file meanwhile: the backup itself tells
		return nil
	case err != nil:
		return err
	}
	size := int64(0)
	for _, f := range files {
		size += f.Size
	}
	return fits(fsys, dir, size)
}

func fits(fsys vfs.FS, dir string, size int64) error {
	free, _, err := fsys.Room(dir)
	if err == nil && free-spare < size {
		err = &RoomError{Size: size, Free: free}
	}
	return err
}

// Unpack writes a stream into clusterDir/incoming, in place of what is there, durably. It reads at most size
// bytes. After an error nothing is left. The error for a stream that Pack does not make is an *InvalidError.
func Unpack(fsys vfs.FS, clusterDir string, index, term uint64, size int64, stream io.Reader) error {
	if marked, err := Marked(clusterDir); err != nil || marked {
		return errors.Join(err, errors.New("stores: others are about to be installed"))
	}
	dir := filepath.Join(clusterDir, Incoming)
	if err := removeAll(dir); err != nil {
		return err
	}
	if err := fits(fsys, clusterDir, size); err != nil {
		return err
	}
	if err := mkdir(dir); err != nil {
		return err
	}
	files, err := unpack(fsys, dir, size, stream)
	if err == nil {
		err = vfs.SyncDir(fsys, dir)
	}
	if err == nil {
		err = writeList(filepath.Join(dir, contents), listFile{Contents: Contents{Index: index, Term: term, Files: files}})
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// unpack writes the files of a stream.
func unpack(fsys vfs.FS, dir string, size int64, stream io.Reader) (files []File, err error) {
	t := tar.NewReader(io.LimitReader(stream, size))
	left := size
	for {
		h, err := t.Next()
		if err != nil {
			return nil, cut(err, len(files))
		}
		if h.Typeflag != tar.TypeReg || h.Size < 0 || h.Size > left || len(files) > mostFiles {
			return nil, invalid("entry %q of type %q with %d bytes is not legal", h.Name, h.Typeflag, h.Size)
		}
		left -= h.Size
		if h.Name == sumsName {
			break
		}
		if !transferred().MatchString(h.Name) || slices.ContainsFunc(files, func(f File) bool { return f.Name == h.Name }) {
			return nil, invalid("entry %q is not a data file, or comes twice", h.Name)
		}
		f, err := unpackFile(fsys, t, dir, h)
		if err != nil {
			return nil, cut(err, len(files))
		}
		files = append(files, f)
	}
	var want strings.Builder
	for _, f := range files {
		want.WriteString(sumLine(f))
	}
	got, err := io.ReadAll(io.LimitReader(t, int64(want.Len())+1))
	if err != nil {
		return nil, cut(err, len(files))
	}
	if string(got) != want.String() {
		return nil, invalid("the checksums do not match")
	}
	for _, name := range []string{"format", "manifest"} {
		if !slices.ContainsFunc(files, func(f File) bool { return f.Name == name }) {
			return nil, invalid("the file %s is missing", name)
		}
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, invalid("the stream goes on behind the checksums")
	}
	return files, nil
}

// cut explains an error in the middle of a stream.
func cut(err error, files int) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the stream ends after %d files", files)
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrInsecurePath), errors.Is(err, tar.ErrFieldTooLong):
		return invalid("after %d files: %v", files, err)
	}
	return err
}

// syncEvery is how many bytes are written before they are forced to disk: the last fsync must not take
// minutes.
const syncEvery = 128 << 20

func unpackFile(fsys vfs.FS, t io.Reader, dir string, h *tar.Header) (file File, err error) {
	if err := step("create " + h.Name); err != nil {
		return File{}, err
	}
	f, err := vfs.CreateNew(fsys, filepath.Join(dir, h.Name))
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	crc := crc32.New(castagnoli())
	buffer := make([]byte, 256<<10)
	w := onlyWriter{io.MultiWriter(io.NewOffsetWriter(f, 0), crc)}
	for left := h.Size; left > 0; {
		n, err := io.CopyBuffer(w, io.LimitReader(t, min(left, syncEvery)), buffer)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return File{}, err
		}
		if left -= n; left > 0 {
			if err := f.SyncData(); err != nil {
				return File{}, err
			}
		}
	}
	return File{Name: h.Name, Size: h.Size, CRC32: crc.Sum32()}, f.Sync()
}
