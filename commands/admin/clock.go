package admin

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
)

// A server for tests may have a clock that clients move. It is a simulation of discrete events: the clock
// steps to each moment at which something is due, does that, and goes on. So each death is found in its own
// millisecond, and the reply says that all is done: what died is removed, events are in the queues of their
// connections, and clients that waited have their replies.
//
// Nothing is purged in the background: what a change of rules kills is found by the next advance, also by one
// of 0 seconds.

const (
	errClockSystem    = "ERR CLOCK %s needs the option clock manual, which is for tests"
	errClockBackwards = "ERR the clock never runs backwards: it is at %s"
	errClockEnd       = "ERR the clock ends at %s: it is at %s"
	errClockSeconds   = "ERR invalid seconds %s: legal are 0 and more, with at most three decimals"
	errClockMoment    = "ERR invalid moment %s: legal are milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z, up to the year 9999"
)

// ClockCommand shows the time and moves it.
var ClockCommand = engine.Command{
	Name: "clock", Since: engine.SinceFirst, Summary: "Shows the time by which documents die, and moves it in tests.",
	Sub: []engine.Command{
		{
			Name: "advance", Syntax: "seconds", Example: "3600",
			Summary: "Moves the clock forward and does all that is due meanwhile, each at its moment. Replies the time in milliseconds since 1970. Needs the option clock manual.",
			Flags:   engine.Admin | engine.NoScript | engine.NoMulti | engine.Publishes | engine.OnNode, Parse: parseClockAdvance,
		},
		engine.HelpRow("clock", engine.SinceFirst),
		{
			Name: "now", Summary: "Returns the time in milliseconds since 1970.",
			Flags: engine.NoScript | engine.NoMulti | engine.Loading | engine.Stale | engine.Fast | engine.OnNode, Categories: "connection", Tips: "nondeterministic_output",
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply { return engine.Integer(x.Engine.Now()) }),
		},
		{
			Name: "set", Syntax: "moment", Example: "2030-01-01T00:00:00Z",
			Summary: "Moves the clock forward to a moment, as CLOCK ADVANCE does: milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z.",
			Flags:   engine.Admin | engine.NoScript | engine.NoMulti | engine.Publishes | engine.OnNode, Parse: parseClockSet,
		},
	},
}

func parseClockAdvance(in *engine.Input) (engine.Run, error) {
	by, ok := parseSeconds(in.Args[2])
	if !ok {
		return nil, engine.Errorf(errClockSeconds, expiry.Quote(in.Args[2]))
	}
	return moveClock("ADVANCE", func(now int64) int64 { return now + by }), nil
}

func parseClockSet(in *engine.Input) (engine.Run, error) {
	to, ok := clock.ParseMoment(in.Args[2])
	if !ok {
		return nil, engine.Errorf(errClockMoment, expiry.Quote(in.Args[2]))
	}
	return moveClock("SET", func(int64) int64 { return to }), nil
}

// parseSeconds reads seconds with up to three decimals as ms. What is beyond the end of the clock is that
// end.
func parseSeconds(text string) (ms int64, ok bool) {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) > 3 || part == "" && whole != text {
		return 0, false
	}
	seconds, err := strconv.ParseUint(whole, 10, 64)
	thousandths, err2 := strconv.ParseUint((part + "000")[:3], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || err2 != nil {
		return 0, false
	}
	return min(int64(min(seconds, uint64(clock.End/1000)))*1000+int64(thousandths), clock.End), true
}

// moveClock returns the Run of CLOCK ADVANCE and CLOCK SET. target returns where the clock is to be, in ms,
// from where it is.
func moveClock(word string, target func(now int64) int64) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if x.Engine.Clock == nil {
			return engine.Fail(engine.Errorf(errClockSystem, word))
		}
		x.Outside = func() (reply engine.Reply, again bool) { return runAdvance(x, target), false }
		return engine.Reply{}
	}
}

