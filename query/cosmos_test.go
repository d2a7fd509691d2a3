package query_test

import (
	"strings"
	"testing"

	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
)

// TestDocumentedResults checks what Cosmos DB's documentation says of each construct of the subset, restated
// on documents of our own.
func TestDocumentedResults(t *testing.T) {
	t.Parallel()
	// Each expression is projected as SELECT VALUE over one document; "" is undefined.
	for _, tt := range []struct{ expression, want string }{
		{"ABS(-7)", "7"}, {"ABS(0)", "0"}, {"ABS('x')", ""}, {"ABS(undefined)", ""},
		{"FLOOR(12.9)", "12"}, {"FLOOR(-12.1)", "-13"}, {"CEILING(12.1)", "13"}, {"CEILING(-12.9)", "-12"},
		{"ROUND(2.4)", "2"}, {"ROUND(2.5)", "3"}, {"ROUND(2.6)", "3"}, {"ROUND(-2.4)", "-2"}, {"ROUND(-2.5)", "-3"}, {"ROUND(-2.6)", "-3"}, {"ROUND(4.84090499760142E+15)", "4840904997601420"},
		{"LENGTH('')", "0"}, {"LENGTH('three')", "5"}, {"LENGTH(3)", ""}, {"LENGTH(undefined)", ""},
		{"LOWER('MiXeD')", `"mixed"`}, {"UPPER('MiXeD')", `"MIXED"`}, {"UPPER(1)", ""},
		{"CONCAT('a', 'b')", `"ab"`}, {"CONCAT('a', '-', 'b', '!')", `"a-b!"`}, {"CONCAT('a', 1)", ""}, {"CONCAT('a', undefined)", ""},
		{"'a' || 'b' || 'c'", `"abc"`}, {"'a' || 1", ""},
		{"SUBSTRING('example', 2, 3)", `"amp"`}, {"SUBSTRING('example', 0, 100)", `"example"`}, {"SUBSTRING('example', 7, 1)", `""`}, {"SUBSTRING('example', 5, 100)", `"le"`},
		{"SUBSTRING('example', 2, 0)", `""`}, {"SUBSTRING('example', 2, -1)", `""`}, {"SUBSTRING('example', -3, 2)", `""`}, {"SUBSTRING('example', 1.5, 2)", ""}, {"SUBSTRING(1, 1, 1)", ""},
		{"STARTSWITH('Fabric', 'Fab')", "true"}, {"STARTSWITH('Fabric', 'fab')", "false"}, {"STARTSWITH('Fabric', 'fab', false)", "false"}, {"STARTSWITH('Fabric', 'fab', true)", "true"},
		{"ENDSWITH('Fabric', 'RIC')", "false"}, {"ENDSWITH('Fabric', 'RIC', true)", "true"}, {"CONTAINS('Fabric', 'abr')", "true"}, {"CONTAINS('Fabric', 'ABR')", "false"}, {"CONTAINS('Fabric', 'ABR', true)", "true"},
		{"CONTAINS('Fabric', '')", "true"}, {"CONTAINS('Fabric', 1)", ""}, {"CONTAINS(undefined, 'a')", ""}, {"STARTSWITH('a', 'a', undefined)", ""}, {"STARTSWITH('a', 'a', 'x')", ""},
		{"STRINGEQUALS('abc', 'ABC')", "false"}, {"STRINGEQUALS('abc', 'ABC', true)", "true"}, {"StringEquals('abc', 'abc')", "true"},
		{"IS_ARRAY([])", "true"}, {"IS_ARRAY({})", "false"}, {"IS_ARRAY(undefined)", "false"}, {"IS_BOOL(false)", "true"}, {"IS_BOOL(0)", "false"}, {"IS_NULL(null)", "true"}, {"IS_NULL(undefined)", "false"},
		{"IS_NUMBER(1)", "true"}, {"IS_NUMBER('1')", "false"}, {"IS_OBJECT({a: 1})", "true"}, {"IS_OBJECT([1])", "false"}, {"IS_STRING('')", "true"}, {"IS_STRING(null)", "false"},
		{"IS_PRIMITIVE(null)", "true"}, {"IS_PRIMITIVE('a')", "true"}, {"IS_PRIMITIVE([])", "false"}, {"IS_PRIMITIVE({})", "false"}, {"IS_PRIMITIVE(undefined)", "false"},
		{"IS_DEFINED(null)", "true"}, {"IS_DEFINED(c.missing)", "false"}, {"IS_DEFINED(c.nothing)", "true"},
		{"IIF(true, 1, 2)", "1"}, {"IIF(false, 1, 2)", "2"}, {"IIF(1, 1, 2)", "2"}, {"IIF('true', 1, 2)", "2"}, {"IIF([true], 1, 2)", "2"}, {"IIF({}, 1, 2)", "2"}, {"IIF(undefined, 1, 2)", "2"}, {"IIF(true, undefined, 2)", ""},
		{"ARRAY_LENGTH([])", "0"}, {"ARRAY_LENGTH([70, 86, 92])", "3"}, {"ARRAY_LENGTH({})", ""},
		{"ARRAY_CONTAINS(['a', 'b'], 'b')", "true"}, {"ARRAY_CONTAINS(['a', 'b'], 'c')", "false"}, {"ARRAY_CONTAINS('ab', 'a')", ""}, {"ARRAY_CONTAINS(['a'], undefined)", ""},
		{"ARRAY_CONTAINS([{a: 1, b: 2}], {b: 2, a: 1})", "true"}, {"ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1})", "false"}, {"ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, false)", "false"},
		{"ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, true)", "true"}, {"ARRAY_CONTAINS([{a: 1, b: 2}], {a: 2, b: 2}, true)", "false"}, {"ARRAY_CONTAINS([[1], [2]], [2])", "true"}, {"ARRAY_CONTAINS([1], 1, 'x')", ""}, {"ARRAY_CONTAINS([1], 1, undefined)", "true"},

		// Comparisons of different types are undefined, of arrays and objects by content.
		{"1 = 1.0", "true"}, {"1 = '1'", ""}, {"null = null", "true"}, {"null = undefined", ""}, {"undefined = undefined", ""}, {"undefined != undefined", ""}, {"true = true", "true"}, {"false < true", "true"}, {"true = 1", ""},
		{"'a' < 'b'", "true"}, {"'B' < 'a'", "true"}, {"'a' >= 'a'", "true"}, {"[1, 2] = [1, 2]", "true"}, {"[1, 2] = [2, 1]", "false"}, {"[1] < [2]", ""}, {"{a: 1, b: 2} = {b: 2, a: 1}", "true"}, {"{a: 1} != {a: 2}", "true"}, {"{a: 1} <= {a: 1}", ""},
		{"null <= null", "true"}, {"null < 1", ""},

		// Comparisons chain from left to right. < and its kin bind tighter than = and !=.
		{"1 < 2 <= 3", ""}, {"(1 < 2 <= 3) = undefined", ""}, {"1 < 2 > false", "true"}, {"false < 1 = 1", ""}, {"true = 1 < 2", "true"}, {"2 > 1 = 1 < 2", "true"}, {"1 = 1 = true", "true"},
		{"1 = 1 != false", "true"}, {"1 != 2 = 2", ""}, {"c.n > 1 = true", "true"}, {"true = c.n < 9 != false", "true"}, {"'a' || 'b' = 'ab'", "true"}, {"1 = 2 IN (false)", "true"}, {"true IN (1 < 2)", "true"},

		// A fraction may have no digits.
		{"5.", "5"}, {"-0. + 1", "1"}, {"5.e1", "50"}, {"5.E+1", "50"}, {"[1.,2.]", "[1,2]"}, {"1.+.5", "1.5"}, {"5..a", ""}, {"c.list[0.]", "1"},

		// Three-valued logic.
		{"true AND undefined", ""}, {"false AND undefined", "false"}, {"undefined AND false", "false"}, {"true OR undefined", "true"}, {"undefined OR true", "true"}, {"false OR undefined", ""}, {"undefined OR undefined", ""},
		{"NOT true", "false"}, {"NOT undefined", ""}, {"NOT 1", ""}, {"1 AND true", ""}, {"1 AND false", "false"}, {"'x' OR true", "true"},
		{"NOT 1 = 2 AND true", "true"}, {"true OR false AND false", "true"}, {"NOT (1 = 2 OR 2 = 2)", "false"},

		{"5 BETWEEN 1 AND 5", "true"}, {"0 BETWEEN 1 AND 5", "false"}, {"5 NOT BETWEEN 1 AND 5", "false"}, {"'b' BETWEEN 'a' AND 'c'", "true"}, {"'b' BETWEEN 1 AND 5", ""}, {"6 BETWEEN 1 AND 5 AND true", "false"},
		{"1 IN (1, 2)", "true"}, {"3 IN (1, 2)", "false"}, {"3 NOT IN (1, 2)", "true"}, {"1 NOT IN (1, 2)", "false"}, {"undefined IN (1)", ""}, {"'a' IN (1)", ""}, {"[1] IN ([1], [2])", "true"},
		{"'fruit salad' LIKE 'fruit%'", "true"}, {"'a fruit' LIKE 'fruit%'", "false"}, {"'Main Road' LIKE '%Road'", "true"}, {"'screwdriver set' LIKE '%driver%'", "true"}, {"'summer' NOT LIKE '%winter%'", "true"},
		{"'20% off' LIKE '%20^%%' ESCAPE '^'", "true"}, {"'200 off' LIKE '%20^%%' ESCAPE '^'", "false"}, {"'20-30%' LIKE '20-30[%]'", "true"}, {"'_n' LIKE '[_]n'", "true"}, {"'an' LIKE '[_]n'", "false"}, {"'[' LIKE '[ [ ]'", "true"}, {"']' LIKE ']'", "true"},
		{"'SOxPS' LIKE '%SO_PS%'", "true"}, {"'SOtPS' LIKE '%SO[t-z]PS%'", "true"}, {"'SOaPS' LIKE '%SO[t-z]PS%'", "false"}, {"'SOdPS' LIKE '%SO[^abc]PS%'", "true"}, {"'SObPS' LIKE '%SO[^abc]PS%'", "false"}, {"1 LIKE '1'", ""}, {"'1' LIKE 1", ""},

		{"2 + 3 * 4", "14"}, {"(2 + 3) * 4", "20"}, {"7 % 4", "3"}, {"-7 % 4", "-3"}, {"7 / 2", "3.5"}, {"7 / 0", ""}, {"7 % 0", ""}, {"1e308 * 10", ""}, {"1 + '1'", ""}, {"- -1", "1"}, {"+1", "1"}, {"-'a'", ""}, {"2 - 3 - 4", "-5"}, {"0.1 + 0.2", "0.30000000000000004"},
		{"[1, undefined, 2]", "[1,2]"}, {"{a: undefined, b: 1}", `{"b":1}`}, {"{\"a\": {\"b\": [c.n]}}", `{"a":{"b":[7]}}`}, {"{a: 1}.a", "1"}, {"[5, 6][1]", "6"}, {"[5][1]", ""}, {"'it\\'s'", `"it's"`}, {`"say \"x\""`, `"say \"x\""`},
		{"c.list[0]", "1"}, {"c['list'][1].a", `"x"`}, {"c.list[9]", ""}, {"c.n.a", ""}, {"c['n']", "7"}, {"c.nothing", "null"}, {"c.nothing.a", ""}, {"c.twice", ""},
		{"ARRAY_CONTAINS([c, 1], c, true)", "true"}, {"ARRAY_CONTAINS([{n: 7}], c, true)", "false"},
	} {
		q := "SELECT VALUE " + tt.expression + " FROM c"
		got, err := rowsOf(q, `{"n":7,"nothing":null,"list":[1,{"a":"x"}],"twice":1,"twice":2}`)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.expression, got, err, tt.want)
		}
	}

	products := []string{
		`{"name":"Tent","category":"camp","price":120,"onSale":true,"sale":99.5,"tags":["a","b"],"size":{"w":2,"h":1}}`,
		`{"name":"Spork","category":"camp","price":7.5,"onSale":false,"sale":5,"tags":[]}`,
		`{"name":"Rope","category":"climb","price":"ask","onSale":false}`,
		`{"name":"Gift card","price":20}`,
	}
	for _, tt := range []struct{ query, want string }{
		{"SELECT VALUE p.name FROM products p WHERE p.price BETWEEN 17.25 AND 125", `"Tent" "Gift card"`},
		{"SELECT (p.price BETWEEN 0 AND 10) AS cheap, p.price FROM products p", `{"cheap":false,"price":120} {"cheap":true,"price":7.5} {"price":"ask"} {"cheap":false,"price":20}`},
		{"SELECT DISTINCT VALUE p.category FROM products p", `"camp" "climb"`},
		{"SELECT DISTINCT p.category FROM products p", `{"category":"camp"} {"category":"climb"} {}`},
		{"SELECT p.name, IIF(p.onSale, p.sale, p.price) AS price FROM products p WHERE p.category = 'camp'", `{"name":"Tent","price":99.5} {"name":"Spork","price":7.5}`},
		{"SELECT p.size.w, p.size['h'] FROM p WHERE IS_DEFINED(p.size)", `{"w":2,"h":1}`},
		{"SELECT {n: p.name}, [p.price], p.tags[0], 'x' AS x FROM p OFFSET 0 LIMIT 1", `{"$1":{"n":"Tent"},"$2":[120],"$3":"a","x":"x"}`},
		{"SELECT TOP 2 VALUE p.name FROM p", `"Tent" "Spork"`},
		{"SELECT VALUE p.name FROM p OFFSET 1 LIMIT 2", `"Spork" "Rope"`},
		{"SELECT VALUE p.sale FROM p OFFSET 1 LIMIT 1", `5`},
		{"SELECT VALUE p.name FROM p ORDER BY p.price", `"Spork" "Gift card" "Tent" "Rope"`},
		{"SELECT VALUE p.name FROM p ORDER BY p.price DESC", `"Rope" "Tent" "Gift card" "Spork"`},
		{"SELECT VALUE p.name FROM p ORDER BY p.category", `"Tent" "Spork" "Rope"`},
		{"SELECT VALUE p.name FROM p ORDER BY p.category DESC, p.price ASC", `"Rope" "Spork" "Tent"`},
		{"SELECT VALUE COUNT(1) FROM p", `4`},
		{"SELECT COUNT(1) FROM p", `{"$1":4}`},
		{"SELECT VALUE COUNT(p.category) FROM p", `3`},
		{"SELECT VALUE COUNT(p.onSale = true) FROM p", `3`},
		{"SELECT VALUE SUM(p.sale) FROM p", `104.5`},
		{"SELECT VALUE SUM(p.price) FROM p", ``},
		{"SELECT SUM(p.price) AS s FROM p", `{}`},
		{"SELECT VALUE AVG(p.sale) FROM p", `52.25`},
		{"SELECT AVG(p.price) AS a, AVG(p.sale) AS b FROM p", `{"b":52.25}`},
		{"SELECT VALUE MIN(p.price) FROM p", `7.5`},
		{"SELECT VALUE MAX(p.price) FROM p", `"ask"`},
		{"SELECT VALUE MAX(p.tags) FROM p", ``},
		{"SELECT MIN(p.name) AS first, MAX(p.name) AS last FROM p", `{"first":"Gift card","last":"Tent"}`},
		{"SELECT VALUE SUM(p.x) FROM p", `0`},
		{"SELECT VALUE AVG(p.x) FROM p", ``},
		{"SELECT VALUE COUNT(1) FROM p WHERE false", `0`},
		{"SELECT COUNT(1) AS n, MIN(p.x) AS m, SUM(p.x) AS s FROM p WHERE false", `{"n":0,"s":0}`},
		{"SELECT p.category, COUNT(1) AS n FROM p GROUP BY p.category", `{"n":1} {"category":"camp","n":2} {"category":"climb","n":1}`},
		{"SELECT COUNT(1) AS n, p.category FROM p WHERE p.price > 1 GROUP BY p.category", `{"n":1} {"n":2,"category":"camp"}`},
		{"SELECT p.category FROM p GROUP BY p.category, p.onSale", `{} {"category":"camp"} {"category":"camp"} {"category":"climb"}`},
		{"SELECT DISTINCT p.category FROM p GROUP BY p.category, p.onSale", `{} {"category":"camp"} {"category":"climb"}`},
		{"SELECT VALUE {c: p.category, n: COUNT(1) + 1} FROM p GROUP BY p.category OFFSET 1 LIMIT 1", `{"c":"camp","n":3}`},
		{"SELECT VALUE p.name FROM p WHERE ARRAY_CONTAINS(p.tags, 'b')", `"Tent"`},
		{"SELECT VALUE p.name FROM p WHERE p.category IN ('climb', 'bike')", `"Rope"`},
		{"SELECT VALUE p.name FROM p WHERE p.category NOT IN ('climb', 'bike')", `"Tent" "Spork"`},
		{"SELECT VALUE p.name FROM p WHERE NOT p.category = 'camp'", `"Rope"`},
		{"SELECT VALUE p.name FROM p WHERE p.onSale", `"Tent"`},
		{"SELECT VALUE p.name FROM p WHERE p.name", ``},
		{"SELECT * FROM p WHERE p.name = 'Gift card'", products[3]},
		{"SELECT p FROM p WHERE p.name = 'Gift card'", `{"p":` + products[3] + `}`},
		{"SELECT VALUE p FROM p WHERE p.name = 'Gift card'", products[3]},
	} {
		if got, err := rowsOf(tt.query, products...); err != nil || got != tt.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tt.query, got, err, tt.want)
		}
	}
}

