package config

import (
	"slices"
	"strings"
	"testing"
)

// TestClusterOptionsAgree names for each contradiction what the error must say.
func TestClusterOptionsAgree(t *testing.T) {
	const local = "--cluster-id a --cluster-addr 127.0.0.1:7001 --cluster-peers a=127.0.0.1:7001,b=localhost:7002,c=[::1]:7003"
	const remote = "--cluster-id a --cluster-addr h1:7001 --cluster-peers a=h1:7001,b=h2:7001"
	for _, tt := range []struct {
		args string
		want []string // parts of the error; none: the options are legal
	}{
		{"", nil},
		{local, nil},
		{remote + " --cluster-secret-file s", nil},
		{remote + " --cluster-cert-file c --cluster-key-file k --cluster-ca-cert-file ca", nil},
		{"--cluster-id a", []string{`"a"`, "cluster-addr", "cluster-peers"}},
		{"--cluster-addr h1:7001", []string{`"h1:7001"`, "cluster-id"}},
		{"--cluster-peers a=h1:7001", []string{`"a=h1:7001"`, "cluster-id"}},
		{strings.Replace(local, "--cluster-id a", "--cluster-id d", 1), []string{"does not name this node, d"}},
		{strings.Replace(local, "--cluster-addr 127.0.0.1:7001", "--cluster-addr 127.0.0.1:7009", 1), []string{"127.0.0.1:7001", "127.0.0.1:7009"}},
		{remote, []string{"loopback", "cluster-secret-file", "cluster-cert-file"}},
		{remote + " --cluster-cert-file c", []string{"cluster-key-file", "need each other"}},
		{remote + " --cluster-secret-file s --cluster-cert-file c --cluster-key-file k --cluster-ca-cert-file ca", []string{"exclude each other"}},
	} {
		err := load(t, strings.Fields(tt.args)...).Settings().Cluster.Check()
		if len(tt.want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", tt.args, err)
			}
			continue
		}
		if err == nil || slices.ContainsFunc(tt.want, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
			t.Errorf("%s: error %v, want %q", tt.args, err, tt.want)
		}
	}
}

func TestClientAddr(t *testing.T) {
	for args, want := range map[string]string{
		"--cluster-addr h1:7001":                                      "h1:6379",
		"--cluster-addr [::1]:7001 --port 7379":                       "[::1]:7379",
		"--cluster-addr h1:7001 --port 0 --tls-port 6380":             "h1:6380",
		"--cluster-addr h1:7001 --cluster-announce-addr db.org:16379": "db.org:16379",
	} {
		if got := load(t, strings.Fields(args)...).Settings().ClientAddr(); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if got := configured(t, load(t, "--cluster-id", "a"), "cluster-enabled"); got != "yes" {
		t.Errorf("cluster-enabled of a node is %q", got)
	}
}
