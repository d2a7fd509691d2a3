package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// The files that -write makes, relative to the root of the repository.
const (
	resultsMarkdown = "bench/RESULTS.md"
	resultsPlot     = "bench/results.svg"
)

// results holds a whole comparison. -json writes it.
type results struct {
	Machine machine `json:"machine"`
	Quick   bool    `json:"quick"` // its figures are not to be quoted
	IDs     int     `json:"ids"`
	Rounds  int     `json:"rounds"`
	Took    string  `json:"took"`
	Rows    []row   `json:"rows"`
	Pace    float64 `json:"pace"` // requests a second of the open loop
}

// row holds one metric of one workload.
type row struct {
	Work   string    `json:"work"`
	Metric string    `json:"metric"`
	Unit   unit      `json:"unit"`
	Better direction `json:"better"`
	Target float64   `json:"target,omitempty"` // of the ratio of the medians, ours to theirs
	Bound  float64   `json:"bound,omitempty"`  // of our median
	Ours   []float64 `json:"ours"`
	Theirs []float64 `json:"theirs"` // empty without Redis

	Failure string `json:"failure,omitempty"` // why the row has no figures
}

// add adds the samples of a workload.
func (r *results) add(w workload, ours, theirs []sample) {
	values := func(samples []sample, i int) []float64 {
		list := make([]float64, 0, len(samples))
		for _, s := range samples {
			list = append(list, s[i])
		}
		return list
	}
	for i, m := range w.metrics {
		added := w.row(m)
		added.Ours, added.Theirs = values(ours, i), values(theirs, i)
		r.Rows = append(r.Rows, added)
	}
}

// fail adds a workload that failed.
func (r *results) fail(w workload, err error) {
	for _, m := range w.metrics {
		added := w.row(m)
		added.Failure, _, _ = strings.Cut(err.Error(), "\n")
		r.Rows = append(r.Rows, added)
	}
}

// failure returns an error that names the workloads that failed, if any.
func (r *results) failure() error {
	var works []string
	for _, row := range r.Rows {
		if row.Failure != "" && !slices.Contains(works, row.Work) {
			works = append(works, row.Work)
		}
	}
	if works == nil {
		return nil
	}
	return fmt.Errorf("not measured: %s", strings.Join(works, "; "))
}

// row returns a row without figures.
func (w workload) row(m metric) row {
	return row{Work: w.name, Metric: m.name, Unit: m.unit, Better: m.better, Target: m.target, Bound: m.bound}
}

// find returns the index of the first row of a workload with figures, -1 if none exists.
func (r *results) find(work string) int {
	return slices.IndexFunc(r.Rows, func(r row) bool { return r.Work == work && r.Failure == "" })
}

// publish prints the results and writes the files that the options name.
func (r *results) publish(ctx context.Context, o options) error {
	if o.json != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.write {
		if err := os.WriteFile(resultsPlot, []byte(r.plot()), 0o644); err != nil {
			return err
		}
	}
	return o.publish(ctx, "compare", r.markdown())
}

// ratio compares the sides; NaN without Redis.
func (r row) ratio() spread { return ratioOf(r.Ours, r.Theirs) }

// verdict says whether the target is met, or by how much it is missed. It is empty without a target or
// without figures.
func (r row) verdict() string {
	value, target := r.ratio().Median, r.Target
	if r.Bound != 0 {
		value, target = spreadOf(r.Ours).Median, r.Bound
	}
	switch {
	case target == 0 || math.IsNaN(value):
		return ""
	case r.Better == more && value >= target || r.Better == less && value <= target:
		return "met"
	}
	return "**missed** by " + digits(100*math.Abs(value/target-1)) + " %"
}

// goal renders the target.
func (r row) goal() string {
	sign := "≥"
	if r.Better == less {
		sign = "≤"
	}
	switch {
	case r.Bound != 0:
		return "mayfly " + sign + " " + r.Unit.format(r.Bound)
	case r.Target != 0:
		return sign + " " + digits(r.Target)
	}
	return ""
}

// markdown renders the results as a page.
func (r *results) markdown() string {
	page := "## Side by side with Redis\n\n"
	page += fmt.Sprintf("%d ids, documents of %d bytes, %d connections; medians of %d (%d where servers of their own are started), smallest and largest in parentheses. "+
		"Ratio is mayfly to Redis; in parentheses between rounds. It took %s.\n\n", r.IDs, bodySize, connections, r.Rounds, min(r.Rounds, fewRounds), r.Took)
	var rows [][]string
	met, judged := 0, 0
	for _, row := range r.Rows {
		verdict := row.verdict()
		if verdict != "" {
			judged++
		}
		if verdict == "met" {
			met++
		}
		theirs, ratio := noRedis, "–"
		if r.Machine.Redis != "" || strings.HasPrefix(row.Work, queryName) { // it has nothing like it
			theirs = "–"
		}
		if len(row.Theirs) > 0 {
			theirs = row.Unit.formatSpread(spreadOf(row.Theirs))
			s := row.ratio()
			ratio = fmt.Sprintf("%s (%s–%s)", digits(s.Median), digits(s.Min), digits(s.Max))
		}
		ours := row.Unit.formatSpread(spreadOf(row.Ours))
		if row.Failure != "" {
			ours, theirs, verdict = "–", "–", "**failed**: "+row.Failure
		}
		rows = append(rows, []string{row.Work, row.Metric, ours, theirs, ratio, row.goal(), verdict})
	}
	page += table([]string{"work", "what", mayflyKind.name, redisKind.name, "ratio", "target", ""}, rows)
	page += fmt.Sprintf("\n%d of %d targets met.\n", met, judged)
	if r.Pace > 0 {
		page += fmt.Sprintf("The latencies of the mix are those at %s.\n", perSecond.format(r.Pace))
	}
	return page
}
