package resp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/tidwall/redcon"
)

// testTimeout bounds work that takes milliseconds.
const testTimeout = 30 * time.Second

var must = drill.Check

// wide are limits that no ordinary command meets.
var wide = Limits{Bulk: 16 << 20, Command: 64 << 20}

// guardRun feeds data to a guard in pieces of at most size bytes. It returns the commands that come out
// and the error that ended it. redcon's parser must find the same arguments in each array.
func guardRun(t testing.TB, lim Limits, data []byte, size int) (commands [][]string, err error) {
	t.Helper()
	g := NewGuard(nil, LargeBuffer)
	defer g.Close()
	var p Parser
	for {
		for {
			start, fresh := g.start, g.args == 0
			command, err := p.Next(&g, lim)
			if err != nil {
				return commands, err
			}
			if command.Args == nil {
				break
			}
			list := clone(command.Args)
			if command.End != g.start {
				t.Fatalf("what follows %.100q is said to begin at %d, and does at %d", list, command.End, g.start)
			}
			if frame := g.buf.bytes[command.Start:command.End]; frame[0] == '*' {
				if args := redconArgs(t, frame); !slices.Equal(list, args) {
					t.Fatalf("%.100q is split into %.100q, by redcon into %.100q", frame, list, args)
				}
				if command.Alone && fresh && !lim.Unauthenticated && start == command.Start && len(list) <= maxOnePass {
					t.Fatalf("%.100q is not taken in one pass", frame)
				}
			}
			g.Rewind(command.Start)
			again, err := p.Next(&g, lim)
			if err != nil || !slices.Equal(again.Args, list) || again.Start != command.Start || again.End != command.End {
				t.Fatalf("rewound, %.100q is %.100q (%v)", list, again.Args, err)
			}
			commands = append(commands, list)
			p.Forget(0)
		}
		if len(data) == 0 {
			return commands, nil
		}
		n, err := feed(&g, data[:min(size, len(data))])
		must(t, err)
		data = data[n:]
	}
}

// redconArgs are the arguments that redcon's parser finds in a frame, which must be whole.
func redconArgs(t testing.TB, frame []byte) (list []string) {
	t.Helper()
	whole, args, kind, rest, err := redcon.ReadNextCommand(frame, nil)
	if err != nil || !whole || kind != redcon.Redis || len(rest) > 0 || len(args) == 0 {
		t.Fatalf("redcon makes of %.100q: whole %v, %d args, kind %v, rest %.100q, error %v", frame, whole, len(args), kind, rest, err)
	}
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}

// clone copies arguments, which are views.
func clone(args []string) []string {
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = strings.Clone(arg)
	}
	return list
}

// nextInTwoPasses is Parser.Next of a guard that takes nothing in one pass.
func nextInTwoPasses(p *Parser, g *Guard, lim Limits) ([]string, error) {
	frame, err := g.next(lim)
	if frame == nil || err != nil {
		return nil, err
	}
	from := p.Mark()
	if frame[0] == '*' {
		err = p.split(frame)
	} else {
		err = p.splitInline(frame)
	}
	return p.args[from:], err
}

// checkedRun is guardRun at once, in two passes.
func checkedRun(t testing.TB, lim Limits, data []byte) (commands [][]string, err error) {
	t.Helper()
	g := NewGuard(nil, LargeBuffer)
	defer g.Close()
	var p Parser
	for {
		args, err := nextInTwoPasses(&p, &g, lim)
		switch {
		case err != nil:
			return commands, err
		case args != nil:
			commands = append(commands, clone(args))
			continue
		case len(data) == 0:
			return commands, nil
		}
		n, err := feed(&g, data)
		must(t, err)
		data = data[n:]
	}
}

// feed lets a guard read as much of data as it has room for, and returns how much that was.
func feed(g *Guard, data []byte) (int, error) {
	room, err := g.Room()
	if err != nil {
		return 0, err
	}
	n := copy(room, data)
	g.Filled(n)
	return n, nil
}

