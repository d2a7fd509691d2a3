package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// place is an entry of the log by index and term.
type place struct{ index, term uint64 }

// content is what the files of a log hold.
type content struct {
	base    place             // the last marker
	entries []*raftpb.Entry   // after base, without gaps
	hard    *raftpb.HardState // never nil

	tail   string // the last segment
	run    int64  // where its last Save with entries begins, or one before
	newRun bool   // a hard state follows that
	end    int64  // of its last whole record
	broken error  // why its records end there; nil: nothing follows
}

// scan reads all files without changing them.
func scan(o *Options) (*content, error) {
	segments, err := listSegments(o.Dir)
	if err != nil {
		return nil, err
	}
	c := &content{hard: &raftpb.HardState{}}
	crc := uint32(0)
	for i, s := range segments {
		if crc, err = c.segment(o, s.path, crc, i == 0, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// segment reads one file. The first record has the checksum with which the file before it has ended.
func (c *content) segment(o *Options, path string, crc uint32, first, last bool) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("raft log: %w", err)
	}
	defer f.Close()
	c.run, c.newRun = 0, false
	decoder := wal.NewDecoder(fileutil.NewFileReader(f))
	metadata := false
	for number := 0; ; number++ {
		var rec walpb.Record
		offset := decoder.LastOffset()
		if err := decoder.Decode(&rec); err != nil {
			if !metadata {
				return 0, &DamageError{path, offset, fmt.Errorf("the segment has no header: %w", err)}
			}
			return decoder.LastCRC(), c.ended(f, path, offset, last, err)
		}
		switch {
		case decoder.LastOffset()%8 != 0:
			err = errors.New("the length of a record is damaged")
		case (number == 0) != (rec.GetType() == wal.CrcType):
			err = errors.New("the checksum of the segment before is not the first record")
		case number == 0 && !first && rec.GetCrc() != crc:
			err = fmt.Errorf("%w: the segment before it ends otherwise", wal.ErrCRCMismatch)
		case number == 0:
			decoder.UpdateCRC(rec.GetCrc())
		case rec.GetType() == wal.MetadataType:
			metadata = true
			if data := rec.GetData(); len(data) > 0 && data[0] != version {
				return 0, fmt.Errorf("raft log %s is of version %d; this program reads version %d", path, data[0], version)
			}
			if !bytes.Equal(rec.GetData(), o.metadata()) {
				return 0, fmt.Errorf("%w: %s has id %x, want %x", ErrForeign, path, rec.GetData(), o.metadata())
			}
		default:
			err = c.record(&rec, offset)
		}
		if err != nil {
			return 0, &DamageError{path, offset, err}
		}
	}
}

// record takes an entry, a hard state or a marker.
func (c *content) record(rec *walpb.Record, offset int64) error {
	switch rec.GetType() {
	case wal.EntryType:
		if c.newRun {
			c.run, c.newRun = offset, false
		}
		e := &raftpb.Entry{}
		if err := proto.Unmarshal(rec.GetData(), e); err != nil {
			return err
		}
		return c.entry(e)
	case wal.StateType:
		hs := &raftpb.HardState{}
		if err := proto.Unmarshal(rec.GetData(), hs); err != nil {
			return err
		}
		c.hard, c.newRun = hs, true
	case wal.SnapshotType:
		m := &walpb.Snapshot{}
		if err := proto.Unmarshal(rec.GetData(), m); err != nil {
			return err
		}
		c.marker(place{m.GetIndex(), m.GetTerm()})
	default:
		return fmt.Errorf("record of unknown type %d", rec.GetType())
	}
	return nil
}

// entry appends an entry; it replaces those of its index and after.
func (c *content) entry(e *raftpb.Entry) error {
	if len(c.entries) == 0 {
		switch {
		case c.base.index != 0 && e.GetIndex() <= c.base.index:
			return fmt.Errorf("entry %d follows the marker of entry %d", e.GetIndex(), c.base.index)
		case e.GetIndex() > c.base.index+1: // the segments with those between are gone; a later marker must follow
			c.base = place{}
		}
		c.entries = append(c.entries, e)
		return nil
	}
	first := c.entries[0].GetIndex()
	switch at := e.GetIndex() - first; {
	case e.GetIndex() <= c.base.index:
		return fmt.Errorf("entry %d follows the marker of entry %d", e.GetIndex(), c.base.index)
	case e.GetIndex() < first: // it replaces entries of segments that are gone; a marker behind it follows
		c.entries = append(c.entries[:0], e)
	case at > uint64(len(c.entries)):
		return fmt.Errorf("entry %d follows entry %d", e.GetIndex(), c.entries[len(c.entries)-1].GetIndex())
	default:
		c.entries = append(c.entries[:at], e)
	}
	return nil
}

// marker takes the place from which the log is to be read. If the log does not have it, raft has dropped the
// log for stores of a peer.
func (c *content) marker(at place) {
	if at.index == 0 {
		return
	}
	if len(c.entries) > 0 {
		first := c.entries[0].GetIndex()
		switch {
		case at.index+1 < first:
			return // an earlier marker, whose segment is gone
		case at.index+1 == first:
			c.base = at
			return
		case at.index < first+uint64(len(c.entries)) && c.entries[at.index-first].GetTerm() == at.term:
			c.base = at
			return
		}
	} else if at == c.base {
		return
	}
	c.base, c.entries = at, nil
}

// check drops the entries before the marker and reports what cannot be.
func (c *content) check() error {
	damaged := func(format string, args ...any) error {
		return &DamageError{c.tail, -1, fmt.Errorf(format, args...)}
	}
	if len(c.entries) > 0 {
		first := c.entries[0].GetIndex()
		if first > c.base.index+1 {
			return damaged("the log begins at entry %d, its marker at %d", first, c.base.index)
		}
		c.entries = c.entries[min(c.base.index+1-first, uint64(len(c.entries))):]
	}
	if commit := c.hard.GetCommit(); commit > c.last() {
		return damaged("%d entries are committed, the log ends at %d", commit, c.last())
	}
	c.commit(c.base.index)
	return nil
}

func (c *content) last() uint64 { return c.base.index + uint64(len(c.entries)) }

// term returns the term of an entry, 0 if the log does not have it.
func (c *content) term(index uint64) uint64 {
	switch {
	case index == c.base.index:
		return c.base.term
	case index < c.base.index || index > c.last():
		return 0
	}
	return c.entries[index-c.base.index-1].GetTerm()
}

// commit raises the commit index: what the local files have is committed, even if a power cut took the note
// of it.
func (c *content) commit(index uint64) {
	if index > c.hard.GetCommit() {
		hs := &raftpb.HardState{Term: new(c.hard.GetTerm()), Vote: new(c.hard.GetVote()), Commit: &index}
		if term := c.term(index); term > hs.GetTerm() {
			hs.Term, hs.Vote = &term, new(uint64)
		}
		c.hard = hs
	}
}

// position compares the log with the position of the local files. It reports whether the log begins anew
// after it.
func (c *content) position(o *Options) (anew bool, err error) {
	damaged := func(format string, args ...any) error {
		return &DamageError{c.tail, -1, fmt.Errorf(format, args...)}
	}
	switch {
	case o.Applied < c.base.index:
		err = damaged("the log begins after entry %d, the local files end at %d", c.base.index, o.Applied)
	case o.Applied > c.last():
		err = damaged("the log ends at entry %d, the local files at %d", c.last(), o.Applied)
	case o.Applied > 0 && c.term(o.Applied) != o.Term:
		err = damaged("entry %d is of term %d, in the local files of term %d", o.Applied, c.term(o.Applied), o.Term)
	default:
		c.commit(o.Applied)
		return false, nil
	}
	if o.Installed != nil && o.Applied > c.base.index {
		return true, nil
	}
	return false, err
}

// rewrite writes the last Save again where it is, and all after it: what was read may be in the kernel's
// cache only. It appends nothing. A copy of entries that a full disk cuts short would replace those after it
// too.
func (c *content) rewrite() error {
	f, err := os.OpenFile(c.tail, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, min(1<<20, c.end-c.run))
	for at := c.run; at < c.end; {
		n := min(int64(len(buf)), c.end-at)
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += n
	}
	return f.Sync()
}

// install drops the log for stores of a peer.
func (c *content) install(o *Options) {
	hs := &raftpb.HardState{Term: new(c.hard.GetTerm()), Vote: new(c.hard.GetVote()), Commit: new(o.Applied)}
	if o.Term > hs.GetTerm() {
		hs.Term, hs.Vote = new(o.Term), new(uint64)
	}
	c.base, c.entries, c.hard = place{o.Applied, o.Term}, nil, hs
}

// ended takes the end of a file's records. Only the last segment may end with a part of a record or with
// zeros.
func (c *content) ended(f *os.File, path string, offset int64, last bool, err error) error {
	info, statErr := f.Stat()
	if statErr != nil {
		return fmt.Errorf("raft log: %w", statErr)
	}
	whole := errors.Is(err, io.EOF)
	c.tail, c.end = path, offset
	rest, err2 := readFrom(f, offset)
	if err2 != nil {
		return fmt.Errorf("raft log: %w", err2)
	}
	switch {
	case !last && whole && offset == info.Size():
		return nil
	case !last && whole:
		return &DamageError{path, offset, errors.New("zeros in the middle of the log")}
	case !last:
		return &DamageError{path, offset, err}
	case !whole && !errors.Is(err, io.ErrUnexpectedEOF) && !cutShort(rest):
		return &DamageError{path, offset, err}
	}
	if len(rest) == 0 && whole {
		return nil
	}
	c.broken = err
	if synced(rest) {
		return &DamageError{path, offset, fmt.Errorf("a record is damaged, records that were synced after it follow: %w", err)}
	}
	return nil
}

// cutShort reports whether a record that is not valid was written in part: only zeros are where it ends, and
// after it. The library knows torn records by whole sectors of zeros.
func cutShort(rest []byte) bool {
	written := len(bytes.TrimRight(rest, "\x00"))
	if written < 8 {
		return true
	}
	return written < 8+int(min(binary.LittleEndian.Uint64(rest)&^(0xff<<56), uint64(len(rest))))
}

// removeLeftovers deletes segments that were allocated ahead. The library would use them with what an attempt
// to begin a segment has left in them.
func removeLeftovers(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".tmp") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

// readFrom reads what is written in a file from an offset on. Blocks of zeros at the end are left out: a
// segment is allocated as a whole, so they are most of it.
func readFrom(f *os.File, offset int64) ([]byte, error) {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	var rest []byte
	blank := 0 // zeros after it
	block := make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(f, block)
		if isZero(block[:n]) {
			blank += n
		} else {
			rest = append(append(rest, make([]byte, blank)...), block[:n]...)
			blank = 0
		}
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return rest, nil
		case err != nil:
			return nil, err
		}
	}
}

func isZero(b []byte) bool {
	for len(b) >= 4096 {
		if !bytes.Equal(b[:4096], zeros[:]) {
			return false
		}
		b = b[4096:]
	}
	return bytes.Equal(b, zeros[:len(b)])
}

var zeros [4096]byte

// cut overwrites a torn end by zeros, as a fresh segment has them.
func (c *content) cut(o *Options) error {
	if c.broken == nil {
		return nil
	}
	if o.Log != nil {
		o.Log.Warn("cut the torn end of the raft log", zap.String("file", c.tail), zap.Int64("offset", c.end))
	}
	f, err := os.OpenFile(c.tail, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("raft log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("raft log: %w", err)
	}
	// A length of whole sectors: the library takes less than the length of a record for a torn one.
	if err = f.Truncate(c.end); err == nil {
		err = fileutil.Preallocate(f, (info.Size()+511)&^511, true)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("raft log: %w", err)
	}
	return nil
}
