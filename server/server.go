package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "mayfly/commands" // fills the table of commands
	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/server/forward"
	"mayfly/server/metrics"
	"mayfly/server/resp"
	"mayfly/server/web"

	"github.com/rs/zerolog"
)

const (
	// maxclients leaves these file descriptors to the journal and the log, to clients that make room, and
	// to the store of each partition.
	spareFiles        = 64 + mostLeaving
	filesPerPartition = 2
)

// Texts for clients that are refused, in Redis' words.
const (
	tooManyClients = "-ERR max number of clients reached\r\n"
	denied         = "-DENIED mayfly is running in protected mode because protected mode is enabled and no password is set. " +
		"In this mode connections are only accepted from the loopback interface. " +
		"If you want to connect from external computers to mayfly you may adopt one of the following solutions: " +
		"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface " +
		"by connecting to mayfly from the same host the server is running, however MAKE SURE mayfly is not publicly accessible from internet if you do so. " +
		"2) Alternatively you can just disable the protected mode by setting the protected-mode option to 'no' in the configuration file, and then restarting the server. " +
		"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
		"4) Set up a password with the '--requirepass' option. " +
		"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.\r\n"
)

// timeouts limit how long the server waits for a client.
type timeouts struct {
	handshake time.Duration // for the TLS handshake
	stall     time.Duration // for stallBytes of a half-read command, or for its end
	write     time.Duration // for the client to take a piece of its replies
	long      time.Duration // for which replies wait at most while a pipeline has one long command after the other
	paused    time.Duration // between two checks that a paused client is still there
}

var defaultTimeouts = timeouts{handshake: 10 * time.Second, stall: time.Minute, write: time.Minute, long: 10 * time.Millisecond, paused: time.Second}

// An executor executes commands: a engine.Engine and its keyspace, or a fake of the tests. The server
// enters it once for a command and once for the commit of a turn.
type executor interface {
	Execute(s *engine.Session, args []string) engine.Outcome
	Wait(lsn keyspace.LSN, until time.Duration) error        // for goroutines
	WaitWritten(lsn keyspace.LSN, until time.Duration) error // for the reply to a command that has changed something
	CommitNow(lsn keyspace.LSN, until time.Duration) error   // for loops; engine.ErrCommitting: it takes long
	Deadline(waited time.Duration) time.Duration             // until when to wait for commands that have waited before
	Leaders(s *engine.Session) forward.Leaders               // for a client whose commands the leader runs
	CloseSession(s *engine.Session)
	Refusal(user, container string, words []string) string // why a user may not run a command; empty: it may
	Now() int64

	// For loops, which prefetch what the next commands look up.
	WorthPrefetching() bool
	Prefetch(a *engine.Lookahead)
}

// runningEngine is the executor of a running server.
type runningEngine struct{ *engine.Engine }

func (e runningEngine) Leaders(s *engine.Session) forward.Leaders { return e.Engine.Leaders(s) }

// Server accepts connections and serves them in loops and in goroutines of their own. It is the
// [engine.Host] of its engine. Safe for concurrent use.
type Server struct {
	*config.Config

	log       zerolog.Logger
	engine    executor
	startedAt int64        // ms
	mostFiles atomic.Int64 // clients for which the system has file descriptors
	timeouts  timeouts

	authTimeout atomic.Int64 // ns; the option auth-timeout

	places
	ending
	clients engine.ClientMemoryLimit
	loops   []*loop    // none: every connection has a goroutine of its own
	turns   *turnQueue // for commands that compute for long
	connectionCounts
	warnings warnings

	serving sync.WaitGroup
	mu      sync.Mutex // protects what follows
	lastID  int64
	conns   map[*conn]struct{}
	waiting waitingClients
}

// places are where a server listens.
type places struct {
	listenMu  sync.Mutex                   // protects listeners once connections are accepted
	listeners map[net.Listener]*tls.Config // nil for plain connections
	tls       atomic.Pointer[tls.Config]   // of TLS connections that begin now
	metrics   *metrics.Server              // nil: not wanted
	web       *web.Server                  // the page; nil: not wanted
	acceptors sync.WaitGroup
}

// ending is how a server ends.
type ending struct {
	started  atomic.Bool
	stopping atomic.Bool
	stop     chan struct{} // closed when the server stops

	shutdownAsked chan struct{} // closed when a client has requested the end of the process
	askShutdown   func()        // closes it, once
}

