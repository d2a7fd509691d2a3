package engine

import (
	"slices"
	"strconv"
	"testing"
)

// The events of a command wait for its end, and all events behind them wait, too.
func TestEventBatchIsSealed(t *testing.T) {
	t.Parallel()
	var q eventQueue
	first, second := new(eventBatch), new(eventBatch)
	q.push(Event{batch: first, Text: "1"})
	q.push(Event{batch: second, Text: "2"})
	q.push(Event{Text: "3"})
	q.push(Event{batch: first, Text: "4"})
	free := func(*Event) int { return 0 }
	texts := func() (list []string) {
		q.Begin(delivering)
		ready, _ := q.popReady(nil, deliverBatch, 0, free)
		for _, l := range ready {
			list = append(list, l.Text)
		}
		q.End(len(list))
		return list
	}
	if last := q.seal(second, 7); last != 2 || q.HasDelivered(1) || q.startHelper() || texts() != nil {
		t.Error("an event is delivered before the first batch is sealed")
	}
	if last := q.seal(first, 8); last != 4 || !q.startHelper() || q.startHelper() || q.stopHelper() {
		t.Error("no helper is sent for, or a second, or it goes although there is something to do")
	}
	if got := texts(); !slices.Equal(got, []string{"1", "2", "3", "4"}) || !q.HasDelivered(4) || q.HasDelivered(5) || !q.stopHelper() || q.Len() != 0 {
		t.Errorf("delivered %q", got)
	}
	// The queue does not keep the memory of delivered events.
	room := make([]Event, deliverBatch-1, deliverBatch) // for one
	for i := range 2 * LongQueue {
		q.push(Event{Text: strconv.Itoa(i)})
		if i >= 1000 {
			q.popReady(room, deliverBatch, 0, free)
		}
	}
	if n := cap(q.events); n > 10_000 {
		t.Errorf("room for %d events where a thousand wait", n)
	}
}

// Who drains the queue while no helper starts delivers the events itself.
func TestDrain(t *testing.T) {
	t.Parallel()
	var b Broker
	b.held.Store(true)
	other := new(eventBatch)
	for _, ev := range []Event{{Channel: "a"}, {Channel: "b"}, {batch: other, Channel: "c"}} {
		b.Queue.push(ev)
	}
	b.Queue.seal(other, 1)
	if n := b.Drain(); n != 3 || !b.Queue.HasDelivered(3) || b.Queue.helping {
		t.Errorf("%d events are drained, a helper runs: %t", n, b.Queue.helping)
	}
	b.Queue.push(Event{Channel: "d"})
	b.HoldHelper(false)
	b.Queue.WaitDelivered(4)
}
