package elements

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// TestDocument: the examples of the package comment are real.
func TestDocument(t *testing.T) {
	t.Parallel()
	body := Append(Append(nil, Element{Field: "color", Value: "red"}), Element{Field: "size", Value: "XL"})
	if string(body) != "5:color3:red4:size2:XL" || Check(string(body), record.Hash) != nil {
		t.Errorf("%q", body)
	}
	page := Append(Append(nil, Element{Field: "jwt", Value: "abcd", End: 1700000060000}), Element{Field: "color", Value: "red"})
	if string(page) != "3:jwt+1700000060000 4:abcd5:color3:red" || CheckPage(string(page), 0) != nil || Check(string(page), record.Hash) == nil {
		t.Errorf("%q", page)
	}
	h := Head{Number: 0x2a07, Buckets: 3, Salt: 0x9f3a11c0d2e4b687}
	if text := string(h.Append(nil)); text != "/2a07 3 9f3a11c0d2e4b687" {
		t.Errorf("%q", text)
	} else if back, err := ReadHead(text); err != nil || back != h {
		t.Errorf("%+v, %v", back, err)
	}
	h = Head{Number: 0x2b19, Buckets: 1, Salt: 0x5c0, Left: Popped{FirstOfList, 3, 15}, Right: Popped{FirstOfList + Gap, 12, 13}}
	text := string(h.Append(nil))
	if back, err := ReadHead(text); text != "/2b19 1 5c0 8000000000000000+3/15 8000000001000000-12/13" || err != nil || back != h {
		t.Errorf("%q, %+v, %v", text, back, err)
	}
	if Check(text, record.List) != nil || Check(text, record.Hash) == nil {
		t.Errorf("a head of a list: %v, %v", Check(text, record.List), Check(text, record.Hash))
	}
	if s := SumOf(string(page)); s != (Sum{Count: 2, Ending: 1, Weight: len(page), Earliest: 1700000060000}) {
		t.Errorf("%+v", s)
	}
}

// TestTrim: what was popped off is at the ends of the pages that the head names.
func TestTrim(t *testing.T) {
	t.Parallel()
	var body []byte
	for _, entry := range []string{"a", "b", "c", "d", "e"} {
		body = Append(body, Element{Field: entry})
	}
	h := Head{Left: Popped{FirstOfList, 1, 5}, Right: Popped{FirstOfList + Gap, 2, 5}}
	for page, want := range map[uint64]string{FirstOfList: "bcde", FirstOfList + Gap: "abc", FirstOfList + 2*Gap: "abcde"} {
		got := ""
		for e := range Each(h.Trim(page, string(body))) {
			got += e.Field
		}
		if got != want || h.Popped(page) != 5-len(want) {
			t.Errorf("page %x has %q without %d that were popped, want %q", page, got, h.Popped(page), want)
		}
	}
	h.Right.Page = FirstOfList
	if got := h.Trim(FirstOfList, string(body)); got != "1:b0:1:c0:" {
		t.Errorf("%q is left of the only page", got)
	}
	if h.Forget(FirstOfList+Gap) || !h.Forget(FirstOfList) || h != (Head{}) {
		t.Errorf("%+v is left of the head", h)
	}
}

// TestHashIsFixed: folders depend on it.
func TestHashIsFixed(t *testing.T) {
	t.Parallel()
	h := NewHead(0x2a07, 42)
	if h.Salt != fixedSalt {
		t.Errorf("%x", h.Salt)
	}
	h.Salt = 0x9f3a11c0d2e4b687
	if got := fmt.Sprintf("%x %x", h.Hash(""), h.Hash("color")); got != fixedHashes {
		t.Errorf("the hashes are %s", got)
	}
}