// runAdvance moves the clock. One runs at a time, without a transaction.
func runAdvance(x *engine.Context, target func(now int64) int64) engine.Reply {
	e := x.Engine
	e.Waiters.BeginSteps()
	defer e.Waiters.EndSteps()
	now := e.Clock.Now()
	to := target(now)
	switch {
	case to < now:
		return engine.Fail(engine.Errorf(errClockBackwards, clock.FormatMoment(now)))
	case to > clock.End:
		return engine.Fail(engine.Errorf(errClockEnd, clock.FormatMoment(clock.End), clock.FormatMoment(now)))
	}
	ks := e.Keyspace()
	if ks == nil {
		return engine.Fail(engine.ErrLoadingData)
	}
	a := &advance{x: x, ks: ks, watch: x.WatchClient(), forRoom: clientPatience, forReplies: clientPatience}
	if err := a.run(to); err != nil {
		return engine.Fail(err)
	}
	return engine.Integer(to)
}

// clientPatience is the real time for which an advance waits for clients: for room in the queue of a
// subscriber, and for those that it has woken.
const clientPatience = 5 * time.Second

// advance is the way of the clock from one moment to another.
type advance struct {
	x      *engine.Context
	ks     *keyspace.Keyspace
	watch  engine.Watch
	looked uint64 // events up to the last look for full subscribers

	// What is left of clientPatience: for subscribers that do not keep up, and for those who were woken.
	forRoom, forReplies time.Duration
}

// run moves the clock to a moment in ms. After an error it stands at the last moment for which all is done.
func (a *advance) run(to int64) error {
	e := a.x.Engine
	if err := a.mayGoOn(); err != nil {
		return err
	}
	for now := a.doDue(to); now < to; now = a.doDue(to) {
		if err := a.mayGoOn(); err != nil {
			return err
		}
		next := min(a.ks.NextDue(), e.Waiters.NextEnd())
		e.Clock.Raise(min(max(next, now+1), to))
	}
	a.ks.PurgeAll()
	a.settle()
	return nil
}

// doDue does what is due now, on the way to a moment in ms, and returns now.
func (a *advance) doDue(to int64) (now int64) {
	now = a.x.Engine.Clock.Now()
	a.ks.DoDue(max(to, now+1), a.settle)
	for a.settle(); a.x.Engine.Waiters.EndUntil(now); {
		a.settle()
	}
	return now
}

// mayGoOn waits for the end of a pause of clients. It returns why the clock must stop: its client has left,
// the server stops, or the disk fails.
func (a *advance) mayGoOn() error {
	const workOfStep = 1 << 10
	for over := a.x.Engine.PausedUntil(a.x.Session, a.x.Input.Args); over != nil; over = a.x.Engine.PausedUntil(a.x.Session, a.x.Input.Args) {
		select {
		case <-over:
		case <-time.After(a.x.Session.AbandonInterval):
			if a.watch.Abandoned(1 << 20) {
				return engine.ErrAbandoned
			}
		}
	}
	if a.watch.Abandoned(workOfStep) || a.x.Session.Disconnected.Load() {
		a.x.Abandoned = true
		return engine.ErrAbandoned
	}
	return a.x.Engine.DiskRefusal(false)
}

// settle waits until events are in the queues of their connections, and those who were woken have their
// replies or wait again.
func (a *advance) settle() {
	const lookEvery = 1 << 10 // events
	b := &a.x.Engine.Broker
	if n := b.Queue.Drain(); n-a.looked >= lookEvery {
		a.looked = n
		a.awaitRoom(b)
	}
	if !a.x.Engine.Waiters.Settle(a.forReplies) {
		a.forReplies = 0
	}
}

// awaitRoom waits until no subscriber is full, while there is patience.
func (a *advance) awaitRoom(b *engine.Broker) {
	for began := clock.Monotonic(); a.forRoom > 0 && b.AnyFull(); {
		if clock.Monotonic()-began >= a.forRoom {
			a.forRoom = 0
			return
		}
		<-time.After(time.Millisecond)
	}
}
