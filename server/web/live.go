package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"

	"github.com/gomodule/redigo/redis"
)

const (
	sampleInterval = time.Second
	censusShare    = 50       // a census is taken a fiftieth of the time at most
	maxContainers  = 200      // in a sample
	maxSample      = 16 << 20 // bytes of the server's replies; 100,000 names of containers have 13 MB

	sampler = "127.0.0.1:0" // the address of the client that samples
)

// live sends samples to the browsers that show the page. It samples only while there are some. Safe for
// concurrent use.
type live struct {
	server *Server
	ended  chan struct{}
	end    func()           // once
	census map[view]*census // of run

	mu      sync.Mutex           // protects what follows
	viewers map[chan []byte]view // what they show
	running bool
}

// view is what a viewer shows: containers that a user may see, and whose names match a glob.
type view struct{ user, match string }

func (l *live) init(s *Server) {
	l.server, l.ended, l.viewers = s, make(chan struct{}), make(map[chan []byte]view)
	l.end = sync.OnceFunc(func() { close(l.ended) })
}

// sample is what the page shows of a moment. Containers are in the order of their names.
type sample struct {
	Info       map[string]any    `json:"info"` // fields of INFO and MEMORY STATS; numbers are numbers
	Containers []containerSample `json:"containers"`
	More       int               `json:"more"`   // containers that are not in the list
	Reads      int64             `json:"reads"`  // calls of commands that read, since the start
	Writes     int64             `json:"writes"` // of those that may write
}

// census is what takes a look at all containers. Where there are very many, that takes long, and samples
// share one.
type census struct {
	view   view
	rights any            // of the user when it was taken
	due    time.Duration  // when the next one is taken, as clock.Monotonic
	info   map[string]any // as in a sample
	names  []string       // of the containers in samples
	more   int            // containers besides these
}

type containerSample struct {
	Name      string `json:"name"`
	TTL       any    `json:"ttl"` // seconds, -1, or "off"
	Mode      string `json:"ttlmode"`
	Documents int64  `json:"documents"`
	Keys      int64  `json:"keys"`
	Bytes     int64  `json:"bytes"`
	Etag      string `json:"etag"`
	Hold      string `json:"hold,omitempty"`
	Log       any    `json:"log,omitempty"` // of deaths, as CONTAINER.GET describes it; nil: it has none
	Next      int64  `json:"next"`          // when the next item dies, ms; 0: none does
}

// serve sends samples as server-sent events until the browser leaves. The query may have a glob for the names
// of the containers in them.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	samples := make(chan []byte, 1)
	user, _ := l.server.user(r)
	if !l.add(samples, view{user, cmp.Or(r.URL.Query().Get("match"), "*")}) {
		http.Error(w, "too many pages are open, close one", http.StatusServiceUnavailable)
		return
	}
	defer l.remove(samples)
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	if c.Flush() != nil {
		return
	}
	for {
		select {
		case text := <-samples:
			if now, ok := l.server.user(r); !ok || now != user || l.server.isDenied(r) { // the password has changed, or the session has ended
				return
			}
			_ = c.SetWriteDeadline(clock.Deadline(l.server.times.answer)) // of connections that have one
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || c.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-l.ended:
			return
		}
	}
}

func (l *live) add(samples chan []byte, v view) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) >= maxViewers {
		return false
	}
	l.viewers[samples] = v
	if !l.running {
		l.running = true
		go l.run()
	}
	return true
}

func (l *live) remove(samples chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.viewers, samples)
}

// run samples until no browser shows the page.
func (l *live) run() {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		views := l.views()
		if len(views) == 0 {
			return
		}
		last := l.census
		l.census = make(map[view]*census)
		for v := range views {
			all := cmp.Or(last[v], &census{view: v})
			l.census[v] = all
			l.send(v, l.take(all, censusShare*time.Duration(len(views))))
		}
		select {
		case <-ticker.C:
		case <-l.ended:
			return
		}
	}
}

// views returns what viewers show. Without viewers the sampling ends.
func (l *live) views() map[view]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make(map[view]bool)
	for _, v := range l.viewers {
		views[v] = true
	}
	l.running = len(views) > 0
	return views
}

// take returns a sample, or an error, as JSON. A census is taken one part of share of the time at most.
func (l *live) take(all *census, share time.Duration) []byte {
	if rights := l.server.backend.Rights(all.view.user); rights != all.rights {
		all.rights, all.due = rights, 0
	}
	c, done, err := l.server.open(context.Background(), sampler, all.view.user, true, maxSample)
	if err == nil {
		defer done()
		var s *sample
		// What the user may not run is not in the sample. It would fill ACL LOG.
		may := func(words ...string) bool { return l.server.backend.Refusal(all.view.user, "", words) == "" }
		if s, err = take(c, all, share, may); err == nil {
			text, _ := json.Marshal(s) // it has nothing that JSON has not
			return text
		}
	}
	text, _ := json.Marshal(map[string]string{"error": plain(err).Error()})
	return text
}

