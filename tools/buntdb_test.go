package tools

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/repair"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/tidwall/buntdb"
)

// newFixtureNow returns a fixture whose time begins now: buntdb reads the machine's clock.
func newFixtureNow(t *testing.T) *fixture {
	h := newFixture(t)
	h.clock.Raise(time.Now().UnixMilli())
	return h
}

// database opens a file with the stock library for the time of a function.
func (h *fixture) database(name string, use func(db *buntdb.DB)) {
	h.t.Helper()
	db, err := buntdb.Open(h.path(name))
	drill.Check(h.t, err)
	use(db)
	drill.Check(h.t, db.Close())
}

// set sets keys of a database in one transaction.
func (h *fixture) set(db *buntdb.DB, ttl time.Duration, keysAndValues ...string) {
	h.t.Helper()
	err := db.Update(func(tx *buntdb.Tx) error {
		for i := 0; i < len(keysAndValues); i += 2 {
			if _, _, err := tx.Set(keysAndValues[i], keysAndValues[i+1], &buntdb.SetOptions{Expires: ttl != 0, TTL: ttl}); err != nil {
				return err
			}
		}
		return nil
	})
	drill.Check(h.t, err)
}

func (h *fixture) read(name string) []byte {
	h.t.Helper()
	b, err := os.ReadFile(h.path(name))
	drill.Check(h.t, err)
	return b
}

// TestDatabaseRoundTrip takes thousands of writes from 16 partitions into 5, by a database that the stock
// library reads item by item.
func TestDatabaseRoundTrip(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	before := h.fillRandomly(time.Hour)
	_, report := h.run(exitOK, "", "export", h.path("old"), "--format", "buntdb", "--out", h.path("all.db"))
	if want := fmt.Sprintf("exported %d containers and %d items\n", len(before.Containers), len(before.Items)); !strings.Contains(report, want) {
		t.Errorf("%s, want %s", report, want)
	}
	h.database("all.db", func(db *buntdb.DB) { h.checkDatabase(db, before) })

	_, report = h.run(exitOK, "", "import", h.path("all.db"), h.path("new"), "--partitions", "5")
	if want := fmt.Sprintf("imported %d containers and %d items; 0 are dead, 0 are older than the target's, 0 keys are bad\n",
		len(before.Containers), len(before.Items)); !strings.Contains(report, want) {
		t.Errorf("%s, want %s", report, want)
	}
	after := h.content("new")
	h.same(after, before)
	if after.Partitions != 5 {
		t.Errorf("%d partitions", after.Partitions)
	}
	// buntdb's own rewrite of the file changes nothing.
	h.database("all.db", func(db *buntdb.DB) {
		drill.Check(t, db.Shrink())
	})
	h.run(exitOK, "", "import", "--dir", h.path("shrunk"), "--in", h.path("all.db"))
	h.same(h.content("shrunk"), before)
	// An hour later some items are dead.
	h.clock.Advance(time.Hour)
	h.run(exitOK, "", "import", h.path("later"), "--in", h.path("all.db"))
	h.same(h.content("later"), h.content("old"))
}

// checkDatabase compares a database with a content, item by item. It holds the same items under their
// keys, with their ends as TTLs. Besides it holds only the keys that describe them.
func (h *fixture) checkDatabase(db *buntdb.DB, want content) {
	h.t.Helper()
	items, others, described := 0, 0, 0
	err := db.View(func(tx *buntdb.Tx) error {
		err := tx.Ascend("", func(key, value string) bool {
			if strings.HasPrefix(key, "/mayfly/") {
				others++
				if strings.HasPrefix(key, "/mayfly/container/") {
					described++
				}
				return true
			}
			items++
			container, id, _ := strings.Cut(key, "/")
			it, ok := want.Items[[2]string{container, id}]
			if !ok || it.Body != value {
				h.t.Errorf("%q is %.100q, want %.100q, %v", key, value, it.Body, ok)
			}
			return true
		})
		for at, it := range want.Items {
			before := time.Now()
			ttl, failure := tx.TTL(at[0] + "/" + at[1])
			err = errors.Join(err, failure)
			volatile := it.ExpireAt > 0 && want.Containers[at[0]].Policy.Default != expiry.Off
			end := time.Unix((it.ExpireAt+999)/1000, 0)
			if volatile != (ttl >= 0) || volatile && (end.Before(before.Add(ttl)) || end.After(time.Now().Add(ttl))) {
				h.t.Errorf("%q lives for %v in the database, to %d ms here", at, ttl, it.ExpireAt)
			}
		}
		return err
	})
	drill.Check(h.t, err)
	parts := len(want.Containers) + len(want.Items)/itemsPerPart // a part of notes that is not full a container
	if items != len(want.Items) || described != len(want.Containers) || others > described+parts+1 {
		h.t.Errorf("%d items of %d, %d containers of %d, %d other keys", items, len(want.Items), described, len(want.Containers), others-described)
	}
}

