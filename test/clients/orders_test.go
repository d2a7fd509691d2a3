package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// The orders, in thirds by their number:
const (
	shortOrders   = iota // have a ttl of a few seconds of their own
	defaultOrders        // have none: the container's default rules them
	longOrders           // have a ttl of -1 or of many days
	thirds
)

// ordersPerPipeline is how many orders are read or touched at a time.
const ordersPerPipeline = 500

// TestOrders lives through what the server is for, with orders from a fixed seed. They are loaded through
// redis-cli and read back byte for byte. A third dies by its own ttl, another third at once by a new default.
// Exactly the rest is there after a restart.
func TestOrders(t *testing.T) {
	harness.Parallel(t)
	number := drill.Pick(0, 3000, 200_000)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	o := &orders{t, p.Client(), number}

	// As long as TTL is off nothing dies, however long loading and reading back may take here.
	o.setTTL("off")
	pipe, orders := io.Pipe()
	go func() { orders.CloseWithError(o.writeTo(orders)) }()
	if out, _ := p.CLIWith(pipe, "--pipe"); !strings.Contains(out, fmt.Sprintf("errors: 0, replies: %d", number)) {
		t.Fatalf("redis-cli --pipe: %s", out)
	}
	o.check(shortOrders, defaultOrders, longOrders)

	// The clocks of the short ones start anew. They die one by one once TTL is on.
	o.touch(shortOrders)
	o.setTTL("-1")
	counted := number
	harness.WaitFor(t, "the short orders to die", func() bool {
		n := o.count()
		if n > counted || n < o.share(defaultOrders, longOrders) {
			t.Fatalf("%d orders are counted after %d", n, counted)
		}
		counted = n
		return n == o.share(defaultOrders, longOrders)
	})
	o.check(defaultOrders, longOrders)

	// The orders without a ttl were written more than a second ago.
	o.setTTL("1")
	if n := o.count(); n != o.share(longOrders) {
		t.Errorf("%d orders live just after the default was changed, want %d", n, o.share(longOrders))
	}

	p.Terminate()
	p = harness.Start(t, p.Dir)
	o.client = p.Client()
	o.check(longOrders)

	// The dead stay dead when nothing kills any more, and after a crash.
	o.setTTL("off")
	o.check(longOrders)
	p.Signal(syscall.SIGKILL)
	p.Wait()
	o.client = harness.Start(t, p.Dir).Client()
	o.check(longOrders)
}

// orders are the orders in a server.
type orders struct {
	t      *testing.T
	client *redis.Client
	number int
}

// writeTo writes the commands that load all orders.
func (o *orders) writeTo(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<20)
	for n := range o.number {
		id, doc := orderID(n), order(n)
		fmt.Fprintf(b, "*4\r\n$7\r\nDOC.PUT\r\n$6\r\norders\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(id), id, len(doc), doc)
	}
	return b.Flush()
}

func (o *orders) setTTL(def string) {
	o.t.Helper()
	drill.Check(o.t, o.client.Do(o.t.Context(), "CONTAINER.SET", "orders", "TTL", def).Err())
}

func (o *orders) count() int {
	o.t.Helper()
	n, err := o.client.Do(o.t.Context(), "DOC.COUNT", "orders").Int()
	drill.Check(o.t, err)
	return n
}

// share is how many orders there are in the given thirds.
func (o *orders) share(living ...int) (n int) {
	for _, third := range living {
		n += (o.number - third + thirds - 1) / thirds
	}
	return n
}

