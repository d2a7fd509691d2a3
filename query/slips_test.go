package query_test

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/query"
)

// parseSeeds are legal queries for the fuzzer.
var parseSeeds = []string{
	"",
	"SELECT * FROM c WHERE c.status = 'open' AND c.total > 20 ORDER BY c.total DESC OFFSET 1 LIMIT 2",
	`SELECT DISTINCT TOP 3 VALUE c["a"][0].b FROM root AS c`,
	"SELECT a, COUNT(1) AS n, SUM(b)/2 GROUP BY a",
	"WHERE a IN (1, 'x', @p) OR NOT b BETWEEN @min AND 2 AND s NOT LIKE 'a!%' ESCAPE '!'",
	"SELECT VALUE {a: [1, {\"b\": c.x}], 'c': -1.5e3 || 'x'} FROM c WHERE IIF(IS_NULL(c.a), true, ARRAY_CONTAINS(c.tags, {x: 1}, true))",
	"WHERE ST_WITHIN(loc, ST_BOX(-1, -1, 1, 1)) ORDER BY ST_DISTANCE(loc, {type: 'Point', coordinates: [0, 0]})",
}

// harmless are texts that look like slips and are legal.
var harmless = []string{
	"SELECT * FROM c WHERE c.status = \"open\"",
	"SELECT COUNT(1) FROM c;",
	"SELECT * FROM c;;",
	"SELECT * FROM c -- all",
	"SELECT * FROM c /* all */",
	"WHERE a",
	"LIMIT @min",
	"SELECT TOP a",
	"SELECT VALUE AS value",
	"SELECT value WHERE a = 1",
	"SELECT DISTINCT, TOP",
	"WHERE a = .5",
	"WHERE a = 007",
	"WHERE a = True AND b = NULL AND c = Undefined",
	"WHERE a = 1 -1",
	"WHERE a.order = 1",
	"WHERE value = 1 AND top = 2 AND distinct = 3",
	"SELECT value, top, distinct",
	"SELECT * FROM c WHERE c.a = null AND c.b != undefined",
	"SELECT ALL a",
	"SELECT c FROM c",
	"SELECT a.b.c",
	"SELECT * FROM c -- a comment\nWHERE c.a = 1 /* another */ ; ",
	"SELECT VALUE -c.a FROM c",
	"SELECT {from: c.a, select: c.b} FROM c",
	"",
	";",
	"SELECT * FROM c; -- the end",
	" ; /* a */ ; -- b",
}

