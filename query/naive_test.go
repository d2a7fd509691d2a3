package query_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/query"
)

// The naive evaluator is the judge of the package: it decodes whole documents, knows no paths, no plans and
// no limits, and states the rules of the language once more, as plainly as possible. Its values are those of
// encoding/json, and undefined.

type undefined struct{}

var missing any = undefined{}

// decode returns the value of a JSON text. Members of a repeated name are left out, as they are undefined.
func decode(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v := decodeNext(d)
	if d.More() {
		panic("more than one value: " + text)
	}
	return v
}

func decodeNext(d *json.Decoder) any {
	t, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch t := t.(type) {
	case json.Number:
		n, _ := strconv.ParseFloat(t.String(), 64)
		return n + 0 // -0 is 0
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				list = append(list, decodeNext(d))
			}
			_, _ = d.Token()
			return list
		}
		object, times := map[string]any{}, map[string]int{}
		for d.More() {
			name, _ := d.Token()
			object[name.(string)] = decodeNext(d)
			times[name.(string)]++
		}
		_, _ = d.Token()
		for name, n := range times {
			if n > 1 {
				delete(object, name)
			}
		}
		return object
	}
	return t
}

// record is a document with what the server knows of it.
type record struct {
	doc   query.Document
	value any
}

// environment is what an expression is evaluated on: a document, or the documents of a group.
type environment struct {
	record *record
	group  []*record
}

// rank is the place of a type in the order of values.
func rank(v any) int {
	switch v.(type) {
	case undefined:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	case string:
		return 4
	case []any:
		return 5
	}
	return 6
}

// order compares two values in ORDER BY, MIN and MAX.
func order(a, b any) int {
	if rank(a) != rank(b) {
		return cmp.Compare(rank(a), rank(b))
	}
	switch a := a.(type) {
	case bool:
		n := map[bool]int{true: 1}
		return cmp.Compare(n[a], n[b.(bool)])
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return cmp.Compare(a, b.(string))
	}
	return 0
}

// same reports whether two values have the same content.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// compared is =, !=, <, <=, > and >=.
func compared(op string, a, b any) any {
	if rank(a) != rank(b) || rank(a) == 0 {
		return missing
	}
	switch op {
	case "=":
		return same(a, b)
	case "!=", "<>":
		return !same(a, b)
	}
	if rank(a) >= 5 {
		return missing
	}
	n := order(a, b)
	switch op {
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	}
	return n >= 0
}

// truth makes anything but true and false undefined.
func truth(v any) any {
	if _, ok := v.(bool); ok {
		return v
	}
	return missing
}

func naiveNot(v any) any {
	if b, ok := v.(bool); ok {
		return !b
	}
	return missing
}

func naiveAnd(a, b any) any {
	a, b = truth(a), truth(b)
	switch {
	case a == false || b == false:
		return false
	case a == true && b == true:
		return true
	}
	return missing
}

func naiveOr(a, b any) any { return naiveNot(naiveAnd(naiveNot(a), naiveNot(b))) }

// finite makes what is no number undefined.
func finite(n float64) any {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return missing
	}
	return n + 0 // -0 is 0
}

// calculated is + - * / and %.
func calculated(op string, a, b any) any {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	if !ok1 || !ok2 {
		return missing
	}
	switch op {
	case "+":
		return finite(x + y)
	case "-":
		return finite(x - y)
	case "*":
		return finite(x * y)
	case "/":
		return finite(x / y)
	}
	return finite(math.Mod(x, y))
}

// memberAt is .name or [n].
func memberAt(v any, step any) any {
	switch v := v.(type) {
	case map[string]any:
		if name, ok := step.(string); ok {
			if m, ok := v[name]; ok {
				return m
			}
		}
	case []any:
		if n, ok := step.(int); ok && n < len(v) {
			return v[n]
		}
	}
	return missing
}

