package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"mayfly/test/harness"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Account is the key of an account.
func Account(i int) string { return fmt.Sprint("account-", i) }

// ExecWorker runs transactions, every other one as a script. Each writes its number into keys of several
// partitions, into a document, and into one of two databases, which it then exchanges. It also moves an
// amount from one account to another.
type ExecWorker struct {
	T        *testing.T
	Number   int
	Accounts int
	R        *rand.Rand

	Sent, Acknowledged int // numbers of transactions
}

func (w *ExecWorker) keys() (keys []string) {
	for i := range 6 {
		keys = append(keys, fmt.Sprintf("worker-%d-%d", w.Number, i))
	}
	return keys
}

// databases are the worker's own, which it exchanges.
func (w *ExecWorker) databases() (a, b int) { return 4 + 2*w.Number, 5 + 2*w.Number }

// Work runs transactions until the server is gone. It tells when one more was acknowledged.
func (w *ExecWorker) Work(port string, acknowledged func(n int)) {
	ctx := w.T.Context()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, PoolSize: 1, ReadTimeout: harness.Patience})
	defer c.Close()
	for {
		w.Sent++
		if err := w.Transact(ctx, c); err != nil {
			var said redis.Error
			if errors.As(err, &said) {
				w.T.Errorf("transaction %d: %v", w.Sent, err)
			}
			return
		}
		w.Acknowledged = w.Sent
		acknowledged(1)
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

// Transact runs one transaction.
func (w *ExecWorker) Transact(ctx context.Context, c *redis.Client) error {
	a, b := w.databases()
	n, amount := strconv.Itoa(w.Sent), int64(w.R.IntN(100))
	if w.Sent%2 == 0 {
		keys := append(w.keys(), Account(w.R.IntN(w.Accounts)), Account(w.R.IntN(w.Accounts)))
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
		p.DecrBy(ctx, Account(w.R.IntN(w.Accounts)), amount)
		p.Do(ctx, "SELECT", a)
		p.Set(ctx, "n", n, 0)
		p.Do(ctx, "SWAPDB", a, b)
		p.Do(ctx, "SELECT", 0)
		p.IncrBy(ctx, Account(w.R.IntN(w.Accounts)), amount)
		return nil
	})
	return err
}

// Check compares what a restart has left with what was sent and acknowledged.
func (w *ExecWorker) Check(c *redis.Client) {
	conn := c.Conn()
	defer conn.Close()
	found, doc, err := w.Read(conn)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Judge(found, doc)
}

// Read reads all that a transaction writes: the number in each key, and the document.
func (w *ExecWorker) Read(conn *redis.Conn) (found []string, doc string, err error) {
	ctx := w.T.Context()
	text := func(s string, failure error) string {
		s, failure = NilIsEmpty(s, failure)
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

// Judge compares what was read with what was sent and acknowledged. The worker goes on from there.
func (w *ExecWorker) Judge(found []string, doc string) {
	for _, n := range found[1:] {
		if n != found[0] {
			w.T.Errorf("worker %d: half a transaction is left: %q", w.Number, found)
		}
	}
	n, _ := strconv.Atoi(found[0]) // 0: none has been committed
	if n > 0 && doc != `{"n":`+found[0]+`}` {
		w.T.Errorf("worker %d: transaction %d is left, but the document is %s", w.Number, n, doc)
	}
	if n < w.Acknowledged || n > w.Sent {
		w.T.Errorf("worker %d: transaction %d is left, %d was acknowledged and %d sent", w.Number, n, w.Acknowledged, w.Sent)
	}
	w.Sent, w.Acknowledged = n, n
}
