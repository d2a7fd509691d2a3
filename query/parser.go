package query

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"unicode/utf8"

	"mayfly/json/jsontext"
)

// Limits of a query.
const (
	MaxSize    = 16 << 10 // bytes of text
	MaxNesting = 64
	MaxIn      = 1000 // values of an IN, elements of a literal
	MaxParams  = 100
	MaxValues  = 1 << 20 // bytes of the values of all parameters
	MaxItems   = 100     // of SELECT, arguments of a function, members of a literal
	MaxPaths   = 4       // of ORDER BY and of GROUP BY
)

// maxParamNesting is the nesting of a document, too.
const maxParamNesting = 128

// Param is the value of a parameter.
type Param struct{ Name, JSON string } // Name with or without @

// reserved are the keywords that are no names. A member of such a name is written with FROM: c.order.
var reserved = map[string]bool{
	"SELECT": true, "FROM": true, "WHERE": true, "GROUP": true, "ORDER": true, "BY": true, "OFFSET": true, "LIMIT": true, "AND": true, "OR": true,
	"NOT": true, "IN": true, "BETWEEN": true, "LIKE": true, "TRUE": true, "FALSE": true, "NULL": true, "UNDEFINED": true, "JOIN": true,
}

// unsupported are words of Cosmos DB's language or of SQL outside the subset.
var unsupported = map[string]bool{
	"JOIN": true, "HAVING": true, "UNION": true, "INSERT": true, "UPDATE": true, "DELETE": true, "INTO": true, "WITH": true,
	"INNER": true, "LEFT": true, "RIGHT": true, "OUTER": true, "CROSS": true,
}

// maxPatterns is the size of all patterns of LIKE of a query, in bytes.
const maxPatterns = 64 << 10

const clauses = "legal are SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"

// Parse reads a query and binds its parameters. The error is one line; of a fault in the text it is an
// [*Error].
func Parse(text string, params []Param) (q *Query, err error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("query of %d bytes: legal are at most %d", len(text), MaxSize)
	}
	if !utf8.ValidString(text) {
		return nil, &Error{text: "the text is not UTF-8"}
	}
	values, err := bind(params)
	if err != nil {
		return nil, err
	}
	tokens, err := splitTokens(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, params: values, q: &Query{limit: -1}, slots: map[string]int{}, constant: Evaluator{most: maxWork}}
	defer func() {
		if fault := recover(); fault != nil {
			if e, ok := fault.(parseFault); ok {
				q, err = nil, e.error
				return
			}
			panic(fault)
		}
	}()
	p.query()
	h := fnv.New64a()
	h.Write([]byte(text))
	for _, param := range params {
		fmt.Fprintf(h, "\x00%s\x00%s", param.Name, param.JSON)
	}
	p.q.hash = h.Sum64()
	return p.q, nil
}

// bind checks the parameters and returns their values by name, with @.
func bind(params []Param) (map[string]Value, error) {
	if len(params) > MaxParams {
		return nil, fmt.Errorf("%d parameters: legal are at most %d", len(params), MaxParams)
	}
	values := make(map[string]Value, len(params))
	size := 0
	for _, param := range params {
		if size += len(param.JSON); size > MaxValues {
			return nil, fmt.Errorf("values of parameters of %d bytes: legal are at most %d", size, MaxValues)
		}
		name := "@" + strings.TrimPrefix(param.Name, "@")
		shown := clip(strings.ToValidUTF8(name, "\uFFFD"))
		if len(name) == 1 || wordSize(name[1:]) < len(name)-1 {
			return nil, fmt.Errorf("invalid name of a parameter %q: legal are @ and letters, digits and _", shown)
		}
		if _, ok := values[name]; ok {
			return nil, fmt.Errorf("%s has two values", shown)
		}
		text := strings.Trim(param.JSON, jsontext.Space)
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return nil, fmt.Errorf(`value of %s is not JSON: a string is written "open", with its quotes`, shown)
		}
		if nesting(text) > maxParamNesting {
			return nil, fmt.Errorf("value of %s is nested deeper than %d", shown, maxParamNesting)
		}
		v := ValueOf(text)
		if v.kind == Number && math.IsInf(v.num, 0) {
			return nil, fmt.Errorf("value of %s is beyond the range of doubles", shown)
		}
		values[name] = v
	}
	return values, nil
}

