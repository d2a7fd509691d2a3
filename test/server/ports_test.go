package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestPortAuto: a server takes any free port, says which in its log, in the port file, in INFO and in CONFIG
// GET, and takes another one when CONFIG SET asks for that. A config file keeps the word auto.
func TestPortAuto(t *testing.T) {
	harness.Parallel(t)
	conf := harness.WriteFile(t, "mayfly.conf", "port auto\n")
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--config", conf)
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(p.PortFile)
		drill.Check(t, err)
		return strings.TrimSuffix(string(text), "\n")
	}
	if n, err := strconv.Atoi(read()); err != nil || n == 0 || n == 6379 {
		t.Fatalf("port file %q", read())
	}
	harness.WaitFor(t, "its log to name the port", func() bool { return strings.Contains(p.Log.String(), "127.0.0.1:"+p.Port) })
	if got := p.CLI("CONFIG", "GET", "port"); got != "port\n"+p.Port {
		t.Errorf("CONFIG GET port: %q", got)
	}
	if got := p.CLI("INFO", "server"); !strings.Contains(got, "tcp_port:"+p.Port+"\r\n") && !strings.Contains(got, "tcp_port:"+p.Port+"\n") {
		t.Errorf("INFO does not name port %s:\n%s", p.Port, got)
	}
	if got := p.CLI("CONFIG", "SET", "maxclients", "77"); got != "OK" {
		t.Fatal(got)
	}
	if got := p.CLI("CONFIG", "REWRITE"); got != "OK" {
		t.Fatal(got)
	}
	if text, err := os.ReadFile(conf); err != nil || !strings.HasPrefix(string(text), "port auto\n") || !strings.Contains(string(text), "maxclients 77") {
		t.Errorf("the config file is %q, %v", text, err)
	}
	was := p.Port
	if got := p.CLI("CONFIG", "SET", "port", "auto"); got != "OK" {
		t.Fatal(got)
	}
	if p.Port = read(); p.Port == was {
		t.Errorf("CONFIG SET port auto left port %s", was)
	}
	if got := p.CLI("PING"); got != "PONG" {
		t.Error(got)
	}
	p.Terminate()
	if _, err := os.Stat(p.PortFile); !os.IsNotExist(err) {
		t.Errorf("the port file outlives the server: %v", err)
	}
}