// TestDatabaseOfEveryKind states what a database holds for each kind of item and each policy.
func TestDatabaseOfEveryKind(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	now := h.clock.Now()
	hour := now + time.Hour.Milliseconds()
	far := int64(math.MaxInt64)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.CreateContainer("off", expiry.Off, expiry.Lenient)
		tx.CreateContainer("mayfly", 3600, expiry.Strict)
		put := func(container, id string, kind keyspace.Kind, body string, end int64) {
			tx.Put(tx.Container(container), id, kind, body, end)
		}
		put("0", "plain", keyspace.Plain, "", 0)
		put("0", "", keyspace.Plain, "no id", expiry.Never)
		put("0", "looks like a document", keyspace.Plain, "{}", hour)
		put("0", "far", keyspace.Plain, "x", far)
		put("0", "a/b/\x00\xff", keyspace.Plain, "\x00\xff\r\n", 0)
		put("0", "died", keyspace.Plain, "x", now+1)
		put("mayfly", "format", keyspace.Document, `{"a":1}`, 0)
		put("mayfly", "items/mayfly/000001", keyspace.Document, `{"ttl":7200}`, expiry.ExpireAt(now, 7200))
		put("mayfly", "longest", keyspace.Document, `{"ttl":2147483647}`, expiry.ExpireAt(now, expiry.MaxTTL))
		put("mayfly", "never", keyspace.Document, `{"ttl":-1}`, expiry.Never)
		put("mayfly", "an end of its own", keyspace.Document, `{}`, hour)
		put("off", "sleeps", keyspace.Document, `{"ttl":1}`, expiry.ExpireAt(now, 1))
		put("off", "ignored", keyspace.Document, `{"ttl":"x"}`, 0)
	})
	h.clock.Advance(time.Second)
	before := h.content("data")
	h.run(exitOK, "", "export", h.path("data"), h.path("all.db"), "--format", "buntdb")
	want := map[string]bool{ // key: it has a TTL
		"0/plain": false, "0/": false, "0/looks like a document": true, "0/far": false, "0/a/b/\x00\xff": false,
		"mayfly/format": false, "mayfly/items/mayfly/000001": true, "mayfly/longest": true, "mayfly/never": false, "mayfly/an end of its own": true,
		"off/sleeps": false, "off/ignored": false,
	}
	h.database("all.db", func(db *buntdb.DB) {
		_ = db.View(func(tx *buntdb.Tx) error {
			for key, volatile := range want {
				if ttl, err := tx.TTL(key); err != nil || ttl >= 0 != volatile {
					t.Errorf("%q: TTL %v, %v", key, ttl, err)
				}
			}
			items := 0
			_ = tx.AscendKeys("*", func(key, _ string) bool {
				if key[0] != '/' {
					items++
				}
				return true
			})
			if items != len(want) {
				t.Errorf("%d items, want %d", items, len(want))
			}
			format, err := tx.Get("/mayfly/format")
			if format != `{"version":1,"complete":true}` || err != nil {
				t.Errorf("%s, %v", format, err)
			}
			container, err := tx.Get("/mayfly/container/mayfly")
			if want := fmt.Sprintf(`{"container":"mayfly","default":"3600","mode":"strict","number":17,"created":%d}`, now); container != want || err != nil {
				t.Errorf("%s, %v; want %s", container, err, want)
			}
			notes, err := tx.Get("/mayfly/items/mayfly/000001")
			if line := fmt.Sprintf(`{"container":"mayfly","id":"an end of its own","ts":%d,"end":%d}`, now, hour); !strings.Contains(notes, line) || err != nil {
				t.Errorf("%s, %v; want %s", notes, err, line)
			}
			return nil
		})
	})
	h.run(exitOK, "", "import", h.path("all.db"), h.path("new"))
	h.same(h.content("new"), before)
}