type connectionCounts struct {
	traffic         traffic
	paused          atomic.Int64 // connections that wait because of CLIENT PAUSE
	total           atomic.Int64 // connections served since the start
	rejected        atomic.Int64 // connections refused
	slowSubscribers atomic.Int64 // subscribers disconnected because they did not keep up
}

// New makes a server that does not listen yet.
func New(options *config.Config, log zerolog.Logger) *Server {
	s := &Server{
		Config:   options,
		log:      log,
		timeouts: defaultTimeouts,
		ending:   ending{stop: make(chan struct{}), shutdownAsked: make(chan struct{})},
		conns:    make(map[*conn]struct{}),
		turns:    newTurnQueue(max(runtime.GOMAXPROCS(0)-1, 1)),
	}
	s.askShutdown = sync.OnceFunc(func() { close(s.shutdownAsked) })
	s.warnings.attack.Every = time.Minute // as in Redis
	s.limitClientMemory()
	return s
}

// Listen opens the listeners of the settings. Clients that connect wait until Start. After an error, which
// is one clear line, nothing is open.
func (s *Server) Listen() (err error) {
	settings := s.Settings()
	if s.listeners, err = listen(settings); err != nil {
		return err
	}
	s.Listening(portsOf(s.listeners))
	if settings.MetricsAddr != "" {
		if s.metrics, err = metrics.Listen(metricsOptions(settings), s.log); err != nil {
			closeListeners(slices.Collect(maps.Keys(s.listeners)))
			return fmt.Errorf("cannot listen on metrics-addr %s: %w", settings.MetricsAddr, listenCause(err))
		}
	}
	if settings.WebAddr != "" {
		if s.web, err = web.Listen(s.pageOptions(settings), pageBackend{s}, s.log); err != nil {
			closeListeners(slices.Collect(maps.Keys(s.listeners)))
			if s.metrics != nil {
				s.metrics.Close()
			}
			return fmt.Errorf("cannot listen on web-addr %s: %w", settings.WebAddr, listenCause(err))
		}
		s.OnChange("requirepass", func(*config.Settings) error {
			s.web.EndSessions()
			return nil
		})
	}
	return nil
}

func metricsOptions(s *config.Settings) metrics.Options {
	return metrics.Options{Address: s.MetricsAddr, Hosts: s.MetricsHosts, Profiles: s.MetricsPprof}
}

// Start serves the clients of the listeners with the engine, whose Host the server should be.
func (s *Server) Start(e *engine.Engine) {
	s.serve(runningEngine{e}, s.listeners)
	s.acceptors.Go(func() { s.sample(e) })
	s.acceptors.Go(func() {
		<-s.stop
		e.Broker.Stop()
	})
	s.acceptors.Go(func() { tendHeap(s.stop, e.Keyspace, &s.clients) })
	if s.metrics != nil {
		s.metrics.SetEngine(e)
	}
}

// sample makes the engine sample its counters until the server stops.
func (s *Server) sample(e *engine.Engine) {
	ticker := time.NewTicker(engine.SampleInterval)
	defer ticker.Stop()
	for {
		e.Sample(clock.Monotonic())
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
	}
}

// Addresses returns the addresses that the server listens on, as "tcp 127.0.0.1:6379", in alphabetical
// order.
func (s *Server) Addresses() []string {
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	var list []string
	for ln := range s.listeners {
		list = append(list, ln.Addr().Network()+" "+ln.Addr().String())
	}
	slices.Sort(list)
	return list
}

