package crash

import (
	"math/rand/v2"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestCrashInTransactions kills the server while clients run transactions over several partitions and
// containers. After each restart every transaction is there entirely or not at all, and those that
// were acknowledged are there.
func TestCrashInTransactions(t *testing.T) {
	const kills, clients, accounts, balance = 4, 4, 10, 1000
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	dir := filepath.Join(t.TempDir(), "data")
	workers := make([]*ledger.ExecWorker, clients)
	for n := range workers {
		workers[n] = &ledger.ExecWorker{T: t, Number: n, Accounts: accounts, R: rand.New(rand.NewPCG(r.Uint64(), uint64(n)))}
	}
	for kill := range kills {
		p := harness.Start(t, dir, "--appendfsync", [...]string{"everysec", "always", "no"}[kill%3])
		c := p.Client()
		if kill == 0 {
			if err := c.Do(t.Context(), "CONTAINER.SET", "ledger", "TTL", "3600").Err(); err != nil {
				t.Fatal(err)
			}
			for i := range accounts {
				if err := c.Set(t.Context(), ledger.Account(i), balance, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() { w.Work(p.Port) })
		}
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond) // under load
		p.Signal(syscall.SIGKILL)
		p.Wait()
		wg.Wait()

		p = harness.Start(t, dir)
		c = p.Client()
		sum := 0
		for i := range accounts {
			n, err := c.Get(t.Context(), ledger.Account(i)).Int()
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != accounts*balance {
			t.Errorf("after %d kills the accounts hold %d together, not %d", kill+1, sum, accounts*balance)
		}
		for _, w := range workers {
			w.Check(c)
		}
		p.Terminate()
		if t.Failed() {
			keepData(t, dir, kill)
			return
		}
	}
	total := 0
	for _, w := range workers {
		total += w.Acknowledged
	}
	if total < 20*kills {
		t.Errorf("%d transactions in %d rounds test nothing", total, kills)
	}
	t.Logf("%d transactions were acknowledged", total)
}
