package query_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/query/predicates"
	"mayfly/test/drill"
)

// hostile is a query that multiplies, and the document that it is evaluated on.
type hostile struct {
	name, text string
	params     []query.Param
	doc        string
}

// list repeats a text with commas between.
func list(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

// quote puts a text between quotes.
func quote(s string) string { return `"` + s + `"` }

// hostiles are the queries of a client that wants to keep the server busy.
func hostiles() []hostile {
	million := drill.Pick(1<<16, 1<<17, 1<<20) // bytes of a long value
	long := quote(strings.Repeat("a", million))
	numbers := "[" + list("1", million/2) + "]"
	objects := "[" + list(`{"a":1}`, million/8) + "]"
	deep := strings.Repeat("[", 120) + list("1", million/2) + strings.Repeat("]", 120)
	fill := func(begin, part, separator, end string) string {
		n := (query.MaxSize - len(begin) - len(end)) / (len(part) + len(separator))
		return begin + strings.TrimSuffix(strings.Repeat(part+separator, n), separator) + end
	}
	numbered := func(begin, format, separator, end string) string {
		out := begin
		for i := 0; len(out)+len(end)+30 < query.MaxSize; i++ {
			if i > 0 {
				out += separator
			}
			out += fmt.Sprintf(format, i)
		}
		return out + end
	}
	return []hostile{
		{"nots", fill("WHERE ", "NOT ", "", "a"), nil, `{}`},
		{"brackets", fill("WHERE ", "(", "", ""), nil, `{}`},
		{"arrays", fill("WHERE ", "[", "", ""), nil, `{}`},
		{"objects", fill("WHERE ", "{a:", "", ""), nil, `{}`},
		{"minuses", fill("WHERE ", "- ", "", "a"), nil, `{}`},
		{"pluses", fill("WHERE ", "+", "", "a"), nil, `{}`},
		{"calls", fill("WHERE ", "ABS(", "", ""), nil, `{}`},
		{"ands", fill("WHERE ", "a=1", " AND ", ""), nil, `{"a":1}`},
		{"ors", fill("WHERE ", "a=2", " OR ", ""), nil, `{"a":1}`},
		{"commas", fill("SELECT ", "", ",", ""), nil, `{}`},
		{"items", numbered("SELECT ", "a AS a%d", ",", ""), nil, `{}`},
		{"sums", fill("SELECT VALUE ", "1", "+", ""), nil, `{}`},
		{"sums of members", fill("SELECT VALUE ", "a", "+", ""), nil, `{"a":1}`},
		{"concats", fill("SELECT VALUE ", "a", "||", ""), nil, `{"a":` + long + `}`},
		{"members", fill("WHERE a", ".a", "", ""), nil, `{"a":` + strings.Repeat(`{"a":`, 120) + "1" + strings.Repeat("}", 120) + `}`},
		{"members of a value", fill("WHERE LOWER(a)", ".a", "", ""), nil, `{"a":"x"}`},
		{"members of a large literal", fill("WHERE ", "[a][0]=1", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"comparisons", fill("WHERE ", "a", "=", ""), nil, `{"a":` + numbers + `}`},
		{"arrays compared", fill("WHERE ", "a=b", " OR ", ""), nil, `{"a":` + numbers + `,"b":` + numbers[:len(numbers)-1] + `,2]}`},
		{"a large parameter compared", fill("WHERE ", "a=@p", " OR ", ""), []query.Param{{Name: "p", JSON: numbers[:len(numbers)-1] + "]"}}, `{"a":[]}`},
		{"deep arrays compared", fill("WHERE ", "a!=b", " AND ", ""), nil, `{"a":` + deep + `,"b":` + strings.Replace(deep, "1]", "2]", 1) + `}`},
		{"objects with repeated names", fill("WHERE ", "a=b", " OR ", ""), nil, `{"a":{` + list(`"a":1`, million/8) + `},"b":{` + list(`"b":1`, million/8) + `}}`},
		{"paths", numbered("WHERE ", "a.b%d=1", " OR ", ""), nil, `{"a":{` + list(`"b1":1`, million/8) + `}}`},
		{"paths below a repeated name", numbered("WHERE ", "a.b%d=1", " OR ", ""), nil, `{` + list(`"a":1`, million/6) + `}`},
		{"elements", numbered("WHERE ", "a[%d]=2", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"LIKE", "WHERE a LIKE '" + strings.Repeat("%a", 5000) + "%b'", nil, `{"a":` + long + `}`},
		{"LIKE with sets", "WHERE a LIKE '" + strings.Repeat("%_[ab]", 2000) + "%b'", nil, `{"a":` + long + `}`},
		{"LIKE with _", "WHERE a LIKE '%" + strings.Repeat("_", 8000) + "b%'", nil, `{"a":` + long + `}`},
		{"LIKE with large sets", "WHERE a LIKE '%[" + strings.Repeat("bc", 4000) + "]%'", nil, `{"a":` + long + `}`},
		{"LIKE with open sets", "WHERE a LIKE '" + strings.Repeat("[", 16000) + "%'", nil, `{"a":` + long + `}`},
		{"LIKE of a member", "WHERE a LIKE b", nil, `{"a":` + long + `,"b":"` + strings.Repeat("%_a", 5000) + `"}`},
		{"many LIKE", fill("WHERE ", "a LIKE '%_b%'", " OR ", ""), nil, `{"a":` + long + `}`},
		{"a large pattern", "WHERE a LIKE @p", []query.Param{{Name: "p", JSON: quote(strings.Repeat("_", million-2))}}, `{"a":` + long + `}`},
		{"a large pattern often", fill("WHERE ", "a LIKE @p", " OR ", ""), []query.Param{{Name: "p", JSON: quote(strings.Repeat("[ab]", 4000))}}, `{"a":` + long + `}`},
		{"contains", fill("WHERE ", "CONTAINS(a,b,true)", " OR ", ""), nil, `{"a":` + long + `,"b":"` + strings.Repeat("a", 5000) + `b"}`},
		{"contains a long text", fill("WHERE ", "CONTAINS(a,b)", " OR ", ""), nil, `{"a":` + long + `,"b":"` + strings.Repeat("a", million/2) + `b` + strings.Repeat("a", million/4) + `"}`},
		{"upper", fill("WHERE ", "UPPER(a)='x'", " OR ", ""), nil, `{"a":` + long + `}`},
		{"length", fill("WHERE ", "LENGTH(a)=1", " OR ", ""), nil, `{"a":` + long + `}`},
		{"substring", fill("WHERE ", "SUBSTRING(a,999999,1)='b'", " OR ", ""), nil, `{"a":` + long + `}`},
		{"concat", "SELECT VALUE " + strings.Repeat("CONCAT(", 50) + "a" + strings.Repeat(",a)", 50), nil, `{"a":` + long + `}`},
		{"concat that doubles", "SELECT VALUE CONCAT(" + list("CONCAT("+list("a", 15)+")", 90) + ")", nil, `{"a":` + long + `}`},
		{"concat of a parameter", "SELECT VALUE [" + list("CONCAT("+list("@p", 15)+")", 200) + "]", []query.Param{{Name: "p", JSON: long[:million-2] + `"`}}, `{}`},
		{"arrays of the document", "SELECT VALUE " + strings.Repeat("[", 30) + "c" + strings.Repeat(",c]", 30) + " FROM c", nil, `{"a":` + long + `}`},
		{"items of the document", "SELECT " + strings.Join(strings.Split(numbered("", "c AS c%d", ",", ""), ",")[:100], ",") + " FROM c", nil, `{"a":` + long + `}`},
		{"control characters", `SELECT VALUE a || b || a || b`, nil, `{"a":"` + strings.Repeat(`\u0001`, million) + `","b":"` + strings.Repeat(`\u0002`, million) + `"}`},
		{"ARRAY_CONTAINS", fill("WHERE ", "ARRAY_CONTAINS(a,2)", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"ARRAY_CONTAINS of an array", fill("WHERE ", "ARRAY_CONTAINS(a,a)", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"ARRAY_CONTAINS in part", fill("WHERE ", "ARRAY_CONTAINS(a,{a:2},true)", " OR ", ""), nil, `{"a":` + objects + `}`},
		{"ARRAY_CONTAINS in part of many members", "WHERE ARRAY_CONTAINS(a,b,true)", nil, `{"a":` + objects + `,"b":{` + list(`"a":1`, million/8) + `}}`},
		{"ARRAY_LENGTH", fill("WHERE ", "ARRAY_LENGTH(a)=1", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"IN", "WHERE a IN (" + list("1", 1000) + ")", nil, `{"a":2}`},
		{"IN of members", "WHERE a IN (" + list("b", 1000) + ")", nil, `{"a":` + numbers + `,"b":` + numbers[:len(numbers)-1] + `,2]}`},
		{"IN of large parameters", "WHERE a IN (" + list("@p", 1000) + ")", []query.Param{{Name: "p", JSON: numbers[:million-10] + "1]"}}, `{"a":[]}`},
		{"INs of a large value", fill("WHERE ", "a IN([])", " OR ", ""), nil, `{"a":` + numbers + `}`},
		{"ORs of INs", fill("WHERE ", "a IN (1,2,3,4,5,6,7,8,9)", " OR ", ""), nil, `{"a":10}`},
		{"ORs of numbers", numbered("WHERE ", "a=%d", " OR ", ""), nil, `{"a":-1}`},
		{"ORs of ids", numbered("WHERE ", "_id='%d'", " OR ", ""), nil, `{}`},
		{"ORs of a large text", fill("WHERE ", "a=@p", " OR ", ""), []query.Param{{Name: "p", JSON: long[:million-2] + `"`}}, `{"a":"b"}`},
		{"lists often", fill("WHERE ", "ARRAY_CONTAINS(@p,a)", " AND ", ""), []query.Param{{Name: "p", JSON: "[" + list(long[:million/1000-3]+`"`, 1000) + "]"}}, `{"a":1}`},
		{"too long lists often", fill("WHERE ", "ARRAY_CONTAINS(@p,a)", " AND ", ""), []query.Param{{Name: "p", JSON: "[" + list("1", query.MaxIn+1) + "]"}}, `{"a":1}`},
		{"a large polygon often", fill("WHERE ", "ST_WITHIN(a,@p)", " AND ", ""), []query.Param{{Name: "p", JSON: `{"type":"Polygon","coordinates":[[` + list("[0,0]", million/8) + `]]}`}}, `{}`},
		{"BETWEEN", fill("WHERE ", "a BETWEEN a AND b", " AND ", ""), nil, `{"a":` + long + `,"b":` + long + `}`},
		{"aggregates", fill("SELECT VALUE ", "COUNT(1)", "+", ""), nil, `{}`},
		{"polygons", fill("WHERE ", "ST_WITHIN(p,b) OR ST_WITHIN(p,a)", " OR ", ""), nil,
			`{"p":{"type":"Point","coordinates":[5,5]},"a":{"type":"Polygon","coordinates":[[` + list("[0,0]", million/8) + `]]},"b":{"type":"Polygon","coordinates":[[` + list("[1,0]", million/8) + `]]}}`},
		{"points", fill("WHERE ", "ST_DISTANCE(p,p)<0", " OR ", ""), nil, `{"p":{` + list(`"a":1`, million/8) + `,"type":"Point","coordinates":[5,5]}}`},
		{"DISTINCT", "SELECT DISTINCT *", nil, `{"a":` + objects + `}`},
		{"GROUP BY", "SELECT COUNT(1) GROUP BY a", nil, `{"a":` + objects + `}`},
		{"ORDER BY", "ORDER BY a, b, a, b", nil, `{"a":` + objects + `}`},
		{"unclosed", "WHERE a = '" + strings.Repeat("a", 16000), nil, `{}`},
		{"a long word", "WHERE " + strings.Repeat("a", 16000) + "(", nil, `{}`},
		{"a long number", "WHERE " + strings.Repeat("1", 16000), nil, `{}`},
	}
}

// TestHostileQueries evaluates queries that multiply: each ends soon, with little memory, and with an error
// of one line if it is too much.
func TestHostileQueries(t *testing.T) {
	for i, h := range hostiles() {
		if i%drill.Pick(10, 5, 1) != 0 {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			if len(h.text) > query.MaxSize {
				t.Fatalf("query of %d bytes", len(h.text))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			q, err := query.Parse(h.text, h.params)
			work := 0
			if err == nil {
				from, _ := page.ParseCursor(q, "0")
				var r *page.Page
				if r, err = page.New(q, page.Options{Count: 10}, from); err == nil {
					_, err = r.Add(&query.Document{Text: h.doc, ID: "x"})
					work = r.Work()
					if err == nil {
						_, _, err = r.Finish("")
					}
				}
			}
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			if err != nil {
				checkError(t, h.text, err)
			}
			t.Logf("work %d, %d MiB, %.100v", work, allocated, err) // what is not bounded takes hours
			if allocated > 1024 {
				t.Errorf("%d MiB are allocated", allocated)
			}
		})
	}
}

// TestPlansOfHostileQueries: planning reads constants a bounded number of times, however often a query names
// them. It copies what it reads, so memory tells how much that is.
func TestPlansOfHostileQueries(t *testing.T) {
	for _, h := range hostiles() {
		q, err := query.Parse(h.text, h.params)
		if err != nil {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		predicates.IDsOf(q)
		predicates.TermsOf(q)
		runtime.ReadMemStats(&after)
		allocated, objects := (after.TotalAlloc-before.TotalAlloc)>>20, after.Mallocs-before.Mallocs
		if allocated > 64 || objects > 500_000 {
			t.Errorf("%s: %d MiB are allocated, in %d objects", h.name, allocated, objects)
		}
	}
}

// feed evaluates a query over n documents and returns the first page.
func feed(text string, count, n int, doc func(i int) string) (rows []page.Row, next string, err error) {
	q, err := query.Parse(text, nil)
	if err != nil {
		return nil, "", err
	}
	from, err := page.ParseCursor(q, "0")
	if err != nil {
		return nil, "", err
	}
	r, err := page.New(q, page.Options{Count: count}, from)
	if err != nil {
		return nil, "", err
	}
	for i := range n {
		if more, err := r.Add(&query.Document{Text: doc(i), ID: fmt.Sprintf("%08d", i)}); err != nil {
			return nil, "", err
		} else if !more {
			break
		}
	}
	return r.Finish("")
}

// TestResultLimits reaches the limits of a page.
func TestResultLimits(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its rows fill memory
	number := func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }
	document := func(i, size int) string { return fmt.Sprintf(`{"a":%d,"b":"`, i) + strings.Repeat("x", size) + `"}` }
	large := func(i int) string { return document(i, 16<<20) }
	megabytes := make([]string, 80) // more than a page holds
	for i := range megabytes {
		megabytes[i] = document(i, 1<<20)
	}
	long := func(i int) string { return megabytes[i] }
	for _, tt := range []struct {
		text string
		n    int
		doc  func(int) string
		want string // "" is no error
	}{
		{"SELECT a, COUNT(1) AS n GROUP BY a", 10_000, number, ""},
		{"SELECT a, COUNT(1) AS n GROUP BY a", 10_001, number, "query makes more than 10000 groups"},
		{"SELECT VALUE COUNT(1)" + strings.Repeat("+COUNT(1)", 1700) + " GROUP BY a", 10_000, number, "query holds more than 67108864 bytes of groups"},
		{"SELECT b GROUP BY b, a", 80, long, "query holds more than 67108864 bytes of groups"},
		{"SELECT MAX(b) AS b GROUP BY a", 80, long, "query holds more than 67108864 bytes of groups"},
		{"SELECT DISTINCT a", 10_000, number, ""},
		{"SELECT DISTINCT a", 10_001, number, "query finds more than 10000 distinct rows"},
		{"SELECT DISTINCT a % 10 AS a", 20_000, number, ""},
		{"SELECT DISTINCT *", 80, long, "query holds more than 67108864 bytes of distinct rows"},
		{"SELECT DISTINCT VALUE a ORDER BY b DESC", 80, long, "query holds more than 67108864 bytes of distinct rows"},
		{"ORDER BY a DESC", 80, long, ""},
		{"ORDER BY b DESC", 5, large, "the last row of the page has a value of ORDER BY too long for a cursor of 15728640 bytes: another COUNT or LIMIT ends the page elsewhere"},
		{"ORDER BY a DESC OFFSET 75", 80, long, "query holds more than 67108864 bytes of rows: a smaller OFFSET or shorter rows help"},
		{"ORDER BY a OFFSET 9000", 20_000, number, ""},
		{"ORDER BY a OFFSET 9999", 20_000, number, ""},
		{"ORDER BY a OFFSET 10000", 10_000, number, ""},
		{"ORDER BY a OFFSET 10000", 10_001, number, "query would sort more than 10000 rows with OFFSET 10000: an index gives the order without sorting"},
		{"ORDER BY a OFFSET 10000 LIMIT 0", 10_001, number, ""},
		{"ORDER BY a OFFSET 9007199254740992", 1, number, ""},
		{"OFFSET 9007199254740992", 20_000, number, ""},
		{"SELECT DISTINCT a % 10 AS a OFFSET 9007199254740992 LIMIT 9007199254740992", 100, number, ""},
		{"SELECT b || b AS b", 1, large, "query makes a value of 33554432 bytes: legal are at most 16777216"},
	} {
		_, _, err := feed(tt.text, 1000, tt.n, tt.doc)
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%.60s over %d documents: %v, want %q", tt.text, tt.n, err, tt.want)
		}
	}
}

// TestSortedOffset: a page is as short as OFFSET demands, and the next ones go on.
func TestSortedOffset(t *testing.T) {
	t.Parallel()
	var records []*record
	for i := range 10_200 {
		records = append(records, &record{doc: query.Document{ID: fmt.Sprintf("%05d", i), Text: fmt.Sprintf(`{"n":%d}`, i*7919%10_200)}})
	}
	for _, tt := range []struct {
		text      string
		n, offset int
	}{{"SELECT VALUE n ORDER BY n OFFSET 1", 154, 1}, {"SELECT VALUE n ORDER BY n OFFSET 9950", 10_200, 9950}, {"SELECT VALUE n ORDER BY n OFFSET 20000", 9_000, 20_000}} {
		some := slices.DeleteFunc(slices.Clone(records), func(r *record) bool {
			var n int
			fmt.Sscanf(r.doc.Text, `{"n":%d}`, &n)
			return n >= tt.n
		})
		rows, err := pages(tt.text, nil, some, page.Options{Count: 10_000})
		if err != nil || len(rows) != max(0, tt.n-tt.offset) {
			t.Fatalf("%s: %d rows of %d, %v", tt.text, len(rows), tt.n, err)
		}
		for i, row := range rows {
			if row.Text != fmt.Sprint(tt.offset+i) {
				t.Fatalf("%s: row %d is %s", tt.text, i, row.Text)
			}
		}
	}
}

// TestDistinctPage: the rows of DISTINCT are one page, beyond the bytes at which other pages end.
func TestDistinctPage(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its rows fill memory
	large := func(i int) string { return fmt.Sprintf(`{"s":"%d%s"}`, i, strings.Repeat("x", 1<<20)) }
	for _, tt := range []struct {
		n    int
		want string
	}{{30, "<nil>"}, {40, "query holds more than 67108864 bytes of distinct rows"}} {
		rows, next, err := feed("SELECT DISTINCT VALUE s", 1000, tt.n, large)
		if fmt.Sprint(err) != tt.want || err == nil && (len(rows) != tt.n || next != "0") {
			t.Errorf("%d rows, cursor %s, %v", len(rows), next, err)
		}
	}
}

// TestSortedBeyondMemory pages through rows in order whose keys are larger than what a page holds: each row
// comes once, in order.
func TestSortedBeyondMemory(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // its rows fill memory
	var records []*record
	const n = 1500
	for i := range n {
		k := i * 7919 % n
		doc := query.Document{ID: fmt.Sprintf("%05d", k), Text: fmt.Sprintf(`{"n":%d,"k":"%05d`, k, k) + strings.Repeat("k", 60_000) + `"}`}
		records = append(records, &record{doc: doc})
	}
	rows, err := pages("SELECT VALUE n ORDER BY k", nil, records, page.Options{Count: 1000})
	drill.Check(t, err)
	for i, row := range rows {
		if row.Text != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, row.Text)
		}
	}
	if len(rows) != n {
		t.Errorf("%d rows, want %d", len(rows), n)
	}
}
