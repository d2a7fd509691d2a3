package repair

import "io"

// Progress is told how far a file has been read, in bytes. It is called after each read. A file may be read
// twice.
type Progress func(file string, at, size int64)

// countingReader tells a Progress what is read.
type countingReader struct {
	from   io.ReaderAt
	file   string
	size   int64
	report Progress
}

func (r *countingReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.from.ReadAt(b, at)
	r.report(r.file, at+int64(n), r.size)
	return n, err
}