func TestGuard(t *testing.T) {
	t.Parallel()
	unauthenticated := wide
	unauthenticated.Unauthenticated = true
	small := Limits{Bulk: 100, Command: 250}
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name string
		lim  Limits
		in   string
		want string // the commands, | between them
		err  error
	}{
		{"command", wide, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "GET,k", nil},
		{"pipeline", wide, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", "PING|QUIT", nil},
		{"empty argument", wide, "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO,", nil},
		{"CR LF in an argument", wide, "*2\r\n$4\r\nECHO\r\n$4\r\n\r\n*1\r\n", "ECHO,\r\n*1", nil},
		{"incomplete", wide, "*2\r\n$3\r\nGET\r\n$1\r\nk\r", "", nil},
		{"nothing to do", wide, "*0\r\n*-1\r\n*-7\r\n\r\n\n  \r\nPING\r\n", "PING", nil},
		{"inline", wide, "PING\r\nSET a \"b c\"\nGET 'a'\r\n", "PING|SET,a,b c|GET,a", nil},
		{"inline between", wide, "*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "PING|PING|PING", nil},
		{"tile38 is inline", wide, "$4 PING\r\n", "$4,PING", nil},

		{"count overflows", wide, "*9223372036854775808\r\n", "", errMultibulkLength},
		{"count is huge", wide, "*9000000000000000000\r\n", "", errMultibulkLength},
		{"count is above the bound", wide, "*1048577\r\n", "", errMultibulkLength},
		{"count with a leading zero", wide, "*01\r\n", "", errMultibulkLength},
		{"count with a plus", wide, "*+1\r\n", "", errMultibulkLength},
		{"count is minus zero", wide, "*-0\r\n", "", errMultibulkLength},
		{"count is empty", wide, "*\r\n", "", errMultibulkLength},
		{"count is no number", wide, "*1x\r\n", "", errMultibulkLength},
		{"CR without LF", wide, "*1\rx", "", errMultibulkLength},
		{"LF without CR", wide, "*1\n$4\r\nPING\r\n", "", errMultibulkLength},
		{"length overflows", wide, "*1\r\n$9223372036854775807\r\n", "", ErrBulkLength},
		{"length is negative", wide, "*1\r\n$-1\r\n", "", ErrBulkLength},
		{"length is above the bound", small, "*1\r\n$101\r\n", "", ErrBulkLength},
		{"length is at the bound", small, "*1\r\n$100\r\n" + long[:100] + "\r\n", long[:100], nil},
		{"bulk goes on", wide, "*1\r\n$4\r\nPINGPONG", "", ErrBulkLength},
		{"command is too long", small, "*3\r\n$100\r\n" + long[:100] + "\r\n$100\r\n" + long[:100] + "\r\n$100\r\n", "", ErrCommandLength},
		{"no bulk", wide, "*1\r\nfoo\r\n", "", ProtocolError("expected '$', got 'f'")},
		{"no bulk but a byte that is no text", wide, "*1\r\n\xff", "", ProtocolError("expected '$', got '\xff'")},
		{"earlier commands count", wide, "PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n", "PING|PING", errMultibulkLength},
		{"unbalanced", wide, "SET a \"b\r\n", "", errUnbalancedQuotes},
		{"line without end", wide, strings.Repeat("x", maxInline+1), "", errInlineLength},
		{"line too long", wide, strings.Repeat("x", maxInline+1) + "\n", "", errInlineLength},

		{"unauthenticated command", unauthenticated, "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", "AUTH,x", nil},
		{"unauthenticated count", unauthenticated, "*11\r\n", "", errUnauthenticatedMultibulkLength},
		{"unauthenticated length", unauthenticated, "*1\r\n$16385\r\n", "", errUnauthenticatedBulkLength},
		{"unauthenticated large count", unauthenticated, "*2147483647\r\n", "", errUnauthenticatedMultibulkLength},
		{"unauthenticated huge count", unauthenticated, "*2147483648\r\n", "", errMultibulkLength},
		{"unauthenticated large length", unauthenticated, "*1\r\n$536870912\r\n", "", errUnauthenticatedBulkLength},
		{"unauthenticated huge length", unauthenticated, "*1\r\n$536870913\r\n", "", ErrBulkLength},
		{"unauthenticated line", unauthenticated, strings.Repeat("x", unauthenticatedInline+1), "", errInlineLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1 << 20} {
				commands, err := guardRun(t, c.lim, []byte(c.in), size)
				var lines []string
				for _, args := range commands {
					lines = append(lines, strings.Join(args, ","))
				}
				if got := strings.Join(lines, "|"); got != c.want || err != c.err {
					t.Errorf("in pieces of %d: got %q, error %v", size, got, err)
				}
			}
		})
	}
}

