// Mayfly is a Redis-protocol server for JSON documents that die on time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/suggest"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/server"
	"mayfly/server/config"
	"mayfly/tools"
	"mayfly/vfs"

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
		err = errors.Join(options.Settings().CheckCluster(), options.Settings().CheckEphemeral())
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
	if word := suggest.Nearest(strings.ToLower(args[0]), words); word != "" {
		return text + ": did you mean " + word + "?"
	}
	return text + ": the commands are " + strings.Join(words, ", ") + "; without one, mayfly starts a server"
}

// run is serve with the log that the settings ask for. The log says why the server ends, if standard error,
// where main says it, is another place or has another form.
func run(options *config.Config) error {
	syscall.Umask(0o077) // only the owner may read the data
	settings := options.Settings()
	log, err := newLogger(settings)
	if err != nil {
		return err
	}
	if err = serve(options, log); err != nil && (settings.LogFile != "" || settings.LogFormat == config.LogJSON) {
		log.WithLevel(zerolog.FatalLevel).Err(err).Msg("the server ends")
	}
	return err
}

// serve serves until a signal or SHUTDOWN. It listens before it touches the data, so a second server on the
// same port fails before it does anything.
func serve(options *config.Config, log zerolog.Logger) error {
	stop := stopSignals()
	options.LogIgnored(log)

	srv := server.New(options, log)
	if err := srv.Listen(); err != nil {
		return err
	}
	end, err := beginEphemeral(options, log)
	if err != nil {
		_ = srv.Stop(stop) // closes the listeners
		return err
	}
	defer end()
	settings := options.Settings() // with the ports and the folder that it got
	defer server.WritePorts(settings, log)()
	e := &engine.Engine{Host: srv, Log: log, Ephemeral: settings.Ephemeral, Clock: newClock(settings, log)}
	e.Broker.SetEventClasses(settings.NotifyKeyspaceEvents)
	e.Slowlog.SetThreshold(settings.SlowlogThreshold)
	e.Slowlog.SetLength(settings.SlowlogLength)
	e.QueryBudget.Store(int64(settings.QueryBudget))
	e.SetEncodings(settings.Encodings)
	e.Scripts.SetEnabled(settings.Scripts)
	e.Scripts.SetTimeLimit(settings.LuaTimeLimit)
	e.Latency.SetThreshold(settings.LatencyThreshold)
	e.SetLatencyTracking(settings.LatencyTracking)
	e.SetLatencyPercentiles(settings.LatencyPercentiles)
	limitMemory(settings, e)
	server.TuneForLoading()
	load := newLoading(settings, log)
	stopReports, stopNotices := every(reportInterval(settings), load.report), every(startNotices, load.notify)
	e.Loading = func() engine.LoadProgress {
		return engine.LoadProgress{Loaded: load.loaded.Load(), Total: filesSize(settings.Dir)}
	}
	started := sync.OnceFunc(func() {
		stopReports()
		stopNotices()
	})
	defer started()
	storage, err := openStorage(options, srv, e, log, &load.loaded)
	if err != nil {
		started()
		_ = srv.Stop(stop) // closes the listeners; no client is served yet
		return tools.Advise(err, settings.Dir)
	}
	if advice := tools.OpenToOthers(settings.Dir); advice != "" {
		log.Warn().Str("dir", settings.Dir).Msg(advice)
	}
	applyChanges(options, e)
	defer server.WritePID(settings, log)() // a second server on the folder has failed by now, and leaves the file alone
	srv.Start(e)
	for _, option := range []string{"port", "tls-port"} { // the server listens on them before that
		options.OnChange(option, func(s *config.Settings) error {
			server.WritePorts(s, log)
			return nil
		})
	}
	select {
	case <-storage.ready:
		started()
		server.NotifyReady(settings, log)
		log.Info().Strs("addresses", srv.Addresses()).Str("dir", settings.Dir).Int("pid", os.Getpid()).
			Str("version", server.Version).Msg("ready")
		welcome(os.Stdout, srv.Addresses(), srv.PageURL(), settings, e.Keyspace().Untouched())
	case <-stop.Done():
	case <-srv.ShutdownAsked():
	}

	select {
	case <-stop.Done():
	case <-srv.ShutdownAsked():
	}
	started()
	server.NotifyStopping(settings, log)
	log.Info().Msg("stopping: finishing running commands")
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	e.Scripts.Stop()
	storage.beforeStop(drain)
	if err := srv.Stop(drain); err != nil {
		log.Warn().Msg("some clients were disconnected: their commands did not finish, or they did not take their replies in time")
		return storage.halt()
	}
	if err := storage.close(); err != nil {
		return err
	}
	if settings.Ephemeral {
		log.Info().Msg("stopped: the ephemeral data goes with the server")
		return nil
	}
	log.Info().Msg("stopped: all data is on disk")
	return nil
}

// storage is how the server ends the use of its data.
type storage struct {
	ready      <-chan struct{}       // closed when the engine has a keyspace
	beforeStop func(context.Context) // called while clients are still served
	close      func() error          // called when no client is served any more
	halt       func() error          // called instead of close while commands still run
}

// openStorage opens the data folder, or starts the node of a cluster, which opens it in the background.
func openStorage(options *config.Config, srv *server.Server, engine *engine.Engine, log zerolog.Logger, loaded *atomic.Int64) (*storage, error) {
	if options.Settings().Cluster.ID != "" {
		return startNode(options, srv, engine, log, loaded)
	}
	ks, err := openKeyspace(options.Settings(), engine, log, loaded, nil)
	if err != nil {
		return nil, err
	}
	engine.SetKeyspace(ks)
	ready := make(chan struct{})
	close(ready)
	return &storage{ready: ready, beforeStop: func(context.Context) {}, close: ks.Close, halt: ks.Halt}, nil
}