// TestFrom: whatever the number of buckets, the places are cut into as many parts as there are buckets, each
// with the elements of its bucket; a bucket more cuts one part.
func TestFrom(t *testing.T) {
	t.Parallel()
	before := map[uint64]bool{}
	for buckets := uint32(1); buckets < 70; buckets++ {
		h := Head{Buckets: buckets}
		seen, begins, parts := map[uint32]bool{}, map[uint64]bool{0: true}, 0
		for place, more := uint64(0), true; more; more = place != 0 {
			bucket, next := h.From(place)
			for _, at := range []uint64{place, place + (next-place)/3, next - 1} {
				if b := h.BucketOf(Place(at)); b != bucket { // the reversal is its own inverse
					t.Fatalf("%d buckets: place %x is in bucket %d, not %d", buckets, at, b, bucket)
				}
			}
			seen[bucket], parts = true, parts+1
			begins[next] = true
			place = next
		}
		if len(seen) != int(buckets) || parts != int(buckets) {
			t.Fatalf("%d buckets: %d parts, %d buckets seen", buckets, parts, len(seen))
		}
		for at := range before {
			if !begins[at] {
				t.Fatalf("%d buckets: a part does not begin at %x any more", buckets, at)
			}
		}
		before = begins
		if buckets > 1 {
			less := Head{Buckets: buckets - 1}
			from := less.Splits()
			for hash := range uint64(300) {
				if is, was := h.BucketOf(hash), less.BucketOf(hash); is != was && (was != from || is != buckets-1) {
					t.Fatalf("hash %d moves from %d to %d of %d", hash, was, is, buckets)
				}
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	for _, body := range []string{"", "0:0:", "5:color3:red4:size2:XL", "3:jwt+1700000060000 4:abcd5:color3:red", "1:a+0 1:b", "01:a1:b", "1:a+1 ", "9:a", "/2a07 3 9f", "/2b19 1 5c0 8000000000000000+3/15 8000000001000000-12/13", "/2b19 1 5c0 8000000000000000-3/9 8000000000000000+3/9", "/2b19 1 5c0 8000000000000000+3/3", "99999999999999999999:a"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for rest := body; ; {
			e, after, ok := Cut(rest)
			if !ok {
				break
			}
			if text := string(Append(nil, e)); text != rest[:len(rest)-len(after)] || e.Size() != len(text) {
				t.Fatalf("%q is read as %+v", rest, e)
			}
			rest = after
		}
		if h, err := ReadHead(body); err == nil && string(h.Append(nil)) != body {
			t.Fatalf("%q is read as %+v", body, h)
		}
		_ = CheckAll(body, record.Hash)
		if s := SumOf(body); s.Earliest == math.MaxInt64 && s.Ending > 0 || s.Weight > len(body) || strings.Count(body, ":") < 2*s.Count {
			t.Fatalf("%q: %+v", body, s)
		}
	})
}

const (
	fixedSalt   = 0x994f219e6bc881b7
	fixedHashes = "ddf01fd6b48f4bef ec54e370ae4bc705"
)

// TestInOrder: the fields of a bucket come together, whatever the number of buckets, and those that are equal
// in their order.
func TestInOrder(t *testing.T) {
	fields := []string{"not", "not"}
	for n := range 2000 {
		fields = append(fields, fmt.Sprint("field", n%1500), "value")
	}
	for _, buckets := range []uint32{1, 2, 3, 64, 100, 1000} {
		h := Head{Number: 1, Buckets: buckets, Salt: 7}
		last, met, indexes := uint32(1<<31), map[uint32]bool{}, map[string]int{}
		n := 0
		for _, place := range h.InOrder(fields, 2, 2) {
			i := IndexIn(place)
			b := h.Bucket(fields[i])
			if b != last && met[b] {
				t.Fatalf("%d buckets: bucket %d comes twice", buckets, b)
			}
			if i <= indexes[fields[i]] || place>>24 != Place(h.Hash(fields[i]))>>24 {
				t.Fatalf("%d buckets: index %d comes after %d, at %x", buckets, i, indexes[fields[i]], place)
			}
			last, met[b], indexes[fields[i]] = b, true, i
			n++
		}
		if n != 2000 {
			t.Errorf("%d fields come", n)
		}
	}
}

// TestDiffering: what two bodies differ in has the difference of their sums, and of one element that was
// written or deleted it is that element.
func TestDiffering(t *testing.T) {
	random := drill.Rand(t)
	body := func(all []Element) (text string) {
		for _, e := range all {
			text += string(Append(nil, e))
		}
		return text
	}
	for range 2000 {
		var was []Element
		for i := range random.IntN(6) {
			was = append(was, Element{Field: fmt.Sprint(i, "f"), Value: fmt.Sprint(random.IntN(3)), End: int64(random.IntN(2))})
		}
		is, most := slices.Clone(was), 0
		for range random.IntN(3) {
			switch at := random.IntN(len(is) + 1); {
			case at == len(is) || random.IntN(3) == 0:
				is = slices.Insert(is, at, Element{Field: "new", Value: fmt.Sprint(random.IntN(3))})
			case random.IntN(2) == 0:
				is = slices.Delete(is, at, at+1)
			default:
				is[at].Value = "other"
			}
			most++
		}
		gone, come := Differing(body(was), body(is))
		before, after, less, more := SumOf(body(was)), SumOf(body(is)), SumOf(gone), SumOf(come)
		if after.Count-before.Count != more.Count-less.Count || after.Weight-before.Weight != more.Weight-less.Weight ||
			after.Ending-before.Ending != more.Ending-less.Ending || len(body(is))-len(body(was)) != len(come)-len(gone) {
			t.Fatalf("%q and %q differ in %q and %q", body(was), body(is), gone, come)
		}
		if most == 1 && max(less.Count, more.Count) > 1 || most == 0 && gone+come != "" {
			t.Fatalf("after %d edits %q and %q differ in %q and %q", most, body(was), body(is), gone, come)
		}
	}
}
