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
func synced(rest []byte) bool {
	var entries, states int // since the last entry, and before it
	var before uint64       // index of the last entry
	var previous *walpb.Record
	for at := 0; at+8 <= len(rest); {
		rec, size := frame(rest[at:])
		if rec == nil {
			at += 8
			previous = nil
			continue
		}
		at += size
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
	length := binary.LittleEndian.Uint64(b)
	n := length &^ (0xff << 56)
	pad := (8 - n%8) % 8
	mark := uint64(0)
	if pad != 0 {
		mark = 0x80 | pad
	}
	if n == 0 || length>>56 != mark || n > uint64(len(b)-8) || n+pad > uint64(len(b)-8) {
		return nil, 0
	}
	rec = &walpb.Record{}
	if proto.Unmarshal(b[8:8+n], rec) != nil || rec.GetType() < wal.MetadataType || rec.GetType() > wal.SnapshotType {
		return nil, 0
	}
	return rec, int(8 + n + pad)
}
