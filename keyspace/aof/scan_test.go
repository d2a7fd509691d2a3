package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/record"
)

// copier is a visitor that writes what it visits as commands, up to the last seal.
type copier struct{ confirmed, waiting []byte }

func (c *copier) Set(key, rec []byte, at Range) error {
	before := len(c.waiting)
	c.waiting = AppendSet(c.waiting, string(key), string(rec))
	if at.To-at.From != int64(len(c.waiting)-before) || at.From != int64(len(c.confirmed)+before) {
		return fmt.Errorf("%q is said to lie at %v", key, at)
	}
	return nil
}

func (c *copier) Del(key []byte) error {
	c.waiting = AppendDel(c.waiting, string(key))
	return nil
}

func (c *copier) Sealed(s Seal) error {
	c.confirmed = s.Append(append(c.confirmed, c.waiting...))
	c.waiting = c.waiting[:0]
	return nil
}

func (c *copier) Passed() error { return nil }

// checkScan scans a file for one use. The scan must end without a panic and with the same result without
// a visitor, and a visitor must get exactly the confirmed bytes.
func checkScan(t *testing.T, file []byte, use Use) (end int64, err error) {
	t.Helper()
	var c copier
	last, end, err := Scan(bytes.NewReader(file), "file", int64(len(file)), use, &c)
	again, sameEnd, sameErr := Scan(bytes.NewReader(file), "file", int64(len(file)), use, nil)
	if last != again || end != sameEnd || fmt.Sprint(err) != fmt.Sprint(sameErr) {
		t.Fatalf("with a visitor %+v, %d, %v; without %+v, %d, %v", last, end, err, again, sameEnd, sameErr)
	}
	if end > int64(len(file)) || !bytes.Equal(c.confirmed, file[:end]) {
		t.Fatalf("%q is confirmed of %q, %d bytes", c.confirmed, file, end)
	}
	var damage *DamageError
	switch {
	case err == nil && end < SealSize:
		t.Fatalf("%d of %d bytes are confirmed", end, len(file))
	case err != nil && (!errors.As(err, &damage) || damage.From < 0 || damage.From > damage.To || damage.To > int64(len(file))):
		t.Fatalf("error %v of %d bytes", err, len(file))
	}
	return end, err
}

func FuzzScan(f *testing.F) {
	content, _ := journalFile(all, item("1:a", "body"), AppendDel(item("1:b", ""), "1:a"), nil)
	f.Add(content)
	f.Add(content[:len(content)-3])
	f.Add(Seal{Mark: 7, From: SealSize, At: SealSize + 20, Sum: record.Sum(0, string(AppendDel(nil, "1:a"))), OnDisk: SealSize + 20}.Append(AppendDel(FirstSeal(7).Append(nil), "1:a")))
	f.Add(FirstSeal(1).Append(nil))
	f.Add([]byte("*3\r\n$3\r\nset\r\n$16\r\n0000000000000001\r\n$50\r\n1 "))
	f.Add([]byte("*2\r\n$3\r\ndel\r\n$3\r\n1:a\r\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, use := range []Use{Store, Journal} {
			end, err := checkScan(t, file, use)
			if err != nil || end == int64(len(file)) {
				continue
			}
			if again, err := checkScan(t, file[:end], use); again != end || err != nil {
				t.Fatalf("once cut at %d it ends at %d, %v", end, again, err)
			}
		}
	})
}

// Commands are read alike wherever they lie in the reader's buffer, large ones and small ones.
func TestScanReadsCommandsOfAllSizes(t *testing.T) {
	t.Parallel()
	var commits [][]byte
	for _, size := range []int{0, 1, 100, readSize - 300, readSize - 60, readSize - 50, readSize - 1, readSize, readSize + 1, 3 * readSize} {
		for pad := range 40 {
			body := strings.Repeat("x", size)
			commands := AppendDel(item("1:a", strings.Repeat("y", pad*7)), "1:"+strings.Repeat("z", pad))
			commits = append(commits, append(commands, item("1:b", body)...))
		}
	}
	content, ends := journalFile(all, commits...)
	if end, err := checkScan(t, content, Journal); err != nil || end != ends[len(ends)-1] {
		t.Errorf("%d of %d bytes are confirmed, %v", end, len(content), err)
	}
}

