package queries

import (
	"fmt"

	"mayfly/commands/engine"
	"mayfly/keyspace/index"
	"mayfly/keyspace/selection"
	"mayfly/query/predicates"
)

// errQueryBudgetShared follows ErrQueryBudget.
const errQueryBudgetShared = ", which are left of those of all queries of this EXEC or script"

// OverBudget is the error of a query that would have to examine more documents than it may.
func (r *queryRun) overBudget() error {
	what := fmt.Sprintf(errQueryBudget, r.budget)
	if r.examined < r.budget {
		what += fmt.Sprintf(errQueryBudgetWork, r.examined, queryWork>>10)
	}
	if r.x.Queued && r.budget < budgetOf(r.x.Engine)/10 {
		what += errQueryBudgetShared
	}
	help := r.orderAdvice()
	if command := r.indexAdvice(); command != "" {
		help = engine.Shown(command) + " helps"
	}
	if help == "" {
		help = "a narrower query or CONFIG SET query-budget helps"
	}
	return engine.Error(what + ": " + help)
}

// advice returns what would serve the query better, most often the command that makes an index; "" for
// nothing.
func (r *queryRun) advice() string {
	if r.roots != nil && r.results.Matched == 0 && r.examined > 0 {
		if hint := r.roots.Hint(); hint != "" {
			return hint
		}
	}
	if command := r.indexAdvice(); command != "" {
		return command
	}
	return r.orderAdvice()
}

// indexAdvice returns the command that makes an index that would serve the query better, "" if there is none.
func (r *queryRun) indexAdvice() string {
	if r.ids != nil || r.query.Never() {
		return ""
	}
	paths := r.advisedPaths()
	if _, there := selection.Unfit(r.c.IndexSet(), paths); paths == "" || there {
		return ""
	}
	return "INDEX.CREATE " + r.c.Name() + " " + paths
}

// advisedPaths returns the paths of the index that would serve the query best, "" for none better than what
// serves it.
func (r *queryRun) advisedPaths() string {
	var plan *selection.Plan
	if r.indexed {
		plan = &r.plan
	}
	return selection.Advise(r.query, plan, r.results.Wanted() <= mostNearest)
}

// orderAdvice returns what would save the query from sorting, or why the index for that does not; "" for
// nothing.
func (r *queryRun) orderAdvice() string {
	if r.ids != nil || r.query.Never() {
		return ""
	}
	if why, there := selection.Unfit(r.c.IndexSet(), r.advisedPaths()); there && why != "" {
		return why
	}
	if !r.query.Sorts() || r.ordered() {
		return ""
	}
	if paths := index.AdviseOrder(r.query); paths != "" {
		return "an index gives ORDER BY in one direction only, as INDEX.CREATE " + engine.Shown(r.c.Name()+" "+paths)
	}
	if order, ok := predicates.OrderOf(r.query); ok && predicates.IsID(order[0].Path) {
		return "no index is over _id: a condition that an index serves leaves less to sort"
	}
	return ""
}

// explanation is the reply of EXPLAIN.
func (r *queryRun) explanation(micros int64) engine.Reply {
	plan, index, span, order := engine.Bulk("scan"), engine.Null, engine.Null, engine.Null
	if r.query.Sorts() {
		order = engine.Bulk("sort")
	}
	if r.indexed {
		plan, index, span = engine.Bulk("index"), engine.Bulk(r.plan.Index.Definition.String()), engine.Bulk(r.plan.Range)
	}
	switch {
	case r.query.Never():
		span = engine.Bulk("nothing: the condition is never true")
	case r.ids != nil:
		plan, span = engine.Bulk("ids"), engine.Bulk(r.ids.Range)
	case r.ends != nil:
		plan, span = engine.Bulk("ends"), engine.Bulk(r.ends.Range)
	}
	if r.ordered() || r.nearest != nil {
		order = engine.Bulk("index")
	}
	return engine.Map(
		engine.Bulk("plan"), plan,
		engine.Bulk("index"), index,
		engine.Bulk("range"), span,
		engine.Bulk("filter"), engine.TextOrNull(r.query.Filter(r.proves())),
		engine.Bulk("order"), order,
		engine.Bulk("examined"), engine.Count(r.examined),
		engine.Bulk("dead"), engine.Count(r.dead),
		engine.Bulk("matched"), engine.Count(r.results.Matched),
		engine.Bulk("slices"), engine.Count(r.slices),
		engine.Bulk("microseconds"), engine.Integer(micros),
		engine.Bulk("advice"), engine.TextOrNull(r.advice()),
	)
}