// slips are what users of other languages write, and the errors.
var slips = []struct{ query, want string }{
	{"SELECT VALUE -0.E", "query, at 15: 0.E is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"SELECT VALUE 1.a FROM c", "query, at 14: 1.a is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"WHERE a = 5.e+", "query, at 11: 5.e is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"SELECT VALUE BETWEEN 15 AND 1337", "query, at 14: expected a value, found BETWEEN"},
	{"SELECT VALUE AND 1 FROM c", "query, at 14: expected a value, found AND"},
	{"SELECT VALUE OR", "query, at 14: expected a value, found OR"},
	{"SELECT VALUE IN (1)", "query, at 14: expected a value, found IN"},
	{"SELECT VALUE NOT LIKE 'a'", "query, at 18: expected a value, found LIKE"},
	{"SELECT DISTINCT BETWEEN 1 AND 2", "query, at 17: expected a value, found BETWEEN"},
	{"SELECT VALUE 42 BETWEEN 15 AND 1337 BETWEEN 1 AND 2", "query, at 37: IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets"},
	{"SELECT VALUE 42 BETWEEN 15 AND 1337 NOT BETWEEN 1 AND 2", "query, at 37: IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets"},
	{"WHERE (a IN (1) IN (2))", "query, at 17: IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets"},
	{"WHERE a LIKE 'a' LIKE 'b'", "query, at 18: IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets"},
	{"WHERE a IN (1) = true", "query, at 16: IN, BETWEEN and LIKE do not chain: write AND or OR between conditions, or brackets"},
	{"WHERE a < 1 || b = 2", "query, at 18: || joins strings: write OR between conditions, or brackets"},
	{"WHERE a NOT 5", "query, at 13: expected IN, BETWEEN or LIKE, found 5"},
	{"WHERE a = 1.5.3", "query, at 11: 1.5. is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"SELECT VALUE", "query, at 13: expected a value, found the end"},
	{"select value ;", "query, at 14: expected a value, found the end"},
	{"SELECT DISTINCT", "query, at 16: expected a value, found the end"},
	{"SELECT DISTINCT VALUE", "query, at 22: expected a value, found the end"},
	{"SELECT TOP", "query, at 11: expected a value, found the end"},
	{"SELECT TOP 3", "query, at 13: expected a value, found the end"},
	{"SELECT TOP 3 VALUE", "query, at 19: expected a value, found the end"},
	{"SELECT VALUE --1 FROM c", "query, at 24: expected a value, found the end"},
	{"SELECT * FROM c; DELETE FROM c", "query, at 16: ; ends the query: legal is one query"},
	{"SELECT * FROM c; /*", "query, at 16: ; ends the query: legal is one query"},
	{"SELECT * FROM c /*", "query, at 17: a comment is not closed"},
	{"SELECT * FROM c WHERE c.status == 'open'", "query, at 32: == is not an operator: write ="},
	{"SELECT * FROM c WHERE c.status = open", "query, at 34: unknown name open: with FROM, paths begin with c, like c.open"},
	{"SELECT * FROM c WHERE c.a = 1 && c.b = 2", "query, at 31: && is not an operator: write AND"},
	{"SELECT * FROM c WHERE c.a = 1 || c.b = 2", "query, at 38: || joins strings: write OR between conditions, or brackets"},
	{"SELECT * FROM c WHERE c.a = 1 & c.b = 2", "query, at 31: & is not an operator: write AND"},
	{"SELECT * FROM c WHERE !c.a", "query, at 23: ! is not an operator: write NOT"},
	{"SELECT * FROM c WHERE c.a IS NULL", "query, at 27: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found IS: write IS_NULL(a), a = null or IS_DEFINED(a)"},
	{"SELECT * FROM c WHERE c.a IS NOT NULL", "query, at 27: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found IS: write IS_NULL(a), a = null or IS_DEFINED(a)"},
	{"SELECT COUNT(*) FROM c", "query, at 14: expected a value, found *: all are counted by COUNT(1)"},
	{"SELECT count(*)", "query, at 14: expected a value, found *: all are counted by COUNT(1)"},
	{"SELECT COUNT() FROM c", "query, at 8: COUNT takes 1 argument, found 0: all are counted by COUNT(1)"},
	{"SELECT `a` FROM c", "query, at 8: '`' is not legal outside of strings: a name is written plain, or c[\"name\"]"},
	{"SELECT * FROM c # all", "query, at 17: '#' is not legal outside of strings: a comment is written -- or /* */"},
	{"SELECT * FROM c // all", "query, at 17: expected WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found /"},
	{"SELECT * FROM orders WHERE status = 'open'", "query, at 28: unknown name status: with FROM, paths begin with orders, like orders.status"},
	{"SELECT status FROM orders", "query, at 8: unknown name status: with FROM, paths begin with orders, like orders.status"},
	{"SELECT c.* FROM c", "query, at 10: expected a name, found *: SELECT * takes whole documents, and no other item"},
	{"SELECT * , c.a FROM c", "query, at 10: expected FROM, WHERE or the end, found ,: SELECT * takes whole documents, and no other item"},
	{"SELECT c.a, * FROM c", "query, at 13: expected a value, found *: SELECT * takes whole documents, and no other item"},
	{"SELECT a b c FROM c", "query, at 8: unknown name a: with FROM, paths begin with c, like c.a"},
	{"SELECT FROM c", "query, at 8: expected a value, found FROM"},
	{"SELECT", "query, at 7: expected a value, found the end"},
	{"SELECT a, FROM c", "query, at 8: unknown name a: with FROM, paths begin with c, like c.a"},
	{"SELECT a WHERE", "query, at 15: expected a value, found the end"},
	{"WHERE", "query, at 6: expected a value, found the end"},
	{"WHERE a =", "query, at 10: expected a value, found the end"},
	{"WHERE a = 'x", "query, at 11: a string is not closed"},
	{"WHERE a = \"x", "query, at 11: a string is not closed"},
	{"WHERE a = x'", "query, at 12: a string is not closed"},
	{"WHERE a LIKE %x%", "query, at 14: expected a value, found %: a pattern is a string, like 'a%'"},
	{"WHERE a LIKE", "query, at 13: expected a value, found the end"},
	{"WHERE a IN 1, 2", "query, at 12: expected (, found 1"},
	{"WHERE a IN ()", "query, at 13: expected a value, found )"},
	{"WHERE a IN (1,)", "query, at 15: expected a value, found )"},
	{"WHERE a IN (1", "query, at 14: expected , or ), found the end"},
	{"WHERE a IN (SELECT b)", "query, at 13: a subquery is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"WHERE a BETWEEN 1, 2", "query, at 18: expected AND, found ,"},
	{"WHERE a NOT 1", "query, at 13: expected IN, BETWEEN or LIKE, found 1"},
	{"WHERE a = 1 b = 2", "query, at 13: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found b"},
	{"WHERE a = 1)", "query, at 12: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found )"},
	{"WHERE a[", "query, at 9: expected the name of a member in quotes or the index of an element from 0, found the end"},
	{"WHERE a[b]", "query, at 9: expected the name of a member in quotes or the index of an element from 0, found b"},
	{"WHERE a[-1]", "query, at 9: expected the name of a member in quotes or the index of an element from 0, found -"},
	{"WHERE a[1.5]", "query, at 9: expected the name of a member in quotes or the index of an element from 0, found 1.5"},
	{"WHERE a['x'", "query, at 12: expected ], found the end"},
	{"WHERE a.", "query, at 9: expected a name, found the end"},
	{"WHERE a.1", "query, at 8: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found .1"},
	{"WHERE .a", "query, at 7: expected a value, found ."},
	{"WHERE $.a", "query, at 7: '$' is not legal outside of strings: a parameter is written @name, a path status or c.status"},
	{"WHERE a.b()", "query, at 10: a.b is no function: user-defined functions are not supported"},
	{"WHERE udf.f(a)", "query, at 12: udf.f is no function: user-defined functions are not supported"},
	{"WHERE COUNT(a) > 1", "query, at 7: COUNT is legal in SELECT only"},
	{"WHERE LOWER(a, b)", "query, at 7: LOWER takes 1 argument, found 2"},
	{"WHERE LOWER()", "query, at 7: LOWER takes 1 argument, found 0"},
	{"WHERE a = @x", "no value for @x: give PARAMS @x <json>"},
	{"WHERE a = @", "query, at 11: expected a name after @"},
	{"WHERE a = :x", "query, at 11: expected a value, found :: a parameter is written @x"},
	{"SELECT (a ? b : c)", "query, at 11: ? is not an operator: write IIF(condition, a, b)"},
	{"SELECT VALUE c.a > 1 ? 'x' : 'y' FROM c", "query, at 22: ? is not an operator: write IIF(condition, a, b)"},
	{"SELECT ARRAY(SELECT VALUE t FROM t IN c.tags) AS x FROM c", "query, at 8: ARRAY is not supported: subqueries are not"},
	{"SELECT (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c", "query, at 8: a subquery is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT c.a >> 1 FROM c", "query, at 12: >> is not supported: operators on bits are not"},
	{"SELECT ~c.a FROM c", "query, at 8: ~ is not supported: operators on bits are not"},
	{"ORDER BY RANK FullTextScore(c.a, 'x')", "query, at 10: RANK is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT a, COUNT(1) GROUP BY a HAVING COUNT(1) > 1", "query, at 31: HAVING is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"WHERE ?", "query, at 7: '?' is not legal outside of strings: a parameter is written @name, a path status or c.status"},
	{"WHERE a = ?", "query, at 11: '?' is not legal outside of strings: a parameter is written @name, a path status or c.status"},
	{"WHERE a = 1 ORDER a", "query, at 19: expected BY, found a"},
	{"ORDER BY", "query, at 9: expected a value, found the end"},
	{"ORDER BY a desc, b ascending", "query, at 20: expected ASC, DESC, OFFSET, LIMIT or the end, found ascending"},
	{"ORDER BY a DESCENDING", "query, at 12: expected ASC, DESC, OFFSET, LIMIT or the end, found DESCENDING"},
	{"ORDER BY LOWER(a)", "query, at 10: ORDER BY takes paths, like total or address.city, and ST_DISTANCE"},
	{"ORDER BY 1", "query, at 10: ORDER BY takes paths, like total or address.city, and ST_DISTANCE"},
	{"GROUP BY a", "query, at 1: GROUP BY with SELECT *: name the paths and aggregates to select"},
	{"GROUP a", "query, at 7: expected BY, found a"},
	{"SELECT a, COUNT(1)", "query, at 8: a is neither in GROUP BY nor in an aggregate"},
	{"SELECT a, COUNT(1) GROUP BY b", "query, at 8: a is neither in GROUP BY nor in an aggregate"},
	{"SELECT a GROUP BY LOWER(a)", "query, at 19: GROUP BY takes paths, like status or address.city"},
	{"SELECT COUNT(1) GROUP BY a HAVING COUNT(1) > 1", "query, at 28: HAVING is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT COUNT(1) GROUP BY a ORDER BY a", "query, at 28: ORDER BY is not supported together with GROUP BY or aggregates"},
	{"LIMIT", "query, at 6: LIMIT takes a whole number from 0, found the end"},
	{"LIMIT -1", "query, at 7: LIMIT takes a whole number from 0, found -1"},
	{"LIMIT 1.5", "query, at 7: LIMIT takes a whole number from 0, found 1.5"},
	{"LIMIT 'a'", "query, at 7: LIMIT takes a whole number from 0, found 'a'"},
	{"LIMIT 10, 20", "query, at 9: expected the end, found ,"},
	{"LIMIT 10 OFFSET 5", "query, at 10: OFFSET is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"LIMIT 1e99", "query, at 7: LIMIT takes a whole number from 0, found 1e99"},
	{"LIMIT @s", "query, at 7: LIMIT takes a whole number from 0, found @s = \"x\""},
	{"OFFSET 1 ROWS", "query, at 10: expected LIMIT or the end, found ROWS"},
	{"OFFSET 1 LIMIT", "query, at 15: LIMIT takes a whole number from 0, found the end"},
	{"SELECT TOP 5 * LIMIT 3", "query, at 16: LIMIT is not supported together with TOP"},
	{"SELECT TOP 3 DISTINCT a", "query, at 14: DISTINCT comes before TOP: SELECT DISTINCT TOP 3 …"},
	{"SELECT TOP -1 *", "query, at 12: TOP takes a whole number from 0, found -1"},
	{"SELECT TOP 'x' *", "query, at 12: expected FROM, WHERE or the end, found 'x'"},
	{"SELECT VALUE a, b", "query, at 15: VALUE takes exactly one item"},
	{"SELECT VALUE *", "query, at 15: expected a value, found the end"},
	{"SELECT VALUE 1 AS x", "query, at 16: expected FROM, WHERE or the end, found AS"},
	{"SELECT * FROM", "query, at 14: expected a name, found the end"},
	{"SELECT * FROM c WHERE d.a = 1", "query, at 23: unknown name d: with FROM, paths begin with c, like c.d"},
	{"SELECT * FROM c AS", "query, at 19: expected a name, found the end"},
	{"SELECT * FROM c, d", "query, at 16: JOIN is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT * FROM c JOIN t IN c.tags", "query, at 17: JOIN is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT * FROM t IN c.tags", "query, at 17: IN is not supported in FROM: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT * FROM c.tags", "query, at 16: FROM takes the name of all documents, not a path: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT * FROM (SELECT * FROM c)", "query, at 15: a subquery is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"SELECT * FROM c WHERE EXISTS(SELECT VALUE 1)", "query, at 23: EXISTS is not supported: subqueries are not"},
	{"SELECT * FROM c UNION SELECT * FROM d", "query, at 17: UNION is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"INSERT INTO c VALUES (1)", "query, at 1: INSERT is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"DELETE FROM c", "query, at 1: DELETE is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"UPDATE c SET a = 1", "query, at 1: UPDATE is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"select * from c where c.a = 1 and", "query, at 34: expected a value, found the end"},
	{"a = 1", "query, at 1: expected SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found a"},
	{"status = 'open' AND total > 5", "query, at 1: expected SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found status"},
	{"{\"a\":1}", "query, at 1: expected SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found {"},
	{"FROM c SELECT *", "query, at 8: SELECT is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"WHERE a = 1 FROM c", "query, at 13: FROM is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"WHERE a = 1 WHERE b = 2", "query, at 13: WHERE is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"ORDER BY a WHERE b = 1", "query, at 12: WHERE is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"LIMIT 1 ORDER BY a", "query, at 9: ORDER is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"SELECT * WHERE a = 1 SELECT", "query, at 22: SELECT is out of order: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT, in this order"},
	{"WHERE a = 12abc", "query, at 11: 12abc is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"WHERE a = 0x10", "query, at 11: 0x10 is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"WHERE a = 1e999", "query, at 11: 1e999 is not a number: legal are doubles, like 12, 0.5 and 1e3"},
	{"WHERE a <> 1 AND b >< 2", "query, at 20: >< is not an operator: write !="},
	{"WHERE a => 1", "query, at 9: => is not an operator: write >="},
	{"WHERE a =< 1", "query, at 9: =< is not an operator: write <="},
	{"WHERE a = ‘open’", "query, at 11: '‘' is not legal outside of strings: a string is written 'open' or \"open\""},
	{"WHERE a = 'it''s'", "query, at 15: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found 's': a quote in a string is written \\'"},
	{"WHERE a = 'C:\\dir'", "query, at 14: illegal escape in a string: legal are \\\" \\' \\\\ \\/ \\b \\f \\n \\r \\t and \\u0000"},
	{"WHERE a = 'x\\u12'", "query, at 13: expected four hexadecimal digits after \\u"},
	{"WHERE a ILIKE 'x'", "query, at 9: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found ILIKE: write LOWER(a) LIKE 'x%'"},
	{"WHERE a LIKE 'x' ESCAPE 'ab'", "query, at 25: ESCAPE takes a string of one character, found 'ab'"},
	{"WHERE a LIKE 'x' ESCAPE", "query, at 24: ESCAPE takes a string of one character, found the end"},
	{"WHERE a REGEXP 'x'", "query, at 9: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found REGEXP: write LIKE"},
	{"WHERE a CONTAINS 'x'", "query, at 9: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found CONTAINS: a function is written CONTAINS(...)"},
	{"WHERE a ^ 2", "query, at 9: ^ is not supported: operators on bits are not"},
	{"WHERE a ~ 2", "query, at 9: ~ is not supported: operators on bits are not"},
	{"WHERE a ?? 2", "query, at 9: ?? is not an operator: write IIF(IS_DEFINED(a), a, b)"},
	{"WHERE a ? 1 : 2", "query, at 9: ? is not an operator: write IIF(condition, a, b)"},
	{"WHERE a DIV 2", "query, at 9: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found DIV: write FLOOR(a / b)"},
	{"WHERE a = DATE '2020-01-01'", "query, at 16: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found '2020-01-01'"},
	{"SELECT {a: 1, a: 2}", "query, at 15: two members are named a"},
	{"SELECT {a}", "query, at 10: expected :, found }"},
	{"SELECT {a 1}", "query, at 11: expected :, found 1"},
	{"SELECT {a: 1", "query, at 13: expected , or }, found the end"},
	{"SELECT [1, 2", "query, at 13: expected , or ], found the end"},
	{"SELECT [1 2]", "query, at 11: expected , or ], found 2"},
	{"SELECT a AS 'x y', b AS 1", "query, at 25: expected a name, found 1"},
	{"SELECT a, a", "query, at 11: two items are named a: AS gives another name"},
	{"SELECT a AS from", "query, at 17: expected a name, found the end"},
	{"WHERE order = 1", "query, at 7: expected a value, found ORDER: it is a keyword, so with FROM c the member is c.order"},
	{"WHERE group = 1", "query, at 7: expected a value, found GROUP: it is a keyword, so with FROM c the member is c.group"},
	{"SELECT EXISTS(1)", "query, at 8: EXISTS is not supported: subqueries are not"},
	{"SELECT SUM(COUNT(1))", "query, at 12: COUNT is inside of another aggregate"},
	{"SELECT SUM(1, 2)", "query, at 8: SUM takes 1 argument, found 2"},
	{"SELECT ARRAY(SELECT 1)", "query, at 8: ARRAY is not supported: subqueries are not"},
	{"ORDER BY RANK a", "query, at 10: RANK is not supported: legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"},
	{"WHERE ST_DISTANCE(loc, @p) < 1", "no value for @p: give PARAMS @p <json>"},
	{"WHERE ARRAY_CONTAINS(tags 'a')", "query, at 27: expected , or ), found 'a'"},
	{"WHERE a = b c", "query, at 13: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found c"},
	{"WHERE a = 'x\ny' b", "query, at 17: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found b"},
	{"SELECT * FROM c WHERE c[\"a].b = 1", "query, at 25: a string is not closed"},
	{"SELECT a\u00a0FROM c", "query, at 9: '\\u00a0' is not legal outside of strings"},
	{"WHERE a = 1\u200b", "query, at 12: '\\u200b' is not legal outside of strings"},
	{"EXPLAIN SELECT * FROM c", "query, at 1: expected SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found EXPLAIN: EXPLAIN is an option of the command, outside of the query"},
	{"SELECT * FROM c COUNT 5", "query, at 23: expected WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found 5"},
	{"SELECT * FROM c LIMIT 5 WITHIDS", "query, at 25: expected the end, found WITHIDS: WITHIDS is an option of the command, outside of the query"},
	{"SELECT * FROM c PARAMS @a 1", "query, at 24: expected WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found @a"},
	{"WHERE a = 'x' COUNT 5", "query, at 15: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found COUNT: COUNT is an option of the command, outside of the query"},
	{"*", "query, at 1: expected SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found *"},
	{"SELECT COUNT(DISTINCT a)", "query, at 14: DISTINCT is not supported inside of COUNT: SELECT DISTINCT is"},
	{"SELECT * FROM c WHERE c.a = 'x' COLLATE NOCASE", "query, at 33: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found COLLATE"},
	{"SELECT CASE WHEN a THEN 1 END", "query, at 8: CASE is not supported: IIF(condition, a, b) chooses"},
	{"WHERE a OR OR b", "query, at 12: expected a value, found OR"},
	{"WHERE a IS_DEFINED", "query, at 9: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found IS_DEFINED: a function is written IS_DEFINED(...)"},
	{"WHERE IS_DEFINED a", "query, at 18: expected AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT or the end, found a: a function is written IS_DEFINED(...)"},
	{"WHERE IS_DEFINED(a", "query, at 19: expected , or ), found the end"},
	{"WHERE a = -", "query, at 12: expected a value, found the end"},
}

// typicalSlips returns the texts of slips and of what looks like one.
func typicalSlips() (texts []string) {
	for _, s := range slips {
		texts = append(texts, s.query)
	}
	return append(texts, harmless...)
}

// TestSlips checks what errors say: each names the position, what was found and what is legal.
func TestSlips(t *testing.T) {
	t.Parallel()
	params := []query.Param{{Name: "min", JSON: "1"}, {Name: "s", JSON: `"x"`}}
	for _, tt := range slips {
		_, err := query.Parse(tt.query, params)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.query, err, tt.want)
			continue
		}
		checkError(t, tt.query, err)
	}
	for _, text := range harmless {
		if _, err := query.Parse(text, params); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestErrorsOfParameters checks the errors of what is bound.
func TestErrorsOfParameters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		params []query.Param
		want   string
	}{
		{"WHERE a = @min", nil, "no value for @min: give PARAMS @min <json>"},
		{"WHERE a = @s", []query.Param{{Name: "@s", JSON: "open"}}, `value of @s is not JSON: a string is written "open", with its quotes`},
		{"WHERE a = @s", []query.Param{{Name: "s", JSON: "1"}, {Name: "@s", JSON: "2"}}, "@s has two values"},
		{"WHERE a = @s", []query.Param{{Name: "", JSON: "1"}}, `invalid name of a parameter "@": legal are @ and letters, digits and _`},
		{"WHERE a = @s", []query.Param{{Name: "a-b", JSON: "1"}}, `invalid name of a parameter "@a-b": legal are @ and letters, digits and _`},
		{"WHERE a = @s", []query.Param{{Name: "s", JSON: "1e999"}}, "value of @s is beyond the range of doubles"},
		{"WHERE a = @s", []query.Param{{Name: "s", JSON: strings.Repeat("[", 129) + strings.Repeat("]", 129)}}, "value of @s is nested deeper than 128"},
		{"", make([]query.Param, 101), "101 parameters: legal are at most 100"},
		{strings.Repeat(" ", 16385), nil, "query of 16385 bytes: legal are at most 16384"},
		{"WHERE a = '\xff'", nil, "query: the text is not UTF-8"},
		{"WHERE a IN (" + strings.Repeat("1,", 1000) + "1)", nil, "query, at 2013: more than 1000 values in IN"},
		{"ORDER BY a, b, c, d, e", nil, "query, at 22: more than 4 paths in ORDER BY"},
		{"SELECT a GROUP BY a, b, c, d, e", nil, "query, at 31: more than 4 paths in GROUP BY"},
	} {
		_, err := query.Parse(tt.text, tt.params)
		if fmt.Sprint(err) != tt.want {
			t.Errorf("%.60q: %v, want %s", tt.text, err, tt.want)
		}
	}
}