// check reads all orders and lists the container: exactly those of the given thirds are there, byte
// for byte.
func (o *orders) check(living ...int) {
	o.t.Helper()
	var lives [thirds]bool
	for _, third := range living {
		lives[third] = true
	}
	ctx := o.t.Context()
	replies := make([]*redis.Cmd, ordersPerPipeline)
	for first := 0; first < o.number; first += ordersPerPipeline {
		pipe := o.client.Pipeline()
		for i := range replies {
			replies[i] = pipe.Do(ctx, "DOC.GET", "orders", orderID(first+i))
		}
		_, _ = pipe.Exec(ctx) // each reply is looked at
		for i, reply := range replies {
			got, err := reply.Text()
			switch n := first + i; {
			case lives[n%thirds] && (err != nil || got != order(n)):
				o.t.Fatalf("order %d is\n%s (%v), want\n%s", n, got, err, order(n))
			case !lives[n%thirds] && err != redis.Nil:
				o.t.Fatalf("order %d should be dead and is %s (%v)", n, got, err)
			}
		}
	}
	if n := o.count(); n != o.share(living...) {
		o.t.Fatalf("%d orders are counted, want %d", n, o.share(living...))
	}
	o.checkList(lives)
}

// checkList lists the container: it gives each order of the living thirds once, and no other.
func (o *orders) checkList(lives [thirds]bool) {
	o.t.Helper()
	listed := make(map[string]bool)
	for cursor := any("0"); ; {
		page, err := o.client.Do(o.t.Context(), "DOC.SCAN", "orders", cursor, "COUNT", 5000).Slice()
		drill.Check(o.t, err)
		for _, id := range page[1].([]any) {
			if listed[id.(string)] {
				o.t.Fatalf("order %s is listed twice", id)
			}
			listed[id.(string)] = true
		}
		if cursor = page[0]; cursor == "0" {
			break
		}
	}
	for n := range o.number {
		if id := orderID(n); listed[id] != lives[n%thirds] {
			o.t.Fatalf("order %s listed: %v, lives: %v", id, listed[id], lives[n%thirds])
		}
	}
}

// touch restarts the clocks of a third.
func (o *orders) touch(third int) {
	o.t.Helper()
	for first := third; first < o.number; first += thirds * ordersPerPipeline {
		touch := []any{"DOC.TOUCH", "orders"}
		for n := first; n < o.number && n < first+thirds*ordersPerPipeline; n += thirds {
			touch = append(touch, orderID(n))
		}
		if n, err := o.client.Do(o.t.Context(), touch...).Int(); err != nil || n != len(touch)-2 {
			o.t.Fatalf("%d of %d orders touched, %v", n, len(touch)-2, err)
		}
	}
}

// orderID is the id under which an order is stored.
func orderID(n int) string {
	return fmt.Sprintf("order:%c%06d", 'A'+n%7, n)
}

var (
	customers = []string{"Ada Lovelace", "José Ñandú", "Zoë Brontë", "山田 太郎", "Мария Иванова", "O\u2019Neill & Sons", "أحمد علي", "Jürgen Groß 🚲"}
	streets   = []string{"12 High Street", "Straße des 17. Juni 135", "1-1-2 大手町", "ул. Ленина, д. 5", "Apt. \\\"B\\\", 9\\/11 Rue de l'Église", "C:\\\\Temp\\t3"}
	articles  = []string{"tea", "café crème", "bolt M8×40", "ノート", "\\u00e9clair", "USB-C cable (2 m)", "pâté \\ud83e\\udd86", "книга"}
	notes     = []string{"leave at the door", "¡Cuidado! frágil", "gift 🎁: write \\\"Happy birthday\\\" on the card", "ring twice\\r\\nthen wait", "{\\\"ttl\\\":1}"}
	states    = []string{"new", "paid", "packed", "shipped", "returned"}
)

