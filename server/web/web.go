package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"io"
	stdlog "log"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"mayfly/expiry/clock"
	"mayfly/server/httpgate"

	"github.com/rs/zerolog"
)

// Bounds of the HTTP server, which has few clients with small requests.
const (
	maxConns        = 32
	maxHeader       = 16 << 10
	maxBody         = 1 << 20 // of a request, bytes
	maxReply        = 1 << 20 // of a command, bytes
	maxViewers      = 16      // of GET /live at a time
	shutdownTimeout = time.Second
)

// times bound what a request and its answer may take.
type times struct {
	read   time.Duration // to send a request
	answer time.Duration // to run a command, and again to take its answer
	idle   time.Duration // between two requests
}

var usualTimes = times{read: 10 * time.Second, answer: 30 * time.Second, idle: 5 * time.Minute}

// policy is the Content-Security-Policy of all answers: the page loads its own files only, and makes no HTML
// from text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

//go:embed assets
var assets embed.FS

// Options say what a server serves and to whom.
type Options struct {
	Address  string      // to listen on, host:port
	Hosts    []string    // names of the machine that requests may use besides that of the address; * for all
	ReadOnly bool        // the page changes nothing
	TLS      *tls.Config // nil: plain HTTP
}

// Backend is the server that the page shows. Safe for concurrent use.
type Backend interface {
	// Open returns a connection to the server, as that of a client at an address. It is that of a user who
	// has given the password if known is set.
	Open(addr, user string, known bool) (net.Conn, error)
	// NeedsLogin reports whether a client begins without a user.
	NeedsLogin() bool
	// Proof returns what changes with the passwords of a user; false if the user may not log in.
	Proof(user string) (proof string, ok bool)
	// Refusal says why a user may not run a command in a container: "command", "database", "key" or
	// "channel"; empty: the user may. Words that the command lacks count as empty.
	Refusal(user, container string, words []string) string
	// Rights returns a value that is another one after each change of the user.
	Rights(user string) any
	// Denies reports whether the protected mode refuses a client at an address.
	Denies(addr net.Addr) bool
}

// Server is the HTTP server. Safe for concurrent use.
type Server struct {
	http     http.Server
	listener net.Listener
	options  Options
	backend  Backend
	times    times
	sessions sessions
	logins   chan struct{} // those whose password is checked
	live     live
}

// Listen makes a server that serves at once.
func Listen(o Options, b Backend, log zerolog.Logger) (*Server, error) {
	ln, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	s := newServer(ln, o, b, usualTimes)
	go s.serve(log)
	return s, nil
}

func newServer(ln net.Listener, o Options, b Backend, t times) *Server {
	s := &Server{options: o, backend: b, listener: httpgate.NewListener(ln, maxConns), times: t, sessions: sessions{now: clock.Monotonic}, logins: make(chan struct{}, maxLogins)}
	s.live.init(s)
	if o.TLS != nil {
		s.listener = tls.NewListener(s.listener, o.TLS)
	}
	s.http = http.Server{
		Handler: s.handler(), ConnContext: httpgate.WithConn, MaxHeaderBytes: maxHeader, ReadTimeout: t.read, IdleTimeout: t.idle,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     stdlog.New(io.Discard, "", 0), // mistakes of clients
	}
	return s
}

// handler returns the handler of all requests: each rule of the package's documentation is one layer.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", file)
	for _, action := range []string{"/login", "/logout", "/command", "/may"} { // else these would be missing files
		mux.HandleFunc("GET "+action, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "the page sends POST here", http.StatusMethodNotAllowed)
		})
	}
	mux.Handle("GET /state", sameSite(http.HandlerFunc(s.state)))
	mux.Handle("GET /live", sameSite(s.known(http.HandlerFunc(s.live.serve))))
	mux.Handle("POST /login", fromPage(http.HandlerFunc(s.login)))
	mux.Handle("POST /logout", fromPage(http.HandlerFunc(s.logout)))
	mux.Handle("POST /command", fromPage(s.known(http.HandlerFunc(s.command))))
	mux.Handle("POST /may", fromPage(s.known(http.HandlerFunc(s.may))))
	hosts := httpgate.NewHosts(s.options.Address, s.options.Hosts)
	return s.withHeaders(httpgate.Handler(hosts, "web-hosts", s.permitted(mux)))
}

// contentTypes are those of the page's files, whatever the system's table says.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

// file sends a file of the page. http.FileServer would drop headers from its errors.
func file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	text, err := assets.ReadFile("assets/" + cmp.Or(name, "index.html"))
	if err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(cmp.Or(name, ".html"))])
	_, _ = w.Write(text) // the client may have gone
}

func (s *Server) serve(log zerolog.Logger) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error().Err(err).Msg("the page is no longer served")
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server.
func (s *Server) Close() {
	s.live.end()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // clients that are too slow get no answer
	}
}

// withHeaders sets the headers of all answers, and limits the time to take them.
func (s *Server) withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		_ = http.NewResponseController(w).SetWriteDeadline(clock.Deadline(2 * s.times.answer)) // of connections that have one
		next.ServeHTTP(w, r)
	})
}

// isDenied reports whether the protected mode refuses a request: it comes from another machine while there is
// no password.
func (s *Server) isDenied(r *http.Request) bool {
	addr, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	return !s.backend.NeedsLogin() && (err != nil || s.backend.Denies(addr))
}

// permitted refuses requests without a host, and clients from other machines while there is no password.
func (s *Server) permitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "" { // HTTP/1.0; no browser sends that
			http.Error(w, "the request names no host", http.StatusMisdirectedRequest)
			return
		}
		if s.isDenied(r) {
			http.Error(w, "protected mode is on and no password is set: the page is served to browsers on this machine only. Set requirepass, or protected-mode no", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tokenHeader is a header that a page of others cannot send: its browser would ask first, and gets no
// permission. Browsers send no Sec-Fetch-Site over plain HTTP, except to this machine.
const tokenHeader = "X-Mayfly-Page"

// fromPage refuses a request that a page of others may have made, and bounds its body.
func fromPage(next http.Handler) http.Handler {
	return sameSite(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" if it is none
		switch {
		case mediaType != "application/json":
			http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		case r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get(tokenHeader) == "":
			http.Error(w, "a program sends the header "+tokenHeader+": 1", http.StatusForbidden)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	}))
}

// sameSite refuses a request of which the browser says that a page of others made it.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
		if site != "" && site != "same-origin" || origin != "" && !isOwnOrigin(r, origin) {
			http.Error(w, "the request does not come from mayfly's page", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnOrigin reports whether an origin is that of the page. Without TLS it may be https too: a proxy on this
// machine may add TLS.
func isOwnOrigin(r *http.Request, origin string) bool {
	return origin == "https://"+r.Host || r.TLS == nil && origin == "http://"+r.Host
}