func TestDatabaseTTL(t *testing.T) {
	t.Parallel()
	const now = 1_700_000_000_300
	for _, tt := range []struct {
		end int64
		ttl time.Duration
	}{
		{1, 1}, // long ago: not at all, which would be for ever
		{now - 1300, 1},
		{now, 1200 * time.Millisecond}, // the whole second is 0.7 s away
		{now + 700, 1200 * time.Millisecond},
		{now + 701, 2200 * time.Millisecond},
		{now + longestTTL.Milliseconds(), longestTTL + 1200*time.Millisecond},
		{now + longestTTL.Milliseconds() + 1, 0},
		{math.MaxInt64, 0},
	} {
		if ttl := databaseTTL(tt.end, now); ttl != tt.ttl {
			t.Errorf("an end in %d ms: %v, want %v", tt.end-now, ttl, tt.ttl)
		}
	}
}

// TestForeignDatabase imports a database that mayfly did not make.
func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.CreateContainer("lenient", 100, expiry.Lenient)
		tx.CreateContainer("strict", 100, expiry.Strict)
	})
	bad := map[string][2]string{
		"no slash":                          {`{}`, "no container: legal keys are container/id"},
		"or ders/1":                         {`{}`, `invalid container name or ders`},
		"/users/1":                          {`{}`, `invalid container name ""`},
		"orders/":                           {`{}`, "a document's id is empty"},
		"orders/text":                       {"tea", "value tea: invalid JSON at byte"},
		"orders/" + strings.Repeat("x", 70): {"", `value "": invalid JSON at byte`},
		"orders/long" + strings.Repeat("x", keyspace.MaxIDLength): {`{}`, "an id of 65540 bytes"},
		"strict/ttl": {`{"ttl":"x"}`, `invalid ttl "x"`},
	}
	h.database("foreign.db", func(db *buntdb.DB) {
		h.set(db, 0, "orders/1", `{"n":1}`, "orders/2", `{"ttl":20}`, "orders/a/b\x00\xff", ` {} `, "lenient/ttl", `{"ttl":"x"}`, "strict/rewritten", "old", "orders/list", "[1]")
		h.set(db, 90*time.Minute, "orders/volatile", `{"n":1}`, "orders/both", `{"ttl":20}`, "strict/both", `{"ttl":"x"}`, "orders/number", "5400")
		h.set(db, time.Nanosecond, "orders/expired", `{}`, "orders/alive again", `{}`)
		h.set(db, 200*365*24*time.Hour, "orders/far", `{}`)
		h.set(db, 0, "orders/alive again", `{}`, "strict/rewritten", `{}`)
		for key, tt := range bad {
			h.set(db, 0, key, tt[0])
		}
	})
	file := h.read("foreign.db")
	_, report := h.run(exitIncomplete, "", "import", h.path("foreign.db"), h.path("data"))
	if want := "imported 1 containers and 11 items; 1 are dead, 0 are older than the target's, 9 keys are bad\n"; !strings.HasSuffix(report, want) {
		t.Errorf("%s\nwant %s", report, want)
	}
	for key, tt := range bad {
		if line := "key " + expiry.Quote(key) + ": "; !strings.Contains(report, line) || !strings.Contains(report[strings.Index(report, line):], tt[1]) {
			t.Errorf("%s%s: not in\n%s", line, tt[1], report)
		}
	}
	// Its end is a moment, and some seconds may have passed since.
	if !regexp.MustCompile(`key orders/far: a TTL of (6307200000|63071999\d\d) seconds: legal are at most 2147483647`).MatchString(report) {
		t.Error(report)
	}
	if !bytes.Equal(h.read("foreign.db"), file) {
		t.Error("the import has changed the file")
	}
	c, now := h.content("data"), h.clock.Now()
	want := map[[2]string]keyspace.Item{
		{"orders", "1"}:           {Kind: keyspace.Document, Body: `{"n":1}`, TS: now},
		{"orders", "2"}:           {Kind: keyspace.Document, Body: `{"ttl":20}`, TS: now, ExpireAt: now + 20_000},
		{"orders", "a/b\x00\xff"}: {Kind: keyspace.Document, Body: ` {} `, TS: now},
		{"orders", "list"}:        {Kind: keyspace.Document, Body: `[1]`, TS: now},
		{"orders", "number"}:      {Kind: keyspace.Document, Body: `5400`, TS: now},
		{"orders", "volatile"}:    {Kind: keyspace.Document, Body: `{"n":1,"ttl":5400}`, TS: now, ExpireAt: now + 5_400_000},
		{"orders", "both"}:        {Kind: keyspace.Document, Body: `{"ttl":5400}`, TS: now, ExpireAt: now + 5_400_000},
		{"orders", "alive again"}: {Kind: keyspace.Document, Body: `{}`, TS: now},
		{"strict", "both"}:        {Kind: keyspace.Document, Body: `{"ttl":5400}`, TS: now, ExpireAt: now + 5_400_000},
		{"strict", "rewritten"}:   {Kind: keyspace.Document, Body: `{}`, TS: now},
		{"lenient", "ttl"}:        {Kind: keyspace.Document, Body: `{"ttl":"x"}`, TS: now},
	}
	for at, it := range want {
		got := c.Items[at]
		if at[1] == "number" { // its end is a moment
			if left := got.ExpireAt - now; left <= 5_300_000 || left > 5_400_000 {
				t.Errorf("%q ends in %d ms", at, left)
			}
			got.ExpireAt = 0
		}
		// What is left of a TTL depends on how long the test has taken.
		for left := 5400; left > 5300 && got != it; left-- {
			it.Body = strings.Replace(it.Body, fmt.Sprint(left), fmt.Sprint(left-1), 1)
			if it.ExpireAt > now+20_000 {
				it.ExpireAt -= 1000
			}
		}
		if got != it {
			t.Errorf("%q is %+v, want %+v", at, got, want[at])
		}
	}
	if len(c.Items) != len(want) {
		t.Errorf("%d items, want %d", len(c.Items), len(want))
	}
	if got := c.Containers["orders"]; got.Policy != (expiry.Policy{Default: expiry.Forever}) {
		t.Errorf("the new container is %+v", got)
	}
	h.refused("", []string{"key /users/1: invalid container name"}, "import", h.path("foreign.db"), h.path("data"), "--strict")
}

