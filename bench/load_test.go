package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestReadReply(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want reply
		fail string // part of the error
	}{
		{"+OK\r\n", reply{'+', 0}, ""},
		{":-2\r\n", reply{':', -2}, ""},
		{"$5\r\nab\r\nc\r\n", reply{'$', 5}, ""},
		{"$0\r\n\r\n", reply{'$', 0}, ""},
		{"$-1\r\n", reply{'$', -1}, ""},
		{"-ERR no\r\n", reply{}, "ERR no"},
		{"*1\r\n:1\r\n", reply{}, "unexpected type"},
		{":x\r\n", reply{}, "reply"},
		{"\r\n", reply{}, "reply"},
		{"$5\r\nab", reply{}, "EOF"},
		{"", reply{}, "EOF"},
	} {
		in := bufio.NewReader(strings.NewReader(tt.in + "+NEXT\r\n"))
		if tt.fail == "EOF" {
			in = bufio.NewReader(strings.NewReader(tt.in))
		}
		got, err := readReply(in)
		if (err != nil) != (tt.fail != "") || err != nil && !strings.Contains(err.Error(), tt.fail) || err == nil && got != tt.want {
			t.Errorf("%q: %v, %v; want %v, error %q", tt.in, got, err, tt.want, tt.fail)
		}
		if rest, _ := in.ReadString('\n'); tt.fail == "" && rest != "+NEXT\r\n" {
			t.Errorf("%q: it left %q", tt.in, rest)
		}
	}
}

func TestAppendCommand(t *testing.T) {
	got := string(appendCommand([]byte("before "), "SET", "é", ""))
	if want := "before *3\r\n$3\r\nSET\r\n$2\r\né\r\n$0\r\n\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// answering starts a server that takes lines and answers each as it is told. Answers of a connection
// are sent in order.
func answering(t *testing.T, answer func(line string) string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					if _, err := conn.Write([]byte(answer(lines.Text()))); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func numbered(b []byte, i int) []byte { return append(strconv.AppendInt(b, int64(i), 10), '\n') }

func TestPipelined(t *testing.T) {
	addr := answering(t, func(line string) string { return ":" + line + "\r\n" })
	const n = 1234
	seen := make([]int, n)
	err := pipelined(t.Context(), addr, n, 0, numbered, func(i int, r reply) error {
		if r.n != int64(i) {
			t.Errorf("command %d has the reply of %d", i, r.n)
		}
		seen[i]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, times := range seen {
		if times != 1 {
			t.Errorf("command %d was answered %d times", i, times)
		}
	}
}

func TestPipelinedError(t *testing.T) {
	addr := answering(t, func(line string) string {
		if line == "700" {
			return "-ERR seven hundred\r\n"
		}
		return "+OK\r\n"
	})
	if err := pipelined(t.Context(), addr, 5000, 0, numbered, nil); err == nil || !strings.Contains(err.Error(), "seven hundred") {
		t.Errorf("error %v", err)
	}
}

func oneLine(*rand.Rand) request {
	return func(b []byte, _ *rand.Rand) []byte { return append(b, "x\n"...) }
}

// TestOpenLoop has a server that answers nothing before it has had a number of requests. A generator
// that waited for replies would wait for ever. One that counted from the sending of a delayed
// request would not see for how long the first has waited.
func TestOpenLoop(t *testing.T) {
	const held = 100
	had := 0
	var first time.Time
	var heldFor time.Duration
	done := make(chan struct{})
	addr := answering(t, func(string) string {
		had++
		switch {
		case had == 1:
			first = time.Now()
			return ""
		case had < held:
			return ""
		case had == held:
			heldFor = time.Since(first)
			close(done)
			return strings.Repeat("+OK\r\n", held)
		}
		return "+OK\r\n"
	})
	p, err := openLoop(t.Context(), addr, 1, 2000, done, oneLine)
	if err != nil {
		t.Fatal(err)
	}
	if p.latency.TotalCount() != p.lateness.TotalCount() || p.latency.TotalCount() < held {
		t.Errorf("%d replies to %d requests", p.latency.TotalCount(), p.lateness.TotalCount())
	}
	if slowest := time.Duration(p.latency.Max()); slowest < heldFor-heldFor/500 {
		t.Errorf("the slowest request took %v, but the first was held for %v", slowest, heldFor)
	}
}

func TestClosedLoop(t *testing.T) {
	var had atomic.Int64
	addr := answering(t, func(string) string { had.Add(1); return "+OK\r\n" })
	const during = 50 * time.Millisecond
	got, err := closedLoop(t.Context(), addr, 3, during, oneLine)
	if err != nil {
		t.Fatal(err)
	}
	if most := float64(had.Load()) / during.Seconds(); got <= 0 || got > most {
		t.Errorf("%v a second, but there were no more than %v", got, most)
	}
	refusing := answering(t, func(string) string { return "-ERR no\r\n" })
	if _, err := closedLoop(t.Context(), refusing, 3, during, oneLine); err == nil {
		t.Error("refused requests count as answered")
	}
}

func TestPopularity(t *testing.T) {
	const n, draws = 1000, 100_000
	p := newZipfIDs(rand.New(rand.NewPCG(1, 1)), n)
	counts := make([]int, n)
	most, firstHalf := 0, 0
	for range draws {
		i := p.next()
		counts[i]++
		most = max(most, counts[i])
		if i < n/2 {
			firstHalf++
		}
	}
	if most < draws/20 || most > draws/4 {
		t.Errorf("the most popular of %d has %d of %d draws", n, most, draws)
	}
	if firstHalf < draws/4 || firstHalf > draws*3/4 {
		t.Errorf("%d of %d draws are of the first half: the popular are not spread", firstHalf, draws)
	}
}

func TestDocuments(t *testing.T) {
	for _, i := range []int{0, 1, 99_999, 9_999_999} {
		for _, ttl := range []int{-1, 1, 86400} {
			text := body(i, ttl)
			var doc struct {
				ID  int  `json:"id"`
				TTL *int `json:"ttl"`
			}
			if err := json.Unmarshal([]byte(text), &doc); err != nil || len(text) != bodySize || doc.ID != i {
				t.Errorf("%d bytes, error %v: %s", len(text), err, text)
			}
			if (doc.TTL == nil) != (ttl < 0) || doc.TTL != nil && *doc.TTL != ttl {
				t.Errorf("ttl %d: %s", ttl, text)
			}
		}
	}
	mark := strings.Replace(anyID, "__rand_int__", "000000000123", 1)
	if got := id(set, 123); got != mark {
		t.Errorf("id %s, redis-benchmark writes %s", got, mark)
	}
}
