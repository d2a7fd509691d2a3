package aof

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/record"
)

// A range that was on disk, according to a later seal, is damaged if it differs, however torn it looks. Any
// other broken range is cut.
func TestJudgeBelievesLaterSeals(t *testing.T) {
	t.Parallel()
	commit := func(n int) []byte { return item(fmt.Sprint("1:", n), strings.Repeat("x", 1500)) }
	for name, onDisk := range map[string]func([]int64) int64{"nothing": nothing, "all": all, "all but the last": butTheLast} {
		content, ends := journalFile(onDisk, commit(0), commit(1), commit(2), commit(3))
		for hit := range 4 {
			// The beginning of a commit, its middle, and its seal.
			for _, at := range []int64{ends[hit], ends[hit] + 512, ends[hit] + 1024, ends[hit+1] - 1} {
				sector := at - at%SectorSize
				holed := slices.Clone(content)
				clear(holed[max(sector, ends[hit]):min(sector+SectorSize, int64(len(content)))])
				proven := false
				for later := hit + 1; later < 4; later++ {
					proven = proven || onDisk(ends[:later+1]) > ends[hit]
				}
				end, err := scanJournal(holed)
				if errors.As(err, new(*DamageError)) != proven || !proven && end != ends[hit] {
					t.Errorf("%s was on disk, commit %d has a hole at %d: it ends at %d of %v, %v", name, hit, at, end, ends, err)
				}
			}
		}
	}
}

// A range with its own seal does not end early, whatever a length in it says.
func TestJudgeIgnoresAWrongLength(t *testing.T) {
	t.Parallel()
	content, ends := journalFile(nothing, item("1:a", strings.Repeat("x", 1000)))
	at := bytes.Index(content, []byte("$1019\r\n")) + 1
	if at <= 0 {
		t.Fatalf("the length has changed")
	}
	for _, length := range []string{"9019", "2019", "1199", "1018", "0019"} {
		bad := bytes.Clone(content)
		copy(bad[at:], length)
		var damage *DamageError
		if _, err := scanJournal(bad); !errors.As(err, &damage) || damage.From > int64(at) || damage.To <= int64(at) {
			t.Errorf("length %s: %v", length, err)
		}
		// Without its seal it may have been torn.
		_, err := scanJournal(bad[:len(bad)-1])
		if torn := length > "1019"; (err == nil) != torn {
			t.Errorf("length %s without a seal: %v", length, err)
		}
	}
	if end, err := scanJournal(content); err != nil || end != ends[1] {
		t.Errorf("the sound file ends at %d, %v", end, err)
	}
}

func TestTrimZeros(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 10, readSize - 1, readSize, readSize + 1, 3 * readSize} {
		for _, zeros := range []int{0, 1, readSize - 1, readSize, readSize + 1, 2*readSize + 5} {
			file := append(bytes.Repeat([]byte{'\n'}, size), make([]byte, zeros)...)
			want := int64(size)
			if size == 0 {
				want = int64(zeros)
			}
			if end, err := TrimZeros(bytes.NewReader(file), int64(len(file))); err != nil || end != want {
				t.Errorf("%d bytes and %d zeros end at %d, %v", size, zeros, end, err)
			}
		}
	}
}

// A pattern is found wherever it lies in the buffer, and only behind the offset.
func TestSearch(t *testing.T) {
	t.Parallel()
	const pattern = "a pattern"
	for _, size := range []int{len(pattern), 100, readSize, readSize + 4, 2*readSize + 100} {
		file := bytes.Repeat([]byte{'a'}, size)
		want := []int64{}
		for _, at := range []int{0, 50, readSize - 10, readSize - 4, readSize + 20, 2 * readSize, size - len(pattern)} {
			if at >= 0 && at+len(pattern) <= size && bytes.Count(file[at:at+len(pattern)], []byte("a")) == len(pattern) {
				copy(file[at:], pattern)
				want = append(want, int64(at))
			}
		}
		slices.Sort(want)
		for _, from := range []int64{0, 1, 60} {
			found := []int64{}
			_, ok, err := Search(bytes.NewReader(file), from, int64(size), pattern, func(at int64) (bool, error) {
				found = append(found, at)
				return false, nil
			})
			behind := slices.DeleteFunc(slices.Clone(want), func(at int64) bool { return at < from })
			if ok || err != nil || !slices.Equal(found, behind) {
				t.Errorf("of %d bytes from %d on: found at %v, %t, %v; want %v", size, from, found, ok, err, behind)
			}
		}
		at, ok, err := Search(bytes.NewReader(file), 0, int64(size), pattern, func(at int64) (bool, error) { return true, nil })
		if !ok || err != nil || at != want[0] {
			t.Errorf("of %d bytes: first at %d, %t, %v; want %d", size, at, ok, err, want[0])
		}
	}
}

func TestSumRange(t *testing.T) {
	t.Parallel()
	file := make([]byte, 3*readSize)
	for i := range file {
		file[i] = byte(rand.Uint32())
	}
	for _, r := range []Range{{0, 0}, {5, 6}, {1, readSize}, {1, readSize + 1}, {7, 3 * readSize}} {
		sum, err := SumRange(bytes.NewReader(file), r.From, r.To)
		if want := crc32.Checksum(file[r.From:r.To], record.Castagnoli); err != nil || sum != want {
			t.Errorf("%v: %08x, %v; want %08x", r, sum, err, want)
		}
	}
	if _, err := SumRange(bytes.NewReader(file), 0, int64(len(file))+1); err == nil {
		t.Error("a file that ends too early has a sum")
	}
}