// TestDatabaseEndsTooLate imports ends that overflow a duration or a time.
func TestDatabaseEndsTooLate(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	ends := []int64{11_000_000_000, 99_999_999_999, math.MaxInt64}
	var b strings.Builder
	for i, end := range ends {
		text := fmt.Sprint(end)
		fmt.Fprintf(&b, "*5\r\n$3\r\nset\r\n$3\r\no/%d\r\n$7\r\n{\"a\":1}\r\n$2\r\nae\r\n$%d\r\n%s\r\n", i, len(text), text)
	}
	drill.Check(t, os.WriteFile(h.path("late.db"), []byte(b.String()), 0o600))
	_, report := h.run(exitIncomplete, "", "import", h.path("late.db"), h.path("data"))
	if want := "and 0 items; 0 are dead, 0 are older than the target's, 3 keys are bad\n"; !strings.HasSuffix(report, want) {
		t.Errorf("%s\nwant %s", report, want)
	}
	for i, end := range ends {
		var ttl, most int64
		_, line, _ := strings.Cut(report, fmt.Sprintf("key o/%d: ", i))
		_, err := fmt.Sscanf(line, "a TTL of %d seconds: legal are at most %d", &ttl, &most)
		if now := time.Now().Unix(); err != nil || most != int64(expiry.MaxTTL) || ttl < end-now || ttl > end-now+600 {
			t.Errorf("end %d: %v\n%s", end, err, report)
		}
	}
}

