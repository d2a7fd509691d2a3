package server

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/server/config"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// loadSettings returns the settings of a command line.
func loadSettings(t *testing.T, args ...string) *config.Settings {
	t.Helper()
	c, err := config.Load(args)
	drill.Check(t, err)
	return c.Settings()
}

// A socket of the test stands for systemd's.
func TestSupervision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenPacket("unixgram", path)
	drill.Check(t, err)
	defer systemd.Close()
	told := func() string {
		var text [100]byte
		n, _, err := systemd.ReadFrom(text[:])
		drill.Check(t, err)
		return string(text[:n])
	}
	pidFile := filepath.Join(t.TempDir(), "mayfly.pid")
	t.Setenv("NOTIFY_SOCKET", path)
	for _, kind := range []string{"systemd", "auto"} {
		s := loadSettings(t, "--supervised", kind, "--pidfile", pidFile)
		remove := WritePID(s, zerolog.Nop())
		NotifyReady(s, zerolog.Nop())
		if got := told(); !strings.HasPrefix(got, "READY=1\n") {
			t.Errorf("%s: systemd is told %q", kind, got)
		}
		if text, err := os.ReadFile(pidFile); err != nil || string(text) != fmt.Sprintln(os.Getpid()) {
			t.Errorf("%s: the pidfile says %q, %v", kind, text, err)
		}
		NotifyStopping(s, zerolog.Nop())
		remove()
		if got := told(); got != "STOPPING=1" {
			t.Errorf("%s: systemd is told %q", kind, got)
		}
		if _, err := os.Stat(pidFile); err == nil {
			t.Errorf("%s: the pidfile is left behind", kind)
		}
	}

	var log bytes.Buffer
	logger := zerolog.New(&log)
	WritePID(loadSettings(t), logger)
	NotifyReady(loadSettings(t), logger)
	t.Setenv("NOTIFY_SOCKET", "")
	NotifyReady(loadSettings(t, "--supervised", "auto"), logger)
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
	unwritable := loadSettings(t, "--supervised", "systemd", "--pidfile", "/no/such/folder/pid")
	WritePID(unwritable, logger)
	NotifyReady(unwritable, logger)
	for _, text := range []string{"NOTIFY_SOCKET", "/no/such/folder/pid"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log does not say %q: %s", text, &log)
		}
	}
}

// The log continues in a new file when the old one is moved away.
func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mayfly.log")
	out, err := OpenLog(loadSettings(t, "--logfile", path))
	drill.Check(t, err)
	for _, file := range []string{"", path + ".1"} {
		if file != "" {
			drill.Check(t, os.Rename(path, file))
		}
		if _, err := out.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{path, path + ".1"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != "line\n" {
			t.Errorf("%s has %q, %v", file, text, err)
		}
	}
	if _, err := OpenLog(loadSettings(t, "--logfile", "/no/such/folder/log")); err == nil || !strings.Contains(err.Error(), "/no/such/folder/log") {
		t.Errorf("a log that cannot be written: %v", err)
	}
}
