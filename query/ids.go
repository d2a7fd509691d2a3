package query

import (
	"fmt"
	"slices"
	"strings"
)

// idPath is the path of the id in a [Term] and in an [Order]. No index is over it.
const idPath = "_id"

// OfID reports whether the path of a term or order is the id.
func OfID(path []string) bool { return len(path) == 1 && path[0] == idPath }

// IDs are the ids of which WHERE selects some, so that those can be looked up.
type IDs struct {
	List    []string // in the order in which they are read
	Ordered bool     // ORDER BY is this order
	Proves  []int    // the numbers of the conditions that the ids prove
	Range   string   // in words, for EXPLAIN
}

// IDs returns the ids that the query demands. ok is false if it does not demand some of a list.
func (q *Query) IDs() (ids IDs, ok bool) {
	terms := q.allTerms()
	i := slices.IndexFunc(terms, func(t Term) bool { return OfID(t.Path) && t.Equal != nil && !t.Elements })
	if i < 0 {
		return ids, false
	}
	for _, v := range terms[i].Equal {
		if v.kind == String {
			ids.List = append(ids.List, v.text)
		}
	}
	slices.Sort(ids.List)
	ids.Proves = terms[i].proves
	if ids.Range = fmt.Sprintf("_id of %d values", len(ids.List)); len(terms[i].Equal) == 1 {
		ids.Range = "_id = " + Short(terms[i].Equal[0])
	}
	if len(q.orderBy) > 0 {
		names, isPath := namesOf(q.orderBy[0].expr)
		if ids.Ordered = isPath && OfID(names); ids.Ordered && q.orderBy[0].desc {
			slices.Reverse(ids.List)
		}
	}
	return ids, true
}

// Descending reports whether the ids are read from the greatest to the least.
func (i *IDs) Descending() bool { return len(i.List) > 1 && i.List[0] > i.List[1] }

// After returns the ids that are read behind one.
func (i *IDs) After(id string) []string {
	desc := i.Descending()
	at := slices.IndexFunc(i.List, func(next string) bool { return next > id != desc && next != id })
	if at < 0 {
		return nil
	}
	return i.List[at:]
}

// Short returns a value as JSON for EXPLAIN, cut if it is long.
func Short(v Value) string {
	const most = 40
	text := string(v.AppendJSON(nil))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
