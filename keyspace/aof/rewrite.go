package aof

import "mayfly/vfs"

// Rewrite writes a range of a file anew with the bytes that it has, and forces the file to disk. The range
// lies between the ends of two seals, which have this mark. Nothing is changed if it is empty.
//
// After a failed fsync some systems take the pages that they could not write for written. They can be read
// until they leave the system's memory, and a second fsync reports success without writing them. A process
// that did not see the failure cannot tell. So what is not known to be on disk is written again first.
//
// The bytes are checked as they are written: since an earlier scan the system may have read the range from
// disk again. The error for a difference is an *[DamageError].
func Rewrite(f vfs.File, use Use, mark uint32, from, to int64) error {
	if from >= to {
		return nil
	}
	s := &scanner{v: discard{}, last: Seal{Mark: mark}, end: from}
	_, end, err := scan(rewriter{f}, f.Name(), from, to, use, s)
	if err == nil && end != to {
		err = &DamageError{File: f.Name(), From: end, To: to, Reason: "this range has changed since it was read"}
	}
	if err != nil {
		return err
	}
	return f.Sync()
}

// rewriter writes what it reads.
type rewriter struct{ f vfs.File }

func (r rewriter) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.f.ReadAt(b, at)
	if n > 0 {
		if _, failed := r.f.WriteAt(b[:n], at); failed != nil {
			return 0, failed
		}
	}
	return n, err
}
