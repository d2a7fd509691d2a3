package commands

import (
	"slices"
	"strings"
)

// families of our own commands by the names that people may take for them: those of other systems, too.
var suggestedPrefixes = map[string]string{
	"doc": "doc.", "docs": "doc.", "document": "doc.", "documents": "doc.", "json": "doc.",
	"container": "container.", "containers": "container.", "collection": "container.",
}

// synonyms are words for what our own commands do.
var synonyms = map[string]string{
	"doc.set": "put", "doc.insert": "put", "doc.upsert": "put", "doc.create": "put", "doc.add": "put", "doc.write": "put", "doc.replace": "put",
	"doc.read": "get", "doc.fetch": "get", "doc.find": "get", "doc.delete": "del", "doc.remove": "del", "doc.rem": "del", "doc.unlink": "del",
	"doc.list": "scan", "doc.keys": "scan", "doc.ids": "scan", "doc.all": "scan", "doc.update": "patch", "doc.modify": "patch", "doc.incr": "patch", "doc.numincrby": "patch",
	"doc.expire": "setttl", "doc.persist": "setttl", "doc.len": "count", "doc.size": "count", "doc.info": "meta", "doc.etag": "meta", "doc.exist": "exists",
	"container.new": "create", "container.make": "create", "container.add": "create", "container.del": "drop", "container.delete": "drop",
	"container.remove": "drop", "container.info": "get", "container.describe": "get", "container.show": "get", "container.ls": "list",
	"container.keys": "list", "container.scan": "list", "container.put": "set", "container.alter": "set", "container.update": "set", "container.ttl": "set",
}

// didYouMean is the command of our own that somebody has probably meant who gave one that there is not, in
// upper case; empty if it looks like none of ours. Redis' own commands get no hints: their errors are
// Redis'.
func suggest(args []string) string {
	const longest = 32
	name := strings.ToLower(args[0])
	if len(name) > longest {
		return ""
	}
	family, verb := name, ""
	if at := strings.IndexFunc(name, notLetter); at >= 0 {
		family, verb = name[:at], strings.TrimLeftFunc(name[at:], notLetter)
	} else if len(args) > 1 && len(args[1]) <= longest { // CONTAINER SET
		verb = strings.ToLower(args[1])
	}
	prefix, ours := suggestedPrefixes[family]
	if !ours || verb == "" {
		return ""
	}
	verbs := verbsOf(prefix)
	switch known := synonyms[prefix+verb]; {
	case known != "":
		verb = known
	case slices.Contains(verbs, verb):
	default:
		if verb = nearest(verb, verbs); verb == "" {
			return ""
		}
	}
	return strings.ToUpper(prefix + verb)
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// verbsOf are the commands of a family without its prefix, in the order of their names.
func verbsOf(prefix string) []string {
	var verbs []string
	for _, r := range tableSorted {
		if verb, ok := strings.CutPrefix(r.Name, prefix); ok {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// nearest is the word in a list that differs from another by the fewest letters, two at most and not most
// of them; empty if there is none.
func nearest(word string, list []string) string {
	best, least := "", 3
	for _, candidate := range list {
		if d := distance(word, candidate); d < least && 2*d <= len(word) {
			best, least = candidate, d
		}
	}
	return best
}

// distance is how many letters must be inserted, deleted, replaced or exchanged with their neighbours to make
// one short word of another (optimal string alignment).
func distance(a, b string) int {
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = above[j-1]
			if a[i-1] != b[j-1] {
				row[j] = 1 + min(above[j-1], above[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
