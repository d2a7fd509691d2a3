package engine

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"mayfly/keyspace"
	"mayfly/test/drill"
)

// deliveries is a receiver that calls a function for each message.
type deliveries func()

func (d deliveries) Hold()              {}
func (d deliveries) Full() bool         { return false }
func (d deliveries) Deliver(m *Message) { d() }

// TestOthersUseTheBrokerWhileManyChangesAreTold: who asks the broker something while a client is told of many
// changes need not wait for the last.
func TestOthersUseTheBrokerWhileManyChangesAreTold(t *testing.T) {
	t.Parallel()
	var e Engine
	const changes = 200_000
	var asked atomic.Bool
	delivered, deliveredBefore := 0, 0
	s := NewSession(1, "", "", 0)
	s.Proto = 3
	s.Receiver = deliveries(func() {
		if delivered++; delivered == 1 {
			go func() {
				e.Broker.Trackers()
				asked.Store(true)
			}()
		}
		if !asked.Load() {
			deliveredBefore = delivered
			runtime.Gosched()
		}
	})
	s.Memory = new(ClientMemoryLimit).Open(s)
	drill.Check(t, e.Track(s, Tracking{On: true}))
	c := new(keyspace.Container)
	told := keyspace.Told{}
	for i := range changes {
		told.Changes = append(told.Changes, keyspace.Change{Container: c, ID: strconv.Itoa(i), Readers: []keyspace.Reader{keyspace.ReaderOf(1, false)}})
	}
	if e.Broker.deliverTold(&told); delivered != changes {
		t.Errorf("%d changes are told", delivered)
	}
	if deliveredBefore == changes {
		t.Error("the broker was locked until the last change was told")
	}
}

// TestManyChangesAreToldByTheHelper: who delivers what is soon done leaves many changes to the helper.
func TestManyChangesAreToldByTheHelper(t *testing.T) {
	t.Parallel()
	var b Broker
	b.Queue.helping = true // so none begins, which could be faster
	few, many := new(keyspace.Told), new(keyspace.Told)
	few.Changes = make([]keyspace.Change, 10)
	many.Changes = make([]keyspace.Change, expensiveCost/stepsOfChange+1)
	for _, told := range []*keyspace.Told{few, many} {
		for i := range told.Changes {
			told.Changes[i].Container = new(keyspace.Container)
		}
		b.OnTold(told)
	}
	if b.deliverCheap(2); !b.Queue.HasDelivered(1) || b.Queue.HasDelivered(2) {
		t.Errorf("of two events %d are left", b.Queue.Len())
	}
	b.Queue.helping = false
	b.ensureHelper()
	b.Queue.WaitDelivered(2)
}