// rootMember is a member of the document, or a pseudo member.
func rootMember(r *record, name string) any {
	d := r.doc
	switch name {
	case "_id":
		return d.ID
	case "_etag":
		return d.Etag
	case "_ts":
		return math.Floor(float64(d.Time) / 1000)
	case "_ttl":
		if d.HasTTL {
			return float64(d.TTL)
		}
		return missing
	case "_expiresat", "_ttlleft":
		if d.Ends == 0 {
			return missing
		}
		if name == "_expiresat" {
			return float64(d.Ends) / 1000
		}
		return float64(d.Left) / 1000
	}
	return memberAt(r.value, name)
}

// likeMatch is LIKE, by trying everything.
func likeMatch(s, pattern []rune, escape rune) bool {
	if len(pattern) == 0 {
		return len(s) == 0
	}
	p := pattern[0]
	switch {
	case escape >= 0 && p == escape && len(pattern) > 1:
		return len(s) > 0 && s[0] == pattern[1] && likeMatch(s[1:], pattern[2:], escape)
	case p == '%':
		for i := 0; i <= len(s); i++ {
			if likeMatch(s[i:], pattern[1:], escape) {
				return true
			}
		}
		return false
	case len(s) == 0:
		return false
	case p == '_':
		return likeMatch(s[1:], pattern[1:], escape)
	case p == '[':
		set, rest, ok := likeSet(pattern, escape)
		if ok {
			return set(s[0]) && likeMatch(s[1:], rest, escape)
		}
	}
	return s[0] == p && likeMatch(s[1:], pattern[1:], escape)
}

// likeSet reads [abc], [a-c] or [^abc].
func likeSet(pattern []rune, escape rune) (set func(rune) bool, rest []rune, ok bool) {
	i := 1
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	type span struct{ low, high rune }
	var spans []span
	next := func() rune {
		if escape >= 0 && pattern[i] == escape && i+1 < len(pattern) {
			i++
		}
		i++
		return pattern[i-1]
	}
	for first := true; ; first = false {
		if i >= len(pattern) {
			return nil, nil, false
		}
		if pattern[i] == ']' && (escape != ']' || i+1 == len(pattern)) {
			if first {
				return nil, nil, false
			}
			break
		}
		low := next()
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			i++
			high = next()
		}
		spans = append(spans, span{low, high})
	}
	return func(r rune) bool {
		in := slices.ContainsFunc(spans, func(s span) bool { return r >= s.low && r <= s.high })
		return in != negated
	}, pattern[i+1:], true
}

// stringTest is STARTSWITH, ENDSWITH, CONTAINS and STRINGEQUALS.
func stringTest(test func(s, t string) bool, args []any) any {
	s, ok1 := args[0].(string)
	t, ok2 := args[1].(string)
	if !ok1 || !ok2 {
		return missing
	}
	if len(args) == 3 {
		fold, ok := args[2].(bool)
		if !ok {
			return missing
		}
		if fold {
			s, t = strings.ToLower(s), strings.ToLower(t)
		}
	}
	return test(s, t)
}

// contained reports whether every member of part is in v.
func contained(v, part any) bool {
	object, ok1 := v.(map[string]any)
	wanted, ok2 := part.(map[string]any)
	if !ok1 || !ok2 {
		return same(v, part)
	}
	for name, w := range wanted {
		if m, ok := object[name]; !ok || !same(m, w) {
			return false
		}
	}
	return true
}