// TestChangedDatabase imports an export to which a user of buntdb has added, and from which one has deleted.
func TestChangedDatabase(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		for i := range 3 {
			tx.Put(tx.Container("0"), fmt.Sprint(i), keyspace.Document, `{}`, 0)
		}
	})
	h.clock.Advance(time.Minute)
	h.run(exitOK, "", "export", h.path("data"), h.path("all.db"), "--format", "buntdb")
	h.database("all.db", func(db *buntdb.DB) {
		h.set(db, 0, "0/1", `{"changed":1}`, "0/3", `{"new":1}`, "new/1", `{"new":1}`, "/mayfly/unknown", "x")
		err := db.Update(func(tx *buntdb.Tx) error { _, err := tx.Delete("0/2"); return err })
		drill.Check(t, err)
	})
	_, report := h.run(exitIncomplete, "", "import", h.path("all.db"), h.path("new"))
	if !strings.Contains(report, "key /mayfly/unknown: keys that begin with /mayfly/ are reserved\n") ||
		!strings.Contains(report, "imported 17 containers and 4 items; 0 are dead, 0 are older than the target's, 1 keys are bad\n") {
		t.Error(report)
	}
	c, now := h.content("new"), h.clock.Now()
	for at, it := range map[[2]string]keyspace.Item{
		{"0", "0"}: {Kind: keyspace.Document, Body: `{}`, TS: now - 60_000}, {"0", "1"}: {Kind: keyspace.Document, Body: `{"changed":1}`, TS: now - 60_000},
		{"0", "3"}: {Kind: keyspace.Document, Body: `{"new":1}`, TS: now}, {"new", "1"}: {Kind: keyspace.Document, Body: `{"new":1}`, TS: now},
	} {
		if c.Items[at] != it {
			t.Errorf("%q is %+v, want %+v", at, c.Items[at], it)
		}
	}
	for key, values := range map[string][]string{
		"/mayfly/format":         {`{"version":2,"complete":true}`, `{}`, `x`, `{"version":1,"complete":true} {}`, `{"version":1}`},
		"/mayfly/container/0":    {`{}`, `{"container":"1","default":"-1"}`, `{"container":"0"}`, `{"container":"0","default":"x"}`},
		"/mayfly/items/0/000001": {`{}`, `[{"id":"1"}]`, `[{"container":"0"}]`, `[{"container":"0","id":"1","ts":-1}]`, `[{"container":"0","id":"1","x":1}]`, `[] []`},
	} {
		for _, value := range values {
			h.database("all.db", func(db *buntdb.DB) { h.set(db, 0, key, value) })
			if key == formatKey {
				h.refused("", []string{"all.db: "}, "import", h.path("all.db"), h.path("none"))
				continue
			}
			_, report := h.run(exitIncomplete, "", "import", h.path("all.db"), h.path("new"))
			if !strings.Contains(report, "key "+key+": ") || !strings.Contains(report, ", 2 keys are bad") {
				t.Errorf("%s %s: %s", key, value, report)
			}
		}
		h.database("all.db", func(db *buntdb.DB) { h.set(db, 0, "/mayfly/format", `{"version":1,"complete":true}`) })
		if key != formatKey {
			h.database("all.db", func(db *buntdb.DB) {
				_ = db.Update(func(tx *buntdb.Tx) error { _, err := tx.Delete(key); return err })
			})
		}
	}
	if _, err := os.Stat(h.path("none")); err == nil {
		t.Error("a refused file has made a data folder")
	}
}

