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

// Bounds of the HTTP server, which has few clients, that ask for little.
const (
	mostMetricsConns = 32
	mostScrapes      = 4 // at a time
	metricsHeader    = 16 << 10
	metricsRead      = 10 * time.Second
	metricsWrite     = 2 * time.Minute // a profile takes as long as it is asked to
	metricsIdle      = 5 * time.Minute // longer than between two scrapes
	metricsGoodbye   = time.Second     // for the answers under way when the server stops
)

// observer is the HTTP server that tells monitoring how the server is: /metrics for Prometheus, with
// the figures of INFO, and /healthz for whoever has to decide whether to send clients here. Safe for
// concurrent use.
type observer struct {
	http     http.Server
	listener net.Listener
	server   *Server

	mu     sync.RWMutex     // protects engine; held while its figures are read
	engine *commands.Engine // nil while data are loaded and after the end
}

// newObserver listens on an address; the error is one clear line.
func newObserver(s *Server, address string, profiles bool) (*observer, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on metrics-addr %s: %w", address, cause(err))
	}
	o := &observer{server: s, listener: newFewConns(ln, mostMetricsConns)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(o,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{s}, MaxRequestsInFlight: mostScrapes,
	}))
	mux.HandleFunc("GET /healthz", o.health)
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	o.http = http.Server{
		Handler: mux, MaxHeaderBytes: metricsHeader,
		ReadTimeout: metricsRead, WriteTimeout: metricsWrite, IdleTimeout: metricsIdle,
		ErrorLog: stdlog.New(io.Discard, "", 0), // what clients do wrong
	}
	go func() {
		if err := o.http.Serve(o.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("metrics are no longer served")
		}
	}()
	return o, nil
}

// observe lets the observer tell of an engine.
func (o *observer) observe(e *commands.Engine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.engine = e
}

// stop ends the observer; afterwards it does not use the engine any more.
func (o *observer) stop() {
	o.observe(nil)
	ctx, cancel := context.WithTimeout(context.Background(), metricsGoodbye)
	defer cancel()
	if o.http.Shutdown(ctx) != nil {
		_ = o.http.Close() // who has not taken his answer by now does without
	}
}

// health answers 200 if clients are served and may write, else 503 and why not.
func (o *observer) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := o.trouble(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // to who has gone there is nothing to say
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (o *observer) trouble() error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	switch {
	case o.server.stopping.Load():
		return errors.New("stopping")
	case o.engine == nil:
		return errors.New("loading")
	}
	if err := o.engine.Keyspace.Writable(); err != nil {
		return fmt.Errorf("writes are refused: %w", err)
	}
	return nil
}

// Describe is of prometheus.Collector. What it does not describe is not checked for twins.
func (o *observer) Describe(chan<- *prometheus.Desc) {}

// Collect is of prometheus.Collector.
func (o *observer) Collect(out chan<- prometheus.Metric) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.engine == nil {
		return
	}
	for _, f := range o.engine.Info() {
		if c, ok := f.Value.(commands.ContainerInfo); ok {
			collectContainer(out, c)
		} else if m, ok := metricsOfInfo[f.Name]; ok {
			m.collect(out, f.Value)
		}
	}
	for _, c := range o.engine.CommandStats() {
		collectCommand(out, &c)
	}
	for code, n := range o.engine.ErrorStats() {
		out <- prometheus.MustNewConstMetric(errorsByCode, prometheus.CounterValue, float64(n), code)
	}
}

// scrapeLog logs what goes wrong in a scrape.
type scrapeLog struct{ *Server }

func (l scrapeLog) Println(v ...any) { l.log.Warn().Msg("metrics: " + fmt.Sprint(v...)) }

// fewConns is a listener that accepts no more than so many connections at a time.
type fewConns struct {
	net.Listener
	room chan struct{}
}

func newFewConns(ln net.Listener, most int) *fewConns {
	return &fewConns{ln, make(chan struct{}, most)}
}

// Accept waits for a connection and for room for it.
func (l *fewConns) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.room <- struct{}{}
	return &oneOfFew{Conn: nc, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

type oneOfFew struct {
	net.Conn
	leave func()
}

func (c *oneOfFew) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
