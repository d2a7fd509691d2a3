package crash

import (
	"math/rand/v2"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"testing"
)

// TestCrashInTransactions kills the server while clients run transactions over several partitions and
// containers. After each restart every transaction is there entirely or not at all, and those that were
// acknowledged are there.
func TestCrashInTransactions(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	const clients, accounts, balance = 4, 10, 1000
	r := drill.Rand(t)
	workers := make([]*ledger.ExecWorker, clients)
	for n := range workers {
		workers[n] = &ledger.ExecWorker{T: t, Number: n, Accounts: accounts, R: rand.New(rand.NewPCG(r.Uint64(), 0))}
	}
	k := &killing{t: t, r: r, dir: dataFolder(t), kills: drill.Pick(0, 2, 100), least: 20, most: 800}
	k.clients = func(port string, acknowledged func(int)) (list []func()) {
		for _, w := range workers {
			list = append(list, func() { w.Work(port, acknowledged) })
		}
		return list
	}
	k.check = func(p *harness.Process, kills int) {
		c := p.Client()
		if kills == 0 {
			drill.Check(t, c.Do(t.Context(), "CONTAINER.SET", "ledger", "TTL", "3600").Err())
			for i := range accounts {
				drill.Check(t, c.Set(t.Context(), ledger.Account(i), balance, 0).Err())
			}
		}
		sum := 0
		for i := range accounts {
			n, err := c.Get(t.Context(), ledger.Account(i)).Int()
			drill.Check(t, err)
			sum += n
		}
		if sum != accounts*balance {
			t.Errorf("after %d kills the accounts hold %d together, not %d", kills, sum, accounts*balance)
		}
		for _, w := range workers {
			w.Check(c)
		}
	}
	k.run()
}
