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

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry/clock"
	"mayfly/server/httpgate"

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
	maxProfiles     = 4 // at a time
	readTimeout     = 10 * time.Second
	answerTimeout   = 10 * time.Second // to take an answer that is no profile
	writeTimeout    = 2 * time.Minute  // longer than a profile takes by default
	idleTimeout     = 5 * time.Minute  // longer than the time between two scrapes
	shutdownTimeout = time.Second      // for answers that are not sent yet
)

// longestWrite is how long a disk that is healthy takes for what replies wait for, beside the time of its
// bytes.
const longestWrite = 5 * time.Second

// Server is the HTTP server. Safe for concurrent use.
type Server struct {
	http     http.Server
	listener net.Listener
	log      zerolog.Logger
	stopping atomic.Bool

	mu     sync.RWMutex   // protects engine; held while its figures are read
	engine *engine.Engine // nil while data is loaded and after Close
}

// Options say what a server serves and to whom.
type Options struct {
	Address  string   // to listen on, host:port
	Hosts    []string // names of the machine that requests may use besides that of the address; * for all
	Profiles bool     // serve profiles of the program under /debug/pprof/
}

// Listen makes a server. Until SetEngine it reports that data is loaded.
func Listen(o Options, log zerolog.Logger) (*Server, error) {
	ln, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	m := &Server{log: log, listener: httpgate.NewListener(ln, maxConns)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", short(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{log}, MaxRequestsInFlight: maxScrapes,
	})))
	mux.Handle("GET /healthz", short(http.HandlerFunc(m.health)))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "mayfly answers at /metrics and /healthz\n") // the client may have gone
	})
	if o.Profiles {
		mux.HandleFunc("GET /debug/pprof/", limited(maxProfiles, pprof.Index))
		mux.HandleFunc("GET /debug/pprof/cmdline", serveCommandLine)
		mux.HandleFunc("GET /debug/pprof/profile", limited(maxProfiles, pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", limited(maxProfiles, pprof.Trace))
	}
	m.http = http.Server{
		Handler: httpgate.Handler(httpgate.NewHosts(o.Address, o.Hosts), "metrics-hosts", mux), ConnContext: httpgate.WithConn, MaxHeaderBytes: maxHeader,
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

// short limits the time for which a client may take an answer.
func short(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(clock.Deadline(answerTimeout)) // or the server's own rules
		next.ServeHTTP(w, r)
	})
}

// Addr is the address that the server listens on.
func (m *Server) Addr() net.Addr { return m.listener.Addr() }

// SetEngine sets the engine to report on; nil for none.
func (m *Server) SetEngine(e *engine.Engine) {
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

// health answers 200 if clients are served and may write, else 503 and the reason. Damaged files on disk are
// told, but with 200: memory has everything, and a supervisor that restarts the server would lose that. A
// follower of a cluster answers 200, because it sends clients to the leader; with ?role=leader only the
// leader does.
func (m *Server) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := m.healthProblem(r.URL.Query().Get("role") == "leader"); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // the client may have gone
		return
	}
	_, _ = fmt.Fprintln(w, "ok"+m.warning())
}

// warning says what is wrong although clients are served, and the role of a node of a cluster; empty if there
// is nothing to say.
func (m *Server) warning() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.engine == nil {
		return ""
	}
	ks, text := m.engine.Keyspace(), ""
	if m.engine.Cluster != nil {
		text = ", " + clusterRole(m.engine.Cluster.View())
	}
	if ks == nil {
		return text
	}
	if err := ks.Damage(); err != nil {
		return text + "; do not restart, the files on disk are damaged: " + err.Error()
	}
	return text
}

// healthProblem returns why the server is not healthy, or nil. With leader set a node of a cluster must lead.
func (m *Server) healthProblem(leader bool) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.stopping.Load():
		return errors.New("stopping")
	case m.engine == nil:
		return errors.New("loading")
	}
	if m.engine.Cluster != nil {
		if err := clusterProblem(m.engine.Cluster.View(), leader); err != nil {
			return err
		}
	}
	ks := m.engine.Keyspace()
	if ks == nil {
		return errors.New("loading")
	}
	if err := ks.Writable(); err != nil {
		return fmt.Errorf("writes are refused: %w", err)
	}
	if ks.Hangs(longestWrite) {
		return errors.New("a write to the disk hangs")
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
	if m.engine.Cluster != nil {
		collectCluster(out, m.engine.Cluster.View())
		out <- prometheus.MustNewConstMetric(clusterDropped, prometheus.CounterValue, float64(m.engine.DroppedMessages()))
	}
	for _, f := range admin.Info(m.engine) {
		switch value := f.Value.(type) {
		case admin.ContainerInfo:
			collectContainer(out, value)
		case items.LogInfo:
			collectLog(out, value)
		default:
			if metric, ok := metricsOfInfo[f.Name]; ok {
				metric.collect(out, value)
			}
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
