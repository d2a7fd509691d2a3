package record

import (
	"math"
	"strings"
	"testing"

	"mayfly/expiry"
)

func TestKeysRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		container uint32
		id        string
		key       string
	}{
		{0, "a", "0:a"},
		{12, "order-1", "12:order-1"},
		{math.MaxUint32, "", "4294967295:"},
		{7, "1:2\r\n\x00\xff", "7:1:2\r\n\x00\xff"},
		{12, "~" + entryID + ":a", "12:~" + entryID + ":a"},
	} {
		key := string(AppendKey(nil, c.container, c.id))
		if key != c.key {
			t.Errorf("key of %d and %q is %q, want %q", c.container, c.id, key, c.key)
		}
		if k, err := SplitKey(key); err != nil || k != (Key{Container: c.container, ID: c.id}) {
			t.Errorf("SplitKey(%q) = %+v, %v", key, k, err)
		}
	}
	for _, key := range []string{"", ":", ":a", "a", "12", "12a:b", "012:a", "-1:a", "+1:a", "4294967296:a",
		"18446744073709551617:a", "container/12", "clock", "seal",
		"12~", "12~a", "12~" + entryID, "12~" + entryID[1:] + ":a", "12~" + strings.ToUpper(entryID) + ":a", "12~" + entryID + "0:a", "012~" + entryID + ":a"} {
		if _, err := SplitKey(key); err == nil {
			t.Errorf("SplitKey(%q) succeeds", key)
		}
	}
}

// entryID is the id of an entry in keys.
const entryID = "0000018bcfe5680000000003"

// TestKeysOfEntries: an entry of a log lies in the partition of the item that died, under an id of its own.
func TestKeysOfEntries(t *testing.T) {
	t.Parallel()
	for _, item := range []string{"", "order-1", "{user1}.cart", "a:b~c", strings.Repeat("x", MaxIDLength)} {
		key := string(AppendLogKey(nil, math.MaxUint32, entryID+":"+item))
		k, err := SplitKey(key)
		if err != nil || k != (Key{Container: math.MaxUint32, ID: entryID + ":" + item, Log: true}) {
			t.Errorf("SplitKey(%.60q) = %+v, %v", key, k, err)
			continue
		}
		for _, n := range []int{1, 3, 16, MaxPartitions} {
			if got, want := k.Partition(n), Partition(item, n); got != want {
				t.Errorf("%.60q is in partition %d of %d, the item in %d", key, got, n, want)
			}
		}
		if len(key) > MaxKeyLength {
			t.Errorf("a key of %d bytes is longer than %d", len(key), MaxKeyLength)
		}
	}
}

const epoch = 1_700_000_000_000 // ms

// someItems are items at the edges of what a record holds.
var someItems = []Item{
	{Kind: Document, Body: `{"sku":"A-1","ttl":30}`, TS: epoch, ExpireAt: epoch + 30_000, Version: 42},
	{Kind: Plain, Body: "", TS: 0, ExpireAt: expiry.Inherit, Version: 0},
	{Kind: Plain, Body: "a b\r\n\x00 1 \xff", TS: math.MaxInt64, ExpireAt: expiry.Never, Version: math.MaxUint64},
	{Kind: Entry, Body: "0 dd 30000 +30000 1f {}", TS: epoch + 30_000, Version: 42},
	{Kind: ClockKind, TS: math.MinInt64, ExpireAt: expiry.CapAt(math.MaxInt64)},
	{Kind: Document, Body: `{"until":1700000030}`, TS: epoch, ExpireAt: expiry.CapAt(epoch + 30_000), Version: 43},
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, it := range someItems {
		rec := string(Append([]byte("before"), "12:order-1", it))[len("before"):]
		back, header, err := Decode("12:order-1", rec)
		if err != nil || back != it || rec[header:] != it.Body {
			t.Errorf("%+v comes back from %q as %+v, %d, %v", it, rec, back, header, err)
		}
	}
}

func TestRecordIsReadable(t *testing.T) {
	t.Parallel()
	const want = `1 930c2bae d 1700000000000 1700000030000 2a {"sku":"A-1","ttl":30}`
	if rec := string(Append(nil, "12:order-1", someItems[0])); rec != want {
		t.Errorf("the record is\n%s, not\n%s", rec, want)
	}
}

