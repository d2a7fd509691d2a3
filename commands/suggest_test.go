package commands

import (
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/suggest"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"DOC.SET": "DOC.PUT", "doc.putt": "DOC.PUT", "DOC.PTU": "DOC.PUT", "DOC_GET": "DOC.GET", "DOC GET": "DOC.GET", "DOCS.GET": "DOC.GET",
		"DOC.DELETE": "DOC.DEL", "DOC.EXIST": "DOC.EXISTS", "DOC.EXPIRETIM": "DOC.EXPIRETIME", "DOC.PTCH": "DOC.PATCH", "DOC.SVAN": "DOC.SCAN", "DOC.UPDATE": "DOC.PATCH",
		"CONTAINER.DEL": "CONTAINER.DROP", "CONTAINERS.LIST": "CONTAINER.LIST", "CONTAINER CREATE": "CONTAINER.CREATE", "container.creat": "CONTAINER.CREATE",
		"CONTAINER.LITS": "CONTAINER.LIST", "COLLECTION.CREATE": "CONTAINER.CREATE",
		"INDEX.ADD": "INDEX.CREATE", "INDEX ADD": "INDEX.CREATE", "INDEX.DELETE": "INDEX.DROP", "INDEXES.LIST": "INDEX.LIST", "INDEX.LITS": "INDEX.LIST", "DOC.QUERRY": "DOC.QUERY",
		// Commands of Redis get no suggestion, nor do names that resemble nothing.
		"GTE": "", "HSET": "", "LPUSH": "", "": "", ".": "", "DOC": "", "DOC.": "", "DOC.X": "", "DOC.ABCDEF": "", "JSON.STE": "JSON.SET", "JSON.XYZ": "", "D\x00C": "",
		strings.Repeat("x", 1000): "", "DOC." + strings.Repeat("x", 1000): "", "DOC " + strings.Repeat("x", 1000): "",
	} {
		if got := suggest.Command(strings.Split(call, " "), engine.Names()); got != want {
			t.Errorf("%.50q: suggests %q, want %q", call, got, want)
		}
	}
	for what, verb := range suggest.Synonyms {
		family, word, _ := strings.Cut(what, ".")
		if engine.Table[what] != nil || engine.Table[family+"."+verb] == nil || word == "" {
			t.Errorf("a synonym %s for %s", what, verb)
		}
	}
}

// TestHint checks what an unknown command says: a suggestion, another way, or nothing.
func TestHint(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"DOC.PTU": "did you mean DOC.PUT?", "CONTAINER COUNT c": "did you mean DOC.COUNT?", "CONTAINER.COUNT": "did you mean DOC.COUNT?",
		"doc.search": suggest.HintQuery, "FT.SEARCH i *": suggest.HintQuery, "ft.create": suggest.HintQuery, "CONTAINER.FLUSH c": suggest.HintFlush, "COLLECTION.CLEAR c": suggest.HintFlush,
		"DOC.FIND c {}": suggest.HintQuery, "INDEX.EXPLAIN c": suggest.HintExplain, "DOC.WHY c 1": "did you mean DOC.EXPLAIN?", "DOC.INDEX c /a": suggest.HintIndex, "CONTAINER.INDEXES": suggest.HintIndexes, "INDEX.REBUILD c": suggest.HintRebuild,
		"CREATE INDEX c /a": suggest.HintIndex, "drop index c /a": suggest.HintUnindex, "SHOW INDEXES": suggest.HintIndexes, "INDEXES": suggest.HintIndexes, "INDEXES orders": suggest.HintIndexes,
		"CREATE": "", "CREATE USER": "", "CREATE.INDEX": "", "INDEX": "",
		"CONTAINERS": suggest.HintLists, "containers orders": suggest.HintLists, "COLLECTIONS": suggest.HintLists, "CONTAINERS LIST": "did you mean CONTAINER.LIST?", "JSON.XYZ": suggest.HintJSON,
		"FT": "", "JSON": "", "DOC": "", "CONTAINER": "", "PFADD k m": suggest.HintTypes, "geopos": suggest.HintPlaces, "container.rename": suggest.HintRename, "HSET.X": "", "DUMP k": suggest.HintMissing, "BITFIELD_RO k": suggest.HintTypes, "SYNC": suggest.HintCopies, "FTX.SEARCH": "", "QUERY": "", "COUNT": "", "FLUSH": "", "": "",
		strings.Repeat("x", 1000): "", "FT." + strings.Repeat("x", 1000): "", "JSON." + strings.Repeat("x", 1000): "",
	} {
		if got := suggest.Hint(strings.Split(call, " "), engine.Names()); got != want {
			t.Errorf("%.50q: says %q, want %q", call, got, want)
		}
	}
	for name := range suggest.Hints {
		if engine.Table[name] != nil {
			t.Errorf("a hint for the command %s", name)
		}
	}
}