// TestDamagedDatabase: a file that is cut off anywhere or not of buntdb's form is refused before anything
// changes, and stays as it is.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.Put(tx.Container("0"), "doc", keyspace.Document, `{"n":1}`, 0)
		tx.Put(tx.Container("0"), "plain", keyspace.Plain, "value", tx.Now()+3_600_000)
	})
	h.run(exitOK, "", "export", h.path("data"), "--format", "buntdb", "--out", h.path("all.db"))
	whole := h.read("all.db")
	for cut := 1; cut < len(whole); cut += drill.Pick(7, 3, 1) {
		drill.Check(t, os.WriteFile(h.path("cut.db"), whole[:cut], 0o600))
		h.refused("", []string{"cut.db: "}, "import", h.path("cut.db"), h.path("none"))
		if !bytes.Equal(h.read("cut.db"), whole[:cut]) {
			t.Fatalf("the import has changed the file that is cut at %d", cut)
		}
	}
	const set = "*3\r\n$3\r\nset\r\n$3\r\n0/a\r\n"
	for text, words := range map[string]string{
		set + "$2\r\n{}\r\n*3":                              "ends within a command, at bytes 30 to 34",
		set + "$99999999999\r\n{}\r\n":                      "damaged at bytes 0 to 36: a length of 99999999999 is wrong, or the file has been cut off",
		set + "$9223372036854775808\r\n{}\r\n":              "damaged at bytes 0 to 44: there is no command of buntdb's",
		set + "$-1\r\n{}\r\n":                               "no command",
		set + "$\r\n{}\r\n":                                 "no command",
		set + "$1\r\n{}\r\n":                                "no command",
		set + "$2\n{}\r\n":                                  "no command",
		set + "$2\r\n{}\n\n":                                "no command",
		"*0\r\n" + set:                                      "no command",
		"*1\r\n$0\r\n\r\n":                                  "no command",
		"*1\r\n$1\r\ns\r\n":                                 "no command",
		"*4\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc":  "no command",
		"*1\r\n$2\r\nset\r\n":                               "no command",
		"*5" + set[2:] + "$2\r\n{}\r\n$2\r\nex\r\n$1\r\n9":  "a TTL is relative to the time of the file",
		"*5" + set[2:] + "$2\r\n{}\r\n$2\r\nae\r\n$2\r\n-1": `the end "-1" of a key is no second since 1970`,
		"*5" + set[2:] + "$2\r\n{}\r\n$2\r\nay\r\n$1\r\n1":  "no command",
		"*5" + set[2:] + "$2\r\n{}\r\n$2\r\nae\r\n$20\r\n" + fmt.Sprint(uint64(math.MaxUint64)): `the end "18446744073709551615" of a key`,
	} {
		drill.Check(t, os.WriteFile(h.path("bad.db"), []byte(text+"\r\n"), 0o600))
		h.refused("", []string{"bad.db: the file ", words}, "import", h.path("bad.db"), h.path("none"))
	}
	if _, err := os.Stat(h.path("none")); err == nil {
		t.Error("a refused file has made a data folder")
	}
}

// TestScanAdmitsOnlyWhatLoads damages a database at random. Whatever the check admits buntdb loads: it
// does not fail, panic or read for ever.
func TestScanAdmitsOnlyWhatLoads(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	h.database("all.db", func(db *buntdb.DB) {
		h.set(db, 0, "orders/1", `{"n":1}`, "orders/2", strings.Repeat("x", 120))
		h.set(db, time.Hour, "orders/3", `{}`)
		if err := db.Update(func(tx *buntdb.Tx) error { _, err := tx.Delete("orders/1"); return err }); err != nil {
			t.Fatal(err)
		}
		drill.Check(t, db.Update(func(tx *buntdb.Tx) error { return tx.DeleteAll() }))
		h.set(db, time.Hour, "orders/4", `{}`)
	})
	whole := h.read("all.db")
	random := drill.Rand(t)
	interesting := []byte("*$0123456789\r\n\x00setdlxaf-SETD")
	admitted := 0
	for range drill.Pick(5_000, 8_000, 2_000_000) {
		b := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			switch at := random.IntN(len(b)); random.IntN(4) {
			case 0:
				b[at] ^= 1 << random.IntN(8)
			case 1:
				b = append(b[:at], b[at+1:]...)
			case 2:
				b = append(b[:at+1], b[at:]...)
			default:
				b[at] = interesting[random.IntN(len(interesting))]
			}
		}
		if _, _, err := scanDatabase(bytes.NewReader(b), int64(len(b)), time.Now().UnixMilli()); err != nil {
			continue
		}
		admitted++
		db, err := buntdb.Open(":memory:")
		drill.Check(t, err)
		if err := db.Load(bytes.NewReader(b)); err != nil {
			t.Fatalf("buntdb does not load %q: %v", b, err)
		}
		drill.Check(t, db.Close())
	}
	if admitted < 500 {
		t.Errorf("only %d files were admitted", admitted)
	}
}

