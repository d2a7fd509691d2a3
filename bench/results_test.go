package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name    string
		row     row
		verdict string
		goal    string
	}{
		{"more, met exactly", row{Better: more, Target: 1, Ours: []float64{5}, Theirs: []float64{5}}, "met", "≥ 1.00"},
		{"more, missed", row{Better: more, Target: 1.5, Ours: []float64{6}, Theirs: []float64{5}}, "**missed** by 20.0 %", "≥ 1.50"},
		{"less, met", row{Better: less, Target: 1.2, Ours: []float64{1}, Theirs: []float64{2}}, "met", "≤ 1.20"},
		{"less, missed", row{Better: less, Target: 1.2, Ours: []float64{3}, Theirs: []float64{2}}, "**missed** by 25.0 %", "≤ 1.20"},
		{"a bound of ours needs no Redis", row{Better: less, Unit: times, Bound: 1.5, Ours: []float64{3}}, "**missed** by 100 %", "mayfly ≤ 1.50 x"},
		{"no target", row{Better: more, Ours: []float64{3}, Theirs: []float64{2}}, "", ""},
		{"no Redis", row{Better: more, Target: 1, Ours: []float64{3}}, "", "≥ 1.00"},
		{"no figures", row{Better: less, Bound: 1, Unit: times, Failure: "it broke"}, "", "mayfly ≤ 1.00 x"},
	} {
		if got := tt.row.verdict(); got != tt.verdict {
			t.Errorf("%s: verdict %q, want %q", tt.name, got, tt.verdict)
		}
		if got := tt.row.goal(); got != tt.goal {
			t.Errorf("%s: goal %q, want %q", tt.name, got, tt.goal)
		}
	}
}

// example is a comparison of a few rows, with or without Redis.
func example(withRedis bool) *results {
	r := &results{IDs: 1000, Rounds: 2, Pace: 30_000}
	r.Machine.Date = time.Unix(0, 0).UTC()
	ours, theirs := []sample{{100, 1e-5}, {120, 1e-5}}, []sample(nil)
	if withRedis {
		r.Machine.Redis = "7.0.15"
		theirs = []sample{{100, 3e-5}, {100, 3e-5}}
	}
	r.add(workload{name: "GET & <more>", metrics: rateAndCPU(1.5, 1.2)}, ours, theirs)
	return r
}

func TestMarkdown(t *testing.T) {
	page := example(true).markdown()
	for _, want := range []string{
		"| GET & <more> | throughput ", "| 110 /s (100 /s – 120 /s)", "| 1.10 (1.00–1.20) |", "**missed** by 26.7 %", "1 of 2 targets met.\nThe latencies of the mix are those at 30.0 k/s.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	page = example(false).markdown()
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "| GET") && !strings.Contains(line, noRedis) {
			t.Errorf("without Redis: %s", line)
		}
	}
	if !strings.Contains(page, "0 of 0 targets met") {
		t.Errorf("targets are judged without Redis:\n%s", page)
	}
}

func TestFailure(t *testing.T) {
	r := example(true)
	if err := r.failure(); err != nil {
		t.Errorf("all went well, but %v", err)
	}
	r.fail(workload{name: "PUT", metrics: rateAndCPU(1, 1)}, errors.New("it broke\nwith details"))
	if err := r.failure(); err == nil || err.Error() != "not measured: PUT" {
		t.Errorf("failure %v", err)
	}
	if page := r.markdown(); !strings.Contains(page, "| **failed**: it broke |") {
		t.Errorf("the page hides a failure:\n%s", page)
	}
	if r.find("PUT") >= 0 {
		t.Error("a workload without figures was found")
	}
}

// TestPlot looks whether the pictures are XML and have a bar for each row with a target.
func TestPlot(t *testing.T) {
	bars := func(r *results) (bars int) {
		picture := r.plot()
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, picture)
			}
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
				bars++
			}
		}
		if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
			t.Errorf("places that are no numbers in\n%s", picture)
		}
		return bars - 1 // the background is a rectangle too
	}
	if got := bars(example(true)); got != 2 {
		t.Errorf("%d bars, want 2", got)
	}
	if got := bars(example(false)); got != 0 {
		t.Errorf("%d bars without Redis, want 0", got)
	}
	failed := example(true)
	failed.fail(workload{name: "PUT", metrics: rate(1)}, errors.New("it broke"))
	if got := bars(failed); got != 2 {
		t.Errorf("%d bars with a failed workload, want 2", got)
	}
}

// TestJSON: figures that cannot be had must not make the file unwritable, as NaN would.
func TestJSON(t *testing.T) {
	r := example(false)
	r.fail(workload{name: "PUT", metrics: rate(1)}, errors.New("it broke"))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back results
	if err := json.Unmarshal(text, &back); err != nil || back.markdown() != r.markdown() {
		t.Errorf("read again (%v):\n%s", err, back.markdown())
	}
}

// TestWorkloads holds the table to what the runner needs.
func TestWorkloads(t *testing.T) {
	seen := map[string]int{}
	for i, w := range workloads {
		if _, twice := seen[w.name]; twice {
			t.Errorf("two workloads are named %s", w.name)
		}
		seen[w.name] = i
		if w.ours == nil || (w.theirs == nil) != (strings.HasPrefix(w.name, queryName) || strings.HasPrefix(w.name, jsonName)) || len(w.metrics) == 0 {
			t.Errorf("%s is incomplete", w.name)
		}
		for _, m := range w.metrics {
			if m.better != more && m.better != less || m.name == "" || m.unit == "" || math.IsNaN(m.target) {
				t.Errorf("%s: incomplete metric %+v", w.name, m)
			}
		}
	}
	if _, ok := seen[mixPeak]; !ok {
		t.Errorf("there is no workload %s, on which another depends", mixPeak)
	}
}