// order makes an order: always the same for a number, and as different from each other as those of
// many programs that write JSON in their own ways. It has 150 to 900 bytes.
func order(n int) string {
	r := rand.New(rand.NewPCG(2, uint64(n)))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	colon, comma := ":", ","
	switch r.IntN(4) {
	case 0:
		colon, comma = ": ", ", "
	case 1:
		colon, comma = " : ", ",\n  "
	}
	member := func(name, value string) string { return `"` + name + `"` + colon + value }
	quote := func(s string) string { return `"` + s + `"` }
	at := time.Unix(1_600_000_000+r.Int64N(200_000_000), r.Int64N(1e9)).UTC()

	items := make([]string, 1+r.IntN(1+r.IntN(5)))
	for i := range items {
		price := [...]string{
			fmt.Sprintf("%d.%02d", r.IntN(500), r.IntN(100)), fmt.Sprint(r.IntN(5000)), fmt.Sprintf("%.3e", r.Float64()*1000), fmt.Sprintf("%d.50", r.IntN(9)),
		}[r.IntN(4)]
		items[i] = "{" + strings.Join([]string{
			member("sku", quote(fmt.Sprintf("%08X", r.Uint32()))), member("name", quote(pick(articles))),
			member("quantity", fmt.Sprint(1+r.IntN(20))), member("price", price),
		}, comma) + "}"
	}
	customer := []string{member("id", fmt.Sprint(r.IntN(1_000_000))), member("name", quote(pick(customers)))}
	if r.IntN(2) == 0 {
		customer = append(customer, member("address", "{"+member("street", quote(pick(streets)))+comma+member("zip", quote(fmt.Sprintf("%05d", r.IntN(100_000))))+"}"))
	}
	if r.IntN(8) == 0 {
		customer = append(customer, member("ttl", "1")) // not at the root: does not count
	}
	members := []string{
		member("number", fmt.Sprint(n)),
		member("customer", "{"+strings.Join(customer, comma)+"}"),
		member("items", "["+strings.Join(items, comma)+"]"),
		member("created", quote(at.Format([...]string{time.RFC3339, time.RFC3339Nano, time.DateOnly, time.RFC1123Z}[r.IntN(4)]))),
		member("state", quote(pick(states))),
	}
	for _, extra := range []string{
		member("note", quote(pick(notes))), member("paid", fmt.Sprint(r.IntN(2) == 0)), member("discount", fmt.Sprintf("-%d.%d", r.IntN(20), r.IntN(10))),
		member("coupon", "null"), member("tags", "[]"), member("TTL", "1"), member("due", fmt.Sprint(at.UnixMilli()+86_400_000)),
	} {
		if r.IntN(3) == 0 {
			members = append(members, extra)
		}
	}
	if ttl := orderTTL(n, r); ttl != "" {
		members = append(members, member("ttl", ttl))
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, comma) + "}"
}

// orderTTL is an order's own ttl as JSON; empty if it has none.
func orderTTL(n int, r *rand.Rand) string {
	switch n % thirds {
	case shortOrders:
		return [...]string{"1", "2", "2.0", "3", "3e0", "30e-1"}[r.IntN(6)]
	case longOrders:
		return [...]string{"-1", "86400", "2592000.0", "2147483647", "3.1536e7"}[r.IntN(5)]
	}
	if r.IntN(10) == 0 {
		return "null"
	}
	return ""
}

// TestOrdersAreRealistic holds the orders to what the test of them needs.
func TestOrdersAreRealistic(t *testing.T) {
	t.Parallel()
	number := drill.Pick(500, 2000, 200_000)
	least, most, total := 1<<30, 0, 0
	for n := range number {
		doc := order(n)
		var parsed struct {
			Number   *int
			Customer map[string]any
			Items    []map[string]any
			Created  string
		}
		if err := json.Unmarshal([]byte(doc), &parsed); err != nil || parsed.Number == nil || *parsed.Number != n || len(parsed.Customer) < 2 || len(parsed.Items) == 0 || parsed.Created == "" {
			t.Fatalf("order %d is %s: %v", n, doc, err)
		}
		if doc != order(n) {
			t.Fatalf("order %d is another the second time", n)
		}
		least, most, total = min(least, len(doc)), max(most, len(doc)), total+len(doc)
	}
	if least < 150 || most > 900 {
		t.Errorf("orders have %d to %d bytes, want 150 to 900", least, most)
	}
	t.Logf("orders have %d to %d bytes, %d on average", least, most, total/number)
}
