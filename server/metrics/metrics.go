package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Bounds of the HTTP server, which has few clients with small requests.
const (
	maxConns        = 32
	maxScrapes      = 4 // at a time
	maxHeader       = 16 << 10
	readTimeout     = 10 * time.Second
	writeTimeout    = 2 * time.Minute // longer than a profile takes by default
	idleTimeout     = 5 * time.Minute // longer than the time between two scrapes
	shutdownTimeout = time.Second     // for answers that are not sent yet
)

// Server is the HTTP server. Safe for concurrent use.
type Server struct {
	http     http.Server
	listener net.Listener
	log      zerolog.Logger
	stopping atomic.Bool

	mu     sync.RWMutex     // protects engine; held while its figures are read
	engine *commands.Engine // nil while data is loaded and after Close
}

// Listen makes a server that answers on an address, host:port. Until SetEngine it reports that data is
// loaded. profiles adds profiles of the program under /debug/pprof/.
func Listen(address string, profiles bool, log zerolog.Logger) (*Server, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	m := &Server{log: log, listener: newLimitListener(ln, maxConns)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{log}, MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /healthz", m.health)
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	m.http = http.Server{
		Handler: mux, MaxHeaderBytes: maxHeader,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: stdlog.New(io.Discard, "", 0), // mistakes of clients
	}
	go func() {
		if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("metrics are no longer served")
		}
	}()
	return m, nil
}

// Addr is the address that the server listens on.
func (m *Server) Addr() net.Addr { return m.listener.Addr() }

// SetEngine sets the engine to report on; nil for none.
func (m *Server) SetEngine(e *commands.Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engine = e
}

// SetStopping makes the server report that mayfly stops.
func (m *Server) SetStopping() { m.stopping.Store(true) }

// Close ends the server. Afterwards it does not use the engine any more.
func (m *Server) Close() {
	m.SetEngine(nil)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if m.http.Shutdown(ctx) != nil {
		_ = m.http.Close() // clients that are too slow get no answer
	}
}

// health answers 200 if clients are served and may write, else 503 and the reason.
func (m *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := m.healthProblem(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // the client may have gone
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (m *Server) healthProblem() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.stopping.Load():
		return errors.New("stopping")
	case m.engine == nil:
		return errors.New("loading")
	}
	if err := m.engine.Keyspace.Writable(); err != nil {
		return fmt.Errorf("writes are refused: %w", err)
	}
	return nil
}

// Describe is of prometheus.Collector. Metrics that it does not describe are not checked for duplicates.
func (m *Server) Describe(chan<- *prometheus.Desc) {}

// Collect is of prometheus.Collector.
func (m *Server) Collect(out chan<- prometheus.Metric) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.engine == nil {
		return
	}
	for _, f := range m.engine.Info() {
		if c, ok := f.Value.(commands.ContainerInfo); ok {
			collectContainer(out, c)
		} else if metric, ok := metricsOfInfo[f.Name]; ok {
			metric.collect(out, f.Value)
		}
	}
	for _, c := range m.engine.CommandStats() {
		collectCommand(out, &c)
	}
	for code, n := range m.engine.ErrorStats() {
		out <- prometheus.MustNewConstMetric(errorsByCode, prometheus.CounterValue, float64(n), code)
	}
}

// scrapeLog logs errors of scrapes.
type scrapeLog struct{ zerolog.Logger }

func (l scrapeLog) Println(v ...any) { l.Warn().Msg("metrics: " + fmt.Sprint(v...)) }

// limitListener is a listener that bounds the number of connections at a time.
type limitListener struct {
	net.Listener
	slots chan struct{}
}

func newLimitListener(ln net.Listener, most int) *limitListener {
	return &limitListener{ln, make(chan struct{}, most)}
}

// Accept waits for a connection and for a slot for it.
func (l *limitListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.slots <- struct{}{}
	return &limitedConn{Conn: nc, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
