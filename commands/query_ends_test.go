package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
)

// TestQueryEnds: the order of ends selects what a scan does, in order, whatever the default, ends of
// documents' own, rewritten documents and changed defaults.
func TestQueryEnds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	random := drill.Rand(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "900")
	ids := drill.Pick(600, 1000, 4000)
	put := func(n int) {
		for range n {
			id := strconv.Itoa(random.IntN(ids))
			switch random.IntN(12) {
			case 0:
				w.do(1, "DOC.PUT", "c", id, `{"n":1,"ttl":-1}`)
			case 1, 2, 3, 4:
				w.do(1, "DOC.PUT", "c", id, fmt.Sprintf(`{"n":%d,"ttl":%d}`, random.IntN(3), 1+random.IntN(1000)))
			case 5:
				w.do(1, "DOC.DEL", "c", id)
			case 6:
				w.do(1, "SELECT", "c")
				w.do(1, "SET", "plain-"+id, "x", "EX", "500")
				w.do(1, "SELECT", "0")
			default:
				w.do(1, "DOC.PUT", "c", id, fmt.Sprintf(`{"n":%d}`, random.IntN(3)))
			}
			if random.IntN(3) == 0 {
				w.clock.Advance(time.Duration(random.IntN(200)) * time.Millisecond)
			}
		}
	}
	plan := func(query string) string {
		r := w.do(1, "DOC.QUERY", "c", query, "EXPLAIN")
		return r.Elems[1].Str + " " + r.Elems[9].Str
	}
	pages := func(query, count string) (rows []string) {
		for cursor := "0"; ; {
			var page []string
			cursor, page = w.queryPage(t, "c", query, "COUNT", count, "CURSOR", cursor)
			if rows = append(rows, page...); cursor == "0" {
				return rows
			}
		}
	}
	put(ids * 3 / 2)
	for round := range drill.Pick(2, 3, 100) {
		put(random.IntN(400))
		switch random.IntN(8) {
		case 0:
			w.do(1, "CONTAINER.SET", "c", "TTL", []string{"off", "-1", "60", "900", "2000"}[random.IntN(5)])
		case 1:
			w.clock.Advance(time.Duration(random.IntN(100)) * time.Second)
		case 2:
			w.do(1, "MULTI")
			w.do(1, "DOC.PUT", "c", "1", `{"ttl":7}`)
			w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1) WHERE _ttlleft < 100")
			w.do(1, "EXEC")
		}
		now := float64(w.clock.Now()) / 1000
		x := float64(random.IntN(1200000)) / 1000
		y := x + float64(random.IntN(300))
		for _, tt := range []struct{ ends, scan string }{
			{"_ttlleft < $x", "(_ttlleft < $x) = true"},
			{"$x >= _ttlleft", "($x >= _ttlleft) = true"},
			{"_ttlleft > $x AND n = 1", "(_ttlleft > $x) = true AND n = 1"},
			{"_ttlleft BETWEEN $x AND $y", "(_ttlleft BETWEEN $x AND $y) = true"},
			{"_expiresat >= $z AND _ttlleft <= $y", "(_expiresat >= $z) = true AND (_ttlleft <= $y) = true"},
			{"_expiresat = $z", "(_expiresat = $z) = true"},
			{"_expiresat > 0", "(_expiresat > 0) = true"},
			{"_ttlleft IN ($x, 'x', $y)", "(_ttlleft = $x OR _ttlleft = $y) = true"},
			{"_ttlleft < $x OR _ttlleft > $y", "(_ttlleft < $x OR _ttlleft > $y) = true"},
			{"(_ttlleft < $x OR _ttlleft > $y AND n = 1) AND n < 2", "(_ttlleft < $x OR _ttlleft > $y AND n = 1) = true AND n < 2"},
			{"IS_DEFINED(_expiresat)", "IS_DEFINED(_expiresat) = true"},
			{"IS_DEFINED(_ttlleft) AND _ttlleft < $x + 1", "IS_DEFINED(_ttlleft) = true AND (_ttlleft < $x + 1) = true"},
		} {
			values := strings.NewReplacer("$x", fmt.Sprint(x), "$y", fmt.Sprint(y), "$z", fmt.Sprintf("%.3f", now+x))
			ends, scan := values.Replace(tt.ends), values.Replace(tt.scan)
			if got := plan("SELECT VALUE _id WHERE " + ends); got != "ends " {
				t.Fatalf("%s: plan %q", ends, got)
			}
			if got := plan("SELECT VALUE _id WHERE " + scan); got != "scan " {
				t.Fatalf("%s: plan %q", scan, got)
			}
			count := []string{"10000", "700", "13"}[random.IntN(3)]
			got, want := pages("SELECT VALUE _id WHERE "+ends, count), pages("SELECT VALUE _id WHERE "+scan, "10000")
			_, counted := w.queryPage(t, "c", "SELECT VALUE COUNT(1) WHERE "+ends)
			if counted[0] != strconv.Itoa(len(want)) {
				t.Fatalf("round %d, %s: counts %s, want %d", round, ends, counted[0], len(want))
			}
			if slices.Sort(got); !slices.Equal(got, sorted(want)) {
				t.Fatalf("round %d, %s, COUNT %s: %d rows, a scan finds %d", round, ends, count, len(got), len(want))
			}
			for _, member := range []string{"_expiresat", "_ttlleft"} {
				order := " ORDER BY " + member
				if got := plan("SELECT VALUE _id WHERE " + ends + order); got != "ends index" {
					t.Fatalf("%s: plan %q", ends, got)
				}
				got := pages("SELECT VALUE _id WHERE "+ends+order, count)
				want := pages("SELECT VALUE _id WHERE "+scan+order+" DESC", "10000")
				if slices.Reverse(want); !slices.Equal(got, want) {
					t.Fatalf("round %d, %s%s, COUNT %s:\n%q, a sorted scan gives\n%q", round, ends, order, count, got, want)
				}
			}
		}
		w.check()
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// TestInfoIndexes: INFO tells of indexes and queries, and CONFIG RESETSTAT resets what grows.
func TestInfoIndexes(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "100")
	w.do(1, "INDEX.CREATE", "c", "/n")
	for i := range 100 {
		w.do(1, "DOC.PUT", "c", strconv.Itoa(i), fmt.Sprintf(`{"n":%d}`, i))
	}
	w.engine.Keyspace().BuildIndexes()
	w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1) WHERE n < 50")
	w.do(1, "DOC.QUERY", "c", "WHERE n + 1 < 50")
	w.do(1, "DOC.QUERY", "c", "WHERE _ttlleft < 50")
	fields := infoFields(t, w.do(1, "INFO", "indexes"))
	for name, want := range map[string]string{
		"indexes": "1", "index_entries": "100", "queries": "3", "query_scans": "1", "query_examined": "150", "query_dead_met": "0", "queries_over_budget": "0",
	} {
		if fields[name] != want {
			t.Errorf("%s:%s, want %s", name, fields[name], want)
		}
	}
	if n, _ := strconv.Atoi(fields["index_bytes"]); n < 1600 {
		t.Errorf("index_bytes:%d", n)
	}
	w.do(1, "CONFIG", "RESETSTAT")
	fields = infoFields(t, w.do(1, "INFO", "indexes"))
	if fields["queries"] != "0" || fields["query_examined"] != "0" || fields["indexes"] != "1" {
		t.Errorf("after CONFIG RESETSTAT: %v", fields)
	}
	w.clock.Advance(101 * time.Second)
	if r := w.do(1, "DOC.QUERY", "c", "SELECT COUNT(1) WHERE n < 50", "EXPLAIN"); r.Elems[13].Int != 50 || r.Elems[15].Int != 0 {
		t.Errorf("of the dead: %s", notation(r))
	}
}

