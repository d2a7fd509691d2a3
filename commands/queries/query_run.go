package queries

import (
	"encoding/binary"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/selection"
	"mayfly/query"
	"mayfly/query/page"
	"mayfly/query/predicates"
)

// DefaultQueryBudget is the default of query-budget.
const DefaultQueryBudget = 1_000_000

// queryWork is the work on a document, in bytes, that counts as one more document examined. So long documents
// and long queries are paid from the same budget.
const queryWork = 8 << 10

// watchedWork is the work on documents, in bytes, after which a query looks whether it is abandoned.
const watchedWork = 4 << 10

// prefetchedItems is the number of documents whose memory is read ahead at a time.
const prefetchedItems = 16

// mostLooked is the number of documents in which EXPLAIN looks for the members that a query names.
const mostLooked = 1000

// queryRun is a DOC.QUERY that runs.
type queryRun struct {
	*documentQuery
	x         *engine.Context
	c         *keyspace.Container
	results   *page.Page
	documents documentReader
	current   *keyspace.Item
	watch     engine.Watch
	budget    int

	plan    selection.Plan
	indexed bool
	after   string       // of a scan in the order of hashes: the id behind which it goes on
	goesOn  bool         // after is set
	roots   *query.Roots // of EXPLAIN
	place   selection.Place
	ends    *predicates.Ends // nil unless the order of death serves the query
	end     selection.EndPlace
	nearest *predicates.Nearest // nil unless an index over points gives the order
	ids     *predicates.IDs     // nil unless the query demands ids
	left    []string            // of ids

	examined, dead, slices int
	prefetched             int    // see selection.Prefetch
	work                   int    // in documents; see queryWork
	position               string // behind the last document examined
	more                   bool   // something follows there
	over                   bool   // the budget is spent
	err                    error
}

// mostPlans bounds how often a query is planned anew because its index was dropped or has ceased to give the
// order since it was chosen. No client knows of the index unless a cursor names it.
const mostPlans = 3

func (d *documentQuery) run(x *engine.Context) engine.Reply {
	var reply engine.Reply
	var err error
	for range mostPlans {
		reply, err = d.runPlan(x, err == errQueryLongRun)
		if err != errQueryIndexGone && err != errQueryLongRun || d.from.Position != "" {
			break
		}
	}
	if err != nil {
		return engine.Fail(err)
	}
	return reply
}

// runPlan plans the query and runs it. sorts says that no index is to give the order.
func (d *documentQuery) runPlan(x *engine.Context, sorts bool) (engine.Reply, error) {
	c, err := x.Container(d.container)
	if err != nil {
		return engine.Null, err
	}
	begin := x.Tx.Micros()
	r := &queryRun{
		documentQuery: d, x: x, c: c, budget: queryBudget(x), watch: x.WatchClient(),
		documents: documentReader{needs: d.query.Needs(), now: x.Now()},
	}
	if d.from.Moment > 0 {
		r.documents.now = d.from.Moment
	}
	if d.explain {
		r.roots = d.query.Roots()
	}
	if err := r.choose(sorts); err != nil {
		return engine.Null, err
	}
	options := page.Options{Count: d.count, Moment: r.documents.now, Ordered: r.ordered(), Defined: r.ordersDefined(), Shared: true, Proven: r.proves()}
	if d.meta {
		options.Whole = func(*query.Document) string { return items.WithMeta(r.current.Body, *r.current) }
	}
	newResults := func() (*page.Page, error) { return page.New(d.query, options, d.from) }
	if r.results, err = newResults(); err != nil {
		return engine.Null, err
	}
	if r.nearest != nil && r.results.Wanted() > mostNearest {
		r.nearest, r.indexed = nil, false
	}
	err = r.read(newResults)
	x.Examined += r.work
	x.Engine.Queries.Add(r.counts())
	switch {
	case err != nil:
		return engine.Null, err
	case r.over && !r.results.Streams():
		return engine.Null, r.overBudget()
	case !r.more:
		r.position = ""
	}
	rows, cursor, err := r.results.Finish(r.position)
	if err != nil {
		return engine.Null, err
	}
	if d.explain {
		return r.explanation(x.Tx.Micros() - begin), nil
	}
	replies := make([]engine.Reply, 0, 2*len(rows))
	for _, row := range rows {
		if d.ids {
			replies = append(replies, engine.Bulk(row.ID))
		}
		replies = append(replies, engine.Bulk(row.Text))
	}
	return engine.Array(engine.Bulk(cursor), engine.Array(replies...)), nil
}

// The first bytes of positions in cursors.
const (
	scanPosition  = 'h' // then four bytes that tell the order of hashes, and the id
	indexPosition = 'i' // then the definition of the index, a zero byte and the place
	endPosition   = 'e' // then the place
	idPosition    = 'k' // then the id
)

