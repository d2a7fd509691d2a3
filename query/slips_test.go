package query_test

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

func typicalSlips() []string { return nil }
