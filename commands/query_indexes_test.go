package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// allPages returns the rows of all pages of a query. between is called after each page but the last.
func (w *harness) allPages(t *testing.T, count string, between func(), args ...string) (rows []string) {
	t.Helper()
	for cursor := "0"; ; {
		var page []string
		cursor, page = w.queryPage(t, append(slices.Clone(args), "COUNT", count, "CURSOR", cursor)...)
		if rows = append(rows, page...); cursor == "0" {
			return rows
		}
		if between != nil {
			between()
		}
	}
}

// values of members in random documents, and what random conditions compare with.
var memberValues = []string{
	"null", "false", "true", "0", "1", "2.5", "-3", "1e10", `"a"`, `"ab"`, `"abcdefgh"`, `"abcdefghij"`, `"é"`, "[1]", `{"x":1}`,
	`"` + strings.Repeat("z", 255) + `"`, `"` + strings.Repeat("z", 256) + `"`, `"` + strings.Repeat("z", 300) + `"`,
}

func memberValue(random *rand.Rand) string { return memberValues[random.IntN(len(memberValues))] }

func indexedDocument(random *rand.Rand) string {
	var members []string
	for _, name := range []string{"a", "b"} {
		if random.IntN(5) > 0 {
			members = append(members, `"`+name+`":`+memberValue(random))
		}
	}
	var elements []string
	for range random.IntN(4) {
		elements = append(elements, memberValue(random))
	}
	members = append(members, `"tags":[`+strings.Join(elements, ",")+`]`)
	if random.IntN(2) == 0 {
		members = append(members, fmt.Sprintf(`"at":{"type":"Point","coordinates":[%d,%d]}`, random.IntN(360)-180, random.IntN(180)-90))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func indexedCondition(random *rand.Rand) string {
	path := []string{"a", "b"}[random.IntN(2)]
	switch random.IntN(13) {
	case 9:
		return "ARRAY_CONTAINS([" + memberValue(random) + "," + memberValue(random) + "], " + path + ")"
	case 10:
		return []string{"true", "1 = 1", "NOT false", "(false OR " + path + " = 1)", "(" + path + " < 1/0 OR " + path + " > -1 - 1)"}[random.IntN(5)]
	case 11:
		return fmt.Sprintf("_id IN ('id-%d', 5, CONCAT('id-', '%d'), 'none', 'id-%d')", random.IntN(900), random.IntN(900), random.IntN(900))
	case 12:
		return path + []string{" = 3 - 1", " >= 5 % 3", " < 'a' || 'bc'", " > -(1)"}[random.IntN(4)]
	case 0, 1:
		return path + " = " + memberValue(random)
	case 2, 3:
		return path + []string{" < ", " <= ", " > ", " >= "}[random.IntN(4)] + memberValue(random)
	case 4:
		return path + " IN (" + memberValue(random) + "," + memberValue(random) + ")"
	case 5:
		return path + " BETWEEN " + memberValue(random) + " AND " + memberValue(random)
	case 6:
		return "STARTSWITH(" + path + `, "` + []string{"a", "abcdefgh", "abcdefghi", strings.Repeat("z", 256)}[random.IntN(4)] + `")`
	case 7:
		return "ARRAY_CONTAINS(tags, " + memberValue(random) + ")"
	}
	return fmt.Sprintf("ST_WITHIN(at, ST_BOX(%d, %d, %d, %d))", random.IntN(180)-180, random.IntN(90)-90, random.IntN(180), random.IntN(90))
}

func indexedQuery(random *rand.Rand) (text string, ordered bool) {
	text = []string{"SELECT VALUE _id", "SELECT VALUE _id", "SELECT VALUE _id", "SELECT COUNT(1)", "SELECT VALUE a"}[random.IntN(5)]
	grouped := strings.Contains(text, "COUNT")
	var conditions []string
	for range random.IntN(4) {
		conditions = append(conditions, indexedCondition(random))
	}
	if conditions != nil {
		text += " WHERE " + strings.Join(conditions, " AND ")
	}
	if !grouped && random.IntN(2) == 0 {
		direction := []string{"", " DESC"}[random.IntN(2)]
		text += " ORDER BY " + []string{"a", "b", "a", "b", "_id"}[random.IntN(5)] + direction
		if random.IntN(3) == 0 {
			text += ", " + []string{"a", "b", "_id"}[random.IntN(3)] + direction
		}
		ordered = true
	}
	return text, ordered
}

// TestIndexedQueries: random queries over random documents return the same rows with indexes as without, on
// pages of any size.
func TestIndexedQueries(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	random := drill.Rand(t)
	queries := drill.Pick(40, 80, 10_000)
	for _, c := range []string{"plain", "indexed"} {
		w.do(1, "CONTAINER.SET", c, "TTL", "1000")
	}
	indexes := [][]string{{"/a"}, {"/b"}, {"/a", "/b"}, {"/tags/[]"}, {"/at", "GEO"}}
	put := func(n int) {
		for range n {
			id, doc := fmt.Sprint("id-", random.IntN(900)), indexedDocument(random)
			for _, c := range []string{"plain", "indexed"} {
				if doc == "" {
					w.do(1, "DOC.DEL", c, id)
				} else {
					w.do(1, "DOC.PUT", c, id, doc)
				}
			}
		}
	}
	put(1500)
	used := 0
	for n := range queries {
		if n%20 == 0 { // other indexes
			for _, paths := range indexes {
				command := []string{"INDEX.CREATE", "INDEX.DROP"}[random.IntN(2)]
				w.do(1, append([]string{command, "indexed"}, paths...)...)
			}
			w.engine.Keyspace().BuildIndexes()
		}
		put(3)
		text, ordered := indexedQuery(random)
		if r := w.do(1, "DOC.QUERY", "indexed", text, "EXPLAIN"); r.Kind == engine.KindMap && r.Elems[1].Str == "index" {
			used++
		}
		want := w.allPages(t, "10000", nil, "plain", text)
		for _, count := range []string{"10000", fmt.Sprint(1 + random.IntN(50))} {
			if len(want) > 300 && count != "10000" {
				count = "97"
			}
			got := w.allPages(t, count, nil, "indexed", text)
			if !ordered {
				slices.Sort(got)
				slices.Sort(want)
			}
			if limit := 1 + random.IntN(20); !strings.Contains(text, "COUNT") {
				limited := w.allPages(t, "10000", nil, "indexed", fmt.Sprint(text, " LIMIT ", limit))
				if len(limited) != min(limit, len(want)) {
					t.Fatalf("%s LIMIT %d: %d rows of %d", text, limit, len(limited), len(want))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, COUNT %s: %d rows %.300q, want %d %.300q", text, count, len(got), got, len(want), want)
			}
		}
	}
	if used < queries/10 {
		t.Errorf("of %d queries %d have used an index", queries, used)
	}
}

// TestSlicesThatEndWithAPartition: a slice that ends with the last entry of a partition skips nothing of the
// next one. As a container grows, partitions end at any place of a slice.
func TestSlicesThatEndWithAPartition(t *testing.T) {
	t.Parallel()
	every := drill.Pick(15, 3, 3)
	w := newHarness(t)
	w.do(1, "INDEX.CREATE", "0", "/c")
	w.do(1, "INDEX.CREATE", "0", "/tags/[]")
	w.engine.Keyspace().BuildIndexes()
	for n := 1; n <= 1200; n++ {
		w.do(1, "DOC.PUT", "0", fmt.Sprint("x", n), fmt.Sprintf(`{"c":0,"d":%d,"tags":["t"]}`, n%7))
		if n > 40 && n%every > 0 {
			continue
		}
		if _, rows := w.queryPage(t, "0", "SELECT VALUE COUNT(1) WHERE c = 0"); rows[0] != fmt.Sprint(n) {
			t.Fatalf("of %d documents %s are counted", n, rows[0])
		}
		for _, condition := range []string{"c = 0 AND d = 0", "ARRAY_CONTAINS(tags, 't') AND d = 0"} {
			for _, limit := range []int{1, 2, 4, 100} {
				_, rows := w.queryPage(t, "0", fmt.Sprint("SELECT VALUE d WHERE ", condition, " LIMIT ", limit))
				if len(rows) != min(limit, n/7) {
					t.Fatalf("of %d documents WHERE %s LIMIT %d returns %d", n, condition, limit, len(rows))
				}
			}
		}
	}
}

// TestIndexedPagesBesideWrites: cursors of pages by an index survive writes, deaths and a restart. What stays
// as it is comes once, in order.
func TestIndexedPagesBesideWrites(t *testing.T) {
	t.Parallel()
	documents, count := drill.Pick(300, 700, 700), drill.Pick("3", "7", "7") // rows of a page
	for _, text := range []string{"SELECT VALUE _id ORDER BY a", "SELECT VALUE _id ORDER BY a DESC", "SELECT VALUE _id WHERE a >= 10 AND a < 40", "SELECT VALUE _id WHERE a IN (3, 4, 5, 70)"} {
		w := newHarness(t)
		random := drill.Rand(t)
		w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
		w.do(1, "INDEX.CREATE", "c", "/a")
		for i := range documents {
			w.do(1, "DOC.PUT", "c", fmt.Sprint("stay-", i), fmt.Sprintf(`{"a":%d}`, i%80))
			w.do(1, "DOC.PUT", "c", fmt.Sprint("dies-", i), fmt.Sprintf(`{"a":%d,"ttl":%d}`, i%80, 1+i%30))
		}
		w.engine.Keyspace().BuildIndexes()
		stay := func(rows []string) []string {
			return slices.DeleteFunc(rows, func(id string) bool { return !strings.HasPrefix(id, `"stay-`) })
		}
		want := stay(w.allPages(t, "10000", nil, "c", text))
		pages := 0
		got := stay(w.allPages(t, count, func() {
			for range 10 {
				id := fmt.Sprint("new-", random.IntN(500))
				w.do(1, "DOC.PUT", "c", id, fmt.Sprintf(`{"a":%d}`, random.IntN(80)))
				w.do(1, "DOC.DEL", "c", fmt.Sprint("new-", random.IntN(500)))
				w.do(1, "DOC.DEL", "c", fmt.Sprint("dies-", random.IntN(documents)))
			}
			w.clock.Advance(time.Second)
			if pages++; pages%15 == 0 {
				w.restart()
			}
		}, "c", text))
		if pages < 5 || len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows on %d pages, want %d", text, len(got), pages, len(want))
		}
	}
}

// TestScanPagesBesideWrites: cursors of scans survive restarts, writes, deaths, and tables that grow and
// shrink. What stays as it is comes once, and nothing twice.
func TestScanPagesBesideWrites(t *testing.T) {
	t.Parallel()
	documents, many, count := drill.Pick(250, 700, 700), drill.Pick(600, 2000, 2000), drill.Pick("3", "7", "7")
	for _, text := range []string{"SELECT VALUE _id", "SELECT VALUE _id WHERE a >= 10 AND a != 20 OFFSET 3", "SELECT VALUE _id WHERE STARTSWITH(_id, 's') LIMIT 900"} {
		w := newHarness(t)
		random := drill.Rand(t)
		w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
		for i := range documents {
			w.do(1, "DOC.PUT", "c", fmt.Sprint("stay-", i), fmt.Sprintf(`{"a":%d}`, i%80))
			w.do(1, "DOC.PUT", "c", fmt.Sprint("dies-", i), fmt.Sprintf(`{"a":%d,"ttl":%d}`, i%80, 1+i%30))
		}
		w.do(1, "SELECT", "c")
		w.do(1, "SET", "", "a plain key may be empty")
		w.do(1, "SELECT", "0")
		stay := func(rows []string) []string {
			return sorted(slices.DeleteFunc(rows, func(id string) bool { return !strings.HasPrefix(id, `"stay-`) }))
		}
		skipped := strings.Contains(text, "OFFSET")
		want := stay(w.allPages(t, "10000", nil, "c", strings.Replace(text, "OFFSET 3", "", 1)))
		pages := 0
		all := w.allPages(t, count, func() {
			switch pages++; pages % 40 {
			case 10: // the table grows
				for i := range many {
					w.do(1, "DOC.PUT", "c", fmt.Sprint("many-", i), `{"a":5}`)
				}
			case 30:
				for i := range many {
					w.do(1, "DOC.DEL", "c", fmt.Sprint("many-", i))
				}
			}
			for range 10 {
				w.do(1, "DOC.PUT", "c", fmt.Sprint("new-", random.IntN(500)), fmt.Sprintf(`{"a":%d}`, random.IntN(80)))
				w.do(1, "DOC.DEL", "c", fmt.Sprint("new-", random.IntN(500)))
				w.do(1, "DOC.DEL", "c", fmt.Sprint("dies-", random.IntN(documents)))
			}
			w.clock.Advance(time.Second)
			if pages%15 == 0 {
				w.restart()
			}
		}, "c", text)
		once := sorted(all)
		if len(slices.Compact(once)) != len(all) {
			t.Errorf("%s: a row came twice", text)
		}
		got := stay(all)
		missing := len(want) - len(got)
		if pages < 50 || len(want) == 0 || missing < 0 || missing > 0 && (!skipped || missing > 3) {
			t.Errorf("%s: %d rows on %d pages, want %d", text, len(got), pages, len(want))
		}
		if !skipped && !slices.Equal(got, want) {
			t.Errorf("%s: other rows than those that stayed", text)
		}
	}
}

// TestScanCursorOfOtherFolder: the order of a scan belongs to a data folder.
func TestScanCursorOfOtherFolder(t *testing.T) {
	t.Parallel()
	cursor := ""
	for range 2 {
		w := newHarness(t)
		for i := range 10 {
			w.do(1, "DOC.PUT", "0", fmt.Sprint(i), "{}")
		}
		if cursor != "" {
			w.expectError(string(engine.ErrQueryOtherFolder), "DOC.QUERY", "0", "", "CURSOR", cursor)
		}
		cursor, _ = w.queryPage(t, "0", "", "COUNT", "3")
	}
}

// TestQueryCursorsEnd: a cursor of an index ends with the index, and none with a restart.
func TestQueryCursorsEnd(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 10 {
		w.do(1, "DOC.PUT", "0", fmt.Sprint(i), fmt.Sprintf(`{"a":%d}`, i))
	}
	scan, _ := w.queryPage(t, "0", "SELECT VALUE _id", "COUNT", "3")
	w.do(1, "INDEX.CREATE", "0", "/a")
	w.engine.Keyspace().BuildIndexes()
	const text = "SELECT VALUE _id ORDER BY a"
	byIndex, _ := w.queryPage(t, "0", text, "COUNT", "3")
	if _, rows := w.queryPage(t, "0", "SELECT VALUE _id", "CURSOR", scan); len(rows) != 7 {
		t.Errorf("%d rows follow, want 7", len(rows))
	}
	w.restart()
	if _, rows := w.queryPage(t, "0", text, "CURSOR", byIndex); !slices.Equal(rows, []string{`"3"`, `"4"`, `"5"`, `"6"`, `"7"`, `"8"`, `"9"`}) {
		t.Errorf("after a restart follow %q", rows)
	}
	if _, rows := w.queryPage(t, "0", "SELECT VALUE _id", "CURSOR", scan); len(rows) != 7 {
		t.Errorf("after a restart %d rows follow, want 7", len(rows))
	}
	w.do(1, "INDEX.DROP", "0", "/a")
	w.expectError("ERR invalid cursor: its index is gone", "DOC.QUERY", "0", text, "CURSOR", byIndex)
	w.expectError("ERR invalid cursor: it belongs to another query", "DOC.QUERY", "0", "SELECT VALUE _id ORDER BY b", "CURSOR", byIndex)
	w.do(1, "INDEX.CREATE", "0", "/a")
	w.engine.Keyspace().BuildIndexes()
	if _, rows := w.queryPage(t, "0", text, "CURSOR", byIndex); len(rows) != 7 {
		t.Errorf("with the index again follow %q", rows)
	}
}

// TestIndexInExec: a query in EXEC sees by an index what commands before it in the transaction wrote.
func TestIndexInExec(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "INDEX.CREATE", "0", "/a")
	w.do(1, "DOC.PUT", "0", "x", `{"a":1}`)
	w.do(1, "DOC.PUT", "0", "y", `{"a":2}`)
	w.engine.Keyspace().BuildIndexes()
	const text = "SELECT VALUE _id WHERE a >= 1 ORDER BY a"
	w.do(1, "MULTI")
	for _, command := range [][]string{
		{"DOC.PUT", "0", "x", `{"a":3}`}, {"DOC.PUT", "0", "z", `{"a":0}`}, {"DOC.PATCH", "0", "z", "SET", "/a", "2.5"},
		{"DOC.QUERY", "0", text}, {"DOC.DEL", "0", "y"}, {"RENAME", "x", "w"}, {"DOC.QUERY", "0", text}, {"FLUSHDB"}, {"DOC.QUERY", "0", text},
		{"DOC.PUT", "0", "v", `{"a":9}`}, {"DOC.QUERY", "0", text}, {"INDEX.DROP", "0", "/a"}, {"DOC.QUERY", "0", text},
	} {
		if r := w.do(1, command...); r.Str != "QUEUED" {
			t.Fatalf("%q: %+v", command, r)
		}
	}
	var got []string
	for _, r := range w.do(1, "EXEC").Elems {
		if r.Kind != engine.KindArray || len(r.Elems) != 2 {
			continue
		}
		ids := ""
		for _, row := range r.Elems[1].Elems {
			ids += row.Str
		}
		got = append(got, ids)
	}
	if want := []string{`"y""z""x"`, `"z""w"`, "", `"v"`, `"v"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestIndexErrors: what INDEX.CREATE, DROP and LIST refuse, and limits.
func TestIndexErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "-1")
	for _, tt := range []struct{ want, command string }{
		{"OK", "INDEX.CREATE c /a /b"},
		{"ERR index /a /b exists", "INDEX.CREATE c /a /b"},
		{"OK", "INDEX.CREATE c /b /a"},
		{"OK", "INDEX.CREATE c /p GEO"},
		{"OK", "INDEX.CREATE c /p"},
		{"ERR index /p GEO exists", "INDEX.CREATE c /p geo"},
		{"ERR 5 paths: legal are 1 to 4", "INDEX.CREATE c /a /b /c /d /e"},
		{"ERR path \"/a\" is given twice", "INDEX.CREATE c /a /a"},
		{"ERR invalid path \"/_etag\": of the server's members only /_ts is legal", "INDEX.CREATE c /_etag"},
		{"OK", "INDEX.CREATE c /_ts"},
		{"ERR 2 paths of an index over elements of an array or over points: legal is 1", "INDEX.CREATE c /a /t/[]"},
	} {
		r := w.do(1, strings.Fields(tt.command)...)
		if r.Str != tt.want {
			t.Errorf("%s: %q, want %q", tt.command, r.Str, tt.want)
		}
	}
	for _, command := range []string{"INDEX.CREATE missing /a", "INDEX.DROP missing /a", "INDEX.LIST missing"} {
		if r := w.do(1, strings.Fields(command)...); r.Kind != engine.KindError || !strings.Contains(r.Str, "missing") {
			t.Errorf("%s: %+v", command, r)
		}
	}
	for _, path := range []string{"a", "", "/a~2", "/t/[]/x", "/[]"} {
		if r := w.do(1, "INDEX.CREATE", "c", path); r.Kind != engine.KindError {
			t.Errorf("%q: %+v", path, r)
		}
	}
	for n := len(w.do(1, "INDEX.LIST", "c").Elems); n < 16; n++ {
		w.do(1, "INDEX.CREATE", "c", fmt.Sprint("/n", n))
	}
	w.expectError("ERR 16 indexes: legal are at most 16 a container", "INDEX.CREATE", "c", "/one-more")
	w.expectError("ERR index /a /b exists", "INDEX.CREATE", "c", "/a", "/b")
	if r := w.do(1, "INDEX.DROP", "c", "/a", "/b"); r.Int != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.do(1, "INDEX.DROP", "c", "/a", "/b"); r.Int != 0 {
		t.Errorf("%+v", r)
	}
}

// TestIndexDropNamesTheKind: an index over points and one over values of the same path are two. A name that
// leaves out GEO drops neither in silence.
func TestIndexDropNamesTheKind(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "INDEX.CREATE", "0", "/at", "GEO")
	w.expectError("ERR there is no index /at, but an index /at GEO: name it so", "INDEX.DROP", "0", "/at")
	w.expect("OK", "INDEX.CREATE", "0", "/at")
	w.expect("(integer) 1", "INDEX.DROP", "0", "/at", "GEO")
	w.expectError("ERR there is no index /at GEO, but an index /at: name it so", "INDEX.DROP", "0", "/at", "geo")
	w.expect("(integer) 1", "INDEX.DROP", "0", "/at")
	w.expect("(integer) 0", "INDEX.DROP", "0", "/at")
	w.expect("(integer) 0", "INDEX.DROP", "0", "/at", "GEO")
	w.expect("(integer) 0", "INDEX.DROP", "0", "/tags/[]")
}

// TestQueryBesideIndexDrop: a query whose index is dropped while it runs reads the documents without it.
func TestQueryBesideIndexDrop(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 3000 {
		w.do(1, "DOC.PUT", "0", fmt.Sprint(i), fmt.Sprintf(`{"a":%d}`, i))
	}
	other, stop, done := w.session(2), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for !drill.Done(stop) {
			w.engine.Execute(other, []string{"INDEX.CREATE", "0", "/a"})
			w.engine.Keyspace().BuildIndexes()
			w.engine.Execute(other, []string{"INDEX.DROP", "0", "/a"})
		}
	}()
	for range drill.Pick(10, 30, 1000) {
		if r := w.do(1, "DOC.QUERY", "0", "SELECT VALUE a WHERE a >= 0", "COUNT", "10000"); r.Kind != engine.KindArray || len(r.Elems[1].Elems) != 3000 {
			t.Errorf("%d rows, %.100q", len(r.Elems), r.Str)
			break
		}
	}
	close(stop)
	<-done
}

// TestQueryOfMassDeath: 150,000 documents that die at once under an index are met in slices of bounded size,
// whether a query counts, pages or sorts, and removed for good.
func TestQueryOfMassDeath(t *testing.T) {
	t.Parallel()
	documents := drill.Pick(5_000, 10_000, 150_000)
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "10")
	w.do(1, "INDEX.CREATE", "c", "/a")
	for i := range documents {
		w.do(1, "DOC.PUT", "c", fmt.Sprint(i), fmt.Sprintf(`{"a":%d}`, i%1000))
	}
	w.do(1, "DOC.PUT", "c", "living", `{"a":500,"ttl":-1}`)
	w.engine.Keyspace().BuildIndexes()
	w.clock.Advance(11 * time.Second)
	const mostDead = 128 // that a query removes under a lock
	met := 0
	for _, text := range []string{"SELECT VALUE _id WHERE a >= 900", "SELECT COUNT(1) WHERE a >= 700", "SELECT VALUE _id ORDER BY a DESC LIMIT 3"} {
		r := w.do(1, "DOC.QUERY", "c", text, "EXPLAIN")
		figures := map[string]int{}
		for i := 0; i < len(r.Elems); i += 2 {
			figures[r.Elems[i].Str] = int(r.Elems[i+1].Int)
		}
		met += figures["dead"]
		if figures["dead"] == 0 || figures["slices"] < figures["dead"]/mostDead {
			t.Errorf("%s: %v", text, figures)
		}
	}
	if met != documents {
		t.Errorf("%d dead were met, want each of %d once", met, documents)
	}
	list := w.do(1, "INDEX.LIST", "c").Elems
	if entries := list[0].Elems[9]; entries.Int != 1 {
		t.Errorf("%+v", list[0])
	}
}

// TestHostileIndexValues: long strings, long arrays and deep objects under indexes take memory by what the
// indexes keep of them, and give it back.
func TestHostileIndexValues(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, paths := range [][]string{{"/tags/[]"}, {"/s"}, {"/s", "/tags"}, {"/deep"}, {"/at", "GEO"}} {
		w.do(1, append([]string{"INDEX.CREATE", "0"}, paths...)...)
	}
	w.engine.Keyspace().BuildIndexes()
	used := func() (bytes int64) {
		for _, r := range w.do(1, "INDEX.LIST", "0").Elems {
			bytes += r.Elems[11].Int
		}
		return bytes
	}
	w.do(1, "DOC.PUT", "0", "k", "{}")
	empty := used()
	var tags strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&tags, `"tag number %d",`, i)
	}
	const depth = 100
	deep := strings.Repeat(`{"x":`, depth) + "1" + strings.Repeat("}", depth)
	long := strings.Repeat("s", 8<<20)
	for _, tt := range []struct {
		name, doc string
		most      int64 // bytes of memory
	}{
		{"100,000 elements", `{"tags":[` + tags.String() + `"x"]}`, 12 << 20},
		{"equal elements", `{"tags":[1` + strings.Repeat(",1", 1_000_000) + `]}`, 200},
		{"a long string", `{"s":"` + long + `","tags":["` + long[:7<<20] + `"]}`, 2000},
		{"deep objects", `{"deep":` + deep + `,"s":` + deep + `,"tags":[` + deep + `],"at":` + deep + `}`, 2000},
		{"a point that is none", `{"at":{"type":"Point","coordinates":[1e999,` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `]}}`, 200},
	} {
		if r := w.do(1, "DOC.PUT", "0", "k", tt.doc); r.Kind == engine.KindError {
			t.Errorf("%s: %.200s", tt.name, r.Str)
			continue
		}
		if grown := used() - empty; grown > tt.most {
			t.Errorf("%s: indexes take %d bytes, want at most %d", tt.name, grown, tt.most)
		}
		w.do(1, "DOC.PUT", "0", "k", "{}")
		if left := used() - empty; left != 0 {
			t.Errorf("%s: %d bytes are left", tt.name, left)
		}
	}
}
