package query_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"mayfly/query"
)

// generator makes random documents and queries. Each query comes as text and as a naiveQuery.
type generator struct {
	*rand.Rand
	params  []query.Param
	alias   string // of FROM; "" without
	grouped bool   // items are those of groups
	by      []genPath
}

// term is a random expression: its text, how tight it binds, and its meaning.
type term struct {
	text  string
	level int
	eval  func(environment) any
}

// The levels of precedence, loosest first.
const (
	levelOr = iota
	levelAnd
	levelNot
	levelCompare
	levelConcat
	levelAdd
	levelMultiply
	levelMinus
	levelPrimary
)

// genPath is a random path.
type genPath []any // string or int

var (
	numberNames = []string{"n", "m", "total"}
	stringNames = []string{"s", "t", "status", "na me"}
	otherNames  = []string{"b", "arr", "tags", "o", "address", "x", "é", "", "_id", "_ts", "_ttl", "_etag", "_expiresat", "_ttlleft", "top", "value", "Quote\"d", "a.b", "count"}

	numberTexts = []string{"0", "-0", "1", "2", "2", "3", "-1", "1.0", "10e-1", "0.5", "1.5", "2.5", "-2.5", "7", "12.5", "90", "1e15", "9007199254740993", "123456789012345678901234567890", "1e300", "-1e308", "1e-320", "0.1", "1E2"}
	stringPool  = []string{"", "a", "A", "b", "ab", "aB", "abc", "abcabc", "open", "paid", "Paid", "é", "É", "日本語", "😀", "x😀y", "%", "_", "a_b", "a%b", "[a]", "a\nb", "\"", "'", "\uFFFD", "\\", "\x00", "\u2028", "/", "𝒳", "null", "1", " a "}
	likePool    = []string{"", "%", "a%", "%b", "%b%", "a_c", "_", "__%", "[ab]%", "[^a]%", "%[a-c]", "a\\%b", "a!%b", "%!_%", "op%n", "%é", "日_語", "[", "a[", "[]a]", "x_y", "%a%b%c%", "[%]", "[_]%", "!!", "%!"}
)

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

// chance reports true once in n.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// space is white space between tokens.
func (g *generator) space() string {
	if g.chance(12) {
		return pick(g, []string{"  ", "\n", "\t", " \r\n "})
	}
	return " "
}

// word is a keyword in any case.
func (g *generator) word(s string) string {
	switch g.IntN(6) {
	case 0:
		return strings.ToLower(s)
	case 1:
		return s[:1] + strings.ToLower(s[1:])
	}
	return s
}