// send gives a sample to the viewers of a view.
func (l *live) send(of view, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for samples, v := range l.viewers {
		if v != of {
			continue
		}
		select {
		case samples <- text:
		default: // it has not taken the last one yet
		}
	}
}

// take asks the server for a sample, and for a census if one is due: for what may allows.
func take(c redis.Conn, all *census, share time.Duration, may func(words ...string) bool) (*sample, error) {
	if begin := clock.Monotonic(); begin >= all.due {
		if err := all.take(c, may); err != nil {
			return nil, err
		}
		end := clock.Monotonic()
		all.due = end + share*(end-begin)
	}
	s := &sample{Info: maps.Clone(all.info), Containers: []containerSample{}, More: all.more}
	if may("INFO") {
		text, err := redis.String(c.Do("INFO", "server", "persistence", "stats", "replication", "commandstats", "cluster"))
		if err != nil {
			return nil, err
		}
		s.parseInfo(text)
	}
	var names []string
	dues := make(map[string]bool) // of which the next death is asked for
	for _, name := range all.names {
		if may("CONTAINER.GET", name) {
			names = append(names, name)
			dues[name] = may("CONTAINER.DUE", name, "0")
		}
	}
	go func() { // while replies are read: the server reads no further commands before it has written them
		for _, name := range names {
			if c.Send("CONTAINER.GET", name) != nil || dues[name] && c.Send("CONTAINER.DUE", name, "0", "COUNT", 1) != nil {
				return // then no reply comes
			}
		}
		_ = c.Flush() // likewise
	}()
	for _, name := range names {
		got, err := c.Receive()
		if err != nil && c.Err() != nil {
			return nil, err
		}
		var due []any
		if dues[name] {
			if due, err = redis.Values(c.Receive()); err != nil && c.Err() != nil {
				return nil, err
			}
		}
		if fields, ok := got.([]any); ok { // it may have been removed since
			s.Containers = append(s.Containers, describe(fields, due))
		}
	}
	return s, nil
}

// take asks the server for a census.
func (all *census) take(c redis.Conn, may func(words ...string) bool) (err error) {
	var text string
	var memory []any
	var names []string
	if may("INFO") {
		text, err = redis.String(c.Do("INFO", "expiry"))
	}
	if err == nil && may("MEMORY", "STATS") {
		memory, err = redis.Values(c.Do("MEMORY", "STATS"))
	}
	if err == nil && may("CONTAINER.LIST") {
		names, err = redis.Strings(c.Do("CONTAINER.LIST", "MATCH", all.view.match))
	}
	if err != nil {
		return err
	}
	s := sample{Info: make(map[string]any)}
	s.parseInfo(text)
	for pair := range slices.Chunk(memory, 2) {
		name, _ := redis.String(pair[0], nil)
		s.Info[name], _ = redis.Int64(pair[1], nil)
	}
	listed := min(len(names), maxContainers)
	all.info, all.names, all.more = s.Info, names[:listed], len(names)-listed
	return nil
}

// parseInfo takes the fields of INFO, and the calls of commands.
func (s *sample) parseInfo(text string) {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "latency_") {
			continue
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			s.addCalls(command, value)
		} else if n, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			s.Info[name] = n
		} else {
			s.Info[name] = value
		}
	}
}

// addCalls adds the calls of a command, "calls=7,usec=…".
func (s *sample) addCalls(command, value string) {
	calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
	n, _ := strconv.ParseInt(calls, 10, 64)
	switch c, _ := engine.Lookup(strings.Split(command, "|")); {
	case c == nil:
	case c.Flags&(engine.Write|engine.MayWrite) != 0:
		s.Writes += n
	case c.Flags&engine.ReadOnly != 0 && !isOwn[command]:
		s.Reads += n
	}
}

// isOwn holds the commands that the page itself sends all the time.
var isOwn = map[string]bool{"container.list": true, "container.get": true, "container.due": true, "container.forecast": true, "memory|stats": true}

// describe makes a sample of the replies of CONTAINER.GET and CONTAINER.DUE.
func describe(fields, due []any) containerSample {
	var c containerSample
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := redis.String(fields[i], nil)
		text, _ := redis.String(fields[i+1], nil)
		n, _ := redis.Int64(fields[i+1], nil)
		switch name {
		case "name":
			c.Name = text
		case "ttl":
			if c.TTL = any(n); text == "off" {
				c.TTL = text
			}
		case "ttlmode":
			c.Mode = text
		case "documents":
			c.Documents = n
		case "keys":
			c.Keys = n
		case "bytes":
			c.Bytes = n
		case "etag":
			c.Etag = text
		case "hold":
			c.Hold = text
		case "log":
			c.Log = asJSON(fields[i+1])
		}
	}
	if len(due) == 2 {
		if first, _ := redis.Values(due[1], nil); len(first) == 2 {
			c.Next, _ = redis.Int64(first[1], nil)
		}
	}
	return c
}
