package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/commands"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/server/resp"

	"github.com/rs/zerolog"
)

const (
	// spareFiles are file descriptors left to the journal and the log, and filesPerPartition those
	// left to each partition's store, when maxclients is adjusted to
	// what the system allows.
	spareFiles        = 64
	filesPerPartition = 2
)

// What is written to a client that is turned away at the door.
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

// timeouts say how long the server waits for a client that keeps it from going on.
type timeouts struct {
	handshake time.Duration // for the TLS handshake
	stall     time.Duration // for stallBytes of a command that the client has begun, or for its end
	write     time.Duration // for the client to take a piece of its replies
	held      time.Duration // between two looks whether a client that is held back is still there
}

var patient = timeouts{handshake: 10 * time.Second, stall: time.Minute, write: time.Minute, held: time.Second}

// executor carries out commands: a commands.Engine and its keyspace, or a stand-in for tests.
type executor interface {
	Execute(s *commands.Session, args []string) commands.Reply
	CloseSession(s *commands.Session)
	Paused(s *commands.Session, args []string) <-chan struct{}
	WorthPrefetching() bool
	Prefetch(a *commands.Lookahead)
	Wait(t keyspace.LSN) error
	CommitNow(t keyspace.LSN) error // for loops
	Now() int64
}

// engine is the executor of a running server.
type engine struct{ *commands.Engine }

func (e engine) Now() int64 { return e.Keyspace.Now() }

// Server accepts connections and serves them in loops and in goroutines of their own. It is the [commands.Host] of
// the engine it serves with. Safe for concurrent use.
type Server struct {
	*config.Config

	log       zerolog.Logger
	engine    executor
	startedAt int64        // ms
	mostFiles atomic.Int64 // clients that the system has file descriptors for
	timeouts  timeouts
	clients   commands.ClientMemoryLimit

	listeners map[net.Listener]*tls.Config // nil for plain connections
	tls       atomic.Pointer[tls.Config]   // of TLS connections that begin now
	observer  *observer                    // nil: nobody asks for metrics
	acceptors sync.WaitGroup
	stopping  atomic.Bool
	shutdown  shutdown
	stop      chan struct{} // closed when the server stops
	loops     []*loop       // none: every connection has a goroutine of its own

	traffic         traffic
	held            atomic.Int64 // connections that CLIENT PAUSE holds back
	total           atomic.Int64 // connections served since the start
	rejected        atomic.Int64 // connections turned away
	slowSubscribers atomic.Int64 // subscribers disconnected because they did not keep up
	acceptLog       commands.LogLimiter
	attackLog       commands.LogLimiter
	notices         notices

	serving sync.WaitGroup
	mu      sync.Mutex // protects what follows
	lastID  int64
	conns   map[*conn]struct{}
}

// New makes a server that does not listen yet.
func New(config *config.Config, log zerolog.Logger) *Server {
	s := &Server{
		Config:    config,
		log:       log,
		timeouts:  patient,
		stop:      make(chan struct{}),
		shutdown:  shutdown{asked: make(chan struct{})},
		conns:     make(map[*conn]struct{}),
		attackLog: commands.LogLimiter{Every: time.Minute}, // as in Redis
	}
	s.boundClients()
	return s
}

// Listen opens the listeners that the settings ask for. Clients that connect wait until Start. The
// error is one clear line; nothing is open then.
func (s *Server) Listen() (err error) {
	settings := s.Settings()
	if s.listeners, err = listen(settings); err != nil || settings.MetricsAddr == "" {
		return err
	}
	if s.observer, err = newObserver(s, settings.MetricsAddr, settings.MetricsPprof); err != nil {
		closeAll(slices.Collect(maps.Keys(s.listeners)))
	}
	return err
}

// Start serves the clients of the listeners with the engine, whose Host the server should be.
func (s *Server) Start(e *commands.Engine) {
	s.serve(engine{e}, s.listeners)
	s.acceptors.Go(func() { s.sample(e) })
	s.acceptors.Go(func() { keepHeap(s.stop, e.Keyspace) })
	if s.observer != nil {
		s.observer.observe(e)
	}
}

