package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/cluster/bus"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
)

// sentBus takes messages.
type sentBus struct {
	Bus
	sent chan bus.Message
}

func (b sentBus) Send(list []bus.Message) {
	for _, m := range list {
		b.sent <- m
	}
}

// TestMessagesOfAFailedCommit checks each message of a list by itself if the last one fails.
func TestMessagesOfAFailedCommit(t *testing.T) {
	t.Parallel()
	fake := sentBus{sent: make(chan bus.Message, 100)}
	waits := []keyspace.LSN{}
	r := &remote{Bus: fake, wait: func(_ *keyspace.Keyspace, lsn keyspace.LSN) error {
		if waits = append(waits, lsn); lsn > 5 {
			return errors.New("no")
		}
		return nil
	}}
	var list []outgoing
	for _, lsn := range []keyspace.LSN{3, 7, 0, 5, 6, 9, 8} {
		list = append(list, outgoing{message: bus.Message{Channel: fmt.Sprint(lsn)}, lsn: lsn, bound: true},
			outgoing{message: bus.Message{Channel: fmt.Sprint(lsn), Text: "free"}, lsn: lsn})
	}
	r.sendAll(list)
	close(fake.sent)
	got := []string{}
	for m := range fake.sent {
		got = append(got, strings.TrimSpace(m.Channel+" "+m.Text))
	}
	if want := "3,3 free,7 free,0,0 free,5,5 free,6 free,9 free,8 free"; strings.Join(got, ",") != want {
		t.Errorf("sent %q, want %s", got, want)
	}
	if want := []keyspace.LSN{9, 3, 7, 5, 6}; !slices.Equal(waits, want) { // each wait may take seconds
		t.Errorf("waited for %v, want %v", waits, want)
	}
}

// TestMessagesOfTwoIncarnations: an LSN counts in the keyspace in which the message was made.
func TestMessagesOfTwoIncarnations(t *testing.T) {
	t.Parallel()
	fake := sentBus{sent: make(chan bus.Message, 100)}
	old, next := new(keyspace.Keyspace), new(keyspace.Keyspace)
	current := old
	begin := make(chan struct{})
	r := &remote{Bus: fake, keyspace: func() *keyspace.Keyspace { return current }, wait: func(ks *keyspace.Keyspace, lsn keyspace.LSN) error {
		<-begin
		if ks == old {
			return replica.ErrVoid // it was closed without committing
		}
		return nil
	}}
	r.send(bus.Message{Text: "old"}, 7, true)
	r.send(bus.Message{Text: "free"}, 8, false)
	current = next
	r.send(bus.Message{Text: "next"}, 9, true)
	close(begin)
	if got := (<-fake.sent).Text + (<-fake.sent).Text; got != "freenext" {
		t.Errorf("sent %q", got)
	}
}

// TestFullOutgoing: what waits for a commit is bounded, also if its texts are empty.
func TestFullOutgoing(t *testing.T) {
	t.Parallel()
	fake := sentBus{sent: make(chan bus.Message, 1<<20)}
	begin := make(chan struct{})
	r := &remote{Bus: fake, keyspace: func() *keyspace.Keyspace { return nil }, wait: func(*keyspace.Keyspace, keyspace.LSN) error { <-begin; return nil }}
	for range 2 * mostOutgoing / outgoingCost {
		r.send(bus.Message{}, 1, false)
	}
	r.mu.Lock()
	if n := len(r.queue); n > mostOutgoing/outgoingCost+1 || r.dropped == 0 {
		t.Errorf("%d messages wait, %d were dropped", n, r.dropped)
	}
	r.mu.Unlock()
	close(begin)
	<-fake.sent
}
