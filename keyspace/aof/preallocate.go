package aof

var zeros [64 << 10]byte

// Preallocate writes zeros behind the end of the file. A write over zeros that are on disk changes no
// metadata of the file system.
//
// A start takes the first zero for the end of the file, and buntdb skips zeros. After an error there are none.
func (d *File) Preallocate(bytes int64) error {
	for at := int64(0); at < bytes; {
		n, err := d.f.WriteAt(zeros[:min(bytes-at, int64(len(zeros)))], d.end+at)
		at += int64(n)
		if err != nil {
			_ = d.CutBack(d.end) // zeros that stay do no harm
			return err
		}
	}
	d.preallocated = bytes
	return nil
}

// Trim cuts off what lies behind the end of the file, and reports whether there was anything.
func (d *File) Trim() (cut bool, err error) {
	fi, err := d.f.Stat()
	if err != nil || fi.Size() <= d.end {
		return false, err
	}
	if err := d.f.Truncate(d.end); err != nil {
		return false, err
	}
	d.preallocated = 0
	return true, nil
}
