package suggest

import (
	"slices"
	"strings"
)

// suggestedPrefixes are the prefixes of mayfly's own families by the names that users may try, including
// those of other systems.
var suggestedPrefixes = map[string]string{
	"doc": "doc.", "docs": "doc.", "document": "doc.", "documents": "doc.", "json": "json.",
	"container": "container.", "containers": "container.", "collection": "container.", "collections": "container.",
	"index": "index.", "indexes": "index.", "indices": "index.",
}

// Synonyms are other words for the verbs of mayfly's own commands.
var Synonyms = map[string]string{
	"doc.set": "put", "doc.insert": "put", "doc.upsert": "put", "doc.create": "put", "doc.add": "put", "doc.write": "put", "doc.replace": "put",
	"doc.read": "get", "doc.fetch": "get", "doc.findbyid": "get", "doc.delete": "del", "doc.remove": "del", "doc.rem": "del", "doc.unlink": "del",
	"doc.list": "scan", "doc.keys": "scan", "doc.ids": "scan", "doc.all": "scan", "doc.update": "patch", "doc.modify": "patch", "doc.incr": "patch", "doc.numincrby": "patch",
	"doc.expire": "setttl", "doc.persist": "setttl", "doc.len": "count", "doc.size": "count", "doc.info": "meta", "doc.etag": "meta", "doc.exist": "exists",
	"doc.drop": "del", "doc.forget": "del", "doc.mset": "put", "doc.clear": "patch", "doc.toggle": "patch", "doc.nummultby": "patch", "doc.strappend": "patch",
	"doc.arrappend": "patch", "doc.arrinsert": "patch", "doc.arrpop": "patch", "doc.arrtrim": "patch", "doc.debug": "meta",
	"doc.why": "explain", "doc.arrindex": "get", "doc.arrlen": "get", "doc.objkeys": "get", "doc.objlen": "get", "doc.strlen": "get", "doc.type": "get", "doc.resp": "get",
	"container.new": "create", "container.make": "create", "container.add": "create", "container.del": "drop", "container.delete": "drop",
	"container.remove": "drop", "container.info": "get", "container.describe": "get", "container.show": "get", "container.ls": "list",
	"container.keys": "list", "container.scan": "list", "container.put": "set", "container.alter": "set", "container.update": "set", "container.ttl": "set",
	"index.new": "create", "index.make": "create", "index.add": "create", "index.set": "create", "index.put": "create", "index.build": "create", "index.ensure": "create",
	"index.del": "drop", "index.delete": "drop", "index.remove": "drop", "index.rem": "drop",
	"index.ls": "list", "index.info": "list", "index.get": "list", "index.show": "list", "index.describe": "list", "index.stats": "list", "index.all": "list",
}

// Hints answer names that no command of mayfly corresponds to.
var Hints = map[string]string{
	"container.rename": HintRename, "container.mv": HintRename, "container.move": HintRename,
	"container.count": "did you mean DOC.COUNT?", "container.size": "did you mean DOC.COUNT?", "container.len": "did you mean DOC.COUNT?",
	"container.flush": HintFlush, "container.clear": HintFlush, "container.empty": HintFlush, "container.truncate": HintFlush,
	"doc.flush": HintFlush, "doc.truncate": HintFlush,
	"doc.search": HintQuery, "doc.select": HintQuery, "doc.filter": HintQuery, "doc.where": HintQuery, "doc.aggregate": HintQuery,
	"doc.find": HintQuery, "doc.findone": HintQuery, "container.query": HintQuery, "container.find": HintQuery, "index.query": HintQuery, "index.search": HintQuery, "index.explain": HintExplain,
	"doc.index": HintIndex, "doc.createindex": HintIndex, "container.index": HintIndex, "container.createindex": HintIndex,
	"container.indexes": HintIndexes, "doc.indexes": HintIndexes,
	"index.rebuild": HintRebuild, "index.reindex": HintRebuild,
}

// statements answer statements of SQL, by their first two words.
var statements = map[string]string{
	"create index": HintIndex, "drop index": HintUnindex, "show index": HintIndexes, "show indexes": HintIndexes,
	"create container": "did you mean CONTAINER.CREATE?", "drop container": "did you mean CONTAINER.DROP?", "show containers": HintLists,
}