// naiveFunctions are the functions but those of points.
var naiveFunctions = map[string]func(args []any) any{
	"IS_DEFINED":   func(a []any) any { return a[0] != missing },
	"IS_NULL":      func(a []any) any { return rank(a[0]) == 1 },
	"IS_BOOL":      func(a []any) any { return rank(a[0]) == 2 },
	"IS_NUMBER":    func(a []any) any { return rank(a[0]) == 3 },
	"IS_STRING":    func(a []any) any { return rank(a[0]) == 4 },
	"IS_ARRAY":     func(a []any) any { return rank(a[0]) == 5 },
	"IS_OBJECT":    func(a []any) any { return rank(a[0]) == 6 },
	"IS_PRIMITIVE": func(a []any) any { return rank(a[0]) >= 1 && rank(a[0]) <= 4 },

	"STARTSWITH":   func(a []any) any { return stringTest(strings.HasPrefix, a) },
	"ENDSWITH":     func(a []any) any { return stringTest(strings.HasSuffix, a) },
	"CONTAINS":     func(a []any) any { return stringTest(strings.Contains, a) },
	"STRINGEQUALS": func(a []any) any { return stringTest(func(s, t string) bool { return s == t }, a) },

	"LOWER": func(a []any) any { return ofString(a[0], func(s string) any { return strings.ToLower(s) }) },
	"UPPER": func(a []any) any { return ofString(a[0], func(s string) any { return strings.ToUpper(s) }) },
	"LENGTH": func(a []any) any {
		return ofString(a[0], func(s string) any { return float64(utf8.RuneCountInString(s)) })
	},
	"CONCAT":    naiveConcat,
	"SUBSTRING": naiveSubstring,

	"ABS":     func(a []any) any { return ofNumber(a[0], math.Abs) },
	"FLOOR":   func(a []any) any { return ofNumber(a[0], math.Floor) },
	"CEILING": func(a []any) any { return ofNumber(a[0], math.Ceil) },
	"ROUND":   func(a []any) any { return ofNumber(a[0], math.Round) },

	"ARRAY_LENGTH":   naiveArrayLength,
	"ARRAY_CONTAINS": naiveArrayContains,
	"IIF": func(a []any) any {
		if a[0] == true {
			return a[1]
		}
		return a[2]
	},
}

func ofString(v any, f func(string) any) any {
	if s, ok := v.(string); ok {
		return f(s)
	}
	return missing
}

func ofNumber(v any, f func(float64) float64) any {
	if n, ok := v.(float64); ok {
		return finite(f(n))
	}
	return missing
}

func naiveConcat(a []any) any {
	out := ""
	for _, v := range a {
		s, ok := v.(string)
		if !ok {
			return missing
		}
		out += s
	}
	return out
}

func naiveSubstring(a []any) any {
	s, ok := a[0].(string)
	from, ok1 := a[1].(float64)
	size, ok2 := a[2].(float64)
	if !ok || !ok1 || !ok2 {
		return missing
	}
	runes := []rune(s)
	if from < 0 {
		return ""
	}
	clamp := func(n float64) int { return int(max(0, min(n, float64(len(runes))))) }
	begin := clamp(from)
	end := begin + min(clamp(size), len(runes)-begin)
	return string(runes[begin:end])
}

func naiveArrayLength(a []any) any {
	if list, ok := a[0].([]any); ok {
		return float64(len(list))
	}
	return missing
}

func naiveArrayContains(a []any) any {
	list, ok := a[0].([]any)
	if !ok || a[1] == missing {
		return missing
	}
	partial := false
	if len(a) == 3 {
		if partial, ok = a[2].(bool); !ok {
			return missing
		}
	}
	return slices.ContainsFunc(list, func(v any) bool { return same(v, a[1]) || partial && contained(v, a[1]) })
}

// naiveAggregates are the aggregates over the defined values of a group.
var naiveAggregates = map[string]func(values []any) any{
	"COUNT": func(values []any) any { return float64(len(values)) },
	"SUM":   func(values []any) any { return naiveSum(values) },
	"AVG": func(values []any) any {
		if len(values) == 0 {
			return missing
		}
		return calculated("/", naiveSum(values), float64(len(values)))
	},
	"MIN": func(values []any) any { return naiveBest(values, -1) },
	"MAX": func(values []any) any { return naiveBest(values, 1) },
}

func naiveSum(values []any) any {
	sum := 0.0
	for _, v := range values {
		n, ok := v.(float64)
		if !ok {
			return missing
		}
		sum += n
	}
	return finite(sum)
}

func naiveBest(values []any, sign int) any {
	best := missing
	for _, v := range values {
		if rank(v) >= 5 {
			return missing
		}
		if best == missing || order(v, best)*sign > 0 {
			best = v
		}
	}
	return best
}

