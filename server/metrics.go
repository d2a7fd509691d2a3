package server

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
	"time"

	"mayfly/commands"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the HTTP server, which has few clients with small requests.
const (
	maxMetricsConns = 32
	maxScrapes      = 4 // at a time
	metricsHeader   = 16 << 10
	metricsRead     = 10 * time.Second
	metricsWrite    = 2 * time.Minute // longer than a profile takes by default
	metricsIdle     = 5 * time.Minute // longer than the time between two scrapes
	metricsShutdown = time.Second     // for the answers under way when the server stops
)

// metricsServer is the HTTP server for monitoring: /metrics for Prometheus, with the figures of INFO, and
// /healthz for load balancers. Safe for concurrent use.
type metricsServer struct {
	http     http.Server
	listener net.Listener
	server   *Server

	mu     sync.RWMutex     // protects engine; held while its figures are read
	engine *commands.Engine // nil while data is loaded and after the end
}

// newMetricsServer listens on an address; the error is one clear line.
func newMetricsServer(s *Server, address string, profiles bool) (*metricsServer, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on metrics-addr %s: %w", address, cause(err))
	}
	m := &metricsServer{server: s, listener: newLimitListener(ln, maxMetricsConns)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{s}, MaxRequestsInFlight: maxScrapes,
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
		Handler: mux, MaxHeaderBytes: metricsHeader,
		ReadTimeout: metricsRead, WriteTimeout: metricsWrite, IdleTimeout: metricsIdle,
		ErrorLog: stdlog.New(io.Discard, "", 0), // mistakes of clients
	}
	go func() {
		if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("metrics are no longer served")
		}
	}()
	return m, nil
}

// setEngine sets the engine to report on; nil for none.
func (m *metricsServer) setEngine(e *commands.Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engine = e
}

// stop ends the server. Afterwards it does not use the engine any more.
func (m *metricsServer) stop() {
	m.setEngine(nil)
	ctx, cancel := context.WithTimeout(context.Background(), metricsShutdown)
	defer cancel()
	if m.http.Shutdown(ctx) != nil {
		_ = m.http.Close() // clients that are too slow get no answer
	}
}

// health answers 200 if clients are served and may write, else 503 and the reason.
func (m *metricsServer) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := m.healthProblem(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // the client may have gone
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (m *metricsServer) healthProblem() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.server.stopping.Load():
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
func (m *metricsServer) Describe(chan<- *prometheus.Desc) {}

// Collect is of prometheus.Collector.
func (m *metricsServer) Collect(out chan<- prometheus.Metric) {
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
type scrapeLog struct{ *Server }

func (l scrapeLog) Println(v ...any) { l.log.Warn().Msg("metrics: " + fmt.Sprint(v...)) }

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
