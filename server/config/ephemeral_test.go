package config

import (
	"os"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// TestEphemeralOptionsAgree: a clock that clients move never meets a folder of real data, and a node keeps
// what it has.
func TestEphemeralOptionsAgree(t *testing.T) {
	t.Parallel()
	const node = " --cluster-id a --cluster-addr 127.0.0.1:7001 --cluster-peers a=127.0.0.1:7001"
	const (
		needsEphemeral = `option clock with value "manual" needs ephemeral yes: a folder of real data never meets a clock that clients move`
		needsManual    = `option clock-start with value "1767225600000" needs clock manual: the system's clock has its own time`
		noNode         = `option ephemeral with value "yes" does not go with cluster-id, which is "a": a node keeps what it has acknowledged`
	)
	for _, tt := range []struct {
		args string
		want []string // lines of the error; none: the options are legal
	}{
		{"", nil},
		{node, nil},
		{"--clock system", nil},
		{"--ephemeral yes", nil},
		{"--ephemeral yes --clock manual", nil},
		{"--ephemeral yes --clock manual --clock-start 2026-01-01T00:00:00Z", nil},
		{"--clock manual", []string{needsEphemeral}},
		{"--clock manual" + node, []string{needsEphemeral}},
		{"--clock-start 2026-01-01T00:00:00Z", []string{needsManual}},
		{"--ephemeral yes --clock-start 1767225600000", []string{needsManual}},
		{"--ephemeral yes" + node, []string{noNode}},
		{"--ephemeral yes --clock manual" + node, []string{noNode}},
		{"--ephemeral yes --clock-start 1767225600000" + node, []string{needsManual, noNode}},
	} {
		got, want := "", strings.Join(tt.want, "\n")
		if err := load(t, strings.Fields(tt.args)...).Settings().CheckEphemeral(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: error %q, want %q", tt.args, got, want)
		}
	}
	for _, args := range []string{"--clock now", "--clock-start tomorrow", "--clock-start 253402300800000", "--ephemeral maybe"} {
		if _, err := Load(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), strings.Fields(args)[1]) {
			t.Errorf("%s: error %v", args, err)
		}
	}
	if err := load(t).ConfigSet([][2]string{{"clock", "manual"}}); err == nil {
		t.Error("CONFIG SET clock is not refused")
	}
}

// TestKeepIn: CONFIG GET says where the data is, and a config file keeps what it says.
func TestKeepIn(t *testing.T) {
	t.Parallel()
	file := configFile(t, "dir /srv/mayfly\nephemeral yes\n")
	c := load(t, file)
	c.KeepIn("/tmp/private")
	if got := c.ConfigGet([]string{"dir"}); len(got) != 1 || got[0][1] != "/tmp/private" {
		t.Errorf("CONFIG GET dir: %q", got)
	}
	drill.Check(t, c.ConfigSet([][2]string{{"maxmemory", "1gb"}}))
	drill.Check(t, c.ConfigRewrite())
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "dir /srv/mayfly\nephemeral yes\n") || strings.Contains(string(text), "private") || !strings.Contains(string(text), "maxmemory") {
		t.Errorf("CONFIG REWRITE writes %q, %v", text, err)
	}
}
