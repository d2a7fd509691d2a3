package tools

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mayfly/expiry/clock"
	"mayfly/tools/chart"

	"golang.org/x/term"
)

var topTool = tool{
	name:   "top",
	syntax: "[--interval seconds] [-n count] [--range 1h|24h|30d|1y] [--host name] [--port number]",
	summary: "Shows how a running server is, and what dies when, anew each second: commands, deaths and commits a second, how far the purge is behind, memory, the largest containers. q or ^C ends it. " +
		"Where standard output is no terminal it writes a line at each interval. " +
		"Exit code: 0 it has ended, 2 the server could not be asked.",
	run: top,
}

const (
	shownContainers = 50   // read at most
	forecastShare   = 50   // a forecast takes at most one part of so many of the time
	fewestForecasts = 5    // s between forecasts, at least
	maxInterval     = 3600 // s
)

func top(c *call) (int, error) {
	var o liveOptions
	o.define(c)
	interval := c.flags.Int("interval", 1, "seconds between two looks")
	count := c.flags.Int("n", 0, "looks before it ends; 0: no end")
	if _, err := c.parse(); err != nil {
		return exitFailed, err
	}
	if *interval < 1 || *interval > maxInterval {
		return exitFailed, fmt.Errorf("invalid interval %d: legal are 1 to %d", *interval, maxInterval)
	}
	if *count < 0 {
		return exitFailed, fmt.Errorf("invalid count %d: legal are 0 and more", *count)
	}
	server, every, buckets, err := o.open()
	if err != nil {
		return exitFailed, err
	}
	defer server.close()
	w := &watcher{server: server, address: o.address(), every: every, buckets: buckets, drawn: c.Terminals.Out}

	s := newScreen(c)
	defer s.leave()
	ticker := time.NewTicker(time.Duration(*interval) * time.Second)
	defer ticker.Stop()
	for n := 1; ; n++ {
		f, err := w.look()
		if err == nil {
			err = s.show(f)
		}
		if err != nil {
			return exitFailed, err
		}
		if n == *count {
			return exitOK, nil
		}
		if again, err := s.wait(ticker.C, f); err != nil {
			return exitFailed, err
		} else if !again {
			return exitOK, nil
		}
	}
}

// screen is where top shows figures: a terminal, or a stream of lines.
type screen struct {
	*call
	style            chart.Style
	stopped, resized chan os.Signal
	keys             chan byte
	restore          func()
}

// newScreen takes the terminal, if there is one, until leave is called.
func newScreen(c *call) *screen {
	s := &screen{
		call: c, style: c.style(), stopped: make(chan os.Signal, 1), resized: make(chan os.Signal, 1), keys: make(chan byte, 1), restore: func() {},
	}
	signal.Notify(s.stopped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if c.Terminals.Out {
		s.restore = c.takeTerminal(s.keys)
		signal.Notify(s.resized, syscall.SIGWINCH)
	}
	return s
}

func (s *screen) leave() {
	signal.Stop(s.resized)
	s.restore()
	signal.Stop(s.stopped)
}

// show draws figures on a terminal, and writes them as a line elsewhere.
func (s *screen) show(f *chart.Figures) error {
	if !s.Terminals.Out {
		_, err := fmt.Fprintln(s.Out, chart.Line(f))
		return err
	}
	width, height := s.size()
	text := strings.Join(chart.Top(f, width, height, s.style), eraseRest+"\r\n")
	_, err := io.WriteString(s.Out, home+text+eraseRest+eraseBelow)
	return err
}

// wait waits for a tick. It draws the figures anew when the terminal changes its size. again is false if the
// user ends the tool.
func (s *screen) wait(tick <-chan time.Time, f *chart.Figures) (again bool, err error) {
	for {
		select {
		case <-s.stopped:
			return false, nil
		case key := <-s.keys:
			if key == 'q' || key == 'Q' || key == interruptKey {
				return false, nil
			}
		case <-s.resized:
			if err := s.show(f); err != nil {
				return false, err
			}
		case <-tick:
			return true, nil
		}
	}
}

// Escape sequences of terminals.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // without a cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	eraseRest   = "\x1b[K" // of the line
	eraseBelow  = "\x1b[J"

	interruptKey = 3 // ^C in raw mode
)

