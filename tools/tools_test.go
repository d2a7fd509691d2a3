package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/repair"
	"mayfly/test/drill"
)

// epoch is where tests let time begin.
const epoch = 1_700_000_000_000

// fixture holds data folders and a clock that the test moves.
type fixture struct {
	t     *testing.T
	clock *clock.Manual
	dir   string
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, clock: clock.NewManual(epoch), dir: t.TempDir()}
}

func (h *fixture) path(name string) string { return filepath.Join(h.dir, name) }

// run runs a tool on some input, checks its exit code and that it reports at most one error line
// unless it ends well. It returns its output.
func (h *fixture) run(code int, input string, args ...string) (out, err string) {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	got := Run(args, Environment{In: strings.NewReader(input), Out: &stdout, Err: &stderr, Clock: h.clock})
	if got != code {
		h.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// refused checks that a tool fails with one line that has all of the words.
func (h *fixture) refused(input string, words []string, args ...string) {
	h.t.Helper()
	out, err := h.run(exitFailed, input, args...)
	line := strings.TrimSuffix(err[strings.LastIndex(strings.TrimSuffix(err, "\n"), "\n")+1:], "\n")
	for _, w := range append(words, "mayfly "+args[0]+": ") {
		if !strings.Contains(line, w) {
			h.t.Errorf("%v: %q does not say %q", args, line, w)
		}
	}
	if out != "" {
		h.t.Errorf("%v has written %q", args, out)
	}
}

// open opens a data folder as a server would.
func (h *fixture) open(name string, partitions int) *keyspace.Keyspace {
	h.t.Helper()
	ks, err := keyspace.Open(keyspace.Options{Dir: h.path(name), Partitions: partitions, Clock: h.clock, NoPurge: true})
	drill.Check(h.t, err)
	return ks
}

func (h *fixture) close(ks *keyspace.Keyspace) {
	h.t.Helper()
	drill.Check(h.t, ks.Check(), ks.Close())
}

// make makes a folder and fills it by transactions that lock everything.
func (h *fixture) make(name string, partitions int, fill func(ks *keyspace.Keyspace, tx *keyspace.Tx)) {
	h.t.Helper()
	ks := h.open(name, partitions)
	var tx keyspace.Tx
	ks.BeginAll(&tx)
	fill(ks, &tx)
	drill.Check(h.t, ks.Wait(tx.Close()))
	h.close(ks)
}

// content is all that a folder holds: policies and creation by container, items by container and id.
// Versions are left out: they are new wherever an item goes.
type content struct {
	Containers map[string]keyspace.ContainerRecord
	Items      map[[2]string]keyspace.Item
	Partitions int
}

func (h *fixture) content(name string) content {
	h.t.Helper()
	c := content{make(map[string]keyspace.ContainerRecord), make(map[[2]string]keyspace.Item), 0}
	ks := h.open(name, 1)
	c.Partitions = ks.Stats().Partitions
	var tx keyspace.Tx
	ks.BeginSweep(&tx)
	for _, at := range tx.Containers() {
		c.Containers[at.Name()] = keyspace.ContainerRecord{Name: at.Name(), DB: at.DB(), Policy: *at.Policy(), Created: at.Created(), Indexes: recordedIndexes(at)}
		tx.Scan(at, 0, 1<<30, func(id string, it keyspace.Item) {
			it.Version = 0
			c.Items[[2]string{at.Name(), id}] = it
		})
	}
	tx.Close()
	h.close(ks)
	return c
}

// recordedIndexes returns the indexes of a container as its record has them.
func recordedIndexes(c *keyspace.Container) (list [][]string) {
	for _, x := range c.Indexes() {
		paths := x.Definition.Pointers()
		if x.Definition.Geo() {
			paths = append(paths, keyspace.GeoMark)
		}
		list = append(list, paths)
	}
	return list
}

// indexesOfAllKinds are definitions as a record has them.
var indexesOfAllKinds = [][]string{{"/n"}, {"/a~1b", "/\"ü<\u2028", "/_ts"}, {"/tags/[]"}, {"/loc", keyspace.GeoMark}}

// same checks that two folders hold the same.
func (h *fixture) same(got, want content) {
	h.t.Helper()
	for at, it := range want.Items {
		if got.Items[at] != it {
			h.t.Fatalf("%q is %+v, want %+v", at, got.Items[at], it)
		}
	}
	if len(got.Items) != len(want.Items) {
		h.t.Errorf("%d items, want %d", len(got.Items), len(want.Items))
	}
	for name, c := range want.Containers {
		if !reflect.DeepEqual(got.Containers[name], c) {
			h.t.Errorf("container %s is %+v, want %+v", name, got.Containers[name], c)
		}
	}
	if len(got.Containers) != len(want.Containers) {
		h.t.Errorf("%d containers, want %d", len(got.Containers), len(want.Containers))
	}
}

// fillRandomly makes the folder "old" with thousands of writes of items of all kinds, under changing policies
// and while time passes. unit is one of the seconds in which TTLs and deadlines are chosen. It returns the
// content that lives nine units later.
func (h *fixture) fillRandomly(unit time.Duration) content {
	h.t.Helper()
	random, writes := drill.Rand(h.t), drill.Pick(3_000, 8_000, 200_000)
	text := func() string { // anything, line breaks and what is not UTF-8 included
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return string(b)
	}
	scale := expiry.TTL(unit / time.Second)
	ks := h.open("old", 16)
	names := []string{"0", "7", "orders", "carts", "drafts", "empty"}
	policies := map[string][]expiry.TTL{"0": {20 * scale, expiry.Forever}, "orders": {10 * scale, 3600 * scale}, "carts": {30 * scale, expiry.Off},
		"drafts": {expiry.Off, 5000 * scale}, "empty": {7}}
	var tx keyspace.Tx
	for step := range 2 {
		ks.BeginAll(&tx)
		for name, list := range policies {
			if c := tx.Container(name); c == nil {
				c = tx.CreateContainer(name, list[0], expiry.Lenient)
				if name == "orders" || name == "empty" {
					tx.RestoreContainer(keyspace.ContainerRecord{Name: name, Created: c.Created(), Policy: *c.Policy(), Indexes: indexesOfAllKinds})
				}
			} else if step < len(list) {
				tx.SetPolicy(c, list[step], expiry.Mode(step))
			}
		}
		tx.Close()
		for range writes / 2 {
			name, id := names[random.IntN(5)], fmt.Sprint(random.IntN(1e6))
			if random.IntN(10) == 0 {
				id = text() + "x"
			}
			ks.BeginKey(&tx, id)
			c := tx.Container(name)
			now := tx.Now()
			end := []int64{expiry.Inherit, expiry.Never, now + 1 + random.Int64N(30*unit.Milliseconds())}[random.IntN(3)]
			switch random.IntN(7) {
			case 0:
				tx.Put(c, id, keyspace.Plain, text(), end)
			case 6:
				bodies := []string{`[1,{"ttl":5}]`, ` "ttl\"\n"`, "-2.50e3", "true", "null", "[\n]", `"\u0041"`}
				tx.Put(c, id, keyspace.Document, bodies[random.IntN(len(bodies))], end)
			case 1:
				tx.Put(c, id, keyspace.Document, "{\r\n \"a\" : [1.50, 2e1,\t\"\\u00e9é<>&\u2028\"] }\n", expiry.Inherit)
			case 2:
				tx.Put(c, id, keyspace.Document, `{"ttl":-1}`, expiry.Never)
			case 3:
				tx.Put(c, id, keyspace.Document, `{"ttl":"never","a":1,"a":2}`, expiry.Inherit)
			default:
				ttl := scale * expiry.TTL(1+random.IntN(60))
				tx.Put(c, id, keyspace.Document, fmt.Sprintf(`{"n": %d, "ttl": %d.0}`, random.IntN(1e9), ttl), expiry.ExpireAt(now, ttl))
			}
			tx.Close()
			if random.IntN(writes/25) == 0 {
				h.clock.Advance(time.Duration(random.IntN(3000)) * unit / 1000)
			}
		}
	}
	h.close(ks)
	h.clock.Advance(9 * unit)
	before := h.content("old")
	if len(before.Items) < writes*2/5 || before.Containers["carts"].Policy.OwnDeadTo == 0 || before.Containers["orders"].Policy.InheritDeadTo == 0 ||
		len(before.Containers["orders"].Indexes) != 4 {
		h.t.Errorf("%d items, %+v: too little to compare", len(before.Items), before.Containers)
	}
	return before
}

// TestRoundTrip takes thousands of writes from 16 partitions into 5, by lines.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	before := h.fillRandomly(time.Second)
	h.run(exitOK, "", "export", h.path("old"), "--out", h.path("lines"))
	lines, err := os.ReadFile(h.path("lines"))
	drill.Check(t, err)
	all := len(before.Items) + len(before.Containers)
	if n := bytes.Count(lines, []byte("\n")); n != all {
		t.Errorf("%d lines for %d items and %d containers that live", n, len(before.Items), len(before.Containers))
	}
	for line := range bytes.Lines(lines) {
		if !json.Valid(line) {
			t.Fatalf("not JSON: %s", line)
		}
	}
	h.run(exitOK, "", "import", "--dir", h.path("new"), "--partitions", "5", "--in", h.path("lines"))
	after := h.content("new")
	h.same(after, before)
	if after.Partitions != 5 {
		t.Errorf("%d partitions", after.Partitions)
	}
	// Again into the same folder: nothing changes. And a second later some have died on the way.
	h.run(exitOK, string(lines), "import", h.path("new"))
	h.same(h.content("new"), before)
	h.clock.Advance(time.Second)
	h.run(exitOK, string(lines), "import", h.path("later"))
	h.same(h.content("later"), h.content("old"))
}

func TestExportOfAFolderThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.refused("", []string{"no such file"}, "export", h.path("none"))
	h.make("data", 2, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.Put(tx.Container("0"), "a", keyspace.Plain, "1", 0)
	})
	ks := h.open("data", 2)
	h.refused("", []string{"in use by another process"}, "export", h.path("data"))
	h.close(ks)
	h.refused("", []string{h.path("data") + " exists"}, "export", h.path("data"), "--out", h.path("data"))
	if _, err := os.Stat(h.path("data.part")); err == nil {
		t.Error("something is left behind")
	}
	h.spoil("data", `1 `, 0)
	h.refused("", []string{"damaged at bytes"}, "export", h.path("data"), "--out", h.path("lines"))
	if left, _ := filepath.Glob(h.path("lines*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// spoil flips a bit of a store, at the last place where a text stands.
func (h *fixture) spoil(name, text string, offset int) {
	h.t.Helper()
	stores, _ := filepath.Glob(filepath.Join(h.path(name), "partition-*.db"))
	for _, path := range stores {
		b, err := os.ReadFile(path)
		drill.Check(h.t, err)
		if at := bytes.LastIndex(b, []byte(text)); at >= 0 {
			b[at+offset] ^= 1
			drill.Check(h.t, os.WriteFile(path, b, 0o600))
			return
		}
	}
	h.t.Fatalf("%q is in no store", text)
}

// manyIndexes are 16 definitions.
var manyIndexes = strings.Repeat(`["/a"],`, 16)

func TestImportReportsBadLines(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	good := []string{
		`{"container":"orders","default":"10","mode":"lenient"}`,
		``,
		`{"container":"orders","id":"fresh","doc":{"ttl":20}}`,
		`{"container":"orders","id":"old","ts":1699999995000,"ttl":20,"doc":{"ttl":20}}`,
		`{"container":"orders","id":"dead","ts":1699999990000,"doc":{}}`,
		`{"container":"orders","id64":"/w==","ts":1700000060000,"value":"from the future"}`,
		`{"container":"0","id":"","end":1700000005000,"value64":"AAE="}`,
		`{"container":"orders","id":"ignored","doc":{"ttl":"x"}}`,
		`{"container":"1","id":"accepted once","ts":1699999999000,"ignored":true,"doc":{"ttl":"x"}}`,
		"{\"container\":\"0\",\"id\":\"raw\",\"raw\":\"{\\n}\"}\r",
	}
	bad := map[string]string{
		`nonsense`: "invalid character",
		`{"container":"orders","id":"a","doc":{}} {}`:           "more than one object",
		`{"container":"orders","id":"a","dco":{}}`:              `no member "dco"; for documents of other systems, name a --container`,
		`{"container":"orders","id":5,"doc":{}}`:                `its member id is not legal as number`,
		`{"container":"orders","id":"a","ts":1.5,"doc":{}}`:     `its member ts is not legal as number`,
		`{"container":"orders","indexes":["/n"],"default":"1"}`: `its member indexes is not legal as string`,
		`["a"]`: "legal are JSON objects, and this is of type array",
		`{"container":"1","id":"a","ts":1699999999000,"doc":{"ttl":"x"}}`: `invalid ttl "x"`,
		`{"container":"or ders","id":"a","doc":{}}`:                       "invalid container name",
		`{"id":"a","doc":{}}`:                                                               "it has no member container; for documents of other systems, name a --container",
		`{"container":"nobody","id":"a","doc":{}}`:                                          `no container nobody`,
		`{"container":"orders","doc":{}}`:                                                   "exactly one of id and id64",
		`{"container":"orders","id":"a","id64":"YQ==","doc":{}}`:                            "exactly one of id and id64",
		`{"container":"orders","id":"","doc":{}}`:                                           "id is empty",
		`{"container":"orders","id":"a"}`:                                                   "neither a doc nor a value",
		`{"container":"orders","id":"a","doc":[1,]}`:                                        "invalid character",
		`{"container":"orders","id":"a","raw":"[1,]"}`:                                      "invalid JSON",
		`{"container":"orders","id":"a","ttl":5,"doc":[]}`:                                  "the line says ttl 5, its document 0",
		`{"container":"orders","id":"a","doc":{},"raw":"{}"}`:                               "doc and raw",
		`{"container":"orders","id":"a","doc":{},"value":"x"}`:                              "either a doc",
		`{"container":"orders","id":"a","ttl":20,"doc":{"ttl":30}}`:                         "the line says ttl 20, its document 30",
		`{"container":"orders","id":"a","end":-7,"value":""}`:                               "invalid end -7",
		`{"container":"orders","id":"a","ts":-1,"value":""}`:                                "a time is negative",
		`{"container":"orders","id64":"?","value":""}`:                                      "illegal base64",
		`{"container":"1","id":"a","doc":{"ttl":"x"}}`:                                      `invalid ttl "x"`,
		`{"container":"new","default":"0"}`:                                                 "invalid default TTL 0",
		`{"container":"new","default":"1","mode":"lax"}`:                                    "invalid mode lax",
		`{"container":"new","default":"1","deadline":"ttl"}`:                                "invalid DEADLINE ttl: legal are",
		`{"container":"new","default":"1","deadline":"_ts"}`:                                "invalid DEADLINE _ts: legal are",
		`{"container":"new","default":"1","hold":"a\r\nb"}`:                                 "invalid HOLD",
		`{"container":"new","default":"1","hold":"Off"}`:                                    "invalid hold OFF: a container without a hold has no member hold",
		`{"container":"new","default":"1","indexes":[["n"]]}`:                               `index ["n"]: invalid path "n"`,
		`{"container":"new","default":"1","indexes":[[]]}`:                                  "0 paths: legal are 1 to 4",
		`{"container":"new","default":"1","indexes":[` + manyIndexes + `["/z"]]}`:           "17 indexes: legal are at most 16 a container",
		`{"container":"new","default":"1","id":"a","doc":{}}`:                               "either a container's",
		"{\"container\":\"orders\",\"id\":\"\xff\",\"doc\":{}}":                             "not UTF-8",
		`{"container":"orders","id":"` + strings.Repeat("x", 64<<10+1) + `","value":"too"}`: "an id of 65537 bytes",
	}
	input := strings.Join(good, "\n") + "\n"
	for line, words := range bad {
		_, err := h.run(exitIncomplete, input+line+"\n"+good[2], "import", h.path("data"))
		if !strings.Contains(err, "line 11: ") || !strings.Contains(err, words) || !strings.Contains(err, ", 1 lines are bad") || strings.Contains(err, "json:") || strings.Contains(err, " Go ") {
			t.Errorf("%.100s: %s", line, err)
		}
		h.refused(input+line+"\n"+good[2], []string{"line 11: ", words}, "import", h.path("data"), "--strict")
	}
	c := h.content("data")
	want := map[[2]string]keyspace.Item{
		{"orders", "fresh"}:    {Kind: keyspace.Document, Body: `{"ttl":20}`, TS: epoch, ExpireAt: epoch + 20_000},
		{"orders", "old"}:      {Kind: keyspace.Document, Body: `{"ttl":20}`, TS: epoch - 5000, ExpireAt: epoch + 15_000},
		{"orders", "\xff"}:     {Kind: keyspace.Plain, Body: "from the future", TS: epoch},
		{"0", ""}:              {Kind: keyspace.Plain, Body: "\x00\x01", TS: epoch, ExpireAt: epoch + 5000},
		{"orders", "ignored"}:  {Kind: keyspace.Document, Body: `{"ttl":"x"}`, TS: epoch},
		{"1", "accepted once"}: {Kind: keyspace.Document, Body: `{"ttl":"x"}`, TS: epoch - 1000},
		{"0", "raw"}:           {Kind: keyspace.Document, Body: "{\n}", TS: epoch},
	}
	for at, it := range want {
		if c.Items[at] != it {
			t.Errorf("%q is %+v, want %+v", at, c.Items[at], it)
		}
	}
	if len(c.Items) != len(want) || c.Containers["orders"].Policy.Default != 10 {
		t.Errorf("%+v", c)
	}
}

// Into a folder with items of its own: what was written later stays, and the marks of another history
// kill nothing.
func TestImportIntoAFolderInUseBefore(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 3, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.CreateContainer("orders", 100, expiry.Strict)
		tx.Put(tx.Container("orders"), "a", keyspace.Document, `{"here":1}`, 0)
	})
	input := `{"container":"orders","default":"50","inherit_dead_to":1700000000000,"own_dead_to":1700000000000}
{"container":"orders","id":"a","ts":1699999999999,"doc":{"there":1}}
{"container":"orders","id":"b","ts":1699999999999,"doc":{"there":1}}
`
	_, report := h.run(exitOK, input, "import", h.path("data"))
	if !strings.Contains(report, "1 containers and 1 items; 0 are dead, 1 are older") {
		t.Error(report)
	}
	c := h.content("data")
	if c.Items[[2]string{"orders", "a"}].Body != `{"here":1}` || c.Items[[2]string{"orders", "b"}].TS != epoch-1 || c.Containers["orders"].Policy.Default != 100 {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(report, "container orders keeps its settings: TTL 100, not 50; --apply-settings changes them\n") {
		t.Error(report)
	}
	more := `{"container":"more","default":"50"}` + "\n"
	if _, report := h.run(exitIncomplete, more, "import", h.path("data"), "--max-containers", "1"); !strings.Contains(report, `"more": --max-containers allows 1`) {
		t.Error(report)
	}
	h.run(exitOK, more, "import", h.path("data"), "--max-containers", "0")
	h.refused(input, []string{"has 3 partitions", "new one"}, "import", h.path("data"), "--partitions", "4")
	h.refused(input, []string{"1 to 256"}, "import", h.path("data2"), "--partitions", "400")
	h.refused(input, []string{"one data folder or one server"}, "import")
	h.refused(input, []string{"--lenient"}, "import", h.path("data"), "--lenient")
	h.refused("", []string{"no such file"}, "import", h.path("data"), "--in", h.path("none"))
}

// Settings of what exists stay, or are changed under a guard: TestImportChangesSettings of test/tools is the
// same for a server.
func TestImportChangesSettings(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 3, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		c := tx.CreateContainer("tt", 1000, expiry.Lenient)
		tx.CreateContainer("empty", 1000, expiry.Lenient)
		tx.SetPolicy(tx.Container("1"), 7, expiry.Strict)
		tx.SetPolicy(tx.Container("1"), expiry.Forever, expiry.Strict) // as from the start, but for its marks
		for _, id := range []string{"a", "b"} {
			tx.Put(c, id, keyspace.Document, `{}`, expiry.Inherit)
		}
	})
	h.clock.Advance(10 * time.Second)
	line := func(name string) string { return `{"container":"` + name + `","default":"5","mode":"strict"}` + "\n" }
	for _, step := range []struct {
		input   string
		options []string
		code    int
		report  string
		ttl     expiry.TTL // of the container afterwards
		mode    expiry.Mode
		name    string
	}{
		{line("tt"), nil, exitOK, "container tt keeps its settings: TTL 1000, not 5, TTLMODE lenient, not strict; --apply-settings", 1000, expiry.Lenient, "tt"},
		{line("empty"), nil, exitOK, "container empty keeps its settings: ", 1000, expiry.Lenient, "empty"},
		{line("1"), nil, exitOK, "container 1 keeps its settings: ", expiry.Forever, expiry.Strict, "1"},
		{line("0"), nil, exitOK, "imported 1 containers", 5, expiry.Strict, "0"}, // nothing was ever set or stored there
		{`{"id":"x"}`, []string{"--container", "tt", "--ttl", "5"}, exitOK, "container tt keeps its settings: TTL 1000, not 5;", 1000, expiry.Lenient, "tt"},
		{line("tt"), []string{"--apply-settings", "--max-kill", "1"}, exitIncomplete, "line 1: the settings would kill 2 items of container tt at once, more than --max-kill 1: nothing has changed", 1000, expiry.Lenient, "tt"},
		{line("empty"), []string{"--apply-settings"}, exitOK, "the change has killed 0 items", 5, expiry.Strict, "empty"},
		{`{"id":"y"}`, []string{"--container", "tt", "--ttl", "5", "--apply-settings", "--max-kill", "2"}, exitOK, "they had been: TTL 1000, not 5; the change has killed 2 items\n", 5, expiry.Lenient, "tt"},
		{line("tt"), []string{"--apply-settings"}, exitOK, "they had been: TTLMODE lenient, not strict; the change has killed 0 items\n", 5, expiry.Strict, "tt"},
	} {
		_, report := h.run(step.code, step.input, append([]string{"import", h.path("data")}, step.options...)...)
		if !strings.Contains(report, step.report) {
			t.Errorf("%v: %s, want %s", step.options, report, step.report)
		}
		if p := h.content("data").Containers[step.name].Policy; p.Default != step.ttl || p.Mode != step.mode {
			t.Errorf("%v: %s has %+v", step.options, step.name, p)
		}
	}
	if c := h.content("data"); len(c.Items) != 2 { // x and y, which were written now
		t.Errorf("%+v", c.Items)
	}
}