// sample lets the engine look at its counters until the server stops.
func (s *Server) sample(e *commands.Engine) {
	ticker := time.NewTicker(commands.SampleInterval)
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

// Addresses are those that the server listens on, as "tcp 127.0.0.1:6379", in alphabetical order.
func (s *Server) Addresses() []string {
	var list []string
	for ln := range s.listeners {
		list = append(list, ln.Addr().Network()+" "+ln.Addr().String())
	}
	slices.Sort(list)
	return list
}

// serve starts to accept connections: plain ones from listeners, TLS ones from those that come with
// a configuration.
func (s *Server) serve(e executor, listeners map[net.Listener]*tls.Config) {
	s.engine, s.startedAt, s.listeners = e, e.Now(), listeners
	settings := s.Settings()
	if most := s.afford(settings); most < settings.MaxClients {
		s.log.Warn().Int("maxclients", settings.MaxClients).Int("reduced_to", most).
			Msg("the limit on open files is too low for maxclients: raise it with ulimit -n")
	}
	s.OnChange("maxclients", func(changed *config.Settings) error {
		if most := s.afford(changed); most < changed.MaxClients {
			return commands.Error(fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", most)) // as in Redis
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
	s.loops = newLoops(s, settings.IOThreads)
	for _, l := range s.loops {
		s.serving.Go(l.run)
	}
	for ln, config := range listeners {
		if config != nil {
			s.secure(config)
		}
		s.acceptors.Go(func() { s.accept(ln, config != nil) })
	}
}

// afford makes room for as many clients as the settings ask for, or for as many as the system's
// limit on open files allows, and returns how many that are.
func (s *Server) afford(settings *config.Settings) int {
	reserved := spareFiles + filesPerPartition*settings.Partitions
	most := max(fileLimit(settings.MaxClients+reserved)-reserved, 1)
	s.mostFiles.Store(int64(most))
	return most
}

// accept accepts connections until the server stops. When that fails, usually for want of file
// descriptors, it pauses: the next attempt would fail as fast as the last.
func (s *Server) accept(ln net.Listener, secret bool) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	var spare reserve
	pause := shortest
	for {
		spare.refill()
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = shortest
			s.admit(nc, secret)
			continue
		case s.stopping.Load():
			return
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			if spare.turnAway(ln) {
				pause = shortest // nobody waits in vain, so others need not wait long either
			}
		}
		if ok, _ := s.acceptLog.Allow(); ok {
			s.log.Error().Err(err).Msg("cannot accept connections")
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// mostClients is how many may be connected at a time.
func (s *Server) mostClients() int { return min(s.Settings().MaxClients, int(s.mostFiles.Load())) }

// admit begins to serve a connection, in a loop if it is a plain one, or turns it away. It never waits
// for the client.
func (s *Server) admit(nc net.Conn, secret bool) {
	remote, local := addresses(nc)
	c := &conn{server: s, gone: make(chan struct{}), fd: noFD, socket: newSocket(nc, s.timeouts.write, &s.traffic)}
	if secret {
		c.socket = newSocket(tls.Server(nc, s.tls.Load()), s.timeouts.write, &s.traffic)
	}

	s.mu.Lock()
	if len(s.conns) >= s.mostClients() {
		s.mu.Unlock()
		s.turnAway(nc, secret)
		return
	}
	s.lastID++
	c.session = commands.NewSession(s.lastID, remote, local, s.engine.Now())
	c.session.Receiver = c
	c.session.Memory = s.clients.Open(c.session)
	c.guard = resp.NewGuard(c.session.Memory, resp.LargeBuffer)
	if secret {
		c.guard.SetReadAhead(resp.SmallBuffer) // a read gives no more than a TLS record
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()

	c.session.Authenticated = !s.PasswordSet()
	keepAlive(nc, s.Settings().TCPKeepAlive)
	if !secret && !s.denies(nc) && s.enterLoop(c) {
		s.total.Add(1)
		return
	}
	s.serving.Go(func() { c.run(c.begin) })
}

// denies tells whether a client is turned away because it comes from another machine and there is no
// password (protected mode).
func (s *Server) denies(nc net.Conn) bool {
	return s.Settings().ProtectedMode && !s.PasswordSet() && !isLocal(nc)
}

// turnAway tells a client that there are too many. The text fits into the empty buffer of a fresh
// socket, so that writing it does not wait; a TLS client, which has not been greeted, gets none.
func (s *Server) turnAway(nc net.Conn, secret bool) {
	s.rejected.Add(1)
	s.warn(&s.notices.full, nc.RemoteAddr().String(), nil, "a client was turned away because there are too many: see maxclients")
	if !secret && nc.SetWriteDeadline(clock.Deadline(time.Millisecond)) == nil {
		_, _ = nc.Write([]byte(tooManyClients)) // best effort
	}
	_ = nc.Close()
}

// remove ends a connection.
func (s *Server) remove(c *conn) {
	if c.socket.Conn != nil {
		_ = c.socket.Close() // whatever it says, the connection is gone
	}
	c.session.Memory.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Stop stops accepting connections, lets the commands that are being carried out finish and their
// replies leave, and closes all connections. When ctx ends before that, what is left is cut off and
// ctx's error returned. It must be called once.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	if s.observer != nil {
		defer s.observer.stop() // until then it says that the server stops
	}
	close(s.stop)
	closeAll(slices.Collect(maps.Keys(s.listeners)))
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

// Sessions gives the sessions that are connected now and not about to be disconnected, by ascending ID.
func (s *Server) Sessions() []*commands.Session {
	var list []*commands.Session
	s.each(func(c *conn) {
		if !c.killed.Load() {
			list = append(list, c.session)
		}
	})
	slices.SortFunc(list, func(a, b *commands.Session) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Disconnect cuts off the connections whose sessions pick picks, and says how many they are.
func (s *Server) Disconnect(pick func(*commands.Session) bool) int {
	killed := 0
	s.each(func(c *conn) {
		if !c.killed.Load() && pick(c.session) {
			c.kill()
			killed++
		}
	})
	return killed
}

// Info gives the server's figures.
func (s *Server) Info() commands.ServerInfo {
	settings := s.Settings()
	s.mu.Lock()
	connected := len(s.conns)
	s.mu.Unlock()
	return commands.ServerInfo{
		Version:          Version,
		StartedAt:        s.startedAt,
		TCPPort:          settings.Port,
		ConfigFile:       settings.ConfigFile,
		Connected:        connected,
		MaxClients:       s.mostClients(),
		PausedClients:    int(s.held.Load()),
		TotalConnections: s.total.Load(),
		Rejected:         s.rejected.Load(),
		SlowSubscribers:  s.slowSubscribers.Load(),
		ClientMemory:     s.clients.Used(),
		EvictedClients:   s.clients.Disconnected(),
		NetInput:         s.traffic.in.Load(),
		NetOutput:        s.traffic.out.Load(),
	}
}