// quoted is a JSON string, with random escapes.
func (g *generator) quoted(s string) string {
	out := `"`
	for _, r := range s {
		switch {
		case r < ' ' || r < 0x10000 && g.chance(12):
			out += fmt.Sprintf(`\u%04x`, r)
		case r == '"' || r == '\\':
			out += `\` + string(r)
		case r == '\uFFFD' && g.chance(2):
			out += `\ud800`
		case r >= 0x10000 && g.chance(3):
			out += fmt.Sprintf(`\u%04X\u%04X`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		case r == '/' && g.chance(2):
			out += `\/`
		default:
			out += string(r)
		}
	}
	return out + `"`
}

// queryString is a string literal of a query.
func (g *generator) queryString(s string) string {
	if g.chance(3) {
		return g.quoted(s)
	}
	out := g.quoted(s)
	inner := strings.ReplaceAll(out[1:len(out)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(inner, "'", `\'`) + "'"
}

// jsonValue is a random JSON text.
func (g *generator) jsonValue(depth int) string {
	switch n := g.IntN(20); {
	case n < 7:
		return pick(g, numberTexts)
	case n < 13:
		if g.chance(30) {
			return pick(g, []string{`"\ud800\u0041"`, `"\ud800\ud800"`, `"\udbff\n"`, `"\udc00\udbff"`, `"\ud83d\ud83d\ude00"`})
		}
		return g.quoted(pick(g, stringPool))
	case n < 15:
		return pick(g, []string{"true", "false"})
	case n < 16 || depth > 4:
		return "null"
	case n < 18:
		var parts []string
		for range g.IntN(4) {
			parts = append(parts, g.jsonValue(depth+1))
		}
		return "[" + g.joined(parts) + "]"
	}
	return g.object(depth+1, g.IntN(4))
}

func (g *generator) joined(parts []string) string {
	if g.chance(8) {
		return " " + strings.Join(parts, " ,\n ") + " "
	}
	return strings.Join(parts, ",")
}

// object is a random object, sometimes with a repeated name.
func (g *generator) object(depth, members int) string {
	var parts []string
	for range members {
		var name, value string
		switch g.IntN(4) {
		case 0:
			name, value = pick(g, numberNames), pick(g, numberTexts)
		case 1:
			name, value = pick(g, stringNames), g.quoted(pick(g, stringPool))
		default:
			name, value = pick(g, slices.Concat(numberNames, stringNames, otherNames)), g.jsonValue(depth)
		}
		switch { // typical members
		case g.chance(4):
		case name == "arr" || name == "tags":
			value = "[" + g.joined([]string{g.jsonValue(depth + 1), g.jsonValue(depth + 1)}) + "]"
		case (name == "o" || name == "address") && depth < 4:
			value = g.object(depth+1, 1+g.IntN(3))
		case name == "b":
			value = pick(g, []string{"true", "false"})
		}
		separator := ":"
		if g.chance(10) {
			separator = " : "
		}
		parts = append(parts, g.quoted(name)+separator+value)
	}
	return "{" + g.joined(parts) + "}"
}

// record makes a random document.
func (g *generator) record(id string) *record {
	doc := query.Document{Text: g.object(0, g.IntN(9)), ID: id, Etag: "etag-" + strconv.Itoa(g.IntN(3)), Time: 1700000000000 + g.Int64N(5000)}
	if g.chance(20) { // deep
		n := 1 + g.IntN(100)
		doc.Text = `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"n":1}`
	}
	if g.chance(12) { // no object
		if doc.Text = g.jsonValue(0); g.chance(4) {
			doc.Text = " " + doc.Text + "\n"
		}
	}
	if g.chance(2) {
		doc.HasTTL, doc.TTL = true, int64(g.IntN(3)-1)
	}
	if g.chance(2) {
		doc.Left = 1000 * int64(1+g.IntN(5))
		doc.Ends = 1700000100000 + doc.Left
	}
	return &record{doc: doc, value: decode(doc.Text)}
}

// at puts a term into brackets if it binds less tight than level.
func (g *generator) at(t term, level int) string {
	if t.level < level || g.chance(15) {
		return "(" + t.text + ")"
	}
	return t.text
}

// isName reports whether a name needs no brackets in a path.
func isName(s string) bool {
	return s != "" && !strings.ContainsAny(s, " .\"") && s != "order"
}

// pathText writes a path as the query does.
func (g *generator) pathText(path genPath) string {
	out := g.alias
	for i, step := range path {
		switch step := step.(type) {
		case int:
			out += "[" + strconv.Itoa(step) + "]"
		case string:
			switch {
			case isName(step) && (i == 0 && g.alias == "" || !g.chance(6)):
				if out != "" {
					out += "."
				}
				out += step
			case g.chance(2):
				out += "[" + g.quoted(step) + "]"
			default:
				out += "[" + g.queryString(step) + "]"
			}
		}
	}
	return out
}

// randomPath makes a path that begins with one of the names.
func (g *generator) randomPath(names []string) genPath {
	path := genPath{pick(g, names)}
	if g.alias == "" { // the first name is a word, and VALUE and TOP are keywords behind SELECT
		for !isName(path[0].(string)) || path[0] == "value" || path[0] == "top" {
			path[0] = pick(g, slices.Concat(numberNames, stringNames, otherNames))
		}
	}
	if g.chance(6) {
		path = append(genPath{pick(g, []string{"o", "address", "arr", "tags", "x"})}, path...)
	}
	for g.chance(5) {
		if g.chance(2) {
			path = append(path, g.IntN(3))
		} else {
			path = append(path, pick(g, slices.Concat(numberNames, stringNames, otherNames)))
		}
	}
	return path
}

// value returns the meaning of a path.
func (path genPath) value(env environment) any {
	v := rootMember(env.record, path[0].(string))
	for _, step := range path[1:] {
		v = memberAt(v, step)
	}
	return v
}

// pathTerm is a random path among names, or in groups one of GROUP BY.
func (g *generator) pathTerm(names []string) term {
	path := g.randomPath(names)
	if g.alias != "" && !g.grouped && g.chance(30) { // the whole document
		return term{g.alias, levelPrimary, func(env environment) any { return env.record.value }}
	}
	if g.grouped {
		if len(g.by) == 0 {
			return g.literal("1")
		}
		path = slices.Clone(pick(g, g.by))
		if g.chance(6) {
			path = append(path, pick(g, []any{"n", "s", 0, "x"}))
		}
	}
	return term{g.pathText(path), levelPrimary, path.value}
}

// literal is a JSON text as a literal or parameter.
func (g *generator) literal(text string) term {
	if text[0] == '{' || text[0] == '[' {
		text = g.encoded(decode(text)) // a literal with a repeated name is an error
	}
	v := decode(text)
	t := term{text, levelPrimary, func(environment) any { return v }}
	if s, ok := v.(string); ok {
		t.text = g.queryString(s)
	}
	if g.chance(8) && len(g.params) < query.MaxParams {
		name := "@p" + strconv.Itoa(len(g.params))
		g.params = append(g.params, query.Param{Name: name[g.IntN(2):], JSON: text})
		t.text = name
	} else if strings.HasPrefix(t.text, "-") {
		t.level = levelMinus
	}
	return t
}

// encoded is the JSON of a decoded value.
func (g *generator) encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// operation joins two terms by an operator of a level.
func (g *generator) operation(op string, level int, a, b term, eval func(op string, a, b any) any) term {
	left, right := g.at(a, level), g.at(b, level+1)
	sep := g.space()
	if op == "-" || op == "AND" || op == "OR" {
		return term{left + sep + g.word(op) + g.space() + right, level, func(env environment) any { return eval(op, a.eval(env), b.eval(env)) }}
	}
	if g.chance(4) {
		sep = ""
	}
	return term{left + sep + op + sep + right, level, func(env environment) any { return eval(op, a.eval(env), b.eval(env)) }}
}

// function is a call.
func (g *generator) function(name string, args ...term) term {
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	space := ""
	if g.chance(10) {
		space = " "
	}
	return term{g.word(name) + space + "(" + strings.Join(texts, ","+g.space()) + ")", levelPrimary, func(env environment) any {
		var values []any
		for _, a := range args {
			values = append(values, a.eval(env))
		}
		return naiveFunctions[name](values)
	}}
}

// number is an expression that is mostly a number.
func (g *generator) number(depth int) term {
	switch n := g.IntN(12); {
	case depth <= 0 || n < 4:
		if g.chance(2) {
			return g.literal(pick(g, numberTexts))
		}
		return g.pathTerm(numberNames)
	case n < 7:
		op := pick(g, []string{"+", "-", "*", "/", "%"})
		level := levelAdd
		if op != "+" && op != "-" {
			level = levelMultiply
		}
		return g.operation(op, level, g.number(depth-1), g.number(depth-1), calculated)
	case n < 8:
		t := g.number(depth - 1)
		return term{"- " + g.at(t, levelMinus), levelMinus, func(env environment) any { return calculated("-", 0.0, t.eval(env)) }}
	case n < 9:
		return g.function("LENGTH", g.text(depth-1))
	case n < 10:
		return g.function("ARRAY_LENGTH", g.array(depth-1))
	case n < 11:
		return g.function(pick(g, []string{"ABS", "FLOOR", "CEILING", "ROUND"}), g.number(depth-1))
	}
	return g.any(depth - 1)
}

// text is an expression that is mostly a string.
func (g *generator) text(depth int) term {
	switch n := g.IntN(10); {
	case depth <= 0 || n < 5:
		if g.chance(2) {
			return g.literal(g.quoted(pick(g, stringPool)))
		}
		return g.pathTerm(stringNames)
	case n < 6:
		return g.operation("||", levelConcat, g.text(depth-1), g.text(depth-1), func(_ string, a, b any) any { return naiveConcat([]any{a, b}) })
	case n < 7:
		return g.function(pick(g, []string{"LOWER", "UPPER"}), g.text(depth-1))
	case n < 8:
		return g.function("SUBSTRING", g.text(depth-1), g.literal(pick(g, []string{"0", "1", "2", "100", "-1"})), g.literal(pick(g, []string{"0", "1", "2", "100", "-1"})))
	case n < 9:
		return g.function("CONCAT", g.text(depth-1), g.text(depth-1), g.text(depth-1))
	}
	return g.any(depth - 1)
}

// array is an expression that is mostly an array.
func (g *generator) array(depth int) term {
	if depth <= 0 || g.chance(2) {
		return g.pathTerm([]string{"arr", "tags"})
	}
	var texts []string
	var elements []term
	for range g.IntN(4) {
		t := g.any(depth - 1)
		elements, texts = append(elements, t), append(texts, t.text)
	}
	return term{"[" + strings.Join(texts, ",") + "]", levelPrimary, func(env environment) any {
		list := []any{}
		for _, t := range elements {
			if v := t.eval(env); v != missing {
				list = append(list, v)
			}
		}
		return list
	}}
}

// objectTerm is a literal of an object with expressions.
func (g *generator) objectTerm(depth int) term {
	var texts []string
	names, values := []string{}, []term{}
	for range g.IntN(4) {
		name := pick(g, slices.Concat(numberNames, stringNames, otherNames))
		if slices.Contains(names, name) {
			continue
		}
		t := g.any(depth - 1)
		text := name
		if !isName(name) || g.chance(3) {
			text = g.queryString(name)
		}
		names, values, texts = append(names, name), append(values, t), append(texts, text+":"+t.text)
	}
	return term{"{" + strings.Join(texts, ",") + "}", levelPrimary, func(env environment) any {
		object := map[string]any{}
		for i, name := range names {
			if v := values[i].eval(env); v != missing {
				object[name] = v
			}
		}
		return object
	}}
}

// any is an expression of any type.
func (g *generator) any(depth int) term {
	switch n := g.IntN(14); {
	case depth <= 0 || n < 3:
		if g.chance(2) {
			return g.literal(g.jsonValue(2))
		}
		return g.pathTerm(slices.Concat(numberNames, stringNames, otherNames))
	case n < 5:
		return g.number(depth - 1)
	case n < 7:
		return g.text(depth - 1)
	case n < 8:
		return g.array(depth - 1)
	case n < 9:
		return g.objectTerm(depth - 1)
	case n < 10:
		return g.function("IIF", g.bool(depth-1), g.any(depth-1), g.any(depth-1))
	case n < 11:
		base := g.objectTerm(depth - 1)
		if g.chance(2) {
			base = g.array(depth - 1)
		}
		steps := []any{"n", "s", "o", 0, 1}
		step := pick(g, steps)
		text := fmt.Sprintf("[%v]", step)
		if name, ok := step.(string); ok {
			text = pick(g, []string{"." + name, `["` + name + `"]`})
		}
		if c := base.text[0]; c >= '0' && c <= '9' { // 1.n is no number
			base.text = "(" + base.text + ")"
		}
		return term{base.text + text, levelPrimary, func(env environment) any { return memberAt(base.eval(env), step) }}
	case n < 12 && !g.grouped:
		return term{"undefined", levelPrimary, func(environment) any { return missing }}
	}
	return g.bool(depth - 1)
}

// pair are two terms that are mostly comparable.
func (g *generator) pair(depth int) (a, b term) {
	switch g.IntN(8) {
	case 0, 1, 2:
		return g.number(depth), g.number(depth)
	case 3, 4, 5:
		return g.text(depth), g.text(depth)
	case 6:
		return g.any(depth), g.any(depth)
	}
	t := g.any(depth)
	return t, t
}

// bool is an expression that is mostly true or false.
func (g *generator) bool(depth int) term {
	switch n := g.IntN(22); {
	case depth <= 0 || n < 5:
		a, b := g.pair(max(depth-1, 0))
		return g.operation(pick(g, []string{"=", "=", "!=", "<>", "<", "<=", ">", ">="}), levelCompare, raised(a), raised(b), compared)
	case n < 8:
		return g.operation("AND", levelAnd, g.bool(depth-1), g.bool(depth-1), func(_ string, a, b any) any { return naiveAnd(a, b) })
	case n < 11:
		return g.operation("OR", levelOr, g.bool(depth-1), g.bool(depth-1), func(_ string, a, b any) any { return naiveOr(a, b) })
	case n < 13:
		t := g.bool(depth - 1)
		return term{g.word("NOT") + " " + g.at(t, levelNot), levelNot, func(env environment) any { return naiveNot(t.eval(env)) }}
	case n < 14:
		return g.in(depth)
	case n < 15:
		return g.between(depth)
	case n < 16:
		return g.like(depth)
	case n < 18:
		name := pick(g, []string{"IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT", "IS_PRIMITIVE"})
		return g.function(name, g.any(depth-1))
	case n < 20:
		args := []term{g.text(depth - 1), g.text(depth - 1)}
		if g.chance(3) {
			args = append(args, g.literal(pick(g, []string{"true", "true", "false"})))
		}
		return g.function(pick(g, []string{"STARTSWITH", "ENDSWITH", "CONTAINS", "STRINGEQUALS"}), args...)
	case n < 21:
		args := []term{g.array(depth - 1), g.any(depth - 1)}
		if g.chance(2) {
			args = append(args, g.literal(pick(g, []string{"true", "true", "false"})))
		}
		return g.function("ARRAY_CONTAINS", args...)
	}
	return g.any(depth - 1)
}

// raised puts an operand of a comparison into brackets if it is one.
func raised(t term) term {
	if t.level <= levelCompare {
		return term{"(" + t.text + ")", levelPrimary, t.eval}
	}
	return t
}

// negated is the word NOT before IN, BETWEEN and LIKE, and its meaning.
func (g *generator) negated() (string, func(any) any) {
	if g.chance(3) {
		return g.word("NOT") + " ", naiveNot
	}
	return "", func(v any) any { return v }
}

func (g *generator) in(depth int) term {
	not, meaning := g.negated()
	a, b := g.pair(depth - 1)
	values, texts := []term{b}, []string{b.text}
	for range g.IntN(4) {
		t := g.literal(g.jsonValue(2))
		values, texts = append(values, t), append(texts, t.text)
	}
	text := g.at(raised(a), levelConcat) + " " + not + g.word("IN") + g.space() + "(" + strings.Join(texts, ", ") + ")"
	return term{text, levelCompare, func(env environment) any {
		var found any = false
		for _, v := range values {
			found = naiveOr(found, compared("=", a.eval(env), v.eval(env)))
		}
		return meaning(found)
	}}
}

// between is a BETWEEN. Half of them have a bound that is the value itself, or both.
func (g *generator) between(depth int) term {
	not, meaning := g.negated()
	a, low := g.pair(depth - 1)
	high := g.any(depth - 1)
	switch g.IntN(6) {
	case 0:
		low = a
	case 1:
		high = a
	case 2:
		low, high = a, a
	case 3, 4:
		high = g.number(depth - 1)
	}
	text := raised(a).text + " " + not + g.word("BETWEEN") + " " + raised(low).text + " " + g.word("AND") + " " + raised(high).text
	return term{text, levelCompare, func(env environment) any {
		v := a.eval(env)
		return meaning(naiveAnd(compared(">=", v, low.eval(env)), compared("<=", v, high.eval(env))))
	}}
}

func (g *generator) like(depth int) term {
	not, meaning := g.negated()
	a := g.text(depth - 1)
	pattern := g.literal(g.quoted(pick(g, likePool)))
	if g.chance(5) {
		pattern = g.text(depth - 1)
	}
	text := raised(a).text + " " + not + g.word("LIKE") + " " + raised(pattern).text
	escape := rune(-1)
	if g.chance(3) {
		escape = pick(g, []rune{'!', '\\', 'é'})
		text += " " + g.word("ESCAPE") + " " + g.queryString(string(escape))
	}
	return term{text, levelCompare, func(env environment) any {
		s, ok1 := a.eval(env).(string)
		p, ok2 := pattern.eval(env).(string)
		if !ok1 || !ok2 {
			return missing
		}
		return meaning(likeMatch([]rune(s), []rune(p), escape))
	}}
}

// aggregate is an aggregate over a random expression.
func (g *generator) aggregate(depth int) term {
	g.grouped = false
	name := pick(g, []string{"COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"})
	arg := g.number(depth)
	if name != "SUM" && name != "AVG" && g.chance(2) {
		arg = g.any(depth)
	}
	g.grouped = true
	return term{g.word(name) + "(" + arg.text + ")", levelPrimary, func(env environment) any {
		var values []any
		for _, r := range env.group {
			if v := arg.eval(environment{record: r}); v != missing {
				values = append(values, v)
			}
		}
		return naiveAggregates[name](values)
	}}
}

// query makes a random query.
func (g *generator) query() (string, *naiveQuery) {
	q := &naiveQuery{limit: -1}
	g.alias, g.params, g.by, g.grouped = "", nil, nil, false
	if !g.chance(3) {
		g.alias = pick(g, []string{"c", "r", "root", "orders", "Food"})
	}
	depth := g.IntN(4)
	q.grouped = g.chance(4)
	group := ""
	if q.grouped && g.chance(2) {
		for range 1 + g.IntN(2) {
			path := g.randomPath(slices.Concat(numberNames, stringNames, otherNames))
			g.by = append(g.by, path)
			q.groupBy = append(q.groupBy, path.value)
			group += ", " + g.pathText(path)
		}
		group = " " + g.word("GROUP") + g.space() + g.word("BY") + " " + group[2:]
	}
	text := ""
	top := false
	switch star := !q.grouped && g.chance(3); {
	case star && g.chance(2):
	default:
		text = g.word("SELECT") + g.space()
		if g.chance(6) {
			q.distinct = true
			text += g.word("DISTINCT") + " "
		}
		if g.chance(8) {
			top, q.limit = true, g.IntN(6)
			text += g.word("TOP") + " " + g.literal(strconv.Itoa(q.limit)).text + " "
		}
		if star {
			text += "*"
		} else {
			text += g.items(q, depth)
		}
	}
	if g.alias != "" {
		switch name := pick(g, []string{"c", "docs"}); {
		case g.chance(2):
			text += " " + g.word("FROM") + " " + g.alias
		case g.chance(2):
			text += " " + g.word("FROM") + " " + name + " " + g.alias
		default:
			text += " " + g.word("FROM") + " " + name + " " + g.word("AS") + " " + g.alias
		}
	}
	g.grouped = false
	if !g.chance(3) {
		t := g.bool(depth + 1)
		text += g.space() + g.word("WHERE") + " " + t.text
		q.where = t.eval
	}
	text += group
	if !q.grouped && g.chance(3) {
		text += " " + g.word("ORDER") + g.space() + g.word("BY") + " "
		for i := range 1 + g.IntN(3) {
			if i > 0 {
				text += ", "
			}
			path := g.randomPath(pick(g, [][]string{numberNames, stringNames, otherNames}))
			by := naiveOrder{eval: path.value, desc: g.chance(2)}
			text += g.pathText(path)
			if by.desc {
				text += " " + g.word("DESC")
			} else if g.chance(2) {
				text += " " + g.word("ASC")
			}
			q.orderBy = append(q.orderBy, by)
		}
	}
	if g.chance(5) {
		q.offset = g.IntN(6)
		text += " " + g.word("OFFSET") + " " + g.literal(strconv.Itoa(q.offset)).text
	}
	if !top && g.chance(5) {
		q.limit = g.IntN(10)
		text += " " + g.word("LIMIT") + " " + g.literal(strconv.Itoa(q.limit)).text
	}
	return strings.TrimLeft(text, " "), q
}

// items makes the items of SELECT.
func (g *generator) items(q *naiveQuery, depth int) string {
	q.value = g.chance(3)
	count := 1
	text := ""
	if q.value {
		text = g.word("VALUE") + " "
	} else {
		count = 1 + g.IntN(4)
	}
	names := map[string]bool{}
	unnamed := 0
	aggregated := len(q.groupBy) > 0
	for i := range count {
		var t term
		g.grouped = q.grouped
		name := ""
		switch {
		case q.grouped && (!aggregated && i == count-1 || g.chance(2)):
			t, aggregated = g.aggregate(depth), true
			if g.chance(4) {
				t = g.operation("+", levelAdd, t, g.aggregate(1), calculated)
			}
		case !q.grouped && g.chance(2):
			path := g.randomPath(slices.Concat(numberNames, stringNames, otherNames))
			t = term{g.pathText(path), levelPrimary, path.value}
			name, _ = path[len(path)-1].(string)
			if _, ok := path[len(path)-1].(string); !ok {
				unnamed++
				name = "$" + strconv.Itoa(unnamed)
			} else if names[name] {
				name = "name" + strconv.Itoa(i)
				t.text += " AS " + name
			}
		default:
			t = g.any(depth)
		}
		if t.text == "" {
			panic("no text")
		}
		switch {
		case q.value:
		case name != "":
		case name == "" && isEmptyName(t.text):
			name = ""
			t.text += " AS e" + strconv.Itoa(i)
			name = "e" + strconv.Itoa(i)
		default:
			name = pick(g, []string{"n", "Total", "é", "a b"}) + strconv.Itoa(i)
			as := g.word("AS") + " "
			written := name
			if strings.Contains(name, " ") {
				written = g.queryString(name)
			} else if g.chance(3) {
				as = ""
			}
			t.text = "(" + t.text + ") " + as + written
		}
		names[name] = true
		if i > 0 {
			text += "," + g.space()
		}
		text += t.text
		q.items = append(q.items, naiveItem{name, t.eval})
	}
	return text
}

// isEmptyName reports whether a path ends with a member without a name.
func isEmptyName(text string) bool {
	return strings.HasSuffix(text, `[""]`) || strings.HasSuffix(text, `['']`)
}
