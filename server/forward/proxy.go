package forward

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
)

// Leaders says to whom commands are passed on. Safe for concurrent use.
type Leaders interface {
	// Leader returns the id of the leader; 0: there is none, and the channel closes when it is time to look
	// again. Nil: there has been none for too long.
	Leader() (id uint64, again <-chan struct{})
	// LeaderReachable reports whether a node is the leader and has been heard of.
	LeaderReachable(id uint64) bool
	// Dial opens a connection at whose other end the node runs a session for a client, with the user of the
	// state. The error is [engine.ErrKnowsNoUsers] if the user would get more rights there.
	Dial(ctx context.Context, id uint64, state *engine.SessionState) (net.Conn, error)
}

// Options are those of a [Proxy].
type Options struct {
	Leaders Leaders
	Send    func(p []byte) error     // sends replies to the client; the error ends its connection
	Gone    func() error             // why the client needs no reply any more; nil: it does
	Stops   func() error             // why nothing more is sent to the leader; nil: it is. Replies under way still count
	Finish  func(conn net.Conn)      // tells the other side that nothing more comes, and lets it reply
	Ended   func(conn net.Conn) bool // reports whether the other side has ended a connection

	// Watch calls wake once the client has hung up, until stop is called. Any goroutine may call wake.
	Watch func(wake func()) (stop func())
}

// Bounds of what is gathered before it is sent.
const (
	mostBytes    = 64 << 10 // of commands; a larger command is sent alone, without a copy
	mostCommands = 1 << 10
	fullReplies  = 64 << 10 // bytes of replies that are gathered for the client
	safeWrite    = 4 << 10  // bytes that are sent without a goroutine: the system takes them whatever the other side does
)

const (
	firstLook     = 5 * time.Millisecond   // after which a client that waits for a reply is watched
	pollInterval  = 250 * time.Millisecond // between two looks at the client and the leader
	lookInterval  = 50 * time.Millisecond  // between two attempts to find a leader that runs commands
	leastPatience = time.Second            // for a leader that is silent for a moment
	newLeader     = 300 * time.Millisecond // that the old leader has to reply once another one is known
)

// Proxy passes on the commands of one client. Not safe for concurrent use.
type Proxy struct {
	o      Options
	stream *stream // to the leader; nil: none is open

	batch []entry
	text  []byte // of the commands of the batch
	state engine.SessionState
	began time.Duration // when the batch began to wait, as clock.Monotonic says

	watched bool // the session at the leader watches something
	lost    bool // it did, and has ended

	out     []byte // replies for the client
	partial bool   // the client has got a part of the reply under way
	gone    error  // of the client: its connection ends
	stops   error  // of this node: its connection ends after the replies under way
}

// entry is a command of the batch.
type entry struct {
	from, to int             // of text; to is 0 for a command that is sent without a copy
	large    [][]string      // such a command
	replies  int             // that come for it
	forward  *engine.Forward // without the commands
	void     bool            // its watched keys are lost: the reply is null

	watched, lost bool // of the proxy before the command
}

// New returns the proxy of a client.
func New(o Options) *Proxy { return &Proxy{o: o} }

// Pending reports whether commands are to be passed on.
func (p *Proxy) Pending() bool { return len(p.batch) > 0 }

// Add adds a command. It reports whether Flush is due now: the arguments are valid no longer than that.
// Before a command with another state of the session Flush is called, see [Proxy.Takes].
func (p *Proxy) Add(f *engine.Forward) (full bool) {
	if len(p.batch) == 0 {
		p.state, p.began = f.State, clock.Monotonic()
	}
	p.began = min(p.began, clock.Monotonic()-f.Waited)
	size := 0
	for _, args := range f.Commands {
		for _, arg := range args {
			size += len(arg)
		}
	}
	e := entry{replies: len(f.Commands), forward: f}
	if size > mostBytes {
		e.large = f.Commands
	} else {
		e.from = len(p.text)
		p.text = appendCommands(p.text, f.Commands)
		e.to = len(p.text)
		f.Commands = nil
	}
	p.batch = append(p.batch, e)
	return e.large != nil || len(p.text) >= mostBytes || len(p.batch) >= mostCommands
}

// Takes reports whether a command may join the batch.
func (p *Proxy) Takes(f *engine.Forward) bool {
	return len(p.batch) == 0 || p.state == f.State && p.batch[len(p.batch)-1].forward.Done == nil
}

// appendCommands appends commands as they go over the wire.
func appendCommands(text []byte, list [][]string) []byte {
	for _, args := range list {
		text = appendLength(text, '*', len(args))
		for _, arg := range args {
			text = appendLength(text, '$', len(arg))
			text = append(append(text, arg...), '\r', '\n')
		}
	}
	return text
}