// TestInterruptedExport: an export that fails leaves nothing, and the file of one that was killed is not
// taken for whole.
func TestInterruptedExport(t *testing.T) {
	t.Parallel()
	h := newFixtureNow(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		for i := range 100 {
			tx.Put(tx.Container("0"), fmt.Sprint("id-", i), keyspace.Document, `{}`, 0)
		}
	})
	killed := errors.New("killed")
	err := createWhole(h.path("all.db"), func(f *os.File) error {
		return exportDatabase(f, func(s sink) error {
			n := 0
			err := repair.Read(vfs.OS, h.path("data"), h.clock, s.container, func(container, id string, it keyspace.Item) error {
				if n++; n > 50 {
					return killed
				}
				return s.item(container, id, it)
			})
			// A kill would leave what was committed.
			if failure := s.(*databaseSink).commit(); failure != nil {
				t.Error(failure)
			}
			b, failure := os.ReadFile(f.Name())
			if failure != nil || os.WriteFile(h.path("killed.db"), b, 0o600) != nil || len(b) < 1000 {
				t.Error(failure, len(b))
			}
			return err
		})
	})
	if !errors.Is(err, killed) {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(h.path("all.db*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
	h.refused("", []string{"killed.db: the export did not end: the database is incomplete"}, "import", h.path("killed.db"), h.path("none"))

	// A file that a kill has left is not written again, nor is a complete one.
	drill.Check(t, os.WriteFile(h.path("all.db.part"), nil, 0o600))
	h.refused("", []string{"all.db.part is in the way", "remove it"}, "export", h.path("data"), "--format", "buntdb", "--out", h.path("all.db"))
	h.refused("", []string{"killed.db exists"}, "export", h.path("data"), "--format", "buntdb", "--out", h.path("killed.db"))
	h.spoil("data", `id-7`, 0)
	h.refused("", []string{"damaged at bytes"}, "export", h.path("data"), "--format", "buntdb", "--out", h.path("lost.db"))
	if left, _ := filepath.Glob(h.path("lost.db*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// TestPathsOfExportAndImport: a file may be named without an option, and the folder is then that of a
// server without options.
func TestPathsOfExportAndImport(t *testing.T) {
	h := newFixtureNow(t)
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.Put(tx.Container("0"), "a", keyspace.Document, `{}`, 0)
	})
	t.Chdir(h.dir)
	h.run(exitOK, "", "export", "--format", "buntdb", "out.db")
	h.run(exitOK, "", "export", "data", "out.ndjson")
	before := h.content("data")
	drill.Check(t, os.Rename("data", "old"))
	h.run(exitOK, "", "import", "out.db")
	h.same(h.content("data"), before)
	h.run(exitOK, "", "import", "out.ndjson", "./lines")
	h.same(h.content("lines"), before)
	h.run(exitOK, string(h.read("out.ndjson")), "import", "--dir", "piped")
	h.same(h.content("piped"), before)

	h.refused("", []string{"name the file to write: mayfly export data all.db"}, "export", "--format", "buntdb", "data")
	h.refused("", []string{"one data folder or one server"}, "export", "--format", "buntdb")
	h.refused("", []string{"one data folder or one server"}, "export")
	h.refused("", []string{"one data folder or one server"}, "export", "old", "x", "--out", "y")
	h.refused("", []string{"invalid format xml: legal are ndjson and buntdb"}, "export", "old", "--format", "xml")
	h.refused("", []string{"invalid format xml: legal are ndjson and buntdb"}, "import", "out.db", "--format", "xml")
	h.refused(string(h.read("out.db")), []string{"standard input"}, "import", "data")
	h.refused("", []string{"one data folder or one server"}, "import", "out.db", "out.ndjson", "data")
	h.refused("", []string{"one data folder or one server"}, "import", "--in", "out.db")
	h.refused("", []string{"the file is damaged at bytes 0 to "}, "import", "out.ndjson", "data", "--format", "buntdb")
}
