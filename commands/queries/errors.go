package queries

import (
	"mayfly/commands/engine"
	"mayfly/keyspace/selection"
)

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errQueryCursor     = `ERR invalid cursor %s: legal are "0" and what the page before returned`
	errQueryIndexGone  = engine.Error(`ERR invalid cursor: its index is gone; begin again with "0"`)
	errQueryLongRun    = engine.Error(`ERR invalid cursor: its index no longer gives the order of this page; begin again with "0"`)
	errIDsOfGroups     = engine.Error("ERR WITHIDS is legal for documents only, not for aggregates, GROUP BY and DISTINCT")
	errMetaNeedsAll    = engine.Error("ERR WITHMETA is legal with SELECT * only")
	errUnquoted        = "ERR the query is %s alone, and %s is no option: quote the query, as in \"WHERE a = 1\""
	errQueryCount      = "ERR invalid COUNT %s: legal are 1 to %d"
	errQueryParams     = "ERR PARAMS with %d values: legal are pairs of @name and value in JSON, as the last option"
	errQueryParamsLast = "ERR %s after PARAMS: PARAMS is the last option, and its names begin with @"
	errQueryBudget     = "ERR query would examine more than %d documents (query-budget)"
	errQueryBudgetWork = "; it stopped after %d, as each %d KiB of text and values counts as one more"
)

// cursorError returns the error of a page whose index does not serve it any more.
func cursorError(err error) error {
	switch err {
	case selection.ErrIndexGone:
		return errQueryIndexGone
	case selection.ErrLongRun:
		return errQueryLongRun
	}
	return err
}
