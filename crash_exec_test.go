package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestCrashInTransactions kills the server while clients run transactions over several partitions and
// containers. After each restart every transaction is there entirely or not at all, and those that
// were acknowledged are there.
func TestCrashInTransactions(t *testing.T) {
	const kills, clients, accounts, balance = 4, 4, 10, 1000
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	dir := filepath.Join(t.TempDir(), "data")
	workers := make([]*execWorker, clients)
	for n := range workers {
		workers[n] = &execWorker{t: t, number: n, accounts: accounts, r: rand.New(rand.NewPCG(r.Uint64(), uint64(n)))}
	}
	for kill := range kills {
		p := start(t, dir, "--appendfsync", [...]string{"everysec", "always", "no"}[kill%3])
		c := p.client()
		if kill == 0 {
			if err := c.Do(t.Context(), "CONTAINER.SET", "ledger", "TTL", "3600").Err(); err != nil {
				t.Fatal(err)
			}
			for i := range accounts {
				if err := c.Set(t.Context(), account(i), balance, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() { w.work(p.port) })
		}
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond) // under load
		p.signal(syscall.SIGKILL)
		p.wait()
		wg.Wait()

		p = start(t, dir)
		c = p.client()
		sum := 0
		for i := range accounts {
			n, err := c.Get(t.Context(), account(i)).Int()
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != accounts*balance {
			t.Errorf("after %d kills the accounts hold %d together, not %d", kill+1, sum, accounts*balance)
		}
		for _, w := range workers {
			w.check(c)
		}
		p.terminate()
		if t.Failed() {
			keepData(t, dir, kill)
			return
		}
	}
	total := 0
	for _, w := range workers {
		total += w.acknowledged
	}
	if total < 20*kills {
		t.Errorf("%d transactions in %d rounds test nothing", total, kills)
	}
	t.Logf("%d transactions were acknowledged", total)
}

func account(i int) string { return fmt.Sprint("account-", i) }

// execWorker runs transactions, every other one as a script. Each writes its number into keys of several partitions, into a
// document, and into one of two databases, which it then exchanges. It also moves an amount from
// one account to another.
type execWorker struct {
	t        *testing.T
	number   int
	accounts int
	r        *rand.Rand

	sent, acknowledged int // numbers of transactions
}

func (w *execWorker) keys() (keys []string) {
	for i := range 6 {
		keys = append(keys, fmt.Sprintf("worker-%d-%d", w.number, i))
	}
	return keys
}

// databases are the worker's own, which it exchanges.
func (w *execWorker) databases() (a, b int) { return 4 + 2*w.number, 5 + 2*w.number }

// work runs transactions until the server is gone.
func (w *execWorker) work(port string) {
	ctx := w.t.Context()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, PoolSize: 1, ReadTimeout: patience})
	defer c.Close()
	for {
		w.sent++
		if err := w.transact(ctx, c); err != nil {
			var said redis.Error
			if errors.As(err, &said) {
				w.t.Errorf("transaction %d: %v", w.sent, err)
			}
			return
		}
		w.acknowledged = w.sent
	}
}

// transactScript is a transaction as a script. It uses keys that its call does not name.
const transactScript = `
for i = 1, #KEYS - 2 do redis.call('SET', KEYS[i], ARGV[1]) end
redis.call('DOC.PUT', 'ledger', KEYS[1], '{"n":' .. ARGV[1] .. '}')
redis.call('DECRBY', KEYS[#KEYS - 1], ARGV[2])
redis.call('SELECT', ARGV[3])
redis.call('SET', 'n', ARGV[1])
redis.call('SWAPDB', ARGV[3], ARGV[4])
redis.call('SELECT', '0')
redis.call('INCRBY', KEYS[#KEYS], ARGV[2])`

func (w *execWorker) transact(ctx context.Context, c *redis.Client) error {
	a, b := w.databases()
	n, amount := strconv.Itoa(w.sent), int64(w.r.IntN(100))
	if w.sent%2 == 0 {
		keys := append(w.keys(), account(w.r.IntN(w.accounts)), account(w.r.IntN(w.accounts)))
		err := c.Eval(ctx, transactScript, keys, n, amount, a, b).Err()
		if err == redis.Nil {
			return nil
		}
		return err
	}
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range w.keys() {
			p.Set(ctx, key, n, 0)
		}
		p.Do(ctx, "DOC.PUT", "ledger", w.keys()[0], `{"n":`+n+`}`)
		p.DecrBy(ctx, account(w.r.IntN(w.accounts)), amount)
		p.Do(ctx, "SELECT", a)
		p.Set(ctx, "n", n, 0)
		p.Do(ctx, "SWAPDB", a, b)
		p.Do(ctx, "SELECT", 0)
		p.IncrBy(ctx, account(w.r.IntN(w.accounts)), amount)
		return nil
	})
	return err
}

// check compares what a restart has left with what was sent and acknowledged.
func (w *execWorker) check(c *redis.Client) {
	conn := c.Conn()
	defer conn.Close()
	found, doc, err := w.read(conn)
	if err != nil {
		w.t.Fatal(err)
	}
	w.judge(found, doc)
}

// read reads all that a transaction writes: the number in each key, and the document.
func (w *execWorker) read(conn *redis.Conn) (found []string, doc string, err error) {
	ctx := w.t.Context()
	text := func(s string, failure error) string {
		s, failure = nilIsEmpty(s, failure)
		err = cmp.Or(err, failure)
		return s
	}
	for _, key := range w.keys() {
		found = append(found, text(conn.Get(ctx, key).Result()))
	}
	doc = text(conn.Do(ctx, "DOC.GET", "ledger", w.keys()[0]).Text())
	_, b := w.databases()
	text("", conn.Do(ctx, "SELECT", b).Err())
	found = append(found, text(conn.Get(ctx, "n").Result()))
	text("", conn.Do(ctx, "SELECT", 0).Err()) // others use the connection
	return found, doc, err
}

// judge compares what was read with what was sent and acknowledged. The worker goes on from there.
func (w *execWorker) judge(found []string, doc string) {
	for _, n := range found[1:] {
		if n != found[0] {
			w.t.Errorf("worker %d: half a transaction is left: %q", w.number, found)
		}
	}
	n, _ := strconv.Atoi(found[0]) // 0: none has been committed
	if n > 0 && doc != `{"n":`+found[0]+`}` {
		w.t.Errorf("worker %d: transaction %d is left, but the document is %s", w.number, n, doc)
	}
	if n < w.acknowledged || n > w.sent {
		w.t.Errorf("worker %d: transaction %d is left, %d was acknowledged and %d sent", w.number, n, w.acknowledged, w.sent)
	}
	w.sent, w.acknowledged = n, n
}
