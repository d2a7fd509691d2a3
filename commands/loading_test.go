package commands

import (
	"slices"
	"testing"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/keyspace"
)

// TestLoadingFields: while a data folder is loaded, INFO has the fields of Redis.
func TestLoadingFields(t *testing.T) {
	t.Parallel()
	var tx keyspace.Tx
	tx.BeginDetached(testStart + 30_000)
	defer tx.Close()
	fields := func(loading func() engine.LoadProgress) []admin.InfoField {
		x := &engine.Context{Tx: &tx, Engine: &engine.Engine{Loading: loading}}
		r := &admin.InfoReport{X: x, Host: engine.ServerInfo{StartedAt: testStart}}
		admin.PersistenceSection(r)
		return r.Fields
	}
	progress := func(loaded, total int64) func() engine.LoadProgress {
		return func() engine.LoadProgress { return engine.LoadProgress{Loaded: loaded, Total: total} }
	}
	loading := admin.InfoField{Name: "loading", Value: int64(1)}
	for name, tt := range map[string]struct {
		loading func() engine.LoadProgress
		want    []admin.InfoField
	}{
		"not known": {nil, []admin.InfoField{loading}},
		"all":       {progress(100, 100), []admin.InfoField{loading}},
		"a quarter": {progress(249_999, 1_000_000), []admin.InfoField{
			loading, {Name: "loading_start_time", Value: int64(testStart / 1000)}, {Name: "loading_total_bytes", Value: int64(1_000_000)},
			{Name: "loading_loaded_bytes", Value: int64(249_999)}, {Name: "loading_loaded_perc", Value: "25.00"}, {Name: "loading_eta_seconds", Value: int64(90)},
		}},
		"nearly all": {progress(999_999, 1_000_000), []admin.InfoField{
			loading, {Name: "loading_start_time", Value: int64(testStart / 1000)}, {Name: "loading_total_bytes", Value: int64(1_000_000)},
			{Name: "loading_loaded_bytes", Value: int64(999_999)}, {Name: "loading_loaded_perc", Value: "100.00"}, {Name: "loading_eta_seconds", Value: int64(1)},
		}},
	} {
		if got := fields(tt.loading); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