func TestCheckAndRepair(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.make("data", 1, func(_ *keyspace.Keyspace, tx *keyspace.Tx) {
		tx.Put(tx.Container("0"), "id-1", keyspace.Document, `{"n":1}`, 0)
		tx.Put(tx.Container("0"), "id-2", keyspace.Document, `{"n":2}`, 0)
		tx.Put(tx.Container("0"), "id-3", keyspace.Document, `{"n":3}`, 0)
	})
	if out, _ := h.run(exitOK, "", "check", h.path("data")); !strings.Contains(out, ": all is sound\n") {
		t.Error(out)
	}
	h.refused("", []string{"exists"}, "repair", h.path("data"), h.dir)
	h.run(exitOK, "", "repair", h.path("data"), h.path("copied"))

	ks := h.open("data", 1)
	var tx keyspace.Tx
	ks.BeginAll(&tx)
	tx.Delete(tx.Container("0"), "id-3")
	tx.Put(tx.Container("0"), "id-1", keyspace.Document, `{"n":4}`, 0)
	tx.Close()
	h.close(ks)
	h.spoil("data", `0:id-3`, 5) // the delete names id-2 now
	h.spoil("data", `{"n":4}`, 5)
	out, _ := h.run(exitIncomplete, "", "check", h.path("data"))
	for _, words := range []string{"partition-000.db", "damaged\n  bytes ", "checksum does not match (item id-1 of container 0", ": DAMAGED: no server starts with it"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is not in\n%s", words, out)
		}
	}
	out, _ = h.run(exitIncomplete, "", "check", "--json", h.path("data"))
	var in repair.Inspection
	if err := json.Unmarshal([]byte(out), &in); err != nil || in.State != repair.Damaged || in.Files[2].Problems[0].ID != "id-1" {
		t.Errorf("%v\n%s", err, out)
	}
	out, _ = h.run(exitIncomplete, "", "repair", h.path("data"), h.path("new"))
	report, err := os.ReadFile(filepath.Join(h.path("new"), reportName))
	if err != nil || string(report) != out {
		t.Errorf("%v: the report is\n%sand standard output\n%s", err, report, out)
	}
	for _, words := range []string{"Older versions", "\n  0 id-1, written at 1700000000000 (partition-000.db, bytes ", "Doubtful", "\n  0 id-2", "\n2 items of 16 containers copied\n"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is not in\n%s", words, out)
		}
	}
	c := h.content("new")
	if len(c.Items) != 2 || c.Items[[2]string{"0", "id-1"}].Body != `{"n":1}` {
		t.Errorf("%+v", c.Items)
	}
	h.run(exitOK, "", "import", h.path("new"), "--in", filepath.Join(h.path("new"), doubtfulName))
	if c := h.content("new"); c.Items[[2]string{"0", "id-2"}].Body != `{"n":2}` || c.Items[[2]string{"0", "id-2"}].TS != epoch {
		t.Errorf("%+v", c.Items)
	}
	out, _ = h.run(exitIncomplete, "", "repair", "--json", h.path("data"), h.path("another"))
	if !json.Valid([]byte(out)) {
		t.Errorf("not JSON: %s", out)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, tool := range all {
		if !Is([]string{tool.name, "x"}) {
			t.Errorf("%s is not known", tool.name)
		}
		out, err := h.run(exitOK, "", tool.name, "--help")
		if !strings.HasPrefix(out, "mayfly "+tool.name+" "+tool.syntax+"\n") || err != "" {
			t.Errorf("%s%s", out, err)
		}
		if dashed := strings.Count(out, "\n  --"); dashed == 0 && strings.Contains(tool.syntax, "--") || dashed != strings.Count(out, "\n  -") {
			t.Errorf("the options are not listed as they are written elsewhere, with two dashes:\n%s", out)
		}
		h.refused("", []string{"unknown option --nonsense: mayfly " + tool.name + " --help"}, tool.name, "--nonsense")
		h.refused("", nil, tool.name, "a", "b", "c")
	}
	h.refused("", []string{"unknown option --parttions: did you mean --partitions? mayfly import --help"}, "import", "--parttions", "3", "x.ndjson")
	h.refused("", []string{"did you mean --format?"}, "export", h.path("data"), "-fromat=buntdb")
	if Is(nil) || Is([]string{"--port", "7000"}) || Is([]string{"mayfly.conf"}) {
		t.Error("what is none is taken for a tool")
	}
	if !isAddress("localhost:6379") || !isAddress(":6379") || !isAddress("[::1]:6379") || isAddress("data") || isAddress("./data:1") || isAddress(h.dir) {
		t.Error("addresses and folders are mixed up")
	}
}

// TestImportAddsIndexes: a container that has items keeps its indexes and gets those of the line, up to the
// limit.
func TestImportAddsIndexes(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	first := `{"container":"orders","default":"-1","indexes":[["/n"],["/loc","geo"]]}
{"container":"orders","id":"1","doc":{"n":1}}
`
	h.run(exitOK, first, "import", h.path("data"))
	var more []string
	for i := range 15 {
		more = append(more, fmt.Sprintf(`["/m%d"]`, i))
	}
	second := `{"container":"orders","default":"-1","indexes":[["/loc","geo"],` + strings.Join(more, ",") + `]}` + "\n"
	h.run(exitOK, second, "import", h.path("data"))
	ks := h.open("data", 1)
	defer h.close(ks)
	ks.BuildIndexes()
	var tx keyspace.Tx
	ks.BeginSweep(&tx)
	defer tx.Close()
	stats := tx.IndexStats(tx.Container("orders"))
	if len(stats) != 16 || stats[0].Definition.String() != "/n" || stats[0].Entries != 1 || stats[1].Definition.String() != "/loc GEO" || stats[15].Definition.String() != "/m13" {
		t.Errorf("%+v", stats)
	}
}