const (
	HintFlush   = "FLUSHDB empties the container that SELECT chooses."
	HintRename  = "CONTAINER.DROP orders and CONTAINER.UNDO orders AS carts gives a container with items another name: see docs/foresight.md."
	HintQuery   = "did you mean DOC.QUERY? It finds documents by their content: DOC.QUERY container \"WHERE status = 'open'\"."
	HintExplain = "did you mean DOC.QUERY with EXPLAIN at its end?"
	HintIndex   = "did you mean INDEX.CREATE?"
	HintUnindex = "did you mean INDEX.DROP?"
	HintIndexes = "did you mean INDEX.LIST?"
	HintRebuild = "an index is always up to date. INDEX.LIST shows whether it is ready."
	HintJSON    = "the JSON.* commands are those of RedisJSON 8.6; DOC.PUT, DOC.GET and DOC.PATCH work on the same documents."
	HintLists   = "did you mean CONTAINER.LIST?"
	HintTypes   = "values are strings, hashes, sets, sorted sets, lists and JSON, without Redis' other types: see docs/redis-compatibility.md."
	HintPlaces  = "INDEX.CREATE shops /at GEO finds documents by their place, with DOC.QUERY: see docs/queries.md."
	HintMissing = "Redis has this command, mayfly has not: see docs/redis-compatibility.md."
	HintCopies  = "BACKUP and \"mayfly export\" copy the data, and the nodes of a cluster copy each other: see docs/backup-and-repair.md and docs/cluster.md."
)

// missing are commands of Redis that do not exist here, by what to tell of them.
var missing = map[string][]string{
	HintTypes: strings.Fields(`
		pfadd pfcount pfmerge
		setbit getbit bitcount bitop bitpos bitfield bitfield_ro`),
	HintPlaces:  strings.Fields(`geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore`),
	HintMissing: strings.Fields(`sort sort_ro dump restore function fcall fcall_ro debug lolwut`),
	HintCopies:  strings.Fields(`migrate replicaof slaveof sync psync replconf failover`),
}

// Hint returns what to tell a user of an unknown command, a sentence; empty if its name resembles none of
// mayfly's commands, nor is one of Redis. Other names get no hints: their errors have the words of Redis.
func Hint(args, commands []string) string {
	family, verb := splitName(args)
	if family == "ft" && verb != "" {
		return HintQuery
	}
	if text := Hints[suggestedPrefixes[family]+verb]; text != "" {
		return text
	}
	if text := statements[family+" "+verb]; text != "" && len(family) == len(args[0]) {
		return text
	}
	if command := Command(args, commands); command != "" {
		return "did you mean " + command + "?"
	}
	for text, names := range missing {
		if slices.Contains(names, strings.ToLower(args[0])) {
			return text
		}
	}
	switch {
	case family == "json" && verb != "":
		return HintJSON
	case len(family) == len(args[0]) && (family == "containers" || family == "collections"):
		return HintLists
	case len(family) == len(args[0]) && (family == "indexes" || family == "indices"):
		return HintIndexes
	}
	return ""
}

// Command returns the command of mayfly, in upper case, that an unknown command probably means; empty if
// it resembles none.
func Command(args, commands []string) string {
	family, verb := splitName(args)
	prefix, ours := suggestedPrefixes[family]
	if !ours || verb == "" {
		return ""
	}
	verbs := verbsOf(prefix, commands)
	switch known := Synonyms[prefix+verb]; {
	case known != "":
		verb = known
	case slices.Contains(verbs, verb):
	default:
		if verb = Nearest(verb, verbs); verb == "" {
			return ""
		}
	}
	return strings.ToUpper(prefix + verb)
}

// splitName returns the family and the verb of a command's name, in lower case: DOC.SET, or CONTAINER SET
// with the verb in the next argument.
func splitName(args []string) (family, verb string) {
	const longest = 32
	name := strings.ToLower(args[0])
	if len(name) > longest {
		return "", ""
	}
	if at := strings.IndexFunc(name, notLetter); at >= 0 {
		return name[:at], strings.TrimLeftFunc(name[at:], notLetter)
	}
	if len(args) > 1 && len(args[1]) <= longest {
		verb = strings.ToLower(args[1])
	}
	return name, verb
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// verbsOf returns the commands of a family without its prefix, sorted by name.
func verbsOf(prefix string, commands []string) []string {
	var verbs []string
	for _, name := range commands {
		if verb, ok := strings.CutPrefix(name, prefix); ok {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// Nearest returns the word in list that differs least from word, in at most two letters in a row; empty
// if there is none. So it corrects a missing, extra or wrong letter, and two swapped neighbours. Among
// equals it prefers a word of the same length.
func Nearest(word string, list []string) string {
	best, least := "", 3
	for _, candidate := range list {
		d := difference(word, candidate)
		if d < len(word) && (d < least || d == least && best != "" && len(candidate) == len(word)) {
			best, least = candidate, d
		}
	}
	return best
}

// difference returns the number of letters between the common prefix and the common suffix of two words,
// in the longer one.
func difference(a, b string) int {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}
