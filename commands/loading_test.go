package commands

import (
	"slices"
	"testing"

	"mayfly/keyspace"
)

// TestLoadingFields: while a data folder is loaded, INFO has the fields of Redis.
func TestLoadingFields(t *testing.T) {
	t.Parallel()
	var tx keyspace.Tx
	tx.BeginDetached(testStart + 30_000)
	defer tx.Close()
	fields := func(loading func() LoadProgress) []InfoField {
		x := &Context{Tx: &tx, Engine: &Engine{Loading: loading}}
		r := &infoReport{x: x, host: ServerInfo{StartedAt: testStart}}
		r.persistenceSection()
		return r.fields
	}
	progress := func(loaded, total int64) func() LoadProgress {
		return func() LoadProgress { return LoadProgress{Loaded: loaded, Total: total} }
	}
	loading := InfoField{"loading", int64(1)}
	for name, tt := range map[string]struct {
		loading func() LoadProgress
		want    []InfoField
	}{
		"not known": {nil, []InfoField{loading}},
		"all":       {progress(100, 100), []InfoField{loading}},
		"a quarter": {progress(249_999, 1_000_000), []InfoField{
			loading, {"loading_start_time", int64(testStart / 1000)}, {"loading_total_bytes", int64(1_000_000)},
			{"loading_loaded_bytes", int64(249_999)}, {"loading_loaded_perc", "25.00"}, {"loading_eta_seconds", int64(90)},
		}},
		"nearly all": {progress(999_999, 1_000_000), []InfoField{
			loading, {"loading_start_time", int64(testStart / 1000)}, {"loading_total_bytes", int64(1_000_000)},
			{"loading_loaded_bytes", int64(999_999)}, {"loading_loaded_perc", "100.00"}, {"loading_eta_seconds", int64(1)},
		}},
	} {
		if got := fields(tt.loading); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