func appendLength(text []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(text, kind), int64(n), 10), '\r', '\n')
}

// Close ends the session at the leader.
func (p *Proxy) Close() { p.end() }

// end closes the stream, if there is one.
func (p *Proxy) end() {
	if p.stream == nil {
		return
	}
	_ = p.stream.conn.Close() // it is gone, whatever it returns
	p.stream = nil
	p.lost, p.watched = p.lost || p.watched, false
}

// Flush passes the commands on and sends their replies. The error ends the connection of the client. If this
// node stops, commands that have no reply by the end get none, as at a leader that stops.
func (p *Proxy) Flush() error {
	rest := p.batch
	for len(rest) > 0 && p.gone == nil && p.stops == nil {
		refusal := p.connect()
		if p.gone != nil || p.stops != nil {
			break
		}
		if refusal != "" {
			for i := range rest {
				text := refusal
				if refusal == knowsNoUsers {
					text = cmp.Or(rest[i].forward.Moved, engine.ErrNotRun.Error())
				}
				p.failAll(rest[i:i+1], text)
			}
			break
		}
		rest = p.round(rest)
		if len(rest) > 0 {
			p.end() // the node does not lead any more
			p.pause(time.After(lookInterval))
		}
	}
	p.send()
	clear(p.batch)
	p.batch, p.text = p.batch[:0], p.text[:0]
	if cap(p.text) > 2*mostBytes {
		p.text = nil
	}
	if cap(p.out) > 2*fullReplies {
		p.out = nil
	}
	return cmp.Or(p.gone, p.stops)
}

// pause waits for a channel, or until the client is gone.
func (p *Proxy) pause(c <-chan time.Time) {
	select {
	case <-c:
	case <-time.After(pollInterval):
	}
	p.gone = errors.Join(p.gone, p.o.Gone())
}

// knowsNoUsers is a refusal: the client is to ask the leader itself.
var knowsNoUsers = engine.ErrKnowsNoUsers.Error()

// connect makes sure that there is a stream to the leader, whose session has the state. It returns the error
// reply if that cannot be. Nothing of the batch was sent then.
func (p *Proxy) connect() (refusal string) {
	_, patience := engine.Patience()
	for p.gone == nil {
		if p.stops = cmp.Or(p.stops, p.o.Stops()); p.stops != nil {
			return ""
		}
		id, again := p.o.Leaders.Leader()
		if p.stream != nil && (id != 0 && id != p.stream.leader || !p.stream.suits(&p.state) || p.o.Ended(p.stream.conn)) {
			p.end()
		}
		waited := clock.Monotonic() - p.began
		switch {
		case waited > patience, id == 0 && again == nil:
			return engine.ErrNotRun.Error()
		case id == 0:
			select {
			case <-again:
			case <-time.After(pollInterval):
			}
			p.gone = p.o.Gone()
			continue
		}
		if p.stream == nil {
			ctx, cancel := context.WithTimeout(context.Background(), max(patience-waited, time.Millisecond))
			conn, err := p.o.Leaders.Dial(ctx, id, &p.state)
			cancel()
			if err == engine.ErrKnowsNoUsers {
				return knowsNoUsers
			}
			if err != nil {
				p.pause(time.After(lookInterval))
				continue
			}
			p.stream = &stream{conn: conn, leader: id, state: engine.SessionState{Proto: 2, Database: "0", User: p.state.User, Restricted: p.state.Restricted}}
		}
		if refusal, ok := p.sync(); ok {
			return refusal
		}
		p.end()
		p.pause(time.After(lookInterval))
	}
	return ""
}

// sync brings the state of the session at the leader to that of the client's. It reports false if the stream
// does not work.
func (p *Proxy) sync() (refusal string, ok bool) {
	s, want := p.stream, p.state
	var list [][]string
	add := func(args ...string) { list = append(list, args) }
	if s.state.Proto != want.Proto {
		add("HELLO", strconv.Itoa(want.Proto))
	}
	if s.state.Name != want.Name {
		add("CLIENT", "SETNAME", want.Name)
	}
	if s.state.LibName != want.LibName {
		add("CLIENT", "SETINFO", "LIB-NAME", want.LibName)
	}
	if s.state.LibVer != want.LibVer {
		add("CLIENT", "SETINFO", "LIB-VER", want.LibVer)
	}
	if s.state.NoTouch != want.NoTouch {
		add("CLIENT", "NO-TOUCH", map[bool]string{true: "ON", false: "OFF"}[want.NoTouch])
	}
	selects := s.state.Database != want.Database
	if selects {
		add("SELECT", want.Database)
	}
	if waited := clock.Monotonic() - p.began; waited > pollInterval {
		list = append(list, waitedNote(waited)) // it has no reply
	}
	if len(list) == 0 {
		return "", true
	}
	s.begin(p)
	if _, err := s.conn.Write(appendCommands(nil, list)); err != nil {
		return "", false
	}
	r := newReader(s)
	defer release(r)
	for _, args := range list {
		if args[0] == "" {
			continue
		}
		line, err := head(r)
		if err != nil {
			return "", false
		}
		text, moved := string(bytes.TrimSpace(line)), isMoved(line)
		if err := copyReply(r, func([]byte) error { return nil }); err != nil {
			return "", false
		}
		if text[0] != '-' {
			continue
		}
		if moved {
			return "", false
		}
		if args[0] == "SELECT" || args[0] == "HELLO" { // the rest is of no consequence for data
			return text[1:], true
		}
	}
	want.Restricted = s.state.Restricted
	s.state = want
	return "", true
}

