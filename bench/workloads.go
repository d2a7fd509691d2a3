package main

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
)

// workload is one row of the comparison: a job for each side, and the targets.
type workload struct {
	name    string
	data    dataset
	ours    job // of mayfly
	theirs  job // of Redis; nil if it has nothing like it
	metrics []metric
}

// dataset is what the servers hold during a workload. Workloads in a row with the same dataset share their
// servers.
type dataset struct {
	ready  bool // both servers run and hold all ids; otherwise jobs start servers of their own
	plain  bool // ids are plain keys in mayfly as well
	always bool // appendfsync always

	queries bool // mayfly alone runs, with indexes
}

var (
	documents       = dataset{ready: true}
	plainKeys       = dataset{ready: true, plain: true}
	documentsAlways = dataset{ready: true, always: true}
	plainKeysAlways = dataset{ready: true, plain: true, always: true}
	ownServers      = dataset{}
)

// metric is one figure of a workload.
type metric struct {
	name   string
	unit   unit
	better direction
	target float64 // of the ratio, ours to theirs; 0: none
	bound  float64 // of our value alone; 0: none
}

type direction string

const (
	more direction = "more"
	less direction = "less"
)

func rate(target float64) []metric {
	return []metric{{name: "throughput", unit: perSecond, better: more, target: target}}
}

// rateAndCPU are the metrics of a benchmark. Their product is the number of processors that the server
// used. If that is less than its share of the machine, the load generator was the limit.
func rateAndCPU(target, cpuTarget float64) []metric {
	return append(rate(target), metric{name: "server CPU a command", unit: seconds, better: less, target: cpuTarget})
}

// set names the container, and the prefix of the keys, of redis-benchmark.
const set = "key"

// anyBody is the document that redis-benchmark writes.
var anyBody = body(1, -1)

// longTTL is a TTL in seconds by which nothing dies during a run.
const longTTL = 86400

const twenty = "xxxxxxxxxxxxxxxxxxxx"

// luaPut does in Redis what DOC.PUT does: it looks up the default of a container, reads the document's own
// ttl and writes the document with the one that rules.
const luaPut = `local default = tonumber(redis.call('HGET', 'containers', ARGV[1]))
local ttl = cjson.decode(ARGV[2]).ttl
if type(ttl) ~= 'number' then ttl = default end
if default and ttl and ttl > 0 then return redis.call('SET', KEYS[1], ARGV[2], 'EX', ttl) end
return redis.call('SET', KEYS[1], ARGV[2])`

func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// The commands that redis-benchmark sends.
var (
	docGet = []string{"DOC.GET", set, anyID}
	docPut = []string{"DOC.PUT", set, anyID, anyBody}
	get    = []string{"GET", anyID}
	put    = []string{"SET", anyID, anyBody}

	// Of a session as a hash, and of a collection with an element for each id. Values have 20 bytes.
	hashAll   = []string{"HSET", "hash:" + anyID, "f0", twenty, "f1", twenty, "f2", twenty, "f3", twenty, "f4", twenty, "f5", twenty, "f6", twenty, "f7", twenty, "f8", twenty, "f9", twenty}
	hashPut   = []string{"HSET", "hash:" + anyID, "f7", twenty}
	hashGet   = []string{"HGET", "hash:" + anyID, "f7"}
	hashList  = []string{"HGETALL", "hash:" + anyID}
	largePut  = []string{"HSET", "large-hash", anyID, twenty}
	largeGet  = []string{"HGET", "large-hash", anyID}
	memberAdd = []string{"SADD", "large-set", anyID}
	memberHas = []string{"SISMEMBER", "large-set", anyID}
	memberPop = []string{"SPOP", "large-set"}
	scoredAdd = []string{"ZADD", "board", "__rand_int__", anyID}
	scoredOf  = []string{"ZSCORE", "board", anyID}
	rankOf    = []string{"ZRANK", "board", anyID}
	leastPop  = []string{"ZPOPMIN", "board"}
	listPush  = []string{"LPUSH", "queue", twenty}
	listPop   = []string{"RPOP", "queue"}
	range100  = []string{"LRANGE", "queue", "0", "99"}
	range600  = []string{"LRANGE", "queue", "0", "599"}

	putLua = []string{"EVALSHA", sha(luaPut), "1", anyID, set, anyBody}
)

// The preparations of the same job on both sides.

func withDefault(j job) job {
	return after(mayflyKind.newSet(set, longTTL), j)
}

func withoutTTL(j job) job {
	return after(mayflyKind.newSet(set, -1), j)
}

func withScript(j job) job {
	return after([]any{"HSET", "containers", set, longTTL}, after([]any{"SCRIPT", "LOAD", luaPut}, j))
}

