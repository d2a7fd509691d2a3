package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

const (
	rulesFile     = "deploy/prometheus/mayfly.rules.yml"
	dashboardFile = "deploy/grafana/mayfly.json"
)

// exportedMetrics returns the names of all metrics that a server exports: a node of a cluster, with a log of
// deaths and an error.
func exportedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	address, own := harness.FreeAddress(t), harness.FreeAddress(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"),
		"--metrics-addr", address, "--cluster-id", "a", "--cluster-addr", own, "--cluster-peers", "a="+own)
	ctx := t.Context()
	db := p.Client()
	for _, command := range [][]any{{"CONTAINER.CREATE", "carts", "TTL", 10, "LOG", 60}, {"DOC.PUT", "carts", "1", "{}"}} {
		drill.Check(t, db.Do(ctx, command...).Err())
	}
	if err := db.Do(ctx, "SET", "a").Err(); err == nil {
		t.Fatal("a command without its arguments is run")
	}
	names := map[string]bool{"up": true} // of Prometheus itself
	samples := regexp.MustCompile(`(?m)^(\w+)`)
	harness.WaitFor(t, "the metrics of a leader", func() bool {
		_, body := harness.Fetch(t, address, "/metrics")
		for _, m := range samples.FindAllStringSubmatch(body, -1) {
			names[m[1]] = true
		}
		return names["mayfly_cluster_member_lag_entries"]
	})
	return names
}

// metricsOf returns the names of metrics of ours in an expression.
func metricsOf(expr string) []string {
	return regexp.MustCompile(`\b(?:mayfly_\w+|up\b)`).FindAllString(expr, -1)
}

// TestDeployAlerts: the rules are sound. Each fires when it should, uses metrics that exist, and has a
// chapter that says what to do.
func TestDeployAlerts(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	text, err := os.ReadFile(rulesFile)
	drill.Check(t, err)
	tests, err := os.ReadFile("deploy/prometheus/mayfly.rules.test.yml")
	drill.Check(t, err)
	chapters := harness.Anchors(harness.Guides(t)["docs/operations.md"])
	exported := exportedMetrics(t)
	alerts := regexp.MustCompile(`(?m)^      - alert: (\w+)\n(?:        .*\n)+`).FindAllStringSubmatch(string(text), -1)
	if want := strings.Count(string(text), "- alert:"); len(alerts) != want || want == 0 {
		t.Fatalf("%d of %d alerts are understood", len(alerts), want)
	}
	for _, alert := range alerts {
		name, rule := alert[1], alert[0]
		expr := regexp.MustCompile(`(?m)^        expr: (.*)$`).FindStringSubmatch(rule)
		if expr == nil || len(metricsOf(expr[1])) == 0 {
			t.Errorf("%s has no expression with a metric", name)
			continue
		}
		for _, metric := range metricsOf(expr[1]) {
			if !exported[metric] {
				t.Errorf("%s: no server exports %s", name, metric)
			}
		}
		if !regexp.MustCompile(`severity: (page|ticket)\b`).MatchString(rule) {
			t.Errorf("%s has no severity", name)
		}
		if !strings.Contains(rule, "\n          runbook: docs/operations.md#"+strings.ToLower(name)+"\n") || !chapters[strings.ToLower(name)] {
			t.Errorf("%s has no chapter in docs/operations.md", name)
		}
		if !strings.Contains(string(tests), "\n  - name: "+name+"\n") {
			t.Errorf("no test makes %s fire", name)
		}
	}
	harness.Need(t, "promtool")
	harness.Run(t, nil, "promtool", "check", "rules", rulesFile)
	harness.Run(t, nil, "promtool", "test", "rules", "deploy/prometheus/mayfly.rules.test.yml")
}

// dashboard is what the tests read of a dashboard of Grafana.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			RefID, Expr, LegendFormat string
			Datasource                struct{ UID string }
		}
	}
}

// TestDeployDashboard: Grafana can show the dashboard, of metrics that exist, in PromQL that Prometheus
// understands.
func TestDeployDashboard(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	text, err := os.ReadFile(dashboardFile)
	drill.Check(t, err)
	var d dashboard
	drill.Check(t, json.Unmarshal(text, &d))
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Errorf("the dashboard has no uid, title, version or panels")
	}
	exported := exportedMetrics(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name+" "+v.Type)
		for _, metric := range metricsOf(fmt.Sprint(v.Query)) {
			if !exported[metric] {
				t.Errorf("variable %s: no server exports %s", v.Name, metric)
			}
		}
	}
	if want := []string{"datasource datasource", "job query", "instance query"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
	const source = "${datasource}"
	ids, taken := map[int]bool{}, map[[2]int]string{}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: panels\n  rules:\n")
	variable := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d, %q: the id is taken, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.X < 0 || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is at %+v, outside of the 24 columns", p.Title, p.GridPos)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies upon %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != source {
			t.Errorf("%s shows nothing, or of a fixed data source", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != source || target.RefID == "" || target.LegendFormat == "" || len(metricsOf(target.Expr)) == 0 {
				t.Errorf("%s: %+v is not complete", p.Title, target)
			}
			for _, metric := range metricsOf(target.Expr) {
				if !exported[metric] {
					t.Errorf("%s: no server exports %s", p.Title, metric)
				}
			}
			expr := variable.Replace(target.Expr)
			if strings.Contains(expr, "$") || strings.Count(expr, "{job=~") != len(metricsOf(expr)) {
				t.Errorf("%s: %s has an unknown variable, or chooses no server", p.Title, target.Expr)
			}
			fmt.Fprintf(&rules, "  - {record: 'panel:%d:%s', expr: '%s'}\n", p.ID, target.RefID, expr)
		}
	}
	harness.Need(t, "promtool")
	harness.Run(t, nil, "promtool", "check", "rules", harness.WriteFile(t, "panels.yml", rules.String()))
}