// choose chooses how to read the container: a page goes on as the one before has read. sorts says that no
// index is to give the order.
func (r *queryRun) choose(sorts bool) error {
	position := r.from.Position
	if r.query.Never() {
		return nil
	}
	if ids, ok := predicates.IDsOf(r.query); ok && (position == "" || position[0] == idPosition) {
		if r.ids, r.left = &ids, ids.List; position != "" {
			r.left = ids.After(position[1:])
		}
		return nil
	}
	if position == "" {
		if r.plan, r.indexed = selection.Choose(r.c.IndexSet(), r.query, ""); r.indexed && (sorts || r.from.Sorted()) {
			r.plan.Unorder() // the pages before were sorted, or this one is to be
		}
		if !r.indexed {
			if r.chooseEnds(); r.ends == nil {
				r.chooseNearest()
			}
		}
		return nil
	}
	switch rest := position[1:]; position[0] {
	case scanPosition:
		if len(rest) < 4 {
			return r.errCursor()
		}
		if rest[:4] != r.hashCheck() {
			return engine.ErrQueryOtherFolder
		}
		r.after, r.goesOn = rest[4:], true
	case indexPosition:
		definition, place, _ := strings.Cut(rest, "\x00")
		var ok bool
		if r.place, ok = selection.ParsePlace(place); !ok {
			return r.errCursor()
		}
		if r.plan, r.indexed = selection.Choose(r.c.IndexSet(), r.query, definition); !r.indexed || r.query.Sorts() && !r.plan.Ordered {
			return errQueryIndexGone
		}
	case endPosition:
		var ok bool
		if r.end, ok = selection.ParseEndPlace(rest); !ok {
			return r.errCursor()
		}
		if r.chooseEnds(); r.ends == nil {
			return r.errCursor()
		}
	default:
		return r.errCursor()
	}
	return nil
}

// chooseEnds plans to read the documents in the order of their ends, if the query asks for those.
func (r *queryRun) chooseEnds() {
	if ends, ok := predicates.EndsOf(r.query, r.documents.now); ok {
		ends.Ordered = ends.Ordered && !r.from.Sorted() // the pages before were sorted
		r.ends = &ends
	}
}

// wanted returns the rows that are left of LIMIT if reading can stop after them; 0 if all must be read.
func (r *queryRun) wanted() int {
	if r.results.Streams() && r.from.Limit >= 0 {
		return int(min(r.from.Offset+r.from.Limit, page.MaxCount)) + 1
	}
	return 0
}

// ordered reports whether the plan gives the order of ORDER BY.
func (r *queryRun) ordered() bool {
	return r.indexed && r.plan.Ordered || r.ends != nil && r.ends.Ordered || r.ids != nil && r.ids.Ordered
}

// ordersDefined reports whether the plan gives the order of ORDER BY, and its first value is defined in all
// documents that the plan proves.
func (r *queryRun) ordersDefined() bool {
	return r.indexed && r.plan.Ordered && r.plan.Defined || r.ends != nil && r.ends.Ordered
}

// scans reports whether the query reads the whole container.
func (r *queryRun) scans() bool {
	return !r.indexed && r.ends == nil && r.ids == nil && !r.query.Never()
}

// proves returns the numbers of the conditions that the plan proves.
func (r *queryRun) proves() []int {
	switch {
	case r.ids != nil:
		return r.ids.Proves
	case r.indexed:
		return r.plan.Proves
	case r.ends != nil:
		return r.ends.Proves
	}
	return nil
}

// hashCheck tells the cursors of scans apart from those of other data folders.
func (r *queryRun) hashCheck() string {
	return string(binary.LittleEndian.AppendUint32(nil, r.x.Engine.Keyspace().HashCheck()))
}

// read examines documents until the page is full, the budget is spent, or nothing follows.
func (r *queryRun) read(newResults func() (*page.Page, error)) error {
	switch {
	case r.query.Never():
	case r.ids != nil:
		r.x.Tx.Reader(r.c).IDs(r.left, func(s selection.Slice) bool {
			for i := range s.Items {
				s.Items[i].Proven = true
			}
			return r.examine(s, func(i int) string { return string(idPosition) + s.Items[i].ID })
		})
	case r.nearest != nil:
		r.plan.Index.Used()
		if err := r.readNearest(newResults); err != nil {
			return err
		}
	case r.indexed:
		r.plan.Index.Used()
		r.plan.Count, r.plan.First = r.query.Counts(), r.wanted()
		err := r.x.Tx.Reader(r.c).Index(&r.plan, r.place, func(s selection.Slice, place func(i int) selection.Place) bool {
			return r.examine(s, func(i int) string {
				return string(indexPosition) + r.plan.Index.Definition.String() + "\x00" + place(i).Text()
			})
		})
		if err != nil {
			return cursorError(err)
		}
	case r.ends != nil:
		wanted := selection.EndsRange{Low: r.ends.Low, High: r.ends.High, Count: len(r.ends.Proves) == len(r.query.Conditions()) && r.query.Counts(), First: r.wanted()}
		r.x.Tx.Reader(r.c).Ends(wanted, r.end, func(s selection.Slice, place func(i int) selection.EndPlace) bool {
			for i := range s.Items {
				s.Items[i].Proven = true
			}
			return r.examine(s, func(i int) string { return string(endPosition) + place(i).Text() })
		})
	case r.query.CountsAll():
		r.x.Tx.Reader(r.c).ScanCount(func(s selection.Slice) bool { return r.examine(s, nil) })
	case r.results.Streams(): // a page may end here and go on after a restart
		check := r.hashCheck()
		r.x.Tx.Reader(r.c).HashOrder(r.after, r.goesOn, func(s selection.Slice) bool {
			return r.examine(s, func(i int) string { return string(scanPosition) + check + s.Items[i].ID })
		})
	default:
		r.x.Tx.Reader(r.c).Scan(func(s selection.Slice) bool {
			return r.examine(s, func(int) string { return "" })
		})
	}
	return r.err
}