// waitedNote returns what tells a leader how long the next commands have waited. No client can send it: a
// command has a name.
func waitedNote(d time.Duration) []string {
	return []string{"", strconv.FormatInt(d.Milliseconds(), 10)}
}

// Waited returns what a note of another node says: how long the next commands have waited there.
func Waited(note []string) time.Duration {
	ms, err := strconv.ParseInt(note[len(note)-1], 10, 32)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// round sends commands and passes their replies on. It returns the last commands, if the node has run none of
// them because it does not lead.
func (p *Proxy) round(list []entry) (rest []entry) {
	p.stream.begin(p)
	p.noteWatches(list)
	written := p.write(list)
	r := newReader(p.stream)
	defer release(r)
	refused := 0 // commands before i that the node has not run
	for i := range list {
		moved, err := p.reply(r, &list[i], list[i-refused:i])
		if err != nil && p.gone == nil && p.stops == nil {
			p.failAll(list[i-refused:i], engine.ErrNotRun.Error())
			p.failUnknown(list[i:])
		}
		if err != nil || p.gone != nil {
			p.end()
			<-written
			return nil
		}
		if refused++; !moved {
			refused = 0
		}
	}
	if <-written != nil || r.Buffered() > 0 { // nothing more is due
		p.end()
	}
	if rest = list[len(list)-refused:]; len(rest) > 0 {
		p.watched, p.lost = rest[0].watched, rest[0].lost
	}
	return rest
}

// noteWatches follows what the session watches, and finds the transactions whose watched keys are lost.
func (p *Proxy) noteWatches(list []entry) {
	for i := range list {
		e := &list[i]
		if e.forward.Unwatch {
			p.watched, p.lost = false, false
		}
		e.watched, e.lost, e.void = p.watched, p.lost, false
		switch e.forward.Kind {
		case engine.ForwardWatch:
			p.watched = true
		case engine.ForwardExec:
			e.void = p.lost
			p.watched, p.lost = false, false
		}
	}
}

// write sends commands. The channel gets the result, soon if the stream is closed.
func (p *Proxy) write(list []entry) <-chan error {
	result, conn, text := make(chan error, 1), p.stream.conn, p.text
	if len(list) == 1 && list[0].large == nil && list[0].to-list[0].from <= safeWrite && !list[0].void {
		_, err := conn.Write(text[list[0].from:list[0].to])
		result <- err
		return result
	}
	go func() {
		w := bufio.NewWriterSize(conn, safeWrite)
		for i := range list {
			e := &list[i]
			switch {
			case e.void:
			case e.large != nil:
				for _, args := range e.large {
					_, _ = w.Write(appendLength(nil, '*', len(args))) // Flush returns the error
					for _, arg := range args {
						_, _ = w.Write(appendLength(nil, '$', len(arg)))
						_, _ = w.WriteString(arg)
						_, _ = w.WriteString("\r\n")
					}
				}
			default:
				_, _ = w.Write(text[e.from:e.to])
			}
		}
		result <- w.Flush()
	}()
	return result
}

// reply passes the reply of a command on, after the refusals of those before it that were held back. It
// reports whether the node has not run the command, and holds the refusal back then. After an error the
// client has nothing of the reply, or is gone.
func (p *Proxy) reply(r *bufio.Reader, e *entry, held []entry) (moved bool, err error) {
	if e.void {
		p.failAll(held, engine.ErrNotRun.Error())
		p.emitNull(e)
		return false, nil
	}
	for range e.replies - 1 {
		if err := copyReply(r, drop); err != nil {
			return false, err
		}
	}
	line, err := head(r)
	if err != nil {
		return false, err
	}
	if isMoved(line) {
		return true, copyReply(r, drop)
	}
	done := e.forward.Done != nil && line[0] == '*' && line[1] != '-'
	p.failAll(held, engine.ErrNotRun.Error())
	start, emit := len(p.out), p.emit
	if e.forward.Silent {
		emit = drop
	}
	p.partial = false
	if err := copyReply(r, emit); err != nil {
		if p.partial {
			p.gone = errors.Join(p.gone, err) // the rest of the reply is lost
		} else {
			p.out = p.out[:start]
		}
		return false, err
	}
	if done {
		e.forward.Done()
	}
	return false, nil
}

func drop([]byte) error { return nil }

// isMoved reports whether a line says that a node has not run a command. Another error that begins so is one
// of a script, which has run.
func isMoved(line []byte) bool { return string(line) == "-"+string(engine.ErrElsewhere)+"\r\n" }

// emit passes bytes of replies on.
func (p *Proxy) emit(b []byte) error {
	p.out = append(p.out, b...)
	if len(p.out) >= fullReplies {
		p.partial = true
		p.send()
	}
	return p.gone
}

// send sends what is gathered to the client.
func (p *Proxy) send() {
	if len(p.out) > 0 && p.gone == nil {
		p.gone = p.o.Send(p.out)
	}
	p.out = p.out[:0]
}

// failAll replies an error to commands.
func (p *Proxy) failAll(list []entry, text string) {
	for i := range list {
		if !list[i].forward.Silent {
			_ = p.emit([]byte("-" + text + "\r\n")) // p.gone says it, too
		}
	}
}

// failUnknown gives the clients of commands without a reply an error: whether these have run is not known.
func (p *Proxy) failUnknown(list []entry) {
	for i := range list {
		text := engine.ErrNotRun
		if list[i].forward.Writes {
			text = engine.ErrUnknownFate
		}
		p.failAll(list[i:i+1], text.Error())
	}
}

// emitNull replies to EXEC that nothing was run.
func (p *Proxy) emitNull(e *entry) {
	null := "*-1\r\n"
	if p.state.Proto == 3 {
		null = "_\r\n"
	}
	if !e.forward.Silent {
		_ = p.emit([]byte(null)) // p.gone says it, too
	}
}

// stream is a connection to the leader.
type stream struct {
	conn   net.Conn
	leader uint64
	state  engine.SessionState // of the session at the other end

	proxy   *Proxy        // that reads
	healthy time.Duration // when the leader was last known to be reachable, as clock.Monotonic says
}

// suits reports whether the session at the other end is that of the user, and holds the user to its rights.
func (s *stream) suits(want *engine.SessionState) bool {
	return s.state.User == want.User && (s.state.Restricted || !want.Restricted)
}

// begin notes that replies are awaited from now on.
func (s *stream) begin(p *Proxy) { s.proxy, s.healthy = p, clock.Monotonic() }

// errUnreachable is the error of a read from a leader that is not heard of.
var errUnreachable = errors.New("the leader is unreachable")

// Read reads from the leader, as long as the client waits and the leader is reachable. There is no other
// limit: commands may block, or compute for long. A command that blocks must end at once when its client
// does, or it would take for it what others wait for.
func (s *stream) Read(b []byte) (int, error) {
	var left atomic.Bool
	stop := func() {}
	defer func() { stop() }()
	for wait := firstLook; ; wait = pollInterval {
		if err := s.conn.SetReadDeadline(clock.Deadline(wait)); err != nil {
			return 0, err
		}
		if !left.Load() { // else the deadline of wake may be overwritten
			n, err := s.conn.Read(b)
			if timeout := net.Error(nil); n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
				return n, err
			}
		}
		left.Store(false)
		if err := s.look(); err != nil {
			return 0, err
		}
		if wait == firstLook {
			stop = s.proxy.o.Watch(func() {
				left.Store(true)
				_ = s.conn.SetReadDeadline(past) // it is gone, whatever it returns
			})
		}
	}
}

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

// look returns why a read is to end, or nil.
func (s *stream) look() error {
	p, now := s.proxy, clock.Monotonic()
	if p.gone = p.o.Gone(); p.gone != nil {
		return p.gone
	}
	if p.stops == nil {
		if p.stops = p.o.Stops(); p.stops != nil {
			p.o.Finish(s.conn) // what has run is replied to; what blocks ends
		}
	}
	if p.o.Leaders.LeaderReachable(s.leader) {
		s.healthy = now
		return nil
	}
	patience, _ := engine.Patience()
	if id, _ := p.o.Leaders.Leader(); id != 0 {
		patience = newLeader
	} else {
		patience = max(patience-(s.healthy-p.began), leastPatience) // what it has waited before counts
	}
	if now-s.healthy > patience-pollInterval {
		return errUnreachable
	}
	return nil
}

// readers hold replies while they pass through.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 2*mostLine) }}

func newReader(s *stream) *bufio.Reader {
	r := readers.Get().(*bufio.Reader)
	r.Reset(s)
	return r
}

func release(r *bufio.Reader) {
	r.Reset(nil)
	readers.Put(r)
}