// takeTerminal shows the other screen, and sends the keys that are pressed until restore is called.
func (c *call) takeTerminal(keys chan<- byte) (restore func()) {
	back := func() {}
	if c.keyboard != nil && c.Terminals.In {
		if state, err := term.MakeRaw(int(c.keyboard.Fd())); err == nil {
			back = func() { _ = term.Restore(int(c.keyboard.Fd()), state) } // the program ends
			go func() {                                                     // ends with the program
				for key := make([]byte, 1); ; {
					if n, err := c.keyboard.Read(key); err != nil || n == 0 {
						return
					}
					select {
					case keys <- key[0]:
					default: // the tool asks the server: a key more makes no difference
					}
				}
			}()
		}
	}
	_, _ = io.WriteString(c.Out, otherScreen) // the first drawing tells errors
	return func() {
		_, _ = io.WriteString(c.Out, firstScreen)
		back()
	}
}

// watcher looks at a server again and again.
type watcher struct {
	server         *client
	address        string
	every, buckets int  // of the forecast
	drawn          bool // forecast and containers are wanted

	last     map[string]string // INFO
	forecast *chart.Forecast
	next     time.Duration // when to forecast again
}

// look returns the figures of now.
func (w *watcher) look() (*chart.Figures, error) {
	reply, err := w.server.do("INFO", "everything")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	info := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			info[name] = value
		}
	}
	if info["mayfly_version"] == "" {
		return nil, fmt.Errorf("the server at %s is no mayfly: its INFO has no mayfly_version", w.address)
	}
	number := func(name string) int64 { return numberOf(info[name]) }
	f := &chart.Figures{
		Version: info["mayfly_version"], Address: w.address, Uptime: number("uptime_in_seconds"), Clients: number("connected_clients"),
		Now: number("server_time_usec") / 1000, CommitLast: number("commit_last_usec"), CommitSlow: number("commit_p99_usec"),
		OldestDead: number("oldest_dead_ms"), Used: number("used_memory"), MaxMemory: number("maxmemory"),
	}
	if info["cluster_enabled"] == "1" {
		f.Role = info["role"]
	}
	for name, value := range info {
		if _, ok := databaseOf(name); ok {
			f.Living += numberOf(infoPart(value, "keys"))
		}
	}
	if seconds := float64(number("server_time_usec")-numberOf(w.last["server_time_usec"])) / 1e6; w.last != nil && seconds > 0 {
		rate := func(name string) int64 {
			return int64(float64(max(number(name)-numberOf(w.last[name]), 0))/seconds + 0.5)
		}
		f.Rates, f.Commands, f.Deaths, f.Commits = true, rate("total_commands_processed"), rate("expired_keys"), rate("journal_commits")
	}
	w.last = info
	if !w.drawn {
		return f, nil
	}
	if now := clock.Monotonic(); now >= w.next {
		if w.forecast, err = readForecast(w.server, "", w.every, w.buckets); err != nil {
			return nil, err
		}
		took := clock.Monotonic() - now
		w.next = now + max(fewestForecasts*time.Second, forecastShare*took)
	}
	f.Forecast = w.forecast
	return f, w.readContainers(f, info)
}

// readContainers reads the containers that hold the most.
func (w *watcher) readContainers(f *chart.Figures, info map[string]string) error {
	reply, err := w.server.do("CONTAINER.LIST", "WITHNUMBERS")
	if err != nil {
		return err
	}
	pairs, _ := reply.([]any)
	var list []chart.Container
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		number, _ := pairs[i+1].(int64)
		if value := info[fmt.Sprintf("db%d", number)]; value != "" {
			list = append(list, chart.Container{
				Name: name, Living: numberOf(infoPart(value, "keys")), Expiring: numberOf(infoPart(value, "expires")), MeanLeft: numberOf(infoPart(value, "avg_ttl")),
			})
		}
	}
	slices.SortFunc(list, func(a, b chart.Container) int {
		return cmp.Or(cmp.Compare(b.Living, a.Living), strings.Compare(a.Name, b.Name))
	})
	f.More = max(len(list)-shownContainers, 0)
	f.Containers = list[:min(len(list), shownContainers)]
	for i := range f.Containers {
		if err := w.server.send("CONTAINER.GET", f.Containers[i].Name); err != nil {
			return err
		}
	}
	for i := range f.Containers {
		reply, err := w.server.receive()
		if err != nil {
			return err
		}
		c := &f.Containers[i]
		c.TTL, _ = field[string](reply, "ttl") // it may have been dropped meanwhile
		c.Memory, _ = field[int64](reply, "memory")
	}
	return nil
}

// databaseOf returns the number in the name of a field of INFO keyspace, as db16.
func databaseOf(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "db")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// infoPart returns a part of a value such as keys=1,expires=0.
func infoPart(value, name string) string {
	for one := range strings.SplitSeq(value, ",") {
		if text, ok := strings.CutPrefix(one, name+"="); ok {
			return text
		}
	}
	return ""
}

// numberOf returns the number in a field, 0 for what is none.
func numberOf(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
