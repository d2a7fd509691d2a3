package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mayfly/test/drill"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// Clients may write anything into values, also bytes that look like records of a log that was synced.

// forgery returns a value of records that are a chain: entries, hard states and a marker. They are there once
// for each place in a word at which the value may begin.
func forgery(t *testing.T) (value []byte) {
	t.Helper()
	for shift := range 8 {
		for len(value)%8 != shift {
			value = append(value, 'x')
		}
		crc := uint32(99)
		add := func(kind int64, m proto.Message) {
			data, err := proto.Marshal(m)
			drill.Check(t, err)
			crc = crc32.Update(crc, castagnoli, data)
			rec, err := proto.Marshal(&walpb.Record{Type: &kind, Crc: &crc, Data: data})
			drill.Check(t, err)
			field := uint64(len(rec))
			if pad := (8 - len(rec)%8) % 8; pad != 0 {
				field |= uint64(0x80|pad) << 56
				rec = append(rec, make([]byte, pad)...)
			}
			value = append(binary.LittleEndian.AppendUint64(value, field), rec...)
		}
		for _, e := range entries(2, 3, 5, 9) {
			add(wal.EntryType, e)
			add(wal.StateType, hard(2, 1, 2))
		}
		add(wal.SnapshotType, marker(snapshot(5, 2).GetMetadata()))
		add(wal.StateType, hard(2, 1, 5))
	}
	if !synced(value) {
		t.Fatal("the forged records prove nothing")
	}
	return value
}

// forgedLog returns the options of a log whose last Save has forged records in both of its entries, its only
// file, and where that Save begins and ends there. The Save before it is longer by shift.
func forgedLog(t *testing.T, shift int) (o Options, path string, content []byte, begin, end int) {
	t.Helper()
	o, l := created(t)
	save(t, l, hard(2, 1, 1), slices.Concat(entries(2, 2, 2, 100), entries(2, 3, 3, 100+shift)))
	before, err := scan(&o)
	drill.Check(t, err)
	forged := entries(2, 4, 5, 0)
	forged[0].Data, forged[1].Data = forgery(t), forgery(t)
	save(t, l, nil, forged)
	after, err := scan(&o)
	drill.Check(t, err)
	drill.Check(t, l.Close())
	path = filepath.Join(o.Dir, "0000000000000000-0000000000000000.wal")
	content, err = os.ReadFile(path)
	drill.Check(t, err)
	return o, path, content, int(before.end), int(after.end)
}

// checkTorn checks that the log of this file is torn, and has what was synced.
func checkTorn(t *testing.T, o Options, path string, content []byte, what string) {
	t.Helper()
	drill.Check(t, os.WriteFile(path, content, 0o600))
	if c, err := scan(&o); err != nil || c.last() < 3 {
		t.Fatalf("%s: %v", what, err)
	}
}

// A Save is torn at each of its bytes: the file ends there, or zeros follow, or some of them.
func TestForgedRecordsInATornSave(t *testing.T) {
	t.Parallel()
	o, path, content, begin, end := forgedLog(t, 0)
	for at := begin; at < end; at++ {
		checkTorn(t, o, path, content[:at], fmt.Sprint("the file ends at ", at))
		zeroed := slices.Clone(content)
		clear(zeroed[at:])
		checkTorn(t, o, path, zeroed, fmt.Sprint("written up to ", at))
		checkTorn(t, o, path, zeroed[:(at+511)&^511], fmt.Sprint("written up to ", at, " of a sector"))
	}
}

// Sectors of a Save are lost, but none with the length of a record. A sector ends at every place where it can
// in the head of a record.
func TestForgedRecordsAroundHoles(t *testing.T) {
	t.Parallel()
	for shift := 0; shift < 512; shift += 8 {
		o, path, content, begin, end := forgedLog(t, shift)
		_, size := length(content[begin:])
		for from := (begin + 8 + 511) &^ 511; from < end; from += 512 {
			if second := begin + size; from > second-512 && from < second+8 {
				continue
			}
			holed := slices.Clone(content)
			clear(holed[from : from+512])
			for _, size := range []int{len(holed), end, end - 5, end - 600} {
				checkTorn(t, o, path, holed[:size], fmt.Sprintf("a hole from %d in %d bytes", from, size))
			}
		}
	}
}

// A Save that was synced has changed, its lengths too: that is refused, with forged records in it or not.
func TestDamageOfForgedRecords(t *testing.T) {
	t.Parallel()
	o, path, _, begin, end := forgedLog(t, 0)
	l := opened(t, o)
	save(t, l, hard(2, 1, 5), entries(2, 6, 7, 50))
	save(t, l, hard(2, 1, 6), entries(2, 8, 9, 50))
	drill.Check(t, l.Close())
	content, err := os.ReadFile(path)
	drill.Check(t, err)
	check := func(content []byte, what string) {
		t.Helper()
		drill.Check(t, os.WriteFile(path, content, 0o600))
		var damage *DamageError
		c, err := scan(&o)
		if unread := err == nil && c.last() == 9; !unread && !errors.As(err, &damage) { // some bits nothing reads
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, size := length(content[begin:])
	for at := begin; at < end; at++ {
		if in := (at - begin) % size; in >= 40 && in%31 != 0 {
			continue
		}
		for bit := range 8 {
			flipped := slices.Clone(content)
			flipped[at] ^= 1 << bit
			check(flipped, fmt.Sprintf("bit %d of byte %d", bit, at))
		}
		for _, n := range []int{8, 512} {
			zeroed := slices.Clone(content)
			if clear(zeroed[at:min(at+n, end)]); !slices.Equal(zeroed, content) {
				check(zeroed, fmt.Sprintf("%d zeros from %d", n, at))
			}
		}
	}
}