// workloads is the table of the comparison.
var workloads = slices.Concat(comparedWorkloads, jsonWorkloads, bystanderWorkloads, queryWorkloads)

// The jobs of what a server writes to disk.
var (
	overwriteAny     = diskWrites(-1, anyOf)
	overwritePopular = diskWrites(-1, popular)
	writeDying       = diskWrites(2, inTurn)

	onDisk = []metric{{name: "bytes to disk a byte written", unit: times, better: less}}
)

// comparedWorkloads send requests for about a second each.
var comparedWorkloads = []workload{
	{"DOC.GET, depth 1", documents, benchmark(1, 80_000, docGet), benchmark(1, 80_000, get), rateAndCPU(1.0, 1.2)},
	{"DOC.GET, depth 16", documents, benchmark(16, 400_000, docGet), benchmark(16, 400_000, get), rateAndCPU(1.2, 1.2)},
	{"DOC.GET, depth 64", documents, benchmark(64, 500_000, docGet), benchmark(64, 500_000, get), rateAndCPU(1.5, 0)},
	{"DOC.PUT, depth 1", documents, benchmark(1, 80_000, docPut), benchmark(1, 80_000, put), rateAndCPU(1.0, 1.2)},
	{"DOC.PUT, depth 16", documents, benchmark(16, 250_000, docPut), benchmark(16, 250_000, put), rateAndCPU(1.0, 1.2)},
	{"DOC.PUT, depth 64", documents, benchmark(64, 300_000, docPut), benchmark(64, 300_000, put), rateAndCPU(1.0, 0)},
	{"the same job, depth 1", documents, withDefault(benchmark(1, 80_000, docPut)), withScript(benchmark(1, 80_000, putLua)), rate(4)},
	{"the same job, depth 16", documents, withDefault(benchmark(16, 150_000, docPut)), withScript(benchmark(16, 150_000, putLua)), rate(4)},
	{"the same job, depth 64", documents, withDefault(benchmark(64, 200_000, docPut)), withScript(benchmark(64, 200_000, putLua)), rate(4)},
	{mixPeak, documents, withoutTTL(mixAtPeak), mixAtPeak, rate(0)},
	{"80 % reads, zipfian, at half of the lower peak", documents, mixAtHalf, mixAtHalf, []metric{
		{name: "p50", unit: seconds, better: less, target: 1.0},
		{name: "p99", unit: seconds, better: less, target: 1.0},
		{name: "p99.9", unit: seconds, better: less, target: 1.0},
		{name: "p99 of the generator's own lateness", unit: seconds, better: less},
	}},
	{"change of a default", documents, changeDefault, expireAll, []metric{
		{name: "until all documents have the new end", unit: seconds, better: less, target: 1.0 / 1000},
	}},

	{"GET, depth 1", plainKeys, benchmark(1, 80_000, get), benchmark(1, 80_000, get), rateAndCPU(1.0, 1.2)},
	{"GET, depth 16", plainKeys, benchmark(16, 400_000, get), benchmark(16, 400_000, get), rateAndCPU(1.2, 1.2)},
	{"GET, depth 64", plainKeys, benchmark(64, 500_000, get), benchmark(64, 500_000, get), rateAndCPU(1.5, 0)},
	{"SET, depth 1", plainKeys, benchmark(1, 80_000, put), benchmark(1, 80_000, put), rateAndCPU(1.0, 1.2)},
	{"SET, depth 16", plainKeys, benchmark(16, 250_000, put), benchmark(16, 250_000, put), rateAndCPU(1.0, 1.2)},
	{"SET, depth 64", plainKeys, benchmark(64, 300_000, put), benchmark(64, 300_000, put), rateAndCPU(1.0, 0)},

	{"HSET of 10 fields, depth 16", plainKeys, benchmark(16, 150_000, hashAll), benchmark(16, 150_000, hashAll), rateAndCPU(0.8, 0)},
	{"HSET of one of 10 fields, depth 16", plainKeys, benchmark(16, 250_000, hashPut), benchmark(16, 250_000, hashPut), rateAndCPU(0.7, 0)},
	{"HSET of one of 10 fields, depth 1", plainKeys, benchmark(1, 80_000, hashPut), benchmark(1, 80_000, hashPut), rateAndCPU(0.8, 0)},
	{"HGET, depth 16", plainKeys, benchmark(16, 400_000, hashGet), benchmark(16, 400_000, hashGet), rateAndCPU(1.0, 0)},
	{"HGETALL of 10 fields, depth 16", plainKeys, benchmark(16, 250_000, hashList), benchmark(16, 250_000, hashList), rateAndCPU(1.0, 0)},
	{"HSET in a large hash, depth 16", plainKeys, benchmark(16, 250_000, largePut), benchmark(16, 250_000, largePut), rateAndCPU(0.5, 0)},
	{"HGET of a large hash, depth 16", plainKeys, benchmark(16, 400_000, largeGet), benchmark(16, 400_000, largeGet), rateAndCPU(1.0, 0)},
	{"SADD to a large set, depth 16", plainKeys, benchmark(16, 250_000, memberAdd), benchmark(16, 250_000, memberAdd), rateAndCPU(0.5, 0)},
	{"SISMEMBER of a large set, depth 16", plainKeys, benchmark(16, 400_000, memberHas), benchmark(16, 400_000, memberHas), rateAndCPU(1.0, 0)},
	{"SPOP from a large set, depth 16", plainKeys, benchmark(16, 40_000, memberPop), benchmark(16, 40_000, memberPop), rateAndCPU(0.5, 0)},
	{"ZADD to a large sorted set, depth 16", plainKeys, benchmark(16, 200_000, scoredAdd), benchmark(16, 200_000, scoredAdd), rateAndCPU(0.7, 0)},
	{"ZSCORE of a large sorted set, depth 16", plainKeys, benchmark(16, 400_000, scoredOf), benchmark(16, 400_000, scoredOf), rateAndCPU(1.0, 0)},
	{"ZRANK of a large sorted set, depth 16", plainKeys, benchmark(16, 200_000, rankOf), benchmark(16, 200_000, rankOf), rateAndCPU(0.7, 0)},
	{"ZPOPMIN from a large sorted set, depth 16", plainKeys, benchmark(16, 40_000, leastPop), benchmark(16, 40_000, leastPop), rateAndCPU(0.7, 0)},
	{"LPUSH to a long list, depth 16", plainKeys, benchmark(16, 250_000, listPush), benchmark(16, 250_000, listPush), rateAndCPU(0.5, 0)},
	{"LRANGE of 100, depth 16", plainKeys, benchmark(16, 40_000, range100), benchmark(16, 40_000, range100), rateAndCPU(1.0, 0)},
	{"LRANGE of 600, depth 16", plainKeys, benchmark(16, 10_000, range600), benchmark(16, 10_000, range600), rateAndCPU(1.0, 0)},
	{"RPOP from a long list, depth 16", plainKeys, benchmark(16, 250_000, listPop), benchmark(16, 250_000, listPop), rateAndCPU(0.7, 0)},

	{"release of another's lock, depth 16", plainKeys, withLua(luaRelease, benchmark(16, 250_000, releaseOthers)), withLua(luaRelease, benchmark(16, 250_000, releaseOthers)), rateAndCPU(0.5, 0)},
	{"lock taken and released, depth 16", plainKeys, withLua(luaRelease, locks(16)), withLua(luaRelease, locks(16)), rateAndCPU(0.5, 0)},
	{"limiter script, depth 16", plainKeys, withLua(luaLimit, benchmark(16, 200_000, limit)), withLua(luaLimit, benchmark(16, 200_000, limit)), rateAndCPU(0, 0)},

	{"DOC.PUT, depth 1, appendfsync always", documentsAlways, benchmark(1, 15_000, docPut), benchmark(1, 15_000, put), rate(2)},
	{"SET, depth 1, appendfsync always", plainKeysAlways, benchmark(1, 15_000, put), benchmark(1, 15_000, put), rate(2)},

	{"disk, any document overwritten", ownServers, overwriteAny(mayflyKind), overwriteAny(redisKind), onDisk},
	{"disk, popular documents overwritten", ownServers, overwritePopular(mayflyKind), overwritePopular(redisKind), onDisk},
	{"disk, documents that die after 2 s", ownServers, writeDying(mayflyKind), writeDying(redisKind), onDisk},

	{"all documents die", ownServers, purgeJob(mayflyKind), purgeJob(redisKind), []metric{
		{name: "last death to all removed", unit: seconds, better: less, target: 1.0},
		{name: "most dead in memory, share of all there", unit: share, better: less},
		{name: "p99 of reads meanwhile", unit: seconds, better: less},
		{name: "the same / p99 at rest", unit: times, better: less, bound: 1.5},
	}},
	{"load, settle, start", ownServers, lifecycleJob(mayflyKind), lifecycleJob(redisKind), []metric{
		{name: "memory a document, just loaded", unit: bytesEach, better: less, target: 1.3},
		{name: "memory a document, settled", unit: bytesEach, better: less, target: 1.3},
		{name: "memory a document, all overwritten", unit: bytesEach, better: less},
		{name: "memory a document, settled again", unit: bytesEach, better: less},
		{name: "start with all on disk", unit: seconds, better: less, target: 1.0},
		{name: "memory a document, after the start", unit: bytesEach, better: less, target: 1.3},
	}},
	{"collections: load, settle, start", ownServers, collectionsJob(mayflyKind), collectionsJob(redisKind), collectionMetrics()},
}
