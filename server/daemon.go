package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"mayfly/server/config"

	"github.com/rs/zerolog"
)

// logFile appends to a file. As Redis does, it opens the file for every line, so that another program may
// move it away at any time.
type logFile string

func (path logFile) Write(p []byte) (n int, err error) {
	f, err := os.OpenFile(string(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Write(p)
}

// OpenLog returns the destination of the log: standard error, or the file of the settings. The error is one
// line.
func OpenLog(s *config.Settings) (io.Writer, error) {
	if s.LogFile == "" {
		return os.Stderr, nil
	}
	if _, err := logFile(s.LogFile).Write(nil); err != nil {
		return nil, fmt.Errorf("cannot write the log: %w", err)
	}
	return logFile(s.LogFile), nil
}

// WritePID writes the pidfile. It logs failures, which the server survives. The function that it returns
// removes the file.
func WritePID(s *config.Settings, log zerolog.Logger) (remove func()) {
	if s.PidFile == "" {
		return func() {}
	}
	if err := os.WriteFile(s.PidFile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		log.Warn().Err(err).Msg("cannot write the pidfile")
		return func() {}
	}
	return func() { _ = os.Remove(s.PidFile) } // a file that is left behind does no harm
}

// NotifyReady notifies systemd that the server serves clients.
func NotifyReady(s *config.Settings, log zerolog.Logger) { Notify(s, log, "READY=1\nSTATUS=ready") }

// WritePorts writes the port file, which a script that waits for it never reads half. It logs failures, which
// the server survives. The function that it returns removes the file.
func WritePorts(s *config.Settings, log zerolog.Logger) (remove func()) {
	if s.PortFile == "" {
		return func() {}
	}
	var text []byte
	for _, port := range []int{s.Port, s.TLSPort} {
		if port != 0 {
			text = fmt.Appendln(text, port)
		}
	}
	err := os.WriteFile(s.PortFile+".tmp", text, 0o644)
	if err == nil {
		err = os.Rename(s.PortFile+".tmp", s.PortFile)
	}
	if err != nil {
		log.Warn().Err(err).Msg("cannot write the port file")
	}
	return func() { _ = os.Remove(s.PortFile) } // a file that is left behind does no harm
}

// NotifyStopping notifies systemd that the server begins to stop.
func NotifyStopping(s *config.Settings, log zerolog.Logger) { Notify(s, log, "STOPPING=1") }

// Notify sends systemd a message as described in sd_notify(3).
func Notify(s *config.Settings, log zerolog.Logger, message string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if s.Supervised == config.NotSupervised || socket == "" && s.Supervised == config.MaybeBySystemd {
		return
	}
	if socket == "" {
		log.Warn().Msg("supervised is systemd, but NOTIFY_SOCKET is not in the environment")
		return
	}
	c, err := net.Dial("unixgram", socket)
	if err == nil {
		_, err = io.WriteString(c, message)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		log.Warn().Err(err).Msg("cannot notify systemd")
	}
}
