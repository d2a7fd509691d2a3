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
	Name: "clock", Syntax: "<NOW | ADVANCE seconds | SET moment>", Since: engine.SinceFirst, Summary: "Shows the time by which documents die, and moves it in tests.",
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
	a := &advance{x: x, watch: x.WatchClient(), forRoom: clientPatience, forReplies: clientPatience}
	for busy := e.Waiters.BeginSteps(); busy != nil; busy = e.Waiters.BeginSteps() {
		if err := a.await(busy); err != nil {
			return engine.Fail(err)
		}
	}
	defer e.Waiters.EndSteps()
	now := e.Clock.Now()
	to := target(now)
	switch {
	case to < now:
		return engine.Fail(engine.Errorf(errClockBackwards, clock.FormatMoment(now)))
	case to > clock.End:
		return engine.Fail(engine.Errorf(errClockEnd, clock.FormatMoment(clock.End), clock.FormatMoment(now)))
	}
	if a.ks = e.Keyspace(); a.ks == nil {
		return engine.Fail(engine.ErrLoadingData)
	}
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
	c := a.x.Engine.Clock
	next := func() int64 { return min(max(a.ks.NextDue(), c.Now()+1), a.x.Engine.Waiters.NextEnd(), to) }
	err := a.step(to, c.Now)
	for err == nil && c.Now() < to {
		err = a.step(to, next)
	}
	return err
}

// step moves the clock to the next moment in ms, on the way to the last, and does what is due then.
func (a *advance) step(last int64, next func() int64) error {
	if err := a.beginStep(); err != nil {
		return err
	}
	defer a.x.Engine.Pause.EndStep()
	a.x.Engine.Clock.Raise(next())
	a.doDue(last)
	return nil
}

// doDue does what is due now, on the way to a moment in ms.
func (a *advance) doDue(to int64) {
	e := a.x.Engine
	now := e.Clock.Now()
	e.Broker.HoldHelper(true)
	a.ks.DoDue(max(to, now+1), a.settle)
	if now == to {
		a.ks.PurgeAll()
	}
	for a.settle(); e.Waiters.EndUntil(now); {
		a.settle()
	}
	e.Broker.HoldHelper(false)
}

// beginStep waits for the end of a pause of clients, and begins a step of the clock. It returns why the clock
// must stop: its client has left, the server stops, or the disk fails.
func (a *advance) beginStep() error {
	const workOfStep = 1 << 10
	if a.gone(workOfStep) {
		return engine.ErrAbandoned
	}
	if err := a.x.Engine.DiskRefusal(false); err != nil {
		return err
	}
	for over := a.x.Engine.Pause.BeginStep(); over != nil; over = a.x.Engine.Pause.BeginStep() {
		if err := a.await(over); err != nil {
			return err
		}
	}
	return nil
}

// await waits for others, or for a while. It returns an error if the client has left.
func (a *advance) await(others <-chan struct{}) error {
	select {
	case <-others:
	case <-time.After(a.x.Session.AbandonInterval):
		if a.gone(1 << 20) {
			return engine.ErrAbandoned
		}
	}
	return nil
}

// gone reports whether the client has left, or the server stops, after some work in bytes.
func (a *advance) gone(work int) bool {
	if a.x.Session.Disconnected.Load() {
		a.x.Abandoned = true
	}
	return a.watch.Abandoned(work)
}

// settle waits until events are in the queues of their connections, and those who were woken have their
// replies or wait again.
func (a *advance) settle() {
	const lookEvery = 1 << 10 // events
	b := &a.x.Engine.Broker
	if n := b.Drain(); n-a.looked >= lookEvery {
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
