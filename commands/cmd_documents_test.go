package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/documents"
	"mayfly/commands/engine"
)

// expectError executes a command on session 1. The command must fail with one line that contains want.
func (w *harness) expectError(want string, args ...string) {
	w.t.Helper()
	r := w.do(1, args...)
	if r.Kind != engine.KindError || !strings.Contains(r.Str, want) || strings.ContainsAny(r.Str, "\r\n") || len(r.Str) > 700 {
		w.t.Errorf("%.200q: got %.500s, want an error with %q", args, notation(r), want)
	}
}

// etagOf reads the etag in DOC.META.
func (w *harness) etagOf(container, id string) string {
	w.t.Helper()
	r := w.do(1, "DOC.META", container, id)
	for i := 0; i+1 < len(r.Elems); i += 2 {
		if r.Elems[i].Str == "etag" {
			return r.Elems[i+1].Str
		}
	}
	w.t.Fatalf("DOC.META %s %s has no etag: %s", container, id, notation(r))
	return ""
}

func TestEtags(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "100")
	w.expect("OK", "DOC.PUT", "c", "d", `{}`)
	w.expect("OK", "SELECT", "c")

	// Every write changes the etag, even one that changes nothing, in the same millisecond.
	seen := []string{w.etagOf("c", "d")}
	for _, write := range [][]string{
		{"DOC.PUT", "c", "d", `{}`},
		{"DOC.TOUCH", "c", "d"},
		{"DOC.SETTTL", "c", "d", "20"},
		{"DOC.SETTTL", "c", "d", "20"},
		{"DOC.PATCH", "c", "d", "SET", "/ttl", "20"},
		{"DOC.PATCH", "c", "d", "MOVE", "/ttl", "/ttl"},
		{"DOC.MERGE", "c", "d", `{}`},
		{"EXPIRE", "d", "30"},
		{"DOC.PUT", "c", "d", `{}`, "IFMATCH", "*"},
	} {
		if r := w.do(1, write...); r.Kind == engine.KindError {
			t.Fatalf("%q: %s", write, notation(r))
		}
		now := w.etagOf("c", "d")
		if slices.Contains(seen, now) {
			t.Errorf("%q left the etag %s, or an earlier one", write, now)
		}
		seen = append(seen, now)
	}

	// No read changes it, and all commands show the same.
	last := seen[len(seen)-1]
	w.expect(`"{\"_ts\":1767225600,\"_etag\":\"`+last+`\"}"`, "DOC.GET", "c", "d", "WITHMETA")
	w.expect("(integer) 1", "DOC.EXISTS", "c", "d")
	w.restart()
	if now := w.etagOf("c", "d"); now != last {
		t.Errorf("reads and a restart changed the etag from %s to %s", last, now)
	}

	for _, old := range seen[:len(seen)-1] {
		w.expect("(nil)", "DOC.PUT", "c", "d", `{"v":0}`, "IFMATCH", old)
	}
	w.expect("OK", "DOC.PUT", "c", "d", `{"v":1}`, "IFMATCH", last)
	w.expect("(nil)", "DOC.PUT", "c", "d", `{"v":2}`, "IFMATCH", last)
	w.expect("OK", "DOC.PUT", "c", "d", `{"v":3}`, "IFMATCH", `"`+w.etagOf("c", "d")+`"`)
	w.expect("OK", "DOC.PUT", "c", "d", `{"v":4,"ttl":1}`, "XX", "IFMATCH", strings.ToUpper(w.etagOf("c", "d")))

	// A dead document matches no etag, and a new document of the same id has another one.
	last = w.etagOf("c", "d")
	w.clock.Advance(time.Second)
	w.expect("(nil)", "DOC.PUT", "c", "d", `{"v":5}`, "IFMATCH", last)
	w.expect("OK", "DOC.PUT", "c", "d", `{"v":5}`)
	w.expect("(nil)", "DOC.PUT", "c", "d", `{"v":6}`, "IFMATCH", last)
}

func TestDocumentLimits(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = "1000"
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "100")

	longest, tooLong := strings.Repeat("i", 65536), strings.Repeat("i", 65537)
	w.expect("OK", "DOC.PUT", "c", longest, `{"v":1}`)
	w.expect(`"{\"v\":1}"`, "DOC.GET", "c", longest)
	before := w.dump()
	for _, command := range documents.DocumentCommands {
		if command.Keys.First == 0 {
			continue
		}
		args := []string{command.Name, "c", tooLong}
		switch command.Name {
		case "doc.put":
			args = append(args, "{}")
		case "doc.setttl":
			args = append(args, "5")
		case "doc.patch":
			args = append(args, "REMOVE", "/a")
		case "doc.merge":
			args = append(args, "{}")
		}
		w.expectError("65537 bytes is too long: legal are up to 65536", args...)
	}

	sized := func(bytes int) string { return `{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}` }
	w.expectError("document of 1001 bytes: legal are at most 1000 (max-value-size)", "DOC.PUT", "c", "d", sized(1001))
	w.expectError("document of 1008 bytes: legal are at most 1000", "DOC.PUT", "c", "d", sized(1000), "TTL", "5")
	w.expectError("nested deeper than 128 levels", "DOC.PUT", "c", "d", nested(129))
	w.expectError("nested deeper than 128 levels", "DOC.PUT", "c", "d", strings.Repeat("[", 999))
	if after := w.dump(); !slices.Equal(before, after) {
		t.Errorf("what was refused changed %q to %q", before, after)
	}

	w.expect("OK", "DOC.PUT", "c", "d", nested(128))
	w.expect("OK", "DOC.PUT", "c", "d", sized(1000))
	w.expect("OK", "DOC.PUT", "c", "d", sized(992), "TTL", "5")
	w.expect("OK", "DOC.PUT", "c", "d", sized(1000))
	before = w.dump()
	w.expectError("document of 1008 bytes: legal are at most 1000", "DOC.SETTTL", "c", "d", "5")
	if after := w.dump(); !slices.Equal(before, after) {
		t.Errorf("what was refused changed %q to %q", before, after)
	}
	w.expect("(integer) 1", "DOC.SETTTL", "c", "d", "null")

	w.expect("OK", "CONTAINER.CREATE", strings.Repeat("n", 255))
	w.expectError("invalid container name", "CONTAINER.CREATE", strings.Repeat("n", 256))
	w.expectError("invalid container name", "CONTAINER.CREATE", strings.Repeat("n", 1<<20))
	w.expectError("create it with CONTAINER.SET "+strings.Repeat("m", 255)+" TTL", "DOC.COUNT", strings.Repeat("m", 255))
}

