package queries

import (
	"errors"
	"slices"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/query"
	"mayfly/query/page"
)

// QueryCommands find living documents by their content.
var QueryCommands = []engine.Command{
	{
		Name: "doc.query", Syntax: "container query [COUNT count] [CURSOR cursor] [WITHIDS] [WITHMETA] [EXPLAIN] [PARAMS name json [name json ...]]",
		Example: `orders "WHERE status = 'open' ORDER BY total DESC LIMIT 10"`,
		Summary: "Finds living documents by a query in Cosmos DB's language. It returns the cursor of the next page, \"0\" at the end, and the rows.",
		Touches: engine.TouchesNamed | engine.ReadsUnnamed, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Parse: parseDocQuery,
	},
}

// documentQuery is a parsed DOC.QUERY.
type documentQuery struct {
	container string
	query     *query.Query
	cursor    string
	from      page.Cursor
	count     int
	ids, meta bool
	explain   bool
}

func parseDocQuery(in *engine.Input) (engine.Run, error) {
	d := &documentQuery{container: in.Args[1], cursor: "0", count: page.DefaultCount}
	var params []query.Param
	o := items.NamedOptions{Args: in.Args[3:], Legal: []string{"COUNT", "CURSOR", "WITHIDS", "WITHMETA", "EXPLAIN", "PARAMS"}, Meant: meantQueryOption}
	for o.Next() {
		switch o.Name {
		case "COUNT":
			value := o.Value("a whole number of at least 1")
			n, ok := items.ParseCount(value)
			if !ok || n > page.MaxCount {
				o.Fail(engine.Errorf(errQueryCount, expiry.Quote(value), page.MaxCount))
			}
			d.count = n
		case "CURSOR":
			d.cursor = o.Value(`"0" or what the page before returned`)
		case "WITHIDS":
			d.ids = true
		case "WITHMETA":
			d.meta = true
		case "EXPLAIN":
			d.explain = true
		case "PARAMS":
			values := o.Values("a name and its value in JSON")
			for i := 0; i < len(values) && o.Err == nil; i += 2 {
				if word := strings.ToUpper(values[i]); slices.Contains(o.Legal, word) {
					o.Fail(engine.Errorf(errQueryParamsLast, word))
				} else if i+1 == len(values) {
					o.Fail(engine.Errorf(errQueryParams, len(values)))
				} else {
					params = append(params, query.Param{Name: values[i], JSON: values[i+1]})
				}
			}
		}
	}
	if o.Err != nil {
		if o.Given == 0 && in.Args[2] != "" && !strings.ContainsAny(in.Args[2], " \n\t") && o.Meant(in.Args[3]) == "" {
			return nil, engine.Errorf(errUnquoted, expiry.Quote(in.Args[2]), expiry.Quote(in.Args[3]))
		}
		return nil, o.Err
	}
	var err error
	if d.query, err = query.Parse(in.Args[2], params); err != nil {
		return nil, err
	}
	d.query.Scope(d.container)
	if d.from, err = page.ParseCursor(d.query, d.cursor); errors.Is(err, page.ErrCursor) {
		return nil, d.errCursor()
	} else if err != nil {
		return nil, err
	}
	switch {
	case d.ids && (d.query.Grouped() || d.query.Distinct()):
		return nil, errIDsOfGroups
	case d.meta && !d.query.Whole():
		return nil, errMetaNeedsAll
	}
	return d.run, nil
}

// errCursor returns the error of a cursor that no page has returned.
func (d *documentQuery) errCursor() error {
	return engine.Errorf(errQueryCursor, expiry.Quote(d.cursor))
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
