package server

import "testing"

// CONFIG SET changes the limit on the memory of all clients, also by the share that it is of maxmemory.
func TestClientMemoryLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--maxmemory-clients", "5%")
	for _, tt := range []struct {
		option, value string
		want          int64
	}{
		{"timeout", "1", 0},
		{"maxmemory", "1000000", 50_000},
		{"maxmemory-clients", "1kb", 1024},
	} {
		must(t, s.ConfigSet([][2]string{{tt.option, tt.value}}))
		if got := s.clients.Limit(); got != tt.want {
			t.Errorf("%s %s: the limit is %d, want %d", tt.option, tt.value, got, tt.want)
		}
	}
}
