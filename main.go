// Mayfly is a Redis-protocol server for JSON documents that die on time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/commands"
	"mayfly/keyspace"
	"mayfly/server"
	"mayfly/server/config"
	"mayfly/server/heap"
	"mayfly/tools"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// drainTime is the time that clients have to take their last replies after the signal to stop.
const drainTime = 10 * time.Second

func main() {
	if tools.Is(os.Args[1:]) {
		syscall.Umask(0o077)
		os.Exit(tools.Run(os.Args[1:], tools.Environment{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminals: tools.TerminalsOf(os.Stdin, os.Stdout, os.Stderr),
		}))
	}
	options, err := config.Load(asOptions(os.Args[1:]))
	if err == nil {
		err = options.Settings().Cluster.Check()
	}
	switch {
	case err == nil:
		err = run(options)
	case errors.Is(err, config.ErrHelp):
		err = config.PrintHelp(os.Stdout)
	case errors.Is(err, config.ErrVersion):
		_, err = fmt.Println("mayfly", server.Version)
	}
	if err != nil {
		if meant := meantCommand(os.Args[1:]); options == nil && meant != "" {
			err = errors.New(meant)
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(os.Stderr, "mayfly:", line)
		}
		os.Exit(1)
	}
}

// asOptions makes options of the words help and version. A config file of that name is ./help.
func asOptions(args []string) []string {
	if len(args) > 0 && (args[0] == "help" || args[0] == "version") {
		return append([]string{"--" + args[0]}, args[1:]...)
	}
	return args
}

// meantCommand returns what to tell a user whose first argument is neither a command nor an option nor an
// existing file. It is empty if the argument looks like the path of a config file.
func meantCommand(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.ContainsAny(args[0], "/.") {
		return ""
	}
	if _, err := os.Stat(args[0]); err == nil {
		return ""
	}
	words := append(tools.Names(), "help", "version")
	text := fmt.Sprintf("there is no command and no config file %q", args[0])
	if word := commands.Nearest(strings.ToLower(args[0]), words); word != "" {
		return text + ": did you mean " + word + "?"
	}
	return text + ": the commands are " + strings.Join(words, ", ") + "; without one, mayfly starts a server"
}

// run serves until a signal or SHUTDOWN. It listens before it touches the data, so a second server on the same
// port fails before it does anything.
func run(options *config.Config) error {
	syscall.Umask(0o077) // only the owner may read the data
	stop := stopSignals()
	settings := options.Settings()
	log, err := newLogger(settings)
	if err != nil {
		return err
	}
	options.LogIgnored(log)

	srv := server.New(options, log)
	if err := srv.Listen(); err != nil {
		return err
	}
	engine := &commands.Engine{Host: srv, Log: log}
	engine.Broker.SetEventClasses(settings.NotifyKeyspaceEvents)
	engine.Slowlog.SetThreshold(settings.SlowlogThreshold)
	engine.Slowlog.SetLength(settings.SlowlogLength)
	engine.QueryBudget.Store(int64(settings.QueryBudget))
	engine.Latency.SetThreshold(settings.LatencyThreshold)
	engine.SetLatencyTracking(settings.LatencyTracking)
	engine.SetLatencyPercentiles(settings.LatencyPercentiles)
	limitMemory(settings, engine)
	heap.TuneForLoading()
	var loaded atomic.Int64
	stopReports := reportLoading(log, settings.Dir, &loaded, reportInterval(settings))
	ks, err := keyspace.Open(keyspace.Options{
		Dir:          settings.Dir,
		Partitions:   settings.Partitions,
		Fsync:        settings.AppendFsync,
		Log:          log,
		ExpireEffort: settings.ActiveExpireEffort,
		Reserve:      settings.DiskReserve,
		OnDeath:      engine.Broker.OnDeath,
		DeathsHeard:  engine.Broker.DeathsHeard,
		OnLogged:     engine.OnLogged,
		Loaded:       &loaded,
	})
	stopReports()
	if err != nil {
		_ = srv.Stop(stop) // closes the listeners; no client is served yet
		return tools.Advise(err, settings.Dir)
	}
	if advice := tools.OpenToOthers(settings.Dir); advice != "" {
		log.Warn().Str("dir", settings.Dir).Msg(advice)
	}
	ks.SetCompaction(settings.Compaction)
	ks.SetEraseWithin(settings.EraseWithin)
	ks.Scrubber().SetInterval(settings.ScrubInterval)
	ks.SetMaxContainers(settings.MaxContainers)
	ks.SetEviction(settings.Eviction)
	if err := ks.SetUndoWindow(int64(settings.UndoWindow / time.Second)); err != nil {
		_ = srv.Stop(stop)
		return errors.Join(tools.Advise(err, settings.Dir), ks.Close())
	}
	engine.SetKeyspace(ks)
	applyChanges(options, engine)
	srv.Start(engine)
	defer server.NotifyReady(settings, log)()
	log.Info().Strs("addresses", srv.Addresses()).Str("dir", settings.Dir).Int("pid", os.Getpid()).
		Str("version", server.Version).Msg("ready")
	welcome(os.Stdout, srv.Addresses(), settings, loaded.Load() == 0)

	select {
	case <-stop.Done():
	case <-srv.ShutdownAsked():
	}
	server.NotifyStopping(settings, log)
	log.Info().Msg("stopping: finishing running commands")
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Stop(drain); err != nil {
		log.Warn().Msg("some clients were disconnected: their commands did not finish, or they did not take their replies in time")
		return ks.Halt()
	}
	if err := ks.Close(); err != nil {
		return err
	}
	log.Info().Msg("stopped: all data is on disk")
	return nil
}