// naiveQuery is a query as the generator makes it, beside its text.
type naiveQuery struct {
	items    []naiveItem // nil for *
	value    bool
	distinct bool
	where    func(environment) any
	groupBy  []func(environment) any
	grouped  bool
	orderBy  []naiveOrder
	offset   int
	limit    int // -1 without
}

type naiveItem struct {
	name string
	eval func(environment) any
}

type naiveOrder struct {
	eval func(environment) any
	desc bool
}

// naiveRow is a row of a result.
type naiveRow struct {
	id    string
	value any
	keys  []any
}

// canonical is a text that equal values share.
func canonical(v any) string { return fmt.Sprintf("%T%#v", v, v) }

// rows returns the whole result over the records.
func (q *naiveQuery) rows(records []*record) []naiveRow {
	var found []*record
	for _, r := range records {
		if q.where == nil || q.where(environment{record: r}) == true {
			found = append(found, r)
		}
	}
	var rows []naiveRow
	if q.grouped {
		groups := [][]*record{}
		if len(q.groupBy) == 0 {
			groups = append(groups, found)
		} else {
			index := map[string]int{}
			for _, r := range found {
				key := ""
				for _, by := range q.groupBy {
					key += canonical(by(environment{record: r})) + "\x00"
				}
				if _, ok := index[key]; !ok {
					index[key] = len(groups)
					groups = append(groups, nil)
				}
				groups[index[key]] = append(groups[index[key]], r)
			}
		}
		for _, g := range groups {
			env := environment{group: g}
			if len(g) > 0 {
				env.record = g[0]
			}
			rows = append(rows, naiveRow{value: q.row(env)})
		}
	} else {
		for _, r := range found {
			row := naiveRow{id: r.doc.ID, value: q.row(environment{record: r})}
			for _, by := range q.orderBy {
				row.keys = append(row.keys, by.eval(environment{record: r}))
			}
			if len(row.keys) == 0 || row.keys[0] != missing {
				rows = append(rows, row)
			}
		}
	}
	rows = slices.DeleteFunc(rows, func(row naiveRow) bool { return row.value == missing })
	if len(q.orderBy) > 0 {
		slices.SortFunc(rows, q.compare)
	}
	if q.distinct {
		seen := map[string]bool{}
		rows = slices.DeleteFunc(rows, func(row naiveRow) bool {
			key := canonical(row.value)
			repeated := seen[key]
			seen[key] = true
			return repeated
		})
	}
	return rows
}

// compare is the order of ORDER BY.
func (q *naiveQuery) compare(a, b naiveRow) int {
	for i, by := range q.orderBy {
		if n := order(a.keys[i], b.keys[i]); n != 0 {
			if by.desc {
				return -n
			}
			return n
		}
	}
	if q.orderBy[0].desc {
		return -cmp.Compare(a.id, b.id)
	}
	return cmp.Compare(a.id, b.id)
}

// inOrder returns the records in the order of ORDER BY, as an index gives them.
func (q *naiveQuery) inOrder(records []*record) []*record {
	rows := make([]naiveRow, len(records))
	for i, r := range records {
		rows[i] = naiveRow{id: r.doc.ID, value: r}
		for _, by := range q.orderBy {
			rows[i].keys = append(rows[i].keys, by.eval(environment{record: r}))
		}
	}
	slices.SortFunc(rows, q.compare)
	out := make([]*record, len(rows))
	for i, row := range rows {
		out[i] = row.value.(*record)
	}
	return out
}

// cut applies OFFSET and LIMIT.
func (q *naiveQuery) cut(rows []naiveRow) []naiveRow {
	rows = rows[min(q.offset, len(rows)):]
	if q.limit >= 0 {
		rows = rows[:min(q.limit, len(rows))]
	}
	return rows
}

// row returns what SELECT makes of a document or group.
func (q *naiveQuery) row(env environment) any {
	if q.items == nil {
		return env.record.value
	}
	if q.value {
		return q.items[0].eval(env)
	}
	object := map[string]any{}
	for _, it := range q.items {
		if v := it.eval(env); v != missing {
			object[it.name] = v
		}
	}
	return object
}
