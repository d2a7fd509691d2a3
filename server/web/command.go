package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// errLongReply returns the error of a reply that is longer than most bytes.
func errLongReply(most int) error {
	return fmt.Errorf("ERR the reply is longer than %d bytes: ask for less, or use redis-cli", most)
}

// boundedConn ends a reply that is too long.
type boundedConn struct {
	net.Conn
	left, most int
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongReply(c.most)
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// open returns a connection to the server for a user at an address, which replies most bytes. It closes
// with the context.
func (s *Server) open(ctx context.Context, addr, user string, known bool, most int) (c redis.Conn, done func(), err error) {
	nc, err := s.backend.Open(addr, user, known)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // the browser has gone
	c = redis.NewConn(&boundedConn{nc, most, most}, s.times.answer, s.times.answer)
	return c, func() { stop(); _ = c.Close() }, nil
}

// command runs the command whose words are the body, a JSON array. The container of the query is selected
// before. The answer is {"reply": …} or {"error": "…"}.
func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuseBody(w, err)
		return
	}
	words, err := parseWords(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.check(words); err != nil {
		answer(w, nil, err)
		return
	}
	user, _ := s.user(r)
	c, done, err := s.open(r.Context(), r.RemoteAddr, user, true, maxReply)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer done()
	reply, err := run(c, r.URL.Query().Get("container"), words)
	answer(w, reply, err)
}

// may answers why the user may not run commands: a list of reasons, each empty if it may. The body is a list
// of commands, each with the container that is selected before; empty: none.
func (s *Server) may(w http.ResponseWriter, r *http.Request) {
	const mostAsked = 1 << 10
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuseBody(w, err)
		return
	}
	var asked []json.RawMessage
	if json.Unmarshal(body, &asked) != nil || len(asked) > mostAsked {
		http.Error(w, fmt.Sprintf("the body must be a list of at most %d commands", mostAsked), http.StatusBadRequest)
		return
	}
	user, _ := s.user(r)
	reasons := make([]string, len(asked))
	for i, text := range asked {
		words, err := parseWords(text)
		switch {
		case err != nil || len(words) < 2:
			http.Error(w, "each command must be a list of a container and of words", http.StatusBadRequest)
			return
		case s.check(words[1:]) != nil:
			reasons[i] = "page"
		default:
			reasons[i] = s.backend.Refusal(user, words[0], words[1:])
		}
	}
	writeJSON(w, reasons)
}

// run runs a command, after SELECT if a container is named.
func run(c redis.Conn, container string, words []string) (any, error) {
	if container != "" {
		if _, err := c.Do("SELECT", container); err != nil {
			return nil, plain(err)
		}
	}
	args := make([]any, len(words)-1)
	for i, word := range words[1:] {
		args[i] = word
	}
	reply, err := do(c, words[0], args...)
	return reply, plain(err)
}

// do sends a command while it waits for the reply: the server may refuse one that it has not read to the end.
func do(c redis.Conn, name string, args ...any) (any, error) {
	go func() {
		if c.Send(name, args...) == nil {
			_ = c.Flush() // then no reply comes
		}
	}()
	return c.Receive()
}

// plain returns an error in the words of the page.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe):
		return errors.New("ERR the server has ended the connection")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("ERR the command takes too long for the page: use redis-cli")
	case strings.Contains(err.Error(), "Protocol error: invalid bulk length"):
		return errors.New("ERR a value of the command is longer than max-value-size")
	case strings.Contains(err.Error(), "Protocol error: unauthenticated bulk length"):
		return errors.New("ERR the password is longer than any that the server takes")
	}
	return err
}

// answer sends a reply or the error of a command.
func answer(w http.ResponseWriter, reply any, err error) {
	var text bytes.Buffer
	if err == nil {
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // it is not part of any HTML
		if err = e.Encode(map[string]any{"reply": asJSON(reply)}); err == nil && text.Len() > maxReply {
			err = errLongReply(maxReply)
		}
	}
	if err != nil {
		writeJSON(w, map[string]string{"error": err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text.Bytes()) // the client may have gone
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // likewise
}

func refuseBody(w http.ResponseWriter, err error) {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		http.Error(w, fmt.Sprintf("the body is longer than %d bytes", long.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the body does not arrive", http.StatusBadRequest)
}
