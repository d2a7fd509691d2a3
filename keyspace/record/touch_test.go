package record

import (
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"mayfly/test/drill"
)

func TestCombine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some text of a length ", 1000)
	for _, at := range []int{0, 1, 7, 255, 4096, len(text) - 1, len(text)} {
		first, second := crc32.Checksum([]byte(text[:at]), Castagnoli), crc32.Checksum([]byte(text[at:]), Castagnoli)
		if got, want := Combine(first, second, len(text)-at), crc32.Checksum([]byte(text), Castagnoli); got != want {
			t.Errorf("cut at %d: %08x, want %08x", at, got, want)
		}
	}
}

func TestPutSumOfParts(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 5000)
	it := Item{Kind: Plain, TS: 7, ExpireAt: -1, Version: 9, Body: body}
	header := AppendHeader(nil, it)
	PutSumOfParts("1:a", header, Sum(0, body), len(body))
	if got, want := string(header)+body, string(Append(nil, "1:a", it)); got != want {
		t.Errorf("%.40q, want %.40q", got, want)
	}
}

func TestTouch(t *testing.T) {
	t.Parallel()
	key := TouchKey("12:order-1")
	if item, ok := TouchedKey(key); item != "12:order-1" || !ok {
		t.Errorf("%q, %t", item, ok)
	}
	if _, ok := TouchedKey("12:touch/"); ok {
		t.Error("an item passes for a touch")
	}
	now := Item{Kind: Document, Body: "{}", TS: 5, ExpireAt: 6, Version: 300}
	rec := string(Append(nil, key, TouchItem(now, 42)))
	touch, base, err := ReadTouch(key, rec)
	if err != nil || base != 42 || touch.Body != "" {
		t.Errorf("%+v, %d, %v", touch, base, err)
	}
	was := Item{Kind: Document, Body: "{}", TS: 1, ExpireAt: 2, Version: 42}
	if was.Touched(touch) != now {
		t.Errorf("%+v", was.Touched(touch))
	}
	for version, want := range map[uint64]bool{41: false, 42: true, 299: true, 300: false, 301: false} {
		if touch.Touches(base, version) != want {
			t.Errorf("version %d: %t", version, !want)
		}
	}
}

// TestTouchInTheDocument: the example in FORMAT.md is a real record.
func TestTouchInTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../FORMAT.md")
	drill.Check(t, err)
	key := TouchKey("12:order-1")
	it := Item{TS: 1700000005000, ExpireAt: 1700000035000, Version: 43}
	if line := key + "    " + string(Append(nil, key, TouchItem(it, 42))); !strings.Contains(string(doc), "\n    "+line+"\n") {
		t.Errorf("the example should read %s", line)
	}
}

// FuzzReadTouch: what is read as a touch is written the same again.
func FuzzReadTouch(f *testing.F) {
	for _, body := range []string{"2a", "", "0", "02a", "2A", "ffffffffffffffff", "10000000000000000", "x"} {
		f.Add(body, byte(Touch), uint64(300))
	}
	f.Add("2a", byte(Plain), uint64(300))
	f.Add("2a", byte(Touch), uint64(42))
	f.Fuzz(func(t *testing.T, body string, kind byte, version uint64) {
		const key = "touch/1:a"
		rec := string(Append(nil, key, Item{Kind: Kind(kind), Body: body, TS: 1, Version: version}))
		touch, base, err := ReadTouch(key, rec)
		if err != nil {
			return
		}
		if got := string(Append(nil, key, TouchItem(touch, base))); got != rec || base >= version {
			t.Errorf("%q is read as %q", rec, got)
		}
	})
}