// TestDocScan checks scans in portions of any size, beside writes. They return every document that lives
// throughout exactly once, and neither dead documents nor plain keys.
func TestDocScan(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "100")
	w.expect("OK", "SELECT", "c")
	want := map[string]string{}
	for i := range 300 {
		id := "doc" + strconv.Itoa(i)
		json := fmt.Sprintf(`{"n":%d}`, i)
		switch i % 3 {
		case 0:
			json = `{"ttl":1}`
		case 1:
			w.expect("OK", "SET", "plain"+strconv.Itoa(i), "v")
		}
		w.expect("OK", "DOC.PUT", "c", id, json)
		if i%3 != 0 {
			want[id] = json
		}
	}
	w.clock.Advance(time.Second)
	w.expect("(integer) 200", "DOC.COUNT", "c")

	for _, count := range []string{"1", "7", "10", "1000", "9223372036854775807"} {
		got := map[string]string{}
		cursor, rounds := "0", 0
		for {
			r := w.do(1, "DOC.SCAN", "c", cursor, "COUNT", count, "WITHDOCS", "MATCH", "doc*")
			docs := r.Elems[1].Elems
			for i := 0; i < len(docs); i += 2 {
				if _, twice := got[docs[i].Str]; twice {
					t.Errorf("COUNT %s: %s twice", count, docs[i].Str)
				}
				got[docs[i].Str] = docs[i+1].Str
			}
			w.expect("OK", "DOC.PUT", "c", "passing", `{}`)
			w.expect("(integer) 1", "DOC.DEL", "c", "passing")
			if cursor, rounds = r.Elems[0].Str, rounds+1; cursor == "0" {
				break
			}
			if rounds > 1000 {
				t.Fatalf("COUNT %s: the scan does not end", count)
			}
		}
		if len(got) != len(want) {
			t.Errorf("COUNT %s: %d documents, want %d", count, len(got), len(want))
		}
		for id, json := range want {
			if got[id] != json {
				t.Errorf("COUNT %s: %s is %q, want %q", count, id, got[id], json)
			}
		}
	}
}

// An edit whose result is too large or too deep is refused and changes nothing.
func TestPatchLimits(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = "2000"
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "100")
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	w.expect("OK", "DOC.PUT", "c", "d", `{"a":`+text(990)+`}`)
	before := w.dump()
	w.expectError("document of 2001 bytes: legal are at most 2000 (max-value-size)", "DOC.PATCH", "c", "d", "ADD", "/b", text(996))
	w.expectError("document of 2001 bytes: legal are at most 2000", "DOC.MERGE", "c", "d", `{"b":`+text(996)+`}`)
	w.expectError("document of 2001 bytes: legal are at most 2000", "DOC.MERGE", "c", "new", `{"b":`+text(1993)+`}`)
	w.expectError("operation 1 (ADD /b): document nested deeper than 128 levels", "DOC.PATCH", "c", "d", "ADD", "/b", nested(129))
	w.expectError("document nested deeper than 128 levels", "DOC.PATCH", "c", "d", "ADD", "/b", nested(128))
	w.expectError("document nested deeper than 128 levels", "DOC.PATCH", "c", "d", "ADD", "/b", nested(100), "ADD", "/c", nested(28),
		"MOVE", "/c", "/b"+strings.Repeat("/a", 100))
	if after := w.dump(); !slices.Equal(before, after) {
		t.Errorf("what was refused changed %q to %q", before, after)
	}
	w.expect("OK", "DOC.PATCH", "c", "d", "ADD", "/b", nested(127))
	w.expect("OK", "DOC.PATCH", "c", "d", "REMOVE", "/b", "ADD", "/b", text(995))
	w.expect("OK", "DOC.PATCH", "c", "d", "ADD", "/c", text(1900), "REMOVE", "/a", "REMOVE", "/b") // too large only between two operations
	w.expectError("101 paths: legal are 1 to 100", append([]string{"DOC.GET", "c", "d", "PATH"}, strings.Fields(strings.Repeat("/a ", 101))...)...)
	if r := w.do(1, append([]string{"DOC.GET", "c", "d", "PATH"}, strings.Fields(strings.Repeat("/c ", 100))...)...); len(r.Elems) != 100 {
		t.Errorf("100 paths: %.200s", notation(r))
	}
}

// nested returns an object of that many levels.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}
