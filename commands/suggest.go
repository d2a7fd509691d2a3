package commands

import (
	"slices"
	"strings"
)

// suggestedPrefixes are the prefixes of mayfly's own families by the names that users may try, including
// those of other systems.
var suggestedPrefixes = map[string]string{
	"doc": "doc.", "docs": "doc.", "document": "doc.", "documents": "doc.", "json": "doc.",
	"container": "container.", "containers": "container.", "collection": "container.",
}

// synonyms are other words for the verbs of mayfly's own commands.
var synonyms = map[string]string{
	"doc.set": "put", "doc.insert": "put", "doc.upsert": "put", "doc.create": "put", "doc.add": "put", "doc.write": "put", "doc.replace": "put",
	"doc.read": "get", "doc.fetch": "get", "doc.find": "get", "doc.delete": "del", "doc.remove": "del", "doc.rem": "del", "doc.unlink": "del",
	"doc.list": "scan", "doc.keys": "scan", "doc.ids": "scan", "doc.all": "scan", "doc.update": "patch", "doc.modify": "patch", "doc.incr": "patch", "doc.numincrby": "patch",
	"doc.expire": "setttl", "doc.persist": "setttl", "doc.len": "count", "doc.size": "count", "doc.info": "meta", "doc.etag": "meta", "doc.exist": "exists",
	"container.new": "create", "container.make": "create", "container.add": "create", "container.del": "drop", "container.delete": "drop",
	"container.remove": "drop", "container.info": "get", "container.describe": "get", "container.show": "get", "container.ls": "list",
	"container.keys": "list", "container.scan": "list", "container.put": "set", "container.alter": "set", "container.update": "set", "container.ttl": "set",
}

// suggest returns the command of mayfly, in upper case, that an unknown command probably means; empty if
// it resembles none. Commands of Redis get no suggestions: their errors have the words of Redis.
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

// verbsOf returns the commands of a family without its prefix, sorted by name.
func verbsOf(prefix string) []string {
	var verbs []string
	for _, r := range tableSorted {
		if verb, ok := strings.CutPrefix(r.Name, prefix); ok {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// nearest returns the word in list that differs least from word, in at most two letters in a row; empty
// if there is none. So it corrects a missing, extra or wrong letter, and two swapped neighbours. Among
// equals it prefers a word of the same length.
func nearest(word string, list []string) string {
	best, least := "", 3
	for _, candidate := range list {
		d := difference(word, candidate)
		if d < len(word) && (d < least || d == least && len(candidate) == len(word)) {
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