// serve starts to accept connections. Those of listeners with a configuration speak TLS.
func (s *Server) serve(e executor, listeners map[net.Listener]*tls.Config) {
	s.engine, s.startedAt, s.listeners = e, e.Now(), listeners
	settings := s.Settings()
	if most := s.reserveFiles(settings); most < settings.MaxClients {
		s.log.Warn().Int("maxclients", settings.MaxClients).Int("reduced_to", most).
			Msg("the limit on open files is too low for maxclients: raise it with ulimit -n")
	}
	s.OnChange("maxclients", func(changed *config.Settings) error {
		if most := s.reserveFiles(changed); most < changed.MaxClients {
			return engine.Error(fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", most)) // as in Redis
		}
		return nil
	})
	s.OnChange("timeout", func(changed *config.Settings) error {
		for _, l := range s.loops {
			l.limitIdle(changed.Timeout)
		}
		s.each(func(c *conn) { c.limitIdle(changed.Timeout) })
		return nil
	})
	s.authTimeout.Store(int64(settings.AuthTimeout))
	s.OnChange("auth-timeout", func(changed *config.Settings) error {
		s.authTimeout.Store(int64(changed.AuthTimeout))
		for _, l := range s.loops {
			l.recheckDeadlines()
		}
		s.each(func(c *conn) { c.limitUnauthenticated(changed.AuthTimeout) })
		return nil
	})
	s.loops = newLoops(s, settings.IOThreads)
	for _, l := range s.loops {
		s.serving.Go(l.run)
	}
	s.followTLS()
	s.followListeners()
	for ln, config := range listeners {
		if config != nil {
			s.tls.Store(config)
		}
		s.acceptors.Go(func() { s.accept(ln, config != nil) })
	}
	s.started.Store(true)
}

// reserveFiles raises the limit on open files for the clients of the settings, as far as the system allows.
// It returns for how many clients it suffices.
func (s *Server) reserveFiles(settings *config.Settings) int {
	reserved := spareFiles + filesPerPartition*settings.Partitions
	most := max(fileLimit(settings.MaxClients+reserved)-reserved, 1)
	s.mostFiles.Store(int64(most))
	return most
}

// accept accepts connections until the server stops. After a failure, usually for want of file descriptors,
// it pauses: the next attempt would fail as fast as the last.
func (s *Server) accept(ln net.Listener, secure bool) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	var spare spareFile
	pause := shortest
	for {
		spare.refill()
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = shortest
			s.admit(nc, secure)
			continue
		case s.stopping.Load(), errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			if spare.refuse(ln) {
				pause = shortest // the client that waited does not wait any more
			}
		}
		if line := s.limited(&s.warnings.accept, zerolog.ErrorLevel); line != nil {
			line.Err(err).Msg("cannot accept connections")
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// mostClients is how many clients may be connected at a time.
func (s *Server) mostClients() int { return min(s.Settings().MaxClients, int(s.mostFiles.Load())) }

// placesFor is how many clients may be connected so that one more is admitted from there. reserved-clients
// of the places are for clients from this machine.
func (s *Server) placesFor(nc net.Conn) int {
	if isLocal(nc.RemoteAddr()) {
		return s.mostClients()
	}
	return s.mostClients() - s.Settings().ReservedClients
}

// admit begins to serve a connection, in a loop if it is plain, or refuses it. It never waits for the client.
func (s *Server) admit(nc net.Conn, secure bool) {
	remote, local := addresses(nc)
	stream := nc
	if secure {
		stream = tls.Server(nc, s.tls.Load())
	}
	c := s.register(stream, origin{remote: remote, local: local, places: s.placesFor(nc)})
	if c == nil {
		s.refuse(nc, secure)
		return
	}
	keepAlive(nc, s.Settings().TCPKeepAlive)
	if !secure && !s.denies(nc.RemoteAddr()) && s.enterLoop(c) {
		s.total.Add(1)
		return
	}
	s.serving.Go(func() { c.run(c.serve) })
}

// origin says where a connection comes from.
type origin struct {
	remote, local string // addresses, as CLIENT LIST shows them
	places        int    // for how many connections there is room
	inner         bool   // another part of the program made it; the caller counts its goroutine as serving
	known         bool   // it needs no password: its maker has asked for it
	user          string // of a client whose commands another node passes on; else empty
}

// register makes a connection one of at most places. It returns nil if there is no place for it.
func (s *Server) register(stream net.Conn, o origin) *conn {
	c := &conn{server: s, gone: make(chan struct{}), fd: noFD, socket: newSocket(stream, s.timeouts.write, &s.traffic)}
	s.mu.Lock()
	var left *conn
	if o.inner && s.stopping.Load() {
		o.places = 0
	}
	if len(s.conns)-s.waiting.leaving >= o.places {
		if left = s.waiting.makeRoomLocked(); left == nil {
			s.mu.Unlock()
			return nil
		}
	}
	s.lastID++
	c.session = engine.NewSession(s.lastID, o.remote, o.local, s.engine.Now())
	c.session.Receiver = c
	c.session.Abandoned = c.abandoned
	c.session.Unread = c.hasUnread
	c.session.Yield = c.yield
	c.session.Memory = s.clients.Open(c.session)
	c.guard = resp.NewGuard(c.session.Memory, resp.LargeBuffer)
	if c.socket.raw == nil {
		c.guard.SetReadAhead(resp.SmallBuffer) // a read gives no more than a TLS record
	}
	c.session.Authenticated.Store(o.known || !s.Users().Table().NeedsLogin())
	if c.unauthenticated() {
		s.waiting.addLocked(c)
	}
	if o.user != "" {
		c.session.ServeFor(o.user)
	}
	s.conns[c] = struct{}{}
	if o.inner {
		s.serving.Add(1) // before Stop waits
	}
	s.mu.Unlock()

	if left != nil {
		s.warn(&s.warnings.room, left.session.Addr, nil, "a client that gave no password was disconnected to make room for another: see maxclients and auth-timeout")
	}
	return c
}

// denies reports whether a client is refused because it comes from another machine and there is no password
// (protected mode).
func (s *Server) denies(client net.Addr) bool {
	return s.Settings().ProtectedMode && s.Users().Table().Default().NoPass() && !isLocal(client)
}

// refuse answers a client that there are too many. The text fits into the empty buffer of a fresh socket, so
// writing it does not wait. A TLS client gets none, because there was no handshake.
func (s *Server) refuse(nc net.Conn, secure bool) {
	s.rejected.Add(1)
	s.warn(&s.warnings.full, nc.RemoteAddr().String(), nil, "a client was refused because there are too many: see maxclients")
	if !secure && nc.SetWriteDeadline(clock.Deadline(time.Second)) == nil { // the buffer of a new connection takes it at once
		_, _ = nc.Write([]byte(tooManyClients)) // best effort
	}
	_ = nc.Close()
}

// remove ends a connection.
func (s *Server) remove(c *conn) {
	if c.socket.Conn != nil {
		_ = c.socket.Close() // the connection is gone, whatever it returns
	}
	c.session.Memory.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.waiting.removeLocked(c)
	s.mu.Unlock()
}

// Shutdown requests the end of the process (SHUTDOWN). It returns at once.
func (s *Server) Shutdown() { s.askShutdown() }

// ShutdownAsked returns a channel that is closed when a client has requested the end of the process.
func (s *Server) ShutdownAsked() <-chan struct{} { return s.shutdownAsked }

// Stop stops accepting connections, lets running commands finish and their replies leave, and closes all
// connections. If ctx ends first, the remaining clients are disconnected, and Stop returns ctx's error.
// It must be called once.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	if s.metrics != nil {
		s.metrics.SetStopping()
		defer s.metrics.Close()
	}
	if s.web != nil {
		s.web.Close()
	}
	close(s.stop)
	s.closeListeners()
	s.acceptors.Wait()
	for _, l := range s.loops {
		l.halt()
	}
	s.each((*conn).interrupt)

	gone := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	s.each((*conn).giveUp)
	return ctx.Err()
}

