package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
	"mayfly/test/drill"
)

func TestRender(t *testing.T) {
	t.Parallel()
	nested := engine.Array(engine.Map(engine.Bulk("a"), engine.Set(engine.Integer(1))), engine.Null)
	for _, c := range []struct {
		reply        engine.Reply
		resp2, resp3 string
	}{
		{engine.Reply{}, "", ""},
		{engine.OK, "+OK\r\n", "+OK\r\n"},
		{engine.Status("a\r\nb"), "+a  b\r\n", "+a  b\r\n"},
		{engine.Fail(engine.Error("WRONGTYPE x\n:1")), "-WRONGTYPE x :1\r\n", "-WRONGTYPE x :1\r\n"},
		{engine.Integer(math.MinInt64), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
		{engine.Bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"},
		{engine.Bulk("a\r\n\x00"), "$4\r\na\r\n\x00\r\n", "$4\r\na\r\n\x00\r\n"},
		{engine.Null, "$-1\r\n", "_\r\n"},
		{engine.NullArray, "*-1\r\n", "_\r\n"},
		{engine.Reply{Kind: engine.KindProtocol, Int: 2, Elems: []engine.Reply{engine.Null}}, "$-1\r\n", "$-1\r\n"},
		{engine.Reply{Kind: engine.KindProtocol, Int: 3, Elems: []engine.Reply{engine.Map(engine.Null, engine.Null)}}, "%1\r\n_\r\n_\r\n", "%1\r\n_\r\n_\r\n"},
		{engine.Array(), "*0\r\n", "*0\r\n"},
		{engine.Map(engine.Bulk("k"), engine.Integer(1)), "*2\r\n$1\r\nk\r\n:1\r\n", "%1\r\n$1\r\nk\r\n:1\r\n"},
		{engine.Set(engine.Integer(1)), "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{engine.Reply{Kind: engine.KindPush, Elems: []engine.Reply{engine.Bulk("m")}}, "*1\r\n$1\r\nm\r\n", ">1\r\n$1\r\nm\r\n"},
		{engine.Reply{Kind: engine.KindBool, Int: 1}, ":1\r\n", "#t\r\n"},
		{engine.Reply{Kind: engine.KindBool}, ":0\r\n", "#f\r\n"},
		{engine.Reply{Kind: engine.KindElement, Str: `{"a":1}`}, "$9\r\n[{\"a\":1}]\r\n", "$9\r\n[{\"a\":1}]\r\n"},
		{engine.Verbatim("some text"), "$9\r\nsome text\r\n", "=13\r\ntxt:some text\r\n"},
		{engine.Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"},
		{engine.Double(-0.1), "$20\r\n-0.10000000000000001\r\n", ",-0.10000000000000001\r\n"},
		{engine.Double(3), "$1\r\n3\r\n", ",3\r\n"},
		{engine.Double(1e16), "$17\r\n10000000000000000\r\n", ",10000000000000000\r\n"},
		{engine.Double(1e17), "$5\r\n1e+17\r\n", ",1e+17\r\n"},
		{engine.Double(0.00001), "$22\r\n1.0000000000000001e-05\r\n", ",1.0000000000000001e-05\r\n"},
		{engine.Double(math.Inf(1)), "$3\r\ninf\r\n", ",inf\r\n"},
		{engine.Double(math.Inf(-1)), "$4\r\n-inf\r\n", ",-inf\r\n"},
		{engine.Double(math.NaN()), "$3\r\nnan\r\n", ",nan\r\n"},
		{nested, "*2\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n$-1\r\n", "*2\r\n%1\r\n$1\r\na\r\n~1\r\n:1\r\n_\r\n"},
	} {
		if got := string(AppendReply(nil, 2, &c.reply)); got != c.resp2 {
			t.Errorf("%+v in RESP2: %q", c.reply, got)
		}
		if got := string(AppendReply(nil, 3, &c.reply)); got != c.resp3 {
			t.Errorf("%+v in RESP3: %q", c.reply, got)
		}
	}
}

// FuzzRender renders replies of arbitrary bytes and reads them back: no text makes a reply look like
// another one.
func FuzzRender(f *testing.F) {
	f.Add("OK", "value\r\n:1\r\n", int64(-1), 1.5)
	f.Add("ERR a\nb\r", "", int64(math.MaxInt64), 1e-300)
	f.Fuzz(func(t *testing.T, line, text string, n int64, d float64) {
		reply := engine.Array(
			engine.Status(line),
			engine.Reply{Kind: engine.KindError, Str: line},
			engine.Map(engine.Bulk(text), engine.Integer(n)),
			engine.Set(engine.Double(d), engine.Null),
			engine.Verbatim(text),
			engine.Reply{Kind: engine.KindBool, Int: n & 1},
		)
		flat := strings.NewReplacer("\r", " ", "\n", " ").Replace(line)
		want := []any{flat, fmt.Errorf("%s", flat), []any{text, n}, []any{d, nil}, "txt:" + text, n&1 == 1}
		got, rest := readReply(t, string(AppendReply(nil, 3, &reply)))
		if fmt.Sprint(got) != fmt.Sprint(want) || rest != "" {
			t.Fatalf("RESP3: wrote %v, read %v and %q", want, got, rest)
		}
		number := string(redisfmt.AppendDouble(nil, d))
		want = []any{flat, fmt.Errorf("%s", flat), []any{text, n}, []any{number, nil}, text, n & 1}
		got, rest = readReply(t, string(AppendReply(nil, 2, &reply)))
		if fmt.Sprint(got) != fmt.Sprint(want) || rest != "" {
			t.Fatalf("RESP2: wrote %v, read %v and %q", want, got, rest)
		}
		if back, err := strconv.ParseFloat(number, 64); err != nil || back != d && !math.IsNaN(d) {
			t.Fatalf("%g became %s", d, number)
		}
	})
}

// readReply reads one reply: aggregates as []any, errors as error.
func readReply(t testing.TB, s string) (value any, rest string) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" {
		t.Fatalf("no reply in %q", s)
	}
	n, _ := strconv.Atoi(line[1:])
	list := func(n int) (any, string) {
		elems := make([]any, n)
		for i := range elems {
			elems[i], rest = readReply(t, rest)
		}
		return elems, rest
	}
	switch line[0] {
	case '+':
		return line[1:], rest
	case '-':
		return fmt.Errorf("%s", line[1:]), rest
	case ':':
		n, err := strconv.ParseInt(line[1:], 10, 64)
		drill.Check(t, err)
		return n, rest
	case ',':
		d, err := strconv.ParseFloat(line[1:], 64)
		drill.Check(t, err)
		return d, rest
	case '#':
		return line == "#t", rest
	case '_':
		return nil, rest
	case '$', '=':
		if n < 0 {
			return nil, rest
		}
		if len(rest) < n+2 || rest[n:n+2] != "\r\n" {
			t.Fatalf("a string of %d bytes is not in %q", n, rest)
		}
		return rest[:n], rest[n+2:]
	case '*', '~', '>':
		if n < 0 {
			return nil, rest
		}
		return list(n)
	case '%':
		return list(2 * n)
	}
	t.Fatalf("unknown kind of reply %q", line)
	return nil, ""
}

func BenchmarkRender(b *testing.B) {
	for _, c := range []struct {
		name  string
		reply engine.Reply
	}{
		{"OK", engine.OK},
		{"Bulk285", engine.Bulk(strings.Repeat("x", 285))},
		{"Map", engine.Map(engine.Bulk("ts"), engine.Integer(1), engine.Bulk("ttl"), engine.Double(1.5))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = AppendReply(dst[:0], 3, &c.reply)
			}
		})
	}
}

