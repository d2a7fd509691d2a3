// Mayfly is a Redis-protocol server for JSON documents that die on time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mayfly/commands"
	"mayfly/keyspace"
	"mayfly/server"
	"mayfly/tools"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// drainTime is how long clients have, after the signal to stop, to take the replies under way.
const drainTime = 10 * time.Second

func main() {
	if tools.Is(os.Args[1:]) {
		syscall.Umask(0o077)
		os.Exit(tools.Run(os.Args[1:], tools.Surroundings{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	config, err := server.LoadConfig(os.Args[1:])
	switch {
	case err == nil:
		err = run(config)
	case errors.Is(err, server.ErrHelp):
		err = server.PrintHelp(os.Stdout)
	case errors.Is(err, server.ErrVersion):
		_, err = fmt.Println("mayfly", server.Version)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mayfly:", err)
		os.Exit(1)
	}
}

// run serves until it is told to stop. It listens before it touches the data: whoever starts a
// server twice is told so before anything has happened.
func run(config *server.Config) error {
	syscall.Umask(0o077) // the data are nobody else's business
	stop := stopSignals()
	settings := config.Settings()
	log := newLogger(settings)

	srv := server.New(config, log)
	if err := srv.Listen(); err != nil {
		return err
	}
	engine := &commands.Engine{Host: srv, Log: log}
	engine.Hub.SetEvents(settings.NotifyKeyspaceEvents)
	engine.Slowlog.SetThreshold(settings.SlowlogThreshold)
	engine.Slowlog.SetLength(settings.SlowlogLength)
	engine.Latency.SetThreshold(settings.LatencyThreshold)
	limitMemory(settings, engine)
	ks, err := keyspace.Open(keyspace.Options{
		Dir:          settings.Dir,
		Partitions:   settings.Partitions,
		Fsync:        settings.AppendFsync,
		Log:          log,
		ExpireEffort: settings.ActiveExpireEffort,
		OnDeath:      engine.Hub.Died,
	})
	if err != nil {
		_ = srv.Stop(stop) // closes the listeners; nobody is served yet
		return err
	}
	ks.SetCompaction(settings.Compaction)
	engine.Keyspace = ks
	applyChanges(config, engine)
	srv.Start(engine)
	log.Info().Strs("addresses", srv.Addresses()).Str("dir", settings.Dir).Int("pid", os.Getpid()).
		Str("version", server.Version).Msg("ready")
	welcome(os.Stdout, srv.Addresses(), settings)

	select {
	case <-stop.Done():
	case <-srv.ShutdownAsked():
	}
	log.Info().Msg("stopping: finishing the commands under way")
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Stop(drain); err != nil {
		log.Warn().Msg("some clients were cut off: a command of theirs is not done, or they did not take their replies in time")
		return ks.Halt()
	}
	if err := ks.Close(); err != nil {
		return err
	}
	log.Info().Msg("stopped: all data are on disk")
	return nil
}

// stopSignals gives a context that ends with SIGTERM or SIGINT. As in Redis, a SIGINT after that ends
// the process at once, but a second SIGTERM does not, since some programs (timeout is one) send two;
// SIGHUP and SIGPIPE do nothing.
func stopSignals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		cancel()
		for s := range signals {
			if s == syscall.SIGINT {
				fmt.Fprintln(os.Stderr, "mayfly: stopped at once by a second signal")
				os.Exit(1)
			}
		}
	}()
	return ctx
}

// newLogger logs to standard error.
func newLogger(settings *server.Settings) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.SetGlobalLevel(settings.LogLevel)
	var out io.Writer = os.Stderr
	terminal := isatty.IsTerminal(os.Stderr.Fd())
	if settings.LogFormat == server.LogPretty || settings.LogFormat == server.LogAuto && terminal {
		out = zerolog.ConsoleWriter{Out: os.Stderr, NoColor: !terminal, TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(out).With().Timestamp().Logger()
}

// applyChanges makes CONFIG SET take effect at once where an option is kept elsewhere.
func applyChanges(config *server.Config, engine *commands.Engine) {
	on := func(option string, apply func(*server.Settings)) {
		config.OnChange(option, func(s *server.Settings) error {
			apply(s)
			return nil
		})
	}
	on("appendfsync", func(s *server.Settings) { engine.Keyspace.SetFsync(s.AppendFsync) })
	on("active-expire-effort", func(s *server.Settings) { engine.Keyspace.SetExpireEffort(s.ActiveExpireEffort) })
	on("notify-keyspace-events", func(s *server.Settings) { engine.Hub.SetEvents(s.NotifyKeyspaceEvents) })
	on("slowlog-log-slower-than", func(s *server.Settings) { engine.Slowlog.SetThreshold(s.SlowlogThreshold) })
	on("slowlog-max-len", func(s *server.Settings) { engine.Slowlog.SetLength(s.SlowlogLength) })
	on("latency-monitor-threshold", func(s *server.Settings) { engine.Latency.SetThreshold(s.LatencyThreshold) })
	for _, option := range []string{"maxmemory", "maxmemory-policy"} {
		on(option, func(s *server.Settings) { limitMemory(s, engine) })
	}
	for _, option := range []string{"auto-compact-percentage", "auto-compact-min-size"} {
		on(option, func(s *server.Settings) { engine.Keyspace.SetCompaction(s.Compaction) })
	}
	on("loglevel", func(s *server.Settings) { zerolog.SetGlobalLevel(s.LogLevel) })
}

// limitMemory bounds what the items take, and accordingly what the process does.
func limitMemory(s *server.Settings, engine *commands.Engine) {
	engine.SetMaxMemory(s.MaxMemory, s.MaxMemoryPolicy)
	s.LimitRuntime()
}

// welcome says where the server listens and how to see a document die.
func welcome(w io.Writer, addresses []string, settings *server.Settings) {
	fmt.Fprintf(w, `mayfly %s listens on %s; its data are in %s
Try it:
  %[4]s CONTAINER.SET orders TTL 10
  %[4]s DOC.PUT orders 1 '{"item":"tea"}'
  %[4]s DOC.GET orders 1
and ten seconds after the second command the third answers (nil).
`, server.Version, strings.ReplaceAll(strings.Join(addresses, ", "), "tcp ", ""), settings.Dir, redisCLI(settings))
}

// redisCLI is the command by which redis-cli reaches the server from this machine.
func redisCLI(s *server.Settings) string {
	switch {
	case s.Port != 0:
		return fmt.Sprintf("redis-cli -p %d", s.Port)
	case s.UnixSocket != "":
		return "redis-cli -s " + s.UnixSocket
	}
	return fmt.Sprintf("redis-cli --tls -p %d", s.TLSPort)
}
