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
		{local + " --port 0", []string{"cluster-announce-addr", "tls-port", `"a"`}},
		{local + " --port 0 --cluster-announce-addr h:1", nil},
		{local + " --requirepass p", []string{"requirepass", "cluster-secret-file", "any process on this machine"}},
		{local + " --requirepass p --cluster-secret-file s", nil},
		{local + " --requirepass p --cluster-cert-file c --cluster-key-file k --cluster-ca-cert-file ca", nil},
		{"--requirepass p", nil},
		{local + " --port 0 --tls-port 7000", []string{"certificate", "cluster-secret-file"}},
		{local + " --port 0 --tls-port 7000 --cluster-secret-file s", nil},
		{local + " --port 0 --tls-port 7000 --tls-auth-clients optional", nil},
	} {
		err := load(t, strings.Fields(tt.args)...).Settings().CheckCluster()
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

// TestNodesProveWhatClientsProve demands that no change of options lets a node without credentials ask
// clients for theirs.
func TestNodesProveWhatClientsProve(t *testing.T) {
	const node = "--cluster-id a --cluster-addr 127.0.0.1:7001 --cluster-peers a=127.0.0.1:7001"
	for _, tt := range []struct {
		args    string
		set     [][2]string
		refused bool
	}{
		{node, [][2]string{{"requirepass", "p"}}, true},
		{node, [][2]string{{"timeout", "1"}, {"requirepass", "p"}}, true},
		{node + " --tls-port 7000", [][2]string{{"port", "0"}}, true},
		{node, [][2]string{{"requirepass", ""}}, false},
		{node + " --cluster-secret-file s", [][2]string{{"requirepass", "p"}}, false},
		{"", [][2]string{{"requirepass", "p"}}, false},
	} {
		if c := load(t, strings.Fields(tt.args)...); tt.args == node {
			for _, name := range []string{"u", "default"} {
				if _, _, err := c.Users().Set(name, []string{"+get", "-set"}); err == nil || !strings.Contains(err.Error(), "cluster-secret-file") || len(lines(c)) != 1 {
					t.Errorf("a user of whom nodes know nothing: %v, %q", err, lines(c))
				}
			}
			if _, err := Load(append(strings.Fields(node), "--user", "u on nopass")); err == nil || !strings.Contains(err.Error(), "cluster-secret-file") {
				t.Error(err)
			}
		} else if _, _, err := c.Users().Set("u", []string{"+get"}); (err != nil) != strings.HasPrefix(tt.args, node+" --tls") {
			t.Errorf("%q: %v", tt.args, err)
		}
		c := load(t, strings.Fields(tt.args)...)
		before := *c.Settings()
		err := c.ConfigSet(tt.set)
		if refused := err != nil && strings.Contains(err.Error(), "cluster-secret-file"); refused != tt.refused {
			t.Errorf("%q: CONFIG SET %q: error %v, want it refused: %t", tt.args, tt.set, err, tt.refused)
		}
		if after := c.Settings(); tt.refused && (after.RequirePass != before.RequirePass || after.Timeout != before.Timeout || after.Port != before.Port) {
			t.Errorf("%q: CONFIG SET %q was refused and changed something", tt.args, tt.set)
		}
	}
}

// Errors of illegal values name the option, the value and what is legal.
func TestIllegalClusterOptions(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"cluster-addr", "0.0.0.0:7001", "host:port"}, // no other node reaches it there
		{"cluster-announce-addr", "h:0", "host:port"},
		{"cluster-peers", "a=h:1,a=h:2", "each node once, at most 64"},
		{"cluster-name", "my master", "1 to 63 letters"}, // +switch-master has blanks between its words
		{"cluster-name", "", "1 to 63 letters"},
	} {
		_, err := Load([]string{"--" + tt.name, tt.value})
		if err == nil || !strings.Contains(err.Error(), tt.name) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: %v", tt.name, tt.value, err)
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
