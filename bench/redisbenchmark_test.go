package main

import (
	"strings"
	"testing"
)

func TestParseRedisBenchmark(t *testing.T) {
	const names = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	for _, tt := range []struct {
		name, out string
		want      float64 // 0: an error
	}{
		{"one word", names + `"GET","81234.50","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 81234.5},
		{"a command with JSON in it", names + `"SET key:__rand_int__ {"id":1,"a":"b","c":[1,"x"]}","512820.50","1.213","0.344","0.951","4.239","6.407","6.583"` + "\n", 512820.5},
		{"a command that looks like figures", names + `"SET "1","2","3","7.00","1.213","0.344","0.951","4.239","6.407","6.583"` + "\n", 7},
		{"names only", names, 0},
		{"nothing", "", 0},
		{"an error", "Error from server: ERR unknown command\n", 0},
		{"figures missing", names + `"GET","81234.50"` + "\n", 0},
		{"not a number", names + `"GET","fast","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"no requests", names + `"GET","0.00","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"divided by no time", names + `"GET","-nan","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
		{"other columns", strings.Replace(names, "rps", "spr", 1) + `"GET","1.00","0.391","0.080","0.375","0.567","0.871","2.311"` + "\n", 0},
	} {
		got, err := parseRedisBenchmark(tt.out)
		if got != tt.want && tt.want != 0 || (err != nil) != (tt.want == 0) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