// A wrong record is found under a right seal, of a size that fits the reader's buffer or not.
func TestScanChecksRecords(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 100, 3 * readSize} {
		rec := record.Append(nil, "1:b", record.Item{Kind: record.Plain, Body: strings.Repeat("x", size)}) // another key's
		content, _ := journalFile(all, AppendSet(nil, "1:a", string(rec)))
		if _, err := checkScan(t, content, Journal); !errors.As(err, new(*DamageError)) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The longest key is accepted, and no longer one. A length is accepted only in the form that is written.
func TestReaderRefusesOtherForms(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", record.MaxKeyLength)
	for command, want := range map[string]bool{
		string(item(longest, "")):                              true,
		string(AppendDel(nil, longest)):                        true,
		string(item(longest+"k", "")):                          false,
		string(AppendDel(nil, longest+"k")):                    false,
		"*2\r\n$3\r\ndel\r\n$1\r\na\r\n":                       true,
		"*2\r\n$3\r\ndel\r\n$01\r\na\r\n":                      false,
		"*2\r\n$3\r\ndel\r\n$+1\r\na\r\n":                      false,
		"*2\r\n$3\r\ndel\r\n$-1\r\n\r\n":                       false,
		"*2\r\n$3\r\ndel\r\n$\r\n\r\n":                         false,
		"*2\r\n$3\r\nDEL\r\n$1\r\na\r\n":                       false,
		"*2\r\n$3\r\ndel\r\n$1\r\nab\r":                        false,
		"*2\r\n$3\r\ndel\r\n$1\na\n":                           false,
		"*3\r\n$3\r\nset\r\n$1\r\na\r\n$0000000000000000\r\n":  false,
		"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1000000000000000\r\n":  false,
		"*5\r\n$3\r\nset\r\n$1\r\na\r\n$0\r\n\r\n$2\r\nex\r\n": false,
		"\x00": false,
	} {
		r := NewReader(strings.NewReader(command), 0, int64(len(command)))
		cmd, err := r.Next()
		if err == nil && !cmd.Del {
			_, err = r.AppendValue(nil, cmd)
		}
		if (err == nil) != want || err != nil && !errors.As(err, new(*BreakError)) {
			t.Errorf("%.60q: %v", command, err)
		}
		if err != nil {
			continue
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%.60q: at the end %v", command, err)
		}
	}
}

// A length beyond the end of the file does not make a scan allocate.
func TestScanDoesNotTrustALength(t *testing.T) {
	t.Parallel()
	content := append(FirstSeal(7).Append(nil), "*3\r\n$3\r\nset\r\n$3\r\n1:a\r\n$900000000000000\r\n1 "...)
	if end, err := checkScan(t, content, Journal); err != nil || end != SealSize {
		t.Errorf("it ends at %d, %v", end, err)
	}
}

// Texts of all sizes are as they were when their seal confirms them, in each range anew.
func TestConfirmedReusesItsPages(t *testing.T) {
	t.Parallel()
	var ranges [][]byte
	var want, got []string
	for n := range 3 {
		var changes []byte
		for i, size := range []int{3000, 3000, 10_000, 500, 3000, pageSize - 1000, 2 * pageSize, 3000} {
			key, body := fmt.Sprintf("1:%d-%d", n, i), strings.Repeat(string(rune('a'+8*n+i)), size)
			changes = append(changes, item(key, body)...)
			want = append(want, key+body)
		}
		ranges = append(ranges, changes)
	}
	content, _ := journalFile(nothing, ranges...)
	header := len(record.AppendHeader(nil, record.Item{}))
	_, _, err := Scan(bytes.NewReader(content), "file", int64(len(content)), Journal, &Confirmed{Visit: func(o Op) error {
		got = append(got, o.Key+o.Rec[header:])
		return nil
	}})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d texts, %v; they are not the %d that were written", len(got), err, len(want))
	}
}

// Changes of any size are kept until a seal confirms them.
func TestConfirmedKeepsChangesUntilTheirSeal(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("large", pageSize)
	content, ends := journalFile(nothing, slices.Concat(item("1:a", "small"), item("1:b", large), item("1:c", "")), AppendDel(nil, "1:a"))
	var events []string
	c := &Confirmed{
		Visit: func(o Op) error {
			events = append(events, fmt.Sprint(o.Key, len(o.Rec), o.Del))
			return nil
		},
		OnSeal: func(s Seal) error {
			events = append(events, fmt.Sprint("seal ", s.LSN))
			return nil
		},
	}
	last, end, err := Scan(bytes.NewReader(content), "file", int64(len(content))-1, Journal, c)
	header := len(record.AppendHeader(nil, record.Item{}))
	want := []string{"seal 0", "seal 1", fmt.Sprint("1:a", header+5, false), fmt.Sprint("1:b", header+len(large), false), fmt.Sprint("1:c", header, false)}
	if err != nil || end != ends[1] || last.LSN != 1 || !slices.Equal(events, want) {
		t.Errorf("%q, up to %d, %+v, %v; want %q", events, end, last, err, want)
	}
	failure := errors.New("a visitor's")
	for _, c := range []*Confirmed{{Visit: func(Op) error { return failure }}, {OnSeal: func(Seal) error { return failure }}} {
		if _, _, err := Scan(bytes.NewReader(content), "file", int64(len(content)), Journal, c); !errors.Is(err, failure) {
			t.Errorf("error is %v", err)
		}
	}
}
