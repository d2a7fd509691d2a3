package aof_test

import (
	"bytes"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/test/drill"

	"github.com/tidwall/buntdb"
)

// Commands are, byte for byte, what buntdb would write.
func TestCommandsAreBuntdbs(t *testing.T) {
	t.Parallel()
	db, err := buntdb.Open(":memory:")
	drill.Check(t, err)
	defer db.Close()
	ops := []aof.Op{aoftest.Set("1:", ""), aoftest.Set("1:a", "\r\n\x00"), aoftest.Set("1:b", strings.Repeat("x", 70_000))}
	err = db.Update(func(tx *buntdb.Tx) error {
		for _, o := range ops {
			if _, _, err := tx.Set(o.Key, o.Rec, nil); err != nil {
				return err
			}
		}
		return nil
	})
	var want bytes.Buffer
	drill.Check(t, err, db.Save(&want))
	if got := aof.AppendOps(nil, ops); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%q\nis not what buntdb writes: %q", got, want.Bytes())
	}
}

func TestScanNeedsMemoryForOneRecord(t *testing.T) {
	const size = 64 << 10
	content := aof.FirstSeal(1).Append(nil)
	for range 128 {
		content = aof.AppendOps(content, []aof.Op{aoftest.Set("1:large", strings.Repeat("x", size))})
	}
	at := int64(len(content))
	sum := crc32.Checksum(content[aof.SealSize:], record.Castagnoli)
	content = aof.Seal{Mark: 1, From: aof.SealSize, At: at, Sum: sum, OnDisk: at}.Append(content)
	f := bytes.NewReader(content)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, end, err := aof.Scan(f, "a.db", f.Size(), aof.Store, nil); err != nil || end != f.Size() {
		t.Fatalf("%d bytes of %d are confirmed, %v", end, f.Size(), err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*size {
		t.Errorf("a file of %d bytes took %d bytes of memory", f.Size(), used)
	}
}
