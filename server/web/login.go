package web

import (
	"crypto/rand"
	"crypto/sha256"
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

// sessions are the browsers that have given the password of a user. Safe for concurrent use.
type sessions struct {
	now func() time.Duration // as clock.Monotonic

	mu   sync.Mutex
	list map[[sha256.Size]byte]session // by the hash of the cookie's value
}

type session struct {
	user  string
	proof string        // see Backend.Proof
	end   time.Duration // as now says
}

// begin returns the value of the cookie of a new session of a user.
func (s *sessions) begin(user, proof string) string {
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
	s.list[sha256.Sum256([]byte(value))] = session{user, proof, now + cookieTime}
	return value
}

// user returns the user of a cookie, if the passwords are still those of its login. Else the session ends.
func (s *sessions) user(value string, proofOf func(user string) (string, bool)) (string, bool) {
	key := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.list[key]
	if !ok {
		return "", false
	}
	if proof, ok := proofOf(is.user); ok && proof == is.proof && s.now() < is.end {
		return is.user, true
	}
	delete(s.list, key)
	return "", false
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

// defaultUser is the user of a client that needs no login.
const defaultUser = "default"

// user returns the user of a request: the one whose password the browser has given, or the default if that
// needs none.
func (s *Server) user(r *http.Request) (string, bool) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		if user, ok := s.sessions.user(c.Value, s.backend.Proof); ok {
			return user, true
		}
	}
	return defaultUser, !s.backend.NeedsLogin()
}

// known refuses requests of browsers that have not given the password.
func (s *Server) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.user(r); !ok {
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
	var given struct {
		User     string
		Password *string
	}
	if !utf8.Valid(body) || json.Unmarshal(body, &given) != nil || given.Password == nil {
		http.Error(w, `the body must be {"user": "...", "password": "..."}; without a user it is default`, http.StatusBadRequest)
		return
	}
	if given.User == "" {
		given.User = defaultUser
	}
	if given.User == defaultUser && !s.backend.NeedsLogin() {
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
	proof, _ := s.backend.Proof(given.User) // before AUTH: a password that changes meanwhile ends the session
	c, done, err := s.open(r.Context(), r.RemoteAddr, defaultUser, false, maxReply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer done()
	var refused redis.Error
	switch _, err := do(c, "AUTH", given.User, *given.Password); {
	case errors.As(err, &refused):
		http.Error(w, plain(err).Error(), http.StatusUnauthorized)
	case err != nil:
		http.Error(w, plain(err).Error(), http.StatusServiceUnavailable)
	default:
		http.SetCookie(w, s.cookie(r, s.sessions.begin(given.User, proof), int(cookieTime/time.Second)))
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
	user, known := s.user(r)
	writeJSON(w, map[string]any{
		"known": known, "user": user, "password": s.backend.NeedsLogin() || user != defaultUser, "readonly": s.options.ReadOnly,
	})
}
