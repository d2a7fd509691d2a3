package aof

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
)

func TestSealRoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range []Seal{
		FirstSeal(1),
		{Mark: math.MaxUint32, From: math.MaxInt64 / 1000, At: 12, Sum: 0xabcdef01, LSN: 9_999_999_999_999_999, OnDisk: 5},
	} {
		if got, ok := ReadSeal(string(s.AppendRecord(nil))); (s.From < 1e16) != (ok && got == s) {
			t.Errorf("%+v is read as %+v, %t", s, got, ok)
		}
		if b := s.Append([]byte("before")); int64(len(b)) != SealSize+int64(len("before")) {
			t.Errorf("a seal has %d bytes", len(b))
		}
	}
}

func TestEveryFlippedBitOfASealIsNoticed(t *testing.T) {
	t.Parallel()
	rec := Seal{Mark: 7, From: 135, At: 346, Sum: 0xabcdef01, LSN: 41, OnDisk: 135}.AppendRecord(nil)
	for i := range len(rec) * 8 {
		bad := bytes.Clone(rec)
		bad[i/8] ^= 1 << (i % 8)
		if s, ok := ReadSeal(string(bad)); ok {
			t.Errorf("with a flip at %d it reads as %+v", i/8, s)
		}
	}
}

// Only whole seals at the offset they name are visited.
func TestEachSeal(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("*3\r\n$3\r\nset\r\n$4\r\nseal\r\n", readSize/25)
	var file []byte
	var want []int64
	for n := range 6 {
		at := int64(len(file))
		s := Seal{Mark: 7, From: at, At: at}
		switch n {
		case 2:
			s.At++
		case 3:
			s.From++
		default:
			want = append(want, at)
		}
		file = append(s.Append(file), filler...)
	}
	whole := int64(len(file))
	file = Seal{Mark: 7, From: whole, At: whole}.Append(file)
	visit := func(from, size int64) (at []int64) {
		err := EachSeal(bytes.NewReader(file), from, size, func(s Seal) (stop bool) {
			at = append(at, s.At)
			return false
		})
		drill.Report(t, err)
		return at
	}
	if got := visit(0, whole+SealSize); !slices.Equal(got, append(slices.Clone(want), whole)) {
		t.Errorf("found at %v", got)
	}
	for cut := whole + 1; cut < whole+SealSize; cut++ {
		if got := visit(0, cut); !slices.Equal(got, want) {
			t.Errorf("of %d bytes found at %v", cut, got)
		}
	}
	if got := visit(1, whole); !slices.Equal(got, want[1:]) {
		t.Errorf("found at %v", got)
	}
}

func TestSealsFitTheirUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seal           Seal
		store, journal bool
	}{
		{FirstSeal(7), true, true},
		{Seal{From: 135, At: 200, LSN: 1, OnDisk: 135}, false, true},
		{Seal{From: 135, At: 200, LSN: 1}, false, true},
		{Seal{From: 135, At: 135, LSN: 1, OnDisk: 135}, true, true},
		{Seal{From: 135, At: 200, LSN: 1, OnDisk: 136}, false, false},
		{Seal{From: 135, At: 200, LSN: 1, OnDisk: 200}, true, false},
		{Seal{From: 135, At: 200, OnDisk: 135}, false, false},
		{Seal{LSN: 1}, true, false},
		{Seal{From: 0, At: 200, LSN: 1}, false, false},
	} {
		if c.seal.fits(Store) != c.store || c.seal.fits(Journal) != c.journal {
			t.Errorf("%+v fits a store: %t, a journal: %t", c.seal, c.seal.fits(Store), c.seal.fits(Journal))
		}
	}
}