// nesting returns the greatest number of open brackets in valid JSON.
func nesting(text string) (deepest int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsontext.StringEnd(text, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// found describes a token for an error.
func found(t token) string {
	switch {
	case t.kind == endToken:
		return "the end"
	case t.kind == wordToken && reserved[t.upper]:
		return t.upper
	}
	return clip(t.text)
}

// valueOf returns the value of a number or string.
func valueOf(t token) Value {
	switch t.kind {
	case numberToken:
		return NumberValue(t.num)
	case stringToken:
		return StringValue(t.str)
	}
	return Value{}
}

// parser is the state of Parse.
type parser struct {
	text   string
	tokens []token
	next   int // the index of the next token
	params map[string]Value

	q     *Query
	alias string         // of FROM; "" without
	slots map[string]int // by the key of the path
	free  []*pathRef     // paths outside of aggregates
	depth int
	// constant evaluates constant expressions.
	constant Evaluator
	// patterns is the size of the patterns of LIKE in bytes.
	patterns int
	// aggregates reports whether aggregates are legal here, aggregate that one is open.
	aggregates, aggregate bool
}

// parseFault ends the parser.
type parseFault struct{ error }

// fail ends the parser with an error at a byte of the query.
func (p *parser) fail(at int, format string, args ...any) {
	panic(parseFault{errorAt(p.text, at, format, args...)})
}

// expected ends the parser because the next token is not what is legal there.
func (p *parser) expected(what string) {
	t := p.peek()
	p.fail(t.at, "expected %s, found %s%s", what, found(t), p.hint())
}

func (p *parser) peek() token { return p.tokens[p.next] }

// after returns the token after the next one.
func (p *parser) after() token { return p.tokens[min(p.next+1, len(p.tokens)-1)] }

// since returns the text from a token to the one before the next.
func (p *parser) since(from int) string {
	last := p.tokens[p.next-1]
	return p.text[p.tokens[from].at : last.at+len(last.text)]
}

// take takes the next token.
func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != endToken {
		p.next++
	}
	return t
}

// accept takes the next token if it is the keyword or mark.
func (p *parser) accept(text string) bool {
	if !p.peek().is(text) {
		return false
	}
	p.next++
	return true
}

// require takes the keyword or mark.
func (p *parser) require(text string) {
	if !p.accept(text) {
		p.expected(text)
	}
}

// enter counts a level of nesting; the caller defers leave.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxNesting {
		p.fail(p.peek().at, "nested deeper than %d", MaxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// query reads the whole query. FROM says how paths begin, so it is read before SELECT.
func (p *parser) query() {
	q := p.q
	selectAt := -1
	if p.accept("SELECT") {
		selectAt = p.next
		p.skipSelect()
	}
	p.from()
	q.from = p.alias != ""
	if selectAt >= 0 {
		end := p.next
		p.next = selectAt
		p.selectItems()
		if t := p.peek(); !t.is("FROM") && p.next < end {
			p.afterClause("FROM, WHERE")
		}
		p.next = end
	}
	items := p.free
	p.free = nil
	legal := "WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT"
	if p.next == 0 {
		legal = "SELECT, FROM, " + legal
	}
	if p.accept("WHERE") {
		from := p.next
		where := p.expression()
		q.conjuncts, q.never = conjunctsOf(conjunct{where, p.since(from)})
		q.where = q.whereOf(q.conjuncts)
		legal = "AND, OR, GROUP BY, ORDER BY, OFFSET, LIMIT"
	}
	if p.groupBy() {
		legal = "ORDER BY, OFFSET, LIMIT"
	}
	if p.orderBy() {
		legal = "ASC, DESC, OFFSET, LIMIT"
	}
	if p.offset() {
		legal = "LIMIT"
	}
	if p.limit() {
		legal = ""
	}
	if p.peek().kind != endToken {
		p.afterClause(legal)
	}
	p.group(items)
}

// skipSelect skips the items of SELECT, up to FROM or another clause outside of brackets.
func (p *parser) skipSelect() {
	depth := 0
	for t := p.peek(); t.kind != endToken; t = p.peek() {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case t.kind == wordToken && (p.next == 0 || !p.tokens[p.next-1].is(".")) && depth <= 0 && p.clauseStart():
			return
		case t.is("SELECT") && p.tokens[p.next-1].is("("):
			p.subquery()
		case t.is("FROM") && !p.tokens[p.next-1].is(".") && !p.after().is(":"):
			return // brackets are not closed: the items tell
		}
		p.next++
	}
}

// subquery ends the parser at SELECT behind a bracket.
func (p *parser) subquery() {
	if p.next > 1 {
		if t := p.tokens[p.next-2]; subqueryWords[t.upper] {
			p.fail(t.at, "%s is not supported: subqueries are not", t.upper)
		}
	}
	p.fail(p.tokens[p.next-1].at, "a subquery is not supported: %s", clauses)
}

// subqueryWords are functions of subqueries.
var subqueryWords = map[string]bool{"EXISTS": true, "ARRAY": true, "ALL": true, "FIRST": true, "LAST": true}

// clauseStart reports whether the next token ends an expression: a clause after SELECT, or the end.
func (p *parser) clauseStart() bool {
	t := p.peek()
	return t.kind == endToken || t.is("FROM") || t.is("WHERE") || t.is("GROUP") || t.is("ORDER") || t.is("OFFSET") || t.is("LIMIT")
}

// afterClause ends the parser at a token that no clause begins with.
func (p *parser) afterClause(legal string) {
	t := p.peek()
	switch {
	case t.kind == wordToken && unsupported[t.upper]:
		p.fail(t.at, "%s is not supported: %s", t.upper, clauses)
	case p.clauseStart() && t.kind != endToken || t.is("SELECT"):
		p.fail(t.at, "%s is out of order: %s, in this order", t.upper, clauses)
	case legal != "":
		legal += " or "
	}
	p.expected(legal + "the end")
}

// from reads FROM name [[AS] alias].
func (p *parser) from() {
	if !p.accept("FROM") {
		return
	}
	name := p.peek()
	switch {
	case name.is("("):
		p.fail(name.at, "a subquery is not supported: %s", clauses)
	case name.kind != wordToken || reserved[name.upper]:
		p.expected("a name")
	}
	p.take()
	p.alias = name.text
	switch t := p.peek(); {
	case p.accept("AS"):
		if p.peek().kind != wordToken || reserved[p.peek().upper] {
			p.expected("a name")
		}
		p.alias = p.take().text
	case t.is("IN"):
		p.fail(t.at, "IN is not supported in FROM: %s", clauses)
	case t.is(".") || t.is("["):
		p.fail(t.at, "FROM takes the name of all documents, not a path: %s", clauses)
	case t.is(","):
		p.fail(t.at, "JOIN is not supported: %s", clauses)
	case t.kind == wordToken && !reserved[t.upper] && !unsupported[t.upper]:
		p.alias = p.take().text
	}
	if !p.clauseStart() || p.peek().is("FROM") {
		p.afterClause("WHERE, GROUP BY, ORDER BY, OFFSET, LIMIT")
	}
}

// beginsItem reports whether the token after a keyword that is also a name makes it the keyword. So do AND
// and its kin, which need a value before them.
func beginsItem(t token) bool {
	switch t.kind {
	case wordToken:
		switch t.upper {
		case "AS", "SELECT", "FROM", "JOIN", "WHERE", "GROUP", "ORDER", "BY", "OFFSET", "LIMIT":
			return false
		}
		return true
	case markToken:
		return t.text == "(" || t.text == "[" || t.text == "{" || t.text == "-" || t.text == "+" || t.text == "*"
	}
	return t.kind != endToken
}

// selectItems reads [DISTINCT] [TOP n] (* | [VALUE] item {, item}).
func (p *parser) selectItems() {
	q := p.q
	p.missingItem("DISTINCT")
	p.missingItem("TOP")
	p.missingItem("VALUE")
	if p.peek().is("DISTINCT") && beginsItem(p.after()) {
		p.take()
		q.distinct = true
	}
	if t := p.after(); p.peek().is("TOP") && (t.kind == numberToken || t.kind == paramToken || t.is("-")) {
		p.take()
		q.limit = p.count("TOP")
		if t := p.peek(); t.is("DISTINCT") && beginsItem(p.after()) { // else a member with that name
			p.fail(t.at, "DISTINCT comes before TOP: SELECT DISTINCT TOP %d …", q.limit)
		}
	}
	p.missingItem("VALUE")
	if p.accept("*") {
		if p.peek().is(",") {
			p.expected("FROM, WHERE or the end")
		}
		return
	}
	if p.peek().is("VALUE") && beginsItem(p.after()) && !p.after().is("*") {
		p.take()
		q.value = true
	}
	p.aggregates = true
	names := map[string]bool{}
	unnamed := 0
	for {
		at := p.peek().at
		if len(q.items) == MaxItems {
			p.fail(at, "more than %d items in SELECT", MaxItems)
		}
		it := item{expr: p.expression()}
		switch ref, isPath := it.expr.(*pathRef); {
		case q.value:
		case p.accept("AS"):
			t := p.peek()
			if t.kind != wordToken && t.kind != stringToken {
				p.expected("a name")
			}
			p.take()
			if it.name = t.text; t.kind == stringToken {
				it.name = t.str
			}
		case p.peek().kind == wordToken && !reserved[p.peek().upper]:
			it.name = p.take().text
		case isPath && len(ref.path) == 0:
			it.name = p.alias
		case isPath && ref.path[len(ref.path)-1].index < 0:
			it.name = ref.path[len(ref.path)-1].name
		default:
			unnamed++
			it.name = fmt.Sprintf("$%d", unnamed)
		}
		if names[it.name] && !q.value {
			p.fail(at, "two items are named %s: AS gives another name", clip(it.name))
		}
		names[it.name] = true
		q.items = append(q.items, it)
		if t := p.peek(); q.value && t.is(",") {
			p.fail(t.at, "VALUE takes exactly one item")
		}
		if !p.accept(",") {
			break
		}
	}
	p.aggregates = false
	q.grouped = len(q.aggregates) > 0
}

// missingItem ends the parser if a keyword of SELECT is the last of the query: it is a slip more often than a
// member of that name.
func (p *parser) missingItem(keyword string) {
	if p.peek().is(keyword) && p.after().kind == endToken {
		p.take()
		p.expected("a value")
	}
}

// count reads the number of TOP, OFFSET or LIMIT.
func (p *parser) count(clause string) int64 {
	t := p.take()
	v := valueOf(t)
	if t.kind == paramToken {
		v = p.param(t)
	}
	if v.kind != Number || v.num < 0 || v.num != math.Trunc(v.num) || v.num > 1<<53 {
		shown := found(t)
		if t.kind == paramToken && v.kind != Undefined {
			shown += " = " + clip(string(v.AppendJSON(nil)))
		} else if t.is("-") {
			shown += found(p.peek())
		}
		p.fail(t.at, "%s takes a whole number from 0, found %s", clause, shown)
	}
	return int64(v.num)
}

// groupBy reads GROUP BY path {, path}.
func (p *parser) groupBy() bool {
	at := p.peek().at
	if !p.accept("GROUP") {
		return false
	}
	p.require("BY")
	for ok := true; ok; ok = p.accept(",") {
		if len(p.q.groupBy) == MaxPaths {
			p.fail(p.peek().at, "more than %d paths in GROUP BY", MaxPaths)
		}
		t := p.peek()
		ref, isPath := p.expression().(*pathRef)
		if !isPath || len(ref.path) == 0 {
			p.fail(t.at, "GROUP BY takes paths, like status or address.city")
		}
		p.q.groupBy = append(p.q.groupBy, ref)
	}
	if p.q.items == nil {
		p.fail(at, "GROUP BY with SELECT *: name the paths and aggregates to select")
	}
	p.q.grouped = true
	return true
}

// orderBy reads ORDER BY (path | ST_DISTANCE(…)) [ASC|DESC] {, …}.
func (p *parser) orderBy() bool {
	at := p.peek().at
	if !p.accept("ORDER") {
		return false
	}
	p.require("BY")
	if p.q.grouped {
		p.fail(at, "ORDER BY is not supported together with GROUP BY or aggregates")
	}
	for ok := true; ok; ok = p.accept(",") {
		if len(p.q.orderBy) == MaxPaths {
			p.fail(p.peek().at, "more than %d paths in ORDER BY", MaxPaths)
		}
		t := p.peek()
		if t.is("RANK") && p.after().kind == wordToken {
			p.fail(t.at, "RANK is not supported: %s", clauses)
		}
		by := orderItem{expr: p.expression()}
		switch expr := by.expr.(type) {
		case *pathRef:
			if len(expr.path) == 0 {
				p.fail(t.at, "ORDER BY takes paths, like total or address.city, and ST_DISTANCE")
			}
		case *call:
			if expr.function.name != "ST_DISTANCE" {
				p.fail(t.at, "ORDER BY takes paths, like total or address.city, and ST_DISTANCE")
			}
		default:
			p.fail(t.at, "ORDER BY takes paths, like total or address.city, and ST_DISTANCE")
		}
		if by.desc = p.accept("DESC"); !by.desc {
			p.accept("ASC")
		}
		p.q.orderBy = append(p.q.orderBy, by)
	}
	return true
}

// offset reads OFFSET n.
func (p *parser) offset() bool {
	if !p.accept("OFFSET") {
		return false
	}
	p.q.offset = p.count("OFFSET")
	return true
}

// limit reads LIMIT n.
func (p *parser) limit() bool {
	at := p.peek().at
	if !p.accept("LIMIT") {
		return false
	}
	if p.q.limit >= 0 {
		p.fail(at, "LIMIT is not supported together with TOP")
	}
	p.q.limit = p.count("LIMIT")
	return true
}

// group binds the paths of SELECT's items to those of GROUP BY.
func (p *parser) group(items []*pathRef) {
	if !p.q.grouped {
		return
	}
	for _, ref := range items {
		for i, by := range p.q.groupBy {
			if len(ref.path) >= len(by.path) && ref.path[:len(by.path)].key() == by.path.key() {
				ref.group, ref.rest = i, ref.path[len(by.path):]
			}
		}
		if ref.group < 0 {
			name := ref.path.String()
			if name == "" {
				name = p.alias
			}
			p.fail(ref.at, "%s is neither in GROUP BY nor in an aggregate", clip(name))
		}
	}
}

// param returns the value of a parameter.
func (p *parser) param(t token) Value {
	v, ok := p.params[t.text]
	if !ok {
		panic(parseFault{fmt.Errorf("no value for %s: give PARAMS %s <json>", found(t), found(t))})
	}
	return v
}
