package commands

import (
	"strconv"
	"strings"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/query"
)

// queryCommands find living documents by their content.
var queryCommands = []Command{
	{
		Name: "doc.query", Syntax: "container query [COUNT count] [CURSOR cursor] [WITHIDS] [WITHMETA] [EXPLAIN] [PARAMS name json [name json ...]]",
		Example: `orders "WHERE status = 'open' ORDER BY total DESC LIMIT 10"`,
		Summary: "Finds living documents by a query in Cosmos DB's language. It returns the cursor of the next page, \"0\" at the end, and the rows.",
		Flags:   ReadOnly | Slow, Scope: ScopeSweep, Parse: parseDocQuery,
	},
}

// documentQuery is a parsed DOC.QUERY.
type documentQuery struct {
	container string
	query     *query.Query
	from      query.Cursor
	position  uint64 // of from
	count     int
	ids, meta bool
	explain   bool
}

func parseDocQuery(in *Input) (Run, error) {
	d := &documentQuery{container: in.Args[1], count: query.DefaultRow}
	cursor := ""
	var params []query.Param
	o := namedOptions{args: in.Args[3:], legal: []string{"COUNT", "CURSOR", "WITHIDS", "WITHMETA", "EXPLAIN", "PARAMS"}, meant: meantQueryOption}
	for o.next() {
		switch o.name {
		case "COUNT":
			value := o.value("a whole number of at least 1")
			n, ok := parseCount(value)
			if !ok || n > query.MaxCount {
				o.fail(errorf(errQueryCount, expiry.Quote(value), query.MaxCount))
			}
			d.count = n
		case "CURSOR":
			cursor = o.value(`"0" or what the page before returned`)
		case "WITHIDS":
			d.ids = true
		case "WITHMETA":
			d.meta = true
		case "EXPLAIN":
			d.explain = true
		case "PARAMS":
			values := o.values("a name and its value in JSON")
			if len(values)%2 != 0 {
				o.fail(errorf(errQueryParams, len(values)))
				break
			}
			for i := 0; i < len(values); i += 2 {
				params = append(params, query.Param{Name: values[i], JSON: values[i+1]})
			}
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	var err error
	if d.query, err = query.Parse(in.Args[2], params); err != nil {
		return nil, err
	}
	if d.from, err = d.query.Cursor(cursor); err != nil {
		return nil, err
	}
	if d.from.Position != "" {
		if d.position, err = strconv.ParseUint(d.from.Position, 10, 64); err != nil {
			return nil, errQueryCursor
		}
	}
	switch {
	case d.ids && (d.query.Grouped() || d.query.Distinct()):
		return nil, errIDsOfGroups
	case d.meta && !d.query.Whole():
		return nil, errMetaNeedsAll
	}
	return d.run, nil
}

// meantQueryOption returns what a word that is no option of DOC.QUERY probably means.
func meantQueryOption(word string) string {
	switch {
	case strings.HasPrefix(word, "@"):
		return "PARAMS " + word + " <json>"
	case word != "" && word[0] >= '0' && word[0] <= '9':
		return "COUNT " + word
	}
	return ""
}

// queryWork is the work on a document, in bytes, that counts as one more document examined. So long documents
// and long queries are paid from the same budget.
const queryWork = 8 << 10

// queryRun is a query that runs, and counts what it does.
type queryRun struct {
	results   *query.Results
	documents documentReader
	budget    int

	examined, dead, slices int
	work                   int    // in documents; see queryWork
	last                   uint64 // the cursor behind the last document examined
	rest                   int    // items of the last slice behind it
	full, over             bool   // the page, the budget
	err                    error
}

// examine examines a slice until the page is full or the budget is spent. it is the current item.
func (r *queryRun) examine(s keyspace.Slice, it **keyspace.Item) (more bool) {
	r.slices++
	r.dead += s.Dead
	r.examined += s.Dead
	r.work += s.Dead
	for i := range s.Items {
		if r.work >= r.budget {
			r.over = true
			return false
		}
		*it = &s.Items[i].Item
		r.last, r.rest = s.Items[i].After, len(s.Items)-i-1
		r.examined++
		r.work++
		if (*it).Kind != keyspace.Document {
			continue
		}
		more, err := r.results.Add(r.documents.read(s.Items[i].ID, *it))
		r.work += r.results.Work() / queryWork
		if r.full, r.err = !more, err; !more || err != nil {
			return false
		}
	}
	return true
}

func (d *documentQuery) run(x *Context) Reply {
	c, err := x.Container(d.container)
	if err != nil {
		return Fail(err)
	}
	begin := x.Tx.Micros()
	var it *keyspace.Item
	page := query.Page{Count: d.count}
	if d.meta {
		page.Whole = func(*query.Document) string { return withMeta(it.Body, *it) }
	}
	results, err := d.query.Results(page, d.from)
	if err != nil {
		return Fail(err)
	}
	r := queryRun{
		results: results, budget: x.queryBudget(), last: d.position,
		documents: documentReader{needs: d.query.Needs(), now: x.Now()},
	}
	next := x.Tx.Select(c, d.position, func(s keyspace.Slice) (more bool) {
		r.documents.policy = c.Policy()
		return r.examine(s, &it)
	})
	position := ""
	switch {
	case r.err != nil:
		return Fail(r.err)
	case r.over && !results.Streams():
		return Fail(errorf(errQueryBudget, r.budget))
	case r.over || r.full && (next != 0 || r.rest > 0):
		position = strconv.FormatUint(r.last, 10)
	}
	rows, cursor, err := results.Finish(position)
	if err != nil {
		return Fail(err)
	}
	if d.explain {
		return d.explanation(&r, x.Tx.Micros()-begin)
	}
	replies := make([]Reply, 0, 2*len(rows))
	for _, row := range rows {
		if d.ids {
			replies = append(replies, Bulk(row.ID))
		}
		replies = append(replies, Bulk(row.Text))
	}
	return Array(Bulk(cursor), Array(replies...))
}

// DefaultQueryBudget is the default of query-budget.
const DefaultQueryBudget = 1_000_000

// queryBudget returns how many documents a query may examine. A query in EXEC holds the locks of its
// transaction, so it has a tenth.
func (x *Context) queryBudget() int {
	budget := int(x.Engine.QueryBudget.Load())
	if budget == 0 {
		budget = DefaultQueryBudget
	}
	if x.Session.multi.open {
		budget = max(1, budget/10)
	}
	return budget
}

// explanation is the reply of EXPLAIN.
func (d *documentQuery) explanation(r *queryRun, micros int64) Reply {
	order := Null
	if d.query.Sorts() {
		order = Bulk("sort")
	}
	return Map(
		Bulk("plan"), Bulk("scan"),
		Bulk("index"), Null,
		Bulk("range"), Null,
		Bulk("filter"), Null,
		Bulk("order"), order,
		Bulk("examined"), Count(r.examined),
		Bulk("dead"), Count(r.dead),
		Bulk("matched"), Count(r.results.Matched),
		Bulk("slices"), Count(r.slices),
		Bulk("microseconds"), Integer(micros),
		Bulk("advice"), Null,
	)
}

// documentReader makes the documents that a query examines. It reads no more than the query needs.
type documentReader struct {
	needs  query.Needs
	policy *expiry.Policy
	now    int64
	doc    query.Document
}

// read returns a document that is valid until the next read.
func (r *documentReader) read(id string, it *keyspace.Item) *query.Document {
	doc := &r.doc
	doc.Text, doc.ID, doc.Time = it.Body, id, it.TS
	if r.needs.Etag {
		doc.Etag = etag(it.Version)
	}
	if r.needs.Ends {
		doc.Ends, doc.Left = 0, 0
		if end, ok := r.policy.End(it.TS, it.ExpireAt); ok {
			doc.Ends, doc.Left = end, end-r.now
		}
	}
	if r.needs.TTL {
		doc.TTL, doc.HasTTL = effectiveTTL(r.policy, it)
	}
	return doc
}

// effectiveTTL returns the time to live in seconds that rules a document, -1 for ever. ok is false in a
// container that is off.
func effectiveTTL(p *expiry.Policy, it *keyspace.Item) (ttl int64, ok bool) {
	own := jsondoc.FromValid(it.Body)
	switch p.Source(it.ExpireAt, own.TTLErr != nil) {
	case "document":
		return int64(own.TTL), true
	case "container", "ignored":
		return int64(p.Default), true
	}
	return 0, false
}