// Wherever a stream is cut, the same commands come out of it.
func TestGuardCutAnywhere(t *testing.T) {
	t.Parallel()
	stream := []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n{\"a\":\"\r\n*1\"}\r\nPING\r\n*0\r\n\r\n*1\r\n$4\r\nPING\r\nget 'k k'\n")
	want, err := guardRun(t, wide, stream, len(stream))
	if err != nil || len(want) != 4 {
		t.Fatalf("got %q, %v", want, err)
	}
	for cut := 1; cut < len(stream); cut++ {
		g := NewGuard(nil, LargeBuffer)
		var got []string
		for _, piece := range [][]byte{stream[:cut], stream[cut:]} {
			_, err := feed(&g, piece)
			must(t, err)
			for {
				command, err := g.next(wide)
				drill.Check(t, err)
				if command == nil {
					break
				}
				got = append(got, string(command))
			}
		}
		if len(got) != len(want) || g.HalfRead() {
			t.Errorf("cut at %d: got %q", cut, got)
		}
	}
}

// Hostile ways to send a command cost time in proportion to its length. Each of these takes milliseconds. It
// would take a minute if the guard began anew, or copied its buffer, with every packet.
func TestGuardTakesLinearTime(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	many := []byte("*80000\r\n" + strings.Repeat("$1\r\nx\r\n", 80_000))
	big := fmt.Appendf(nil, "*1\r\n$%d\r\n%s\r\n", 1<<20, bytes.Repeat([]byte{'x'}, 1<<20))
	nothing := bytes.Repeat([]byte("*0\r\n"), 1<<17)
	for _, c := range []struct {
		name     string
		data     []byte
		commands int
	}{{"arguments", many, 1}, {"length", big, 1}, {"nothing", nothing, 0}} {
		start := time.Now()
		commands, err := guardRun(t, wide, c.data, 1)
		if err != nil || len(commands) != c.commands {
			t.Errorf("%s: %d commands, error %v", c.name, len(commands), err)
		}
		if took := time.Since(start); took > testTimeout {
			t.Errorf("%s: took %v", c.name, took)
		}
	}
}

// The lists of many arguments are made once, not grown, and given up afterwards: to move or to clear them is
// work that nobody can interrupt.
func TestManyArgumentsAreListedOnce(t *testing.T) {
	const args = 10 * keptArgs
	command := append(fmt.Appendf(nil, "*%d\r\n", args), bytes.Repeat([]byte("$1\r\nx\r\n"), args)...)
	var p Parser
	allocations := testing.AllocsPerRun(10, func() {
		if err := p.split(command); err != nil || len(p.args) != args {
			t.Fatal(len(p.args), err)
		}
		p.Forget(0)
	})
	if allocations > 2 || p.args != nil || p.bulks != nil {
		t.Errorf("%v allocations; lists of %d and %d are kept", allocations, cap(p.args), cap(p.bulks))
	}
}

// A length that a client announces costs nothing. What it sends costs at most twice its size.
func TestGuardTakesMemoryForWhatArrives(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil, LargeBuffer)
	most := 0
	send := func(data []byte) {
		for len(data) > 0 {
			n, err := feed(&g, data)
			must(t, err)
			data = data[n:]
			if command, err := g.next(wide); err != nil {
				t.Fatal(err)
			} else if command != nil {
				return
			}
			g.Release()
			held := g.end - g.start
			if size := len(g.buf.bytes); size > 2*held+SmallBuffer {
				t.Fatalf("a buffer of %d bytes for %d that have arrived", size, held)
			} else {
				most = max(most, size)
			}
		}
	}
	send([]byte("*2\r\n$3\r\nGET\r\n$16000000\r\n"))
	send(bytes.Repeat([]byte{'x'}, 16_000_000))
	if most < 8<<20 {
		t.Fatalf("the buffer never grew beyond %d", most)
	}
	send([]byte("\r\n"))
	send([]byte("*2\r\n$3\r\nGET\r\n")) // in a small buffer again
	send([]byte("$1\r\nx\r\n"))
	if g.Release(); g.buf != nil {
		t.Error("a connection without anything half read keeps a buffer")
	}
}

