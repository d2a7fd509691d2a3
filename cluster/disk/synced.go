package disk

import (
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// synced reports whether the bytes after the last whole record have records of which one was synced before
// another was written. Then what lies before them was on disk once, so a power cut cannot be why it is not
// there.
//
// Every Save with entries writes them, then the hard state, then syncs; every marker is synced. So an entry
// that is followed by a hard state and another entry was synced, and so was one that is followed by an entry
// with no higher index. The checksums of two records next to each other are a chain; only records in a chain
// count.
//
// What lies inside a record proves nothing: clients may write values that look like records. So the scan goes
// from one record to the next by their lengths, also by that of a torn one. Only where a length is damaged or
// lost does it look for records everywhere.
func synced(rest []byte) bool {
	var entries, states int // since the last entry, and before it
	var before uint64       // index of the last entry
	var previous *walpb.Record
	bound := true // a record begins here
	for at := 0; at+8 <= len(rest); {
		rec, size := frame(rest[at:])
		if rec == nil && bound {
			size = claim(rest[at:])
		}
		bound = size > 0
		at += max(size, 8)
		if rec == nil {
			previous = nil
			continue
		}
		chained := previous != nil && crc32.Update(previous.GetCrc(), castagnoli, rec.GetData()) == rec.GetCrc()
		wasMarker := previous.GetType() == wal.SnapshotType
		previous = rec
		if !chained {
			continue
		}
		if wasMarker {
			return true
		}
		switch rec.GetType() {
		case wal.EntryType:
			var e raftpb.Entry
			if proto.Unmarshal(rec.GetData(), &e) != nil {
				continue
			}
			if entries > 0 && (states > 0 || e.GetIndex() <= before) {
				return true
			}
			entries, states, before = entries+1, 0, e.GetIndex()
		case wal.StateType:
			states++
		}
	}
	return false
}

// frame returns the record at the start of b and its size, nil if there is none.
func frame(b []byte) (rec *walpb.Record, size int) {
	n, size := length(b)
	if size == 0 || size > len(b) {
		return nil, 0
	}
	rec = &walpb.Record{}
	if proto.Unmarshal(b[8:8+n], rec) != nil || rec.GetType() < wal.MetadataType || rec.GetType() > wal.SnapshotType {
		return nil, 0
	}
	return rec, size
}

// length returns the length at the start of b, and the size of a record of this length. Both are 0 if it is
// none.
func length(b []byte) (n, size int) {
	field := binary.LittleEndian.Uint64(b)
	n = int(field &^ (0xff << 56))
	pad := (8 - n%8) % 8
	mark := 0
	if pad != 0 {
		mark = 0x80 | pad
	}
	if n == 0 || int(field>>56) != mark {
		return 0, 0
	}
	return n, 8 + n + pad
}

// claim returns the size that the record at the start of b had when it was written, 0 if that is not known.
// Its length is written before it and again before its data, after the type and the checksum. If they differ,
// one is damaged. If the second one is lost with its sector, the first one counts.
func claim(b []byte) int {
	n, size := length(b)
	rest := b[8:]
	last := uint64(0)
	for _, tag := range []byte{0x08, 0x10, 0x1a} { // fields 1, 2 and 3 of a record
		if size == 0 || len(rest) == 0 || rest[0] == 0 {
			return size
		}
		value, k := binary.Uvarint(rest[1:])
		switch {
		case rest[0] != tag || k < 0:
			return 0
		case k == 0 || rest[k] == 0: // cut, or lost from within the number
			return size
		}
		last, rest = value, rest[1+k:]
	}
	if len(b)-8-len(rest)+int(last) != n {
		return 0
	}
	return size
}