// openKeyspace opens the keyspace of the engine, with all settings in force. replicator is nil if the server
// is alone.
func openKeyspace(settings *config.Settings, engine *engine.Engine, log zerolog.Logger, loaded *atomic.Int64, replicator replica.Replicator) (*keyspace.Keyspace, error) {
	o := keyspace.Options{
		Dir:          settings.Dir,
		Partitions:   settings.Partitions,
		Fsync:        settings.AppendFsync,
		Log:          log,
		ExpireEffort: settings.ActiveExpireEffort,
		Reserve:      settings.DiskReserve,
		OnDeath:      engine.Broker.OnDeath,
		OnShed:       engine.Broker.OnShed,
		DeathsHeard:  engine.Broker.DeathsHeard,
		OnLogged:     engine.Waiters.Signal,
		OnTold:       engine.Broker.OnTold,
		Caches:       engine.Broker.Caches,
		Loaded:       loaded,
		Replicator:   replicator,
	}
	if settings.Ephemeral {
		o.FS, o.Reserve = vfs.Unsynced(vfs.OS), 0
	}
	if engine.Clock != nil {
		o.Clock, o.Stepped = engine.Clock, true
	}
	ks, err := keyspace.Open(hooked(o))
	if err != nil {
		return nil, err
	}
	if err := applySettings(ks, settings); err != nil {
		return nil, errors.Join(err, ks.Close())
	}
	return ks, nil
}

// applySettings brings the settings to a keyspace that Open does not take, or that may have changed since.
// After an error it has brought none.
func applySettings(ks *keyspace.Keyspace, settings *config.Settings) error {
	if settings.UndoWindow < 0 {
		ks.SetUndoWindowAuto()
	} else if err := ks.SetUndoWindow(int64(settings.UndoWindow / time.Second)); err != nil {
		return err
	}
	ks.SetFsync(settings.AppendFsync)
	ks.SetExpireEffort(settings.ActiveExpireEffort)
	ks.SetCompaction(settings.Compaction)
	ks.SetEraseWithin(settings.EraseWithin)
	scrub := settings.ScrubInterval
	if settings.Ephemeral {
		scrub = 0
	}
	ks.Scrubber().SetInterval(scrub)
	ks.SetMaxContainers(settings.MaxContainers)
	ks.SetMostNoted(int64(settings.TrackedKeys))
	ks.SetEviction(settings.Eviction)
	return nil
}

// stopSignals returns a context that ends with SIGTERM or SIGINT. As in Redis, a SIGINT after that ends the
// process at once. A second SIGTERM does not, because some programs send two (timeout is one). SIGHUP and
// SIGPIPE do nothing.
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
func applyChanges(options *config.Config, engine *engine.Engine) {
	on := func(option string, apply func(*config.Settings)) {
		options.OnChange(option, func(s *config.Settings) error {
			apply(s)
			return nil
		})
	}
	// All of these at once: each is cheap, and a value that stays changes nothing.
	for _, option := range []string{"appendfsync", "active-expire-effort", "max-containers", "tracking-table-max-keys", "undo-window", "maxmemory-policy", "maxmemory-samples",
		"lfu-log-factor", "lfu-decay-time", "auto-compact-percentage", "auto-compact-min-size", "erase-within", "scrub-interval"} {
		options.OnChange(option, func(s *config.Settings) error {
			if ks := engine.Keyspace(); ks != nil {
				return applySettings(ks, s)
			}
			return nil // a node of a cluster that has none yet applies all to the one that it opens
		})
	}
	on("notify-keyspace-events", func(s *config.Settings) {
		engine.Broker.SetEventClasses(s.NotifyKeyspaceEvents)
		if ks := engine.Keyspace(); ks != nil {
			ks.ListenersChanged()
		}
	})
	on("slowlog-log-slower-than", func(s *config.Settings) { engine.Slowlog.SetThreshold(s.SlowlogThreshold) })
	on("query-budget", func(s *config.Settings) { engine.QueryBudget.Store(int64(s.QueryBudget)) })
	on("scripts", func(s *config.Settings) { engine.Scripts.SetEnabled(s.Scripts) })
	for _, option := range config.EncodingOptions {
		on(option.Name, func(s *config.Settings) { engine.SetEncodings(s.Encodings) })
	}
	for _, option := range []string{"lua-time-limit", "busy-reply-threshold"} {
		on(option, func(s *config.Settings) { engine.Scripts.SetTimeLimit(s.LuaTimeLimit) })
	}
	on("slowlog-max-len", func(s *config.Settings) { engine.Slowlog.SetLength(s.SlowlogLength) })
	on("latency-monitor-threshold", func(s *config.Settings) { engine.Latency.SetThreshold(s.LatencyThreshold) })
	on("latency-tracking", func(s *config.Settings) { engine.SetLatencyTracking(s.LatencyTracking) })
	on("latency-tracking-info-percentiles", func(s *config.Settings) { engine.SetLatencyPercentiles(s.LatencyPercentiles) })
	on("maxmemory", func(s *config.Settings) { limitMemory(s, engine) })
	on("cluster-proxy", func(s *config.Settings) { engine.SetProxy(s.Cluster.Proxy && s.Cluster.ID != "") })
	on("loglevel", func(s *config.Settings) { zerolog.SetGlobalLevel(s.LogLevel) })
}

// limitMemory bounds the memory of the items, and that of the process accordingly.
func limitMemory(s *config.Settings, engine *engine.Engine) {
	engine.SetMaxMemory(s.MaxMemory)
	server.LimitRuntime(s)
}
