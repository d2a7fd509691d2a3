package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/anishathalye/porcupine"
)

// Histories of concurrent transactions must be linearizable, too: each takes effect at one time. Under
// WATCH no other write comes between the read and the EXEC.

// registers are the keys of the transactions, in several partitions.
var registers = [...]string{"reg-a", "reg-b", "reg-c"}

// txn is one transaction of a history: steps in order, or a compare-and-set under WATCH.
type txn struct {
	steps []txnStep
	watch bool // read register 0 of steps, and write it and the others if it has not changed
}

type txnStep struct {
	register int
	add      int64 // 0: read
}

func (d txn) String() string { return fmt.Sprintf("%+v", d.steps) }

// transactions is the model. A state is the values of the registers, an output the replies as text.
var transactions = porcupine.Model{
	Init: func() any { return [len(registers)]int64{} },
	Step: func(state, input, output any) (bool, any) {
		values, d := state.([len(registers)]int64), input.(txn)
		if output == "(nil)" {
			return d.watch, values
		}
		if d.watch {
			read, _, _ := strings.Cut(output.(string), ";")
			return read == strconv.FormatInt(values[d.steps[0].register], 10), d.run(&values, nil)
		}
		var replies []string
		next := d.run(&values, &replies)
		return strings.Join(replies, ",") == output, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " -> ", output) },
}

// run applies the steps to the values and appends the replies.
func (d txn) run(values *[len(registers)]int64, replies *[]string) any {
	for _, s := range d.steps {
		values[s.register] += s.add
		if replies != nil {
			*replies = append(*replies, strconv.FormatInt(values[s.register], 10))
		}
	}
	return *values
}

// perform runs a transaction on a session and returns its output.
func (d txn) perform(w *harness, s *engine.Session) string {
	do := func(args ...string) engine.Reply { return w.engine.Execute(s, args).Reply }
	read := ""
	if d.watch {
		do("WATCH", registers[d.steps[0].register])
		read = do("GET", registers[d.steps[0].register]).Str
	}
	do("MULTI")
	for _, step := range d.steps {
		if step.add == 0 {
			do("GET", registers[step.register])
		} else {
			do("INCRBY", registers[step.register], strconv.FormatInt(step.add, 10))
		}
	}
	reply := do("EXEC")
	if reply.Kind == engine.KindNullArray {
		return "(nil)"
	}
	if d.watch {
		return read + ";" + strconv.Itoa(len(reply.Elems))
	}
	var replies []string
	for _, e := range reply.Elems {
		if e.Kind == engine.KindInteger {
			e.Str = strconv.FormatInt(e.Int, 10)
		}
		replies = append(replies, e.Str)
	}
	return strings.Join(replies, ",")
}

// recordTxns runs transactions of concurrent clients and records their outputs.
func recordTxns(w *harness, seed uint64, clients, steps int) (all []porcupine.Operation) {
	for _, key := range registers {
		w.do(1, "SET", key, "0")
	}
	var tick atomic.Int64
	var mu sync.Mutex // protects all
	var wg sync.WaitGroup
	for i := range clients {
		r, s := rand.New(rand.NewPCG(seed, uint64(i))), w.session(i+1)
		wg.Go(func() {
			for range steps {
				d := txn{watch: r.IntN(3) == 0}
				for range 1 + r.IntN(4) {
					d.steps = append(d.steps, txnStep{r.IntN(len(registers)), r.Int64N(4)})
				}
				op := porcupine.Operation{ClientId: i, Input: d, Call: tick.Add(1)}
				op.Output = d.perform(w, s)
				op.Return = tick.Add(1)
				mu.Lock()
				all = append(all, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

func TestLinearizableTransactions(t *testing.T) {
	t.Parallel()
	failed := 0
	first := drill.Seed(t)
	for seed := range drill.Pick[uint64](2, 4, 400) {
		seed += first
		history := recordTxns(newHarness(t), seed, 4, 60)
		for _, op := range history {
			if op.Output == "(nil)" {
				failed++
			}
		}
		if result, _ := porcupine.CheckOperationsVerbose(transactions, history, time.Minute); result != porcupine.Ok {
			t.Fatalf("seed %d: the history of %d transactions is not linearizable: %v", seed, len(history), result)
		}
	}
	t.Logf("%d transactions were aborted by a watch", failed)
}

// TestTransactionCheckerRejects: the checker rejects a history in which a transaction saw half of another.
func TestTransactionCheckerRejects(t *testing.T) {
	t.Parallel()
	history := recordTxns(newHarness(t), 1, 4, 60)
	for i, op := range history {
		if d := op.Input.(txn); !d.watch && d.steps[0].add == 0 && i > len(history)/2 {
			history[i].Output = "-1" + strings.TrimLeft(op.Output.(string), "0123456789")
			break
		}
	}
	if porcupine.CheckOperations(transactions, history) {
		t.Fatal("a reply that no server could have given was not noticed")
	}
}