// stopSignals returns a context that ends with SIGTERM or SIGINT. As in Redis, a SIGINT after that ends the process
// at once. A second SIGTERM does not, because some programs send two (timeout is one). SIGHUP and SIGPIPE
// do nothing.
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

// newLogger logs to standard error, or to the file that the settings name.
func newLogger(settings *config.Settings) (zerolog.Logger, error) {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.SetGlobalLevel(settings.LogLevel)
	out, err := server.OpenLog(settings)
	if err != nil {
		return zerolog.Nop(), err
	}
	terminal := out == os.Stderr && isatty.IsTerminal(os.Stderr.Fd())
	if settings.LogFormat == config.LogPretty || settings.LogFormat == config.LogAuto && terminal {
		out = zerolog.ConsoleWriter{Out: out, NoColor: !terminal, TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(out).With().Timestamp().Logger(), nil
}

// applyChanges makes CONFIG SET take effect at once where an option is kept elsewhere.
func applyChanges(options *config.Config, engine *commands.Engine) {
	on := func(option string, apply func(*config.Settings)) {
		options.OnChange(option, func(s *config.Settings) error {
			apply(s)
			return nil
		})
	}
	on("appendfsync", func(s *config.Settings) { engine.Keyspace().SetFsync(s.AppendFsync) })
	on("active-expire-effort", func(s *config.Settings) { engine.Keyspace().SetExpireEffort(s.ActiveExpireEffort) })
	on("max-containers", func(s *config.Settings) { engine.Keyspace().SetMaxContainers(s.MaxContainers) })
	options.OnChange("undo-window", func(s *config.Settings) error {
		return engine.Keyspace().SetUndoWindow(int64(s.UndoWindow / time.Second))
	})
	on("notify-keyspace-events", func(s *config.Settings) {
		engine.Broker.SetEventClasses(s.NotifyKeyspaceEvents)
		engine.Keyspace().ListenersChanged()
	})
	on("slowlog-log-slower-than", func(s *config.Settings) { engine.Slowlog.SetThreshold(s.SlowlogThreshold) })
	on("query-budget", func(s *config.Settings) { engine.QueryBudget.Store(int64(s.QueryBudget)) })
	on("slowlog-max-len", func(s *config.Settings) { engine.Slowlog.SetLength(s.SlowlogLength) })
	on("latency-monitor-threshold", func(s *config.Settings) { engine.Latency.SetThreshold(s.LatencyThreshold) })
	on("latency-tracking", func(s *config.Settings) { engine.SetLatencyTracking(s.LatencyTracking) })
	on("latency-tracking-info-percentiles", func(s *config.Settings) { engine.SetLatencyPercentiles(s.LatencyPercentiles) })
	on("maxmemory", func(s *config.Settings) { limitMemory(s, engine) })
	for _, option := range []string{"maxmemory-policy", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time"} {
		on(option, func(s *config.Settings) { engine.Keyspace().SetEviction(s.Eviction) })
	}
	for _, option := range []string{"auto-compact-percentage", "auto-compact-min-size"} {
		on(option, func(s *config.Settings) { engine.Keyspace().SetCompaction(s.Compaction) })
	}
	on("erase-within", func(s *config.Settings) { engine.Keyspace().SetEraseWithin(s.EraseWithin) })
	on("scrub-interval", func(s *config.Settings) { engine.Keyspace().Scrubber().SetInterval(s.ScrubInterval) })
	on("loglevel", func(s *config.Settings) { zerolog.SetGlobalLevel(s.LogLevel) })
}

// limitMemory bounds the memory of the items, and that of the process accordingly.
func limitMemory(s *config.Settings, engine *commands.Engine) {
	engine.SetMaxMemory(s.MaxMemory)
	heap.LimitRuntime(s)
}