// A reply that is sent in pieces is the same as one that is rendered at once, in pieces of bounded size.
func TestStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 1<<16)
	many := make([]engine.Reply, 50_000)
	for i := range many {
		many[i] = engine.Integer(7)
	}
	text := engine.Reply{Kind: engine.KindText, Text: &engine.Text{Size: len(long), Render: func(send func([]byte) error) error {
		for piece := range slices.Chunk([]byte(long), pieceSize) {
			if err := send(piece); err != nil {
				return err
			}
		}
		return nil
	}}}
	for _, reply := range []engine.Reply{
		text, engine.Array(engine.Null, text, engine.OK), engine.OK, {}, engine.Bulk(long), engine.Verbatim(long), {Kind: engine.KindElement, Str: long}, engine.Array(many...),
		engine.Map(engine.Bulk("a"), engine.Verbatim(long), engine.Bulk("b"), engine.Array(engine.Bulk(long), engine.Null)),
		{Kind: engine.KindSeveral, Elems: []engine.Reply{engine.Bulk(long), engine.Integer(1)}},
	} {
		for _, proto := range []int{2, 3} {
			var got []byte
			err := Stream(nil, proto, &reply, func(piece []byte) error {
				if len(piece) == 0 || len(piece) > chunkSize {
					t.Errorf("a piece of %d bytes", len(piece))
				}
				got = append(got, piece...)
				return nil
			})
			if want := AppendReply(nil, proto, &reply); err != nil || !bytes.Equal(got, want) {
				t.Errorf("kind %d in RESP%d: %d bytes, want %d (%v)", reply.Kind, proto, len(got), len(want), err)
			}
		}
	}
}

// Elements are rendered as the strings that they have.
func TestElements(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", pieceSize)
	type element struct{ field, end, value string }
	var bodies []string
	var elems []element
	for _, some := range [][]element{{{"a", "", "1"}, {"", "+1767225600000 ", "b:2+3 "}}, nil, {{"+1 ", "", ""}}, {{"x", "", long}, {long, "+1 ", ""}}} {
		body := ""
		for _, e := range some {
			body += fmt.Sprintf("%d:%s%s%d:%s", len(e.field), e.field, e.end, len(e.value), e.value)
		}
		bodies, elems = append(bodies, body), append(elems, some...)
	}
	for _, which := range []int{engine.Fields, engine.Values, engine.Fields | engine.Values} {
		var list []engine.Reply
		for _, e := range elems {
			if which&engine.Fields != 0 {
				list = append(list, engine.Bulk(e.field))
			}
			if which&engine.Values != 0 {
				list = append(list, engine.Bulk(e.value))
			}
		}
		reply := engine.Elements(engine.KindMap, len(list), which, bodies)
		plain := engine.Map(list...)
		for _, proto := range []int{2, 3} {
			want, sent := AppendReply(nil, proto, &plain), []byte(nil)
			if got := AppendReply(nil, proto, &reply); !bytes.Equal(got, want) {
				t.Errorf("strings %d in RESP%d: %.300q, want %.300q", which, proto, got, want)
			}
			err := Stream(nil, proto, &reply, func(piece []byte) error {
				sent = append(sent, piece...)
				return nil
			})
			if err != nil || !bytes.Equal(sent, want) {
				t.Errorf("strings %d in RESP%d are sent as %.300q, want %.300q: %v", which, proto, sent, want, err)
			}
		}
	}
}

// Stream ends with the first error.
func TestStreamFails(t *testing.T) {
	t.Parallel()
	failure, calls := errors.New("broken"), 0
	reply := engine.Array(engine.Bulk(strings.Repeat("x", 2*chunkSize)), engine.Bulk("y"))
	err := Stream(nil, 2, &reply, func([]byte) error {
		calls++
		return failure
	})
	if err != failure || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}