func TestGuardChargesTheClient(t *testing.T) {
	t.Parallel()
	var memory engine.ClientMemoryLimit
	memory.SetLimit(4 << 20)
	open := func() Guard { return NewGuard(memory.Open(engine.NewSession(1, "", "", 0)), LargeBuffer) }
	send := func(g *Guard, size int) error {
		data := fmt.Appendf(nil, "*1\r\n$%d\r\n%s", 3<<20, bytes.Repeat([]byte{'x'}, size))
		for len(data) > 0 {
			n, err := feed(g, data)
			if err != nil {
				return err
			}
			data = data[n:]
			if _, err := g.next(wide); err != nil {
				return err
			}
		}
		g.Release()
		return nil
	}
	first, second := open(), open()
	drill.Check(t, send(&first, 2<<20))
	if held := first.memory.Size(); held < 2<<20 || held > 3<<20+64 {
		t.Errorf("a half-read command is charged with %d", held)
	}
	if err := send(&second, 3<<20); !errors.Is(err, ErrClientMemory) {
		t.Errorf("the second big Command: %v", err)
	}
	second.Close()
	first.Close()
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are lost", used)
	}
	third := open()
	if err := send(&third, 2<<20); err != nil {
		t.Errorf("after the first has gone: %v", err)
	}
	third.Close()

	// Many clients that have sent a little each.
	memory.SetLimit(1 << 20)
	refused := 0
	for range 20 {
		g := open()
		g.ahead = LargeBuffer
		drill.Check(t, send(&g, 100<<10))
		if _, err := g.Room(); err == ErrClientMemory {
			refused++
		} else if held := g.memory.Size(); held < 100<<10 {
			t.Errorf("%d bytes are charged", held)
		}
	}
	if refused+int(memory.Disconnected()) < 10 {
		t.Errorf("%d of 20 are refused, %d disconnected", refused, memory.Disconnected())
	}
}

func FuzzGuard(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n",
		"PING\r\nSET a \"b\\x41\\n\"\r\n",
		"*0\r\n*-1\r\n\r\n*1\r\n$0\r\n\r\n",
		"*1\r\n$9223372036854775807\r\n",
		"*9000000000000000000\r\n",
		"*1\r\nfoo\r\n",
		"$4\r\nPING\r\n",
		"*\x00", "$\x00", "\x00",
		"a a a a a a a a\n'b'\"c\"\n",
	} {
		f.Add([]byte(seed), uint8(3), false)
		f.Add([]byte(seed), uint8(1), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8, unauthenticated bool) {
		lim := Limits{Bulk: 1 << 10, Command: 4 << 10, Unauthenticated: unauthenticated}
		commands, err := guardRun(t, lim, data, int(size)+1)
		whole, wholeErr := guardRun(t, lim, data, len(data)+1)
		if !slices.EqualFunc(commands, whole, slices.Equal) || err != wholeErr {
			t.Fatalf("in pieces %q, %v; at once %q, %v", commands, err, whole, wholeErr)
		}
		checked, checkedErr := checkedRun(t, lim, data)
		if !slices.EqualFunc(checked, whole, slices.Equal) || checkedErr != wholeErr {
			t.Fatalf("in two passes %q, %v; in one %q, %v", checked, checkedErr, whole, wholeErr)
		}
	})
}

// BenchmarkGuard compares the two ways of a command that arrives whole: split in one pass, or checked by the
// guard and split by redcon. The first justifies [Guard.whole].
func BenchmarkGuard(b *testing.B) {
	const depth = 16
	one := fmt.Sprintf("*4\r\n$7\r\nDOC.PUT\r\n$6\r\norders\r\n$10\r\n1234567890\r\n$285\r\n%s\r\n", strings.Repeat("x", 285))
	packet := []byte(strings.Repeat(one, depth))
	for _, way := range []struct {
		name string
		next func(*Parser, *Guard, Limits) ([]string, error)
	}{
		{"OnePass", func(p *Parser, g *Guard, lim Limits) ([]string, error) {
			command, err := p.Next(g, lim)
			return command.Args, err
		}},
		{"TwoPasses", nextInTwoPasses},
	} {
		b.Run(way.name, func(b *testing.B) {
			g := NewGuard(nil, LargeBuffer)
			var p Parser
			b.SetBytes(int64(len(packet)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := feed(&g, packet)
				must(b, err)
				for range depth {
					if args, err := way.next(&p, &g, wide); err != nil || len(args) != 4 {
						b.Fatal(args, err)
					}
				}
				p.Forget(0)
				g.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/command")
		})
	}
}
