package redistest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// Start is [Find], and skips the test if there is no server.
func Start(t testing.TB) (socket string) {
	t.Helper()
	drill.Slow(t)
	if socket = Find(t); socket == "" {
		t.Skip("SKIPPED: needs redis-server 7.0, so Redis' own replies were NOT compared")
	}
	return socket
}

// Find starts redis-server for the time of a test, and returns the path of its socket once it serves. It
// returns the empty string in the quick form of tests, and if none of version 7.0 is installed, which is an
// error if CI=true.
func Find(t testing.TB) (socket string) {
	t.Helper()
	if testing.Short() && !drill.On() {
		return ""
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return missing(t, "redis-server is not installed")
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil || !strings.Contains(string(version), " v=7.0.") {
		return missing(t, "redis-server is not of version 7.0")
	}
	dir, err := os.MkdirTemp("", "redis") // sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	server := exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	})
	drill.Await(t, "redis-server", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return socket
}

func missing(t testing.TB, why string) string {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Error("CI=true, and " + why)
	}
	return ""
}
