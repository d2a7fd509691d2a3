package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
)

// cookieName returns the name of the cookie that shows that a browser has given the password. Browsers do not
// tell the ports of a host apart, so the cookies of several servers differ by their names.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "mayfly-" + port
	}
	return "mayfly"
}

const (
	cookieTime  = 12 * time.Hour
	maxSessions = 1 << 10 // the oldest makes room
)

// sessions are the browsers that have given the password. Safe for concurrent use.
type sessions struct {
	now func() time.Duration // as clock.Monotonic

	mu   sync.Mutex
	list map[[sha256.Size]byte]session // by the hash of the cookie's value
}

type session struct {
	password [sha256.Size]byte // its hash
	end      time.Duration     // as now says
}

// begin returns the value of the cookie of a new session for a password.
func (s *sessions) begin(password string) string {
	value := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = make(map[[sha256.Size]byte]session)
	}
	now := s.now()
	var oldest [sha256.Size]byte
	for key, is := range s.list {
		if is.end <= now {
			delete(s.list, key)
		} else if old, ok := s.list[oldest]; !ok || is.end < old.end {
			oldest = key
		}
	}
	if len(s.list) >= maxSessions {
		delete(s.list, oldest)
	}
	s.list[sha256.Sum256([]byte(value))] = session{sha256.Sum256([]byte(password)), now + cookieTime}
	return value
}

// has reports whether a cookie is of a session that has given the password of now. A session of another
// password ends.
func (s *sessions) has(value, password string) bool {
	key, sum := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(password))
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.list[key]
	if !ok {
		return false
	}
	if s.now() < is.end && subtle.ConstantTimeCompare(is.password[:], sum[:]) == 1 {
		return true
	}
	delete(s.list, key)
	return false
}

// end ends a session.
func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, sha256.Sum256([]byte(value)))
}

// endAll ends all sessions.
func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.list)
}

// EndSessions ends the sessions of all browsers. The server calls it when the password changes: a session
// would be valid again if the old password came back.
func (s *Server) EndSessions() { s.sessions.endAll() }

// isKnown reports whether a request needs no password or comes from a browser that has given it.
func (s *Server) isKnown(r *http.Request) bool {
	password := s.backend.Password()
	if password == "" {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	return err == nil && s.sessions.has(c.Value, password)
}

// known refuses requests of browsers that have not given the password.
func (s *Server) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isKnown(r) {
			http.Error(w, "the password is needed: POST /login", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// maxLogins is how many passwords are checked at a time. Those of guessers wait, and must not hold all
// connections.
const maxLogins = 4

// login checks a password as AUTH does, with its delays for those who guess.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuseBody(w, err)
		return
	}
	var given struct{ Password *string }
	if !utf8.Valid(body) || json.Unmarshal(body, &given) != nil || given.Password == nil {
		http.Error(w, `the body must be {"password": "..."}`, http.StatusBadRequest)
		return
	}
	if s.backend.Password() == "" {
		w.WriteHeader(http.StatusNoContent) // there is none
		return
	}
	select {
	case s.logins <- struct{}{}:
		defer func() { <-s.logins }()
	default:
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		http.Error(w, "others try passwords: try again in a second", http.StatusTooManyRequests)
		return
	}
	c, done, err := s.open(r.Context(), r.RemoteAddr, false, maxReply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer done()
	var refused redis.Error
	switch _, err := do(c, "AUTH", *given.Password); {
	case errors.As(err, &refused):
		http.Error(w, plain(err).Error(), http.StatusUnauthorized)
	case err != nil:
		http.Error(w, plain(err).Error(), http.StatusServiceUnavailable)
	default:
		http.SetCookie(w, s.cookie(r, s.sessions.begin(*given.Password), int(cookieTime/time.Second)))
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.options.TLS != nil,
	}
}

// logout ends the session of the browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		s.sessions.end(c.Value)
	}
	http.SetCookie(w, s.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

// state tells the page what it needs before the first command.
func (s *Server) state(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, map[string]bool{"known": s.isKnown(r), "password": s.backend.Password() != "", "readonly": s.options.ReadOnly})
}