// examine examines a slice, and reports whether to go on. position returns that behind an item.
func (r *queryRun) examine(s selection.Slice, position func(i int) string) (more bool) {
	r.slices++
	r.dead += s.Dead
	r.examined += s.Dead + s.Counted + s.Plain
	r.work += s.Dead + s.Counted + s.Plain + s.Missed + s.Ordered + s.Walked/queryWork
	if s.Counted > 0 {
		r.results.Count(s.Counted)
	}
	if len(s.Items) == 0 && !s.Last && r.spent(0) {
		return false
	}
	if r.watch.Abandoned(queryWork*s.Dead/64 + s.Walked) {
		return false
	}
	r.documents.policy = r.c.Policy()
	last := len(s.Items) - 1
	unwatched := 0 // work since the last look
	for i := range s.Items {
		if i%prefetchedItems == 0 {
			r.prefetched += selection.Prefetch(s.Items[i:min(i+prefetchedItems, last+1)])
		}
		if r.spent(i) {
			if i > 0 {
				r.position = position(i - 1)
			}
			return false
		}
		it := &s.Items[i].Item
		r.current = it
		r.examined++
		r.work++
		if it.Kind != keyspace.Document {
			continue
		}
		if r.roots != nil && r.examined <= mostLooked {
			r.roots.Look(it.Body)
		}
		doc := r.documents.read(s.Items[i].ID, it)
		doc.Proven = s.Items[i].Proven
		more, err := r.results.Add(doc)
		r.work += r.results.Work() / queryWork
		if err != nil {
			r.err = err
			return false
		}
		if !more {
			r.position, r.more = position(i), i < last || !s.Last
			return false
		}
		if unwatched += r.results.Work() + engine.WorkOfCall; unwatched >= watchedWork {
			if r.watch.Abandoned(unwatched) {
				return false
			}
			unwatched = 0
		}
	}
	if r.watch.Abandoned(unwatched) {
		return false
	}
	if last >= 0 && !s.Last {
		r.position = position(last)
	}
	return true
}

// spent reports whether to stop before item i of a slice because the budget is spent. A page examines one at
// least, so that the next goes on behind it.
func (r *queryRun) spent(i int) bool {
	if r.work < r.budget || i == 0 && r.position == "" && r.results.Streams() {
		return false
	}
	r.over, r.more = true, true
	return true
}

// queryBudget returns how many documents a query may examine.
func budgetOf(e *engine.Engine) int {
	if budget := int(e.QueryBudget.Load()); budget > 0 {
		return budget
	}
	return DefaultQueryBudget
}

// queryBudget is that of the engine but in EXEC and in scripts. There a query holds the locks of its
// transaction, so it has a tenth, and all queries of the transaction together have what one has alone.
func queryBudget(x *engine.Context) int {
	budget := budgetOf(x.Engine)
	if x.Queued {
		budget = max(1, min(budget/10, budget-x.Examined))
	}
	return budget
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
		doc.Etag = engine.ETag(it.Version)
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

// effectiveTTL returns the time to live in seconds that rules a document, -1 for ever. ok is false under
// a deadline and in a container that is off.
func effectiveTTL(p *expiry.Policy, it *keyspace.Item) (ttl int64, ok bool) {
	own := jsondoc.FromValid(it.Body, p.Deadline)
	switch own.Source(p, it.TS, it.ExpireAt) {
	case "hold":
		return int64(expiry.Forever), true
	case "document":
		return items.OwnTTLOf(&own, *it)
	case "container", "ignored":
		return int64(p.Default), true
	}
	return 0, false
}

// counts returns the query for the statistics.
func (r *queryRun) counts() engine.QueryCounts {
	one := engine.QueryCounts{Queries: 1, Examined: int64(r.examined), Dead: int64(r.dead), Slices: int64(r.slices)}
	if r.scans() {
		one.Scans = 1
	}
	if r.over {
		one.OverBudget = 1
	}
	return one
}