// rowsOf returns the rows of a query over documents, with spaces between.
func rowsOf(text string, docs ...string) (string, error) {
	var records []*record
	for i, doc := range docs {
		records = append(records, &record{doc: query.Document{Text: doc, ID: string(rune('a' + i))}})
	}
	rows, err := pages(text, nil, records, page.Options{Count: 1000})
	var out []string
	for _, row := range rows {
		out = append(out, row.Text)
	}
	return strings.Join(out, " "), err
}

// TestPoints checks distances and polygons.
func TestPoints(t *testing.T) {
	t.Parallel()
	const point = `{"type":"Point","coordinates":[%s]}`
	at := func(position string) string { return strings.Replace(point, "%s", position, 1) }
	box := `{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[6,4],[6,6],[4,6],[4,4]]]}`
	for _, tt := range []struct{ expression, want string }{
		{"ROUND(ST_DISTANCE(" + at("0,0") + "," + at("1,0") + ") / 1000)", "111"},
		{"ROUND(ST_DISTANCE(" + at("0,0") + "," + at("180,0") + ") / 1000)", "20015"},
		{"ROUND(ST_DISTANCE(" + at("179.5,0") + "," + at("-179.5,0") + ") / 1000)", "111"},
		{"ROUND(ST_DISTANCE(" + at("-122.12826822304672,47.63980239335718") + "," + at("-122.11758113953535,47.66901087006131") + "))", "3345"},
		{"ST_DISTANCE(" + at("1,91") + "," + at("1,0") + ")", ""},
		{"ST_DISTANCE(" + at(`"1",0`) + "," + at("1,0") + ")", ""},
		{"ST_DISTANCE(" + at("1") + "," + at("1,0") + ")", ""},
		{"ST_DISTANCE({type: 'point', coordinates: [1, 2]}, " + at("1,0") + ")", ""},
		{"ST_DISTANCE(1, " + at("1,0") + ")", ""},
		{"ST_DISTANCE(c.missing, " + at("1,0") + ")", ""},
		{"ST_WITHIN(" + at("1,1") + "," + box + ")", "true"},
		{"ST_WITHIN(" + at("5,5") + "," + box + ")", "false"},
		{"ST_WITHIN(" + at("0,5") + "," + box + ")", "true"},
		{"ST_WITHIN(" + at("11,5") + "," + box + ")", "false"},
		{"ST_WITHIN(" + at("11,5") + ", {type: 'Polygon', coordinates: [[[0,0],[1,0],[0,0]]]})", ""},
		{"ST_WITHIN(" + at("11,5") + ", {type: 'Polygon', coordinates: []})", ""},
		// The docs name these as different.
		{"ST_WITHIN(" + at("5,5") + ", {type: 'Polygon', coordinates: [[[0,0],[0,9],[9,9],[9,0],[0,0]]]})", "true"},
		{"ST_WITHIN(" + at("11,5") + ", {type: 'Polygon', coordinates: [[[0,0],[0,9],[9,9],[9,0],[0,0]]]})", "false"},
		{"ST_WITHIN(" + at("5,5") + ", {type: 'MultiPolygon', coordinates: [[[[0,0],[9,0],[9,9],[0,9],[0,0]]]]})", ""},
		{"ST_WITHIN({type: 'LineString', coordinates: [[1,1],[2,2]]}, ST_BOX(0, 0, 9, 9))", ""},
		{"ST_WITHIN(ST_BOX(1, 1, 2, 2), ST_BOX(0, 0, 9, 9))", ""},
		{"ST_DISTANCE(" + at("5,5") + ", ST_BOX(1, 1, 2, 2))", ""},
		{"ST_WITHIN(" + at("179.9,0") + ", ST_BOX(179, -1, -179, 1))", "true"},
		{"ST_WITHIN(" + at("-179.9,0") + ", ST_BOX(179, -1, -179, 1))", "true"},
		{"ST_WITHIN(" + at("0,0") + ", ST_BOX(179, -1, -179, 1))", "false"},
		{"ST_WITHIN(" + at("-77,-12") + ", ST_BOX(170, -60, 1, 60))", "true"},
		{"ST_WITHIN(" + at("178,-18") + ", ST_BOX(170, -60, 1, 60))", "true"},
		{"ST_WITHIN(" + at("77,28") + ", ST_BOX(170, -60, 1, 60))", "false"},
		{"ST_BOX(-1, -1, 1, 1)", `{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}`},
		{"ST_BOX(0, 1, 1, 0)", ""}, {"ST_BOX(0, 0, 181, 1)", ""}, {"ST_BOX(0, 0, '1', 1)", ""},
	} {
		if got, err := rowsOf("SELECT VALUE "+tt.expression+" FROM c", "{}"); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.expression, got, err, tt.want)
		}
	}
}

// TestEnds checks how the times of death are compared and written.
func TestEnds(t *testing.T) {
	t.Parallel()
	doc := query.Document{Text: `{"_id":1,"_ttl":"mine"}`, ID: "k", Etag: "e", Time: 1999, HasTTL: true, TTL: -1, Ends: 1_700_000_000_499, Left: 1500}
	for _, tt := range []struct{ expression, want string }{
		{"_id", `"k"`}, {"_etag", `"e"`}, {"_ts", "1"}, {"_ttl", "-1"},
		{"_expiresat", "1700000000"}, {"_ttlleft", "2"}, {"_ttlleft = 1.5", "true"}, {"_ttlleft < 1.501", "true"}, {"_expiresat > 1700000000", "true"}, {"_ttlleft.x", ""},
	} {
		q, err := query.Parse("SELECT VALUE "+tt.expression, nil)
		drill.Check(t, err)
		e := q.Evaluator()
		e.Load(&doc)
		if row, _ := e.Row(nil); string(row) != tt.want {
			t.Errorf("%s: %s, want %s", tt.expression, row, tt.want)
		}
	}
}
