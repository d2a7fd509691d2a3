package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Queries and indexes. mayfly alone is measured: Redis without modules has neither. The documents of a
// workload have a number, a short string and a unique string of 24 bytes. An index over each is created where
// it is needed.

// queryName begins the names of these workloads.
const queryName = "query: "

// The paths of the indexes.
const (
	numberPath = "/total"
	shortPath  = "/customer" // 7 bytes, one in 99,991 documents
	uniquePath = "/token"    // 24 bytes
)

// queryBody returns a document of bodySize bytes. Versions differ in what their names say.
func queryBody(i int, change change) string {
	customer, total, token, note := i, i, i, 0
	switch change {
	case changeNote:
		note = 1
	case changeNumber:
		total++
	case changeAll:
		customer, total, token = i+1, i+1, i+1_000_000_000
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%d,"customer":"c-%05d","total":%d.%02d,"token":"t-%022d","note":"`, i, customer%99991, total%900, total%100, token)
	for b.Len() < bodySize-2 {
		b.WriteByte("lorem ipsum dolor sit amet "[(note+b.Len())%27])
	}
	b.WriteString(`"}`)
	return b.String()
}

// change says what a write changes of a document.
type change int

const (
	changeNothing change = iota
	changeNote           // nothing that is indexed
	changeNumber         // the number
	changeAll            // all that is indexed
)

// fillForQueries writes the documents and creates the indexes of queries.
func (s *server) fillForQueries(ctx context.Context, ids int) error {
	if _, err := s.do(ctx, mayflyKind.newSet(set, longTTL)...); err != nil {
		return err
	}
	if err := s.writeForQueries(ctx, ids, changeNothing); err != nil {
		return err
	}
	for _, path := range []string{numberPath, shortPath} {
		if err := s.buildIndex(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// writeForQueries writes documents.
func (s *server) writeForQueries(ctx context.Context, ids int, change change) error {
	return pipelined(ctx, s.addr, ids, 0, func(b []byte, i int) []byte {
		return appendCommand(b, "DOC.PUT", set, id(set, i), queryBody(i, change))
	}, nil)
}

// buildIndex creates an index and waits until it is ready.
func (s *server) buildIndex(ctx context.Context, path string) error {
	if _, err := s.do(ctx, "INDEX.CREATE", set, path); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTime); ctx.Err() == nil; sleep(ctx, 10*time.Millisecond) {
		state, err := s.indexField(ctx, path, "state")
		if err != nil || state == "ready" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("index %s does not get ready", path)
		}
	}
	return ctx.Err()
}

// indexField returns a field of an index of one path, as INDEX.LIST has it in RESP2.
func (s *server) indexField(ctx context.Context, path, name string) (any, error) {
	reply, err := s.do(ctx, "INDEX.LIST", set)
	if err != nil {
		return nil, err
	}
	indexes, _ := reply.([]any)
	for _, index := range indexes {
		fields := make(map[string]any)
		pairs, _ := index.([]any)
		for i := 0; i+1 < len(pairs); i += 2 {
			fields[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		if fmt.Sprint(fields["paths"]) == "["+path+"]" {
			return fields[name], nil
		}
	}
	return nil, fmt.Errorf("no index %s", path)
}

// costs are the metrics of work that is repeated on one connection. target is of the CPU time; 0 means none.
func costs(target float64) []metric {
	return []metric{{name: "server CPU", unit: seconds, better: less, bound: target}, {name: "time", unit: seconds, better: less}}
}

// queryJob sends a query again and again on one connection. args makes the arguments after the container. The
// sample has the server's CPU time and the time of one, in seconds.
func queryJob(args func(rng *rand.Rand) []string) job {
	return func(ctx context.Context, c *comparison, s *server) (sample, error) {
		conns, closeConns, err := dial(ctx, s.addr, 1)
		if err != nil {
			return nil, err
		}
		defer closeConns()
		rng := rand.New(rand.NewPCG(7, uint64(c.round)))
		var out []byte
		return s.cost(func() (int, error) {
			n := 0
			for began := time.Now(); time.Since(began) < c.span(2*time.Second) && ctx.Err() == nil; n++ {
				out = appendCommand(out[:0], append([]string{"DOC.QUERY", set}, args(rng)...)...)
				if _, err := conns[0].Write(out); err != nil {
					return 0, err
				}
				if err := skipReply(conns[0].in); err != nil {
					return 0, err
				}
			}
			return n, ctx.Err()
		})
	}
}

// cost returns the server's CPU time and the time of one of the things that work does, in seconds.
func (s *server) cost(work func() (n int, err error)) (sample, error) {
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	n, err := work()
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := s.cpu()
	n = max(n, 1)
	return sample{(after - before).Seconds() / float64(n), took.Seconds() / float64(n)}, err
}

// fixedQuery is a query without parameters.
func fixedQuery(text string) func(*rand.Rand) []string {
	return func(*rand.Rand) []string { return []string{text} }
}

// fromAny is a query whose parameter @min is any number that the documents have.
func fromAny(text string) func(*rand.Rand) []string {
	return func(rng *rand.Rand) []string {
		return []string{text, "PARAMS", "@min", strconv.Itoa(rng.IntN(800))}
	}
}

// anyHundredth counts the documents of a hundredth of the numbers.
func anyHundredth(rng *rand.Rand) []string {
	from := rng.IntN(800)
	return []string{"SELECT VALUE COUNT(1) WHERE total >= @from AND total < @to", "PARAMS", "@from", strconv.Itoa(from), "@to", strconv.Itoa(from + 9)}
}

func anyCustomer(rng *rand.Rand) []string {
	return []string{"WHERE customer = @c", "PARAMS", "@c", fmt.Sprintf(`"c-%05d"`, rng.IntN(99_991))}
}

// buildJob builds an index over unique strings. The sample has the CPU time and the time a document, and the
// memory a document of this index, of the one over numbers and of the one over short strings.
func buildJob(ctx context.Context, c *comparison, s *server) (sample, error) {
	values, err := s.cost(func() (int, error) { return c.ids(), s.buildIndex(ctx, uniquePath) })
	if err != nil {
		return nil, err
	}
	for _, path := range []string{uniquePath, numberPath, shortPath} {
		bytes, err := s.indexField(ctx, path, "bytes")
		n, ok := bytes.(int64)
		if err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("bytes of index %s: %v", path, bytes))
		}
		values = append(values, float64(n)/float64(c.ids()))
	}
	_, err = s.do(ctx, "INDEX.DROP", set, uniquePath)
	return values, err
}

// writeJob overwrites documents with no, one and three indexes. The sample has the ratios of CPU time to that
// without an index: one and three indexes of which nothing changes, one of three changes, all of one and all
// of three change.
func writeJob(ctx context.Context, c *comparison, _ *server) (sample, error) {
	s, err := mayflyKind.start(ctx, c.options)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	if _, err := s.do(ctx, mayflyKind.newSet(set, -1)...); err != nil {
		return nil, err
	}
	n := c.ids() / 2
	cost := func(change change) (float64, error) {
		// The documents are as they were before each change.
		if err := s.writeForQueries(ctx, n, changeNothing); err != nil {
			return 0, err
		}
		if err := quiet(ctx, s); err != nil {
			return 0, err
		}
		one, err := s.cost(func() (int, error) { return n, s.writeForQueries(ctx, n, change) })
		if err != nil {
			return 0, err
		}
		return one[0], nil
	}
	// The first documents that are overwritten cost less than all that follow: no checkpoint has come yet.
	if _, err := cost(changeAll); err != nil {
		return nil, err
	}
	without, err := cost(changeAll)
	if err != nil {
		return nil, err
	}
	var values sample
	measure := func(changes ...change) error {
		for _, change := range changes {
			with, err := cost(change)
			if err != nil {
				return err
			}
			values = append(values, with/without)
		}
		return nil
	}
	err = s.buildIndex(ctx, numberPath)
	if err == nil {
		err = measure(changeNote, changeAll)
	}
	for _, path := range []string{shortPath, uniquePath} {
		if err == nil {
			err = s.buildIndex(ctx, path)
		}
	}
	if err == nil {
		err = measure(changeNote, changeNumber, changeAll)
	}
	return values, err
}

// pagingJob reads documents at a steady pace, alone and then beside a client that pages through all
// documents. The sample has the p99 of both, their ratio, and the time of one page.
func pagingJob(ctx context.Context, c *comparison, s *server) (sample, error) {
	reads := func(*rand.Rand) request {
		return func(b []byte, rng *rand.Rand) []byte { return s.get(b, set, rng.IntN(c.ids())) }
	}
	p99 := func(beside func(stop <-chan struct{}) error) (float64, error) {
		stop, failed := make(chan struct{}), make(chan error, 1)
		timer := time.AfterFunc(c.span(bystanderTime), func() { close(stop) })
		defer timer.Stop()
		go func() { failed <- beside(stop) }()
		const readers = 4
		p, err := openLoop(ctx, s.addr, readers, bystanderPace, stop, reads)
		if err := errors.Join(err, <-failed); err != nil {
			return 0, err
		}
		return time.Duration(p.latency.ValueAtPercentile(99)).Seconds(), nil
	}
	alone, err := p99(func(stop <-chan struct{}) error { <-stop; return nil })
	if err != nil {
		return nil, err
	}
	pages, began, took := 0, time.Now(), time.Duration(0)
	beside, err := p99(func(stop <-chan struct{}) error {
		client := s.client(1)
		defer client.Close()
		defer func() { took = time.Since(began) }()
		began = time.Now()
		for cursor := "0"; ctx.Err() == nil; pages++ {
			select {
			case <-stop:
				return nil
			default:
			}
			page, err := client.Do(ctx, "DOC.QUERY", set, "", "CURSOR", cursor).Slice()
			if err != nil {
				return err
			}
			cursor = fmt.Sprint(page[0])
		}
		return ctx.Err()
	})
	return sample{alone, beside, beside / alone, took.Seconds() / float64(max(pages, 1))}, err
}

// queryDocuments is the dataset of queries.
var queryDocuments = dataset{ready: true, queries: true}

// queryWorkloads are the rows about queries and indexes. They run only if -only names them.
var queryWorkloads = []workload{
	query("equality, about 10 rows", anyCustomer, 40e-6),
	query("range, ORDER BY, LIMIT 10", fromAny("WHERE total >= @min ORDER BY total LIMIT 10"), 40e-6),
	query("range, ORDER BY, LIMIT 1000", fromAny("WHERE total >= @min ORDER BY total LIMIT 1000"), 1.5e-3),
	query("COUNT of a hundredth by range", anyHundredth, 0.7e-3),
	query("COUNT by scan", fixedQuery("SELECT VALUE COUNT(1) WHERE note = 'none'"), 200e-3),
	query("the next 10 to die", fixedQuery("SELECT _id, _ttlleft ORDER BY _expiresat LIMIT 10"), 60e-6),
	{name: queryName + "build an index", data: queryDocuments, ours: buildJob, metrics: []metric{
		{name: "server CPU a document", unit: seconds, better: less, bound: 1e-6},
		{name: "time a document", unit: seconds, better: less},
		{name: "memory a document, unique strings of 24 bytes", unit: bytesEach, better: less, bound: 100},
		{name: "memory a document, numbers", unit: bytesEach, better: less, bound: 32},
		{name: "memory a document, strings of 7 bytes", unit: bytesEach, better: less, bound: 32},
	}},
	{name: queryName + "GET beside a client that pages through everything", data: queryDocuments, ours: pagingJob, metrics: []metric{
		{name: "p99 alone", unit: seconds, better: less},
		{name: "p99 beside it", unit: seconds, better: less},
		{name: "the same / alone", unit: times, better: less, bound: 1.5},
		{name: "time of a page", unit: seconds, better: less},
	}},
	{name: queryName + "CPU of DOC.PUT with indexes to that without", data: ownServers, ours: writeJob, metrics: []metric{
		{name: "one index, nothing indexed changes", unit: times, better: less, bound: 1.15},
		{name: "one index, it changes", unit: times, better: less, bound: 1.6},
		{name: "three indexes, nothing indexed changes", unit: times, better: less, bound: 1.3},
		{name: "three indexes, one changes", unit: times, better: less, bound: 1.5},
		{name: "three indexes, all change", unit: times, better: less, bound: 2.5},
	}},
}

// query is a workload that sends one query again and again.
func query(name string, args func(*rand.Rand) []string, target float64) workload {
	return workload{name: queryName + name, data: queryDocuments, ours: queryJob(args), metrics: costs(target)}
}