// each calls f for every connection.
func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// Sessions returns the sessions that are connected and not about to be disconnected, by ascending ID.
func (s *Server) Sessions() []*engine.Session {
	var list []*engine.Session
	s.each(func(c *conn) {
		if !c.session.Disconnected.Load() {
			list = append(list, c.session)
		}
	})
	slices.SortFunc(list, func(a, b *engine.Session) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Disconnect disconnects the sessions that pick selects, and returns their number.
func (s *Server) Disconnect(pick func(*engine.Session) bool) int {
	killed := 0
	s.each(func(c *conn) {
		if !c.killed.Load() && pick(c.session) {
			c.kill()
			killed++
		}
	})
	return killed
}

// Info returns the server's figures.
func (s *Server) Info() engine.ServerInfo {
	settings := s.Settings()
	s.mu.Lock()
	connected := len(s.conns)
	s.mu.Unlock()
	return engine.ServerInfo{
		Version:          Version,
		ReportedVersion:  settings.Version,
		StartedAt:        s.startedAt,
		TCPPort:          settings.Port,
		ConfigFile:       settings.ConfigFile,
		Connected:        connected,
		MaxClients:       s.mostClients(),
		PausedClients:    int(s.paused.Load()),
		TotalConnections: s.total.Load(),
		Rejected:         s.rejected.Load(),
		SlowSubscribers:  s.slowSubscribers.Load(),
		ClientMemory:     s.clients.Used(),
		EvictedClients:   s.clients.Disconnected(),
		NetInput:         s.traffic.in.Load(),
		NetOutput:        s.traffic.out.Load(),
	}
}
