package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

func TestTCP(t *testing.T) {
	port := freePort()
	list, err := listenTCP([]string{"127.0.0.1", "-192.0.2.1", "127.0.0.2"}, port, 511)
	drill.Check(t, err)
	defer closeListeners(list)
	if len(list) != 2 {
		t.Errorf("listens on %d addresses", len(list))
	}
	for bind, want := range map[string]string{
		"127.0.0.1":   "cannot listen on 127.0.0.1 port " + strconv.Itoa(port) + ": address already in use",
		"192.0.2.1":   "cannot listen on 192.0.2.1 port " + strconv.Itoa(port) + ": cannot assign requested address",
		"-192.0.2.1":  "cannot listen on port " + strconv.Itoa(port) + ": this machine has none of the addresses -192.0.2.1",
		"no.invalid.": "cannot listen on no.invalid. port ",
	} {
		list, err := listenTCP([]string{bind}, port, 0)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("bind %s: %v", bind, err)
		}
		closeListeners(list)
	}
	// An address that fails takes those before it along.
	other := freePort()
	if _, err := listenTCP([]string{"127.0.0.1", "192.0.2.1"}, other, 0); err == nil {
		t.Fatal("listens on an address that the machine does not have")
	}
	list, err = listenTCP([]string{"127.0.0.1"}, other, 0)
	if err != nil {
		t.Errorf("left open: %v", err)
	}
	closeListeners(list)
}

func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mayfly.sock")
	ln, err := listenUnix(path, 0)
	drill.Check(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := listenUnix(path, 0); err == nil || err.Error() != "cannot listen on unix socket "+path+": another process listens on it" {
		t.Errorf("in use: %v", err)
	}
	// A process that dies leaves its file behind.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	closeListeners([]net.Listener{ln})
	if ln, err = listenUnix(path, 0o770); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	closeListeners([]net.Listener{ln})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after closing: %v", err)
	}
	drill.Check(t, os.WriteFile(path, []byte("precious"), 0o600))
	if _, err := listenUnix(path, 0); err == nil || !strings.HasSuffix(err.Error(), "the file exists and is not a socket") {
		t.Errorf("a file: %v", err)
	}
	if _, err := listenUnix("/tmp/"+strings.Repeat("x", 300), 0); err == nil || !strings.Contains(err.Error(), "its path has 305 bytes: legal are at most 1") {
		t.Errorf("a long path: %v", err)
	}
	if content, err := os.ReadFile(path); string(content) != "precious" {
		t.Errorf("the file was touched: %q, %v", content, err)
	}
}