// TestCapsAreEndsToOldBuilds: the end of an item with a cap is a number with a plus. Builds that know no caps
// read the number as an end of its own.
func TestCapsAreEndsToOldBuilds(t *testing.T) {
	t.Parallel()
	const want = ` d 1700000000000 +1700000030000 2b {"until":1700000030}`
	capped := someItems[len(someItems)-1]
	rec := string(Append(nil, "12:order-1", capped))
	if !strings.HasSuffix(rec, want) {
		t.Errorf("the record is %s, it should end with %s", rec, want)
	}
	for end, ok := range map[string]bool{"+2": true, "+1": false, "+0": false, "-1": true, "-2": false, "-1700000030000": false, "+": false, "": false, "++2": false} {
		if it, err := DecodeHeader("1 00000000 d 1700000000000 " + end + " 2b {}"); (err == nil) != ok {
			t.Errorf("the end %q is read as %d, %v", end, it.ExpireAt, err)
		}
	}
}

func TestEveryFlippedBitOfARecordIsDetected(t *testing.T) {
	t.Parallel()
	const key = "12:order-1"
	for _, it := range someItems {
		rec := string(Append(nil, key, it))
		eachFlip(rec, func(bad string, at int) {
			if back, _, err := Decode(key, bad); err == nil {
				t.Errorf("a flip at %d of %q goes unseen: %+v", at, rec, back)
			}
		})
		eachFlip(key, func(bad string, at int) {
			if _, _, err := Decode(bad, rec); err == nil {
				t.Errorf("the record is taken for that of %q", bad)
			}
		})
	}
}

// eachFlip calls f with s once for each of its bits flipped.
func eachFlip(s string, f func(bad string, at int)) {
	for i := range len(s) * 8 {
		b := []byte(s)
		b[i/8] ^= 1 << (i % 8)
		f(string(b), i/8)
	}
}

func TestRecordsOfANewerFormatAreRefused(t *testing.T) {
	t.Parallel()
	rec := string(Append(nil, "1:a", someItems[0]))
	if _, _, err := Decode("1:a", "2"+rec[1:]); err != ErrFormat {
		t.Errorf("error is %v", err)
	}
}

func TestRecordsCostNoAllocation(t *testing.T) {
	it := someItems[0]
	dst := make([]byte, 0, 1024)
	rec := string(Append(nil, "12:order-1", it))
	if n := testing.AllocsPerRun(100, func() {
		dst = AppendKey(dst[:0], 12, "order-1")
		dst = Append(dst, View(dst), it)
		if _, _, err := Decode("12:order-1", rec); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, it := range someItems {
		f.Add("12:order-1", string(Append(nil, "12:order-1", it)))
	}
	f.Add("1:a", "1 ")
	f.Add("1:a", "1 00000000 d")
	f.Add("1:a", "1 00000000 d 1 2 3")
	f.Fuzz(func(t *testing.T, key, rec string) {
		if len(rec) >= SumTo { // the checksum must not keep the rest from being tried
			b := []byte(rec)
			PutHex(b[SumFrom:SumTo], Sum(Sum(0, key), rec[SumTo:]))
			rec = string(b)
		}
		it, header, err := Decode(key, rec)
		if err != nil {
			return
		}
		if rec[header:] != it.Body {
			t.Fatalf("the body of %q is said to begin at %d", rec, header)
		}
		again, _, err := Decode(key, string(Append(nil, key, it)))
		if err != nil || again != it {
			t.Fatalf("%+v comes back as %+v, %v", it, again, err)
		}
	})
}

func FuzzSplitKey(f *testing.F) {
	for _, key := range []string{"12:order-1", "0:", "4294967296:a", "container/1", strings.Repeat("9", 40), "41~" + entryID + ":a{b}", "41~" + entryID} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		k, err := SplitKey(key)
		if err != nil {
			return
		}
		again := AppendKey(nil, k.Container, k.ID)
		if k.Log {
			again = AppendLogKey(nil, k.Container, k.ID)
		}
		if string(again) != key || k.Partition(MaxPartitions) >= MaxPartitions {
			t.Fatalf("%q is split into %+v", key, k)
		}
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	it := Item{Kind: Document, Body: strings.Repeat("x", 285), TS: epoch, Version: 1 << 40}
	var dst []byte
	for b.Loop() {
		dst = Append(dst[:0], "12:order-123456", it)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	it := Item{Kind: Document, Body: strings.Repeat("x", 285), TS: epoch, Version: 1 << 40}
	rec := string(Append(nil, "12:order-123456", it))
	for b.Loop() {
		if _, _, err := Decode("12:order-123456", rec); err != nil {
			b.Fatal(err)
		}
	}
}
