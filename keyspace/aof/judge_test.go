package aof_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
)

// An extra byte moves everything behind it. The seals there still prove that the file is not torn.
func TestByteTooManyIsDamage(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"text": "alpha", "zeros": strings.Repeat("\x00", 4*aof.SectorSize)} {
		for _, use := range []aof.Use{aof.Store, aof.Journal} {
			content := aof.FirstSeal(1).Append(nil)
			from := int64(len(content))
			content = aof.AppendOps(content, []aof.Op{aoftest.Set("1:a", body)})
			at := int64(len(content))
			seal := aof.Seal{Mark: 1, From: from, At: at, Sum: crc32.Checksum(content[from:], record.Castagnoli), LSN: 1}
			if use == aof.Store {
				seal.OnDisk = at
			}
			content = seal.Append(content)
			whole := bytes.NewReader(content)
			if _, end, err := aof.Scan(whole, "a.db", whole.Size(), use, nil); err != nil || end != whole.Size() {
				t.Fatalf("%d bytes of %d are confirmed, %v", end, whole.Size(), err)
			}
			if use == aof.Journal && name == "zeros" {
				continue // zeros that were never forced to disk excuse what surrounds them
			}
			longer := bytes.NewReader(bytes.Replace(content, []byte("$3\r\n1:a\r\n$"), []byte("$3\r\n1:a\r\n$9"), 1))
			_, end, err := aof.Scan(longer, "a.db", longer.Size(), use, nil)
			var damage *aof.DamageError
			if !errors.As(err, &damage) || damage.From > from || damage.To <= from {
				t.Errorf("%s, use %d: confirmed up to %d, %v", name, use, end, err)
			}
		}
	}
}