// TestQueryNearest: an index over points gives the nearest documents as a sort of all does, at the poles and
// at the meridian of 180 degrees too.
func TestQueryNearest(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	random := drill.Rand(t)
	for _, name := range []string{"indexed", "plain"} {
		w.do(1, "CONTAINER.SET", name, "TTL", "100")
	}
	w.do(1, "INDEX.CREATE", "indexed", "/at", "GEO")
	point := func() (lon, lat float64) {
		switch random.IntN(4) {
		case 0:
			return random.Float64()*360 - 180, random.Float64()*180 - 90
		case 1:
			return 15.4 + random.Float64()/50, 47 + random.Float64()/50
		case 2:
			return 180 - random.Float64()/10 - float64(random.IntN(2))*359.9, random.Float64()
		}
		return random.Float64()*360 - 180, float64(random.IntN(2)*2-1) * (90 - random.Float64())
	}
	for i := range drill.Pick(1000, 3000, 3000) {
		lon, lat := point()
		if i%50 == 1 {
			lon, lat = 15.41, 47.01 // equal distances
		}
		doc := fmt.Sprintf(`{"n":%d,"at":{"type":"Point","coordinates":[%g,%g]}}`, i%7, lon, lat)
		if i%100 == 0 {
			doc = `{"n":1,"at":"nowhere"}`
		}
		if i%9 == 0 {
			doc = `{"ttl":10,` + doc[1:]
		}
		for _, name := range []string{"indexed", "plain"} {
			w.do(1, "DOC.PUT", name, strconv.Itoa(i), doc)
		}
	}
	w.engine.Keyspace().BuildIndexes()
	w.clock.Advance(11 * time.Second)
	queries, few := drill.Pick(15, 25, 1500), 0
	for range queries {
		lon, lat := point()
		query := fmt.Sprintf(`SELECT VALUE _id %sORDER BY ST_DISTANCE(at, {"type":"Point","coordinates":[%g,%g]}) %sLIMIT %d`,
			[]string{"", "WHERE n = 3 ", "WHERE n > 100 "}[random.IntN(3)], lon, lat, []string{"", "OFFSET 5 "}[random.IntN(2)], 1+random.IntN(90))
		r := w.do(1, "DOC.QUERY", "indexed", query, "EXPLAIN")
		if r.Elems[1].Str != "index" || r.Elems[9].Str != "index" {
			t.Fatalf("%s: %s", query, notation(r))
		}
		if r.Elems[11].Int < 1000 {
			few++
		}
		for _, count := range []string{"3", "1000"} {
			cursor, got := w.queryPage(t, "indexed", query, "COUNT", count)
			cursor2, want := w.queryPage(t, "plain", query, "COUNT", count)
			if !slices.Equal(got, want) || (cursor == "0") != (cursor2 == "0") {
				t.Fatalf("%s, COUNT %s: %q, a sort gives %q", query, count, got, want)
			}
			if cursor != "0" {
				_, got = w.queryPage(t, "indexed", query, "COUNT", count, "CURSOR", cursor)
				_, want = w.queryPage(t, "plain", query, "COUNT", count, "CURSOR", cursor2)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, COUNT %s, second page: %q, a sort gives %q", query, count, got, want)
				}
			}
		}
	}
	r := w.do(1, "DOC.QUERY", "indexed", `ORDER BY ST_DISTANCE(at, {"type":"Point","coordinates":[0,0]})`, "EXPLAIN")
	if r.Elems[1].Str != "scan" || r.Elems[9].Str != "sort" {
		t.Errorf("many rows: %s", notation(r))
	}
	if few < queries/8 {
		t.Errorf("%d of %d queries examined less than 1000 entries", few, queries)
	}
}
