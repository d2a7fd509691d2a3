package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// TestLoad serves ordinary clients while many others are connected, some of which misbehave. They never
// finish a command, never say anything, or leave without a word. They take their replies a byte at a time, or
// ask for a gigabyte and do not read it. Memory stays bounded and the others are served. As a drill it
// connects 10,000 clients.
func TestLoad(t *testing.T) {
	harness.Parallel(t)
	const ordinary, requests, valueSize = 20, 100, 1 << 20
	number := drill.Pick(0, 200, 10_000)
	needFiles(t, number+200)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--maxclients", fmt.Sprint(number+ordinary+10))
	c := p.Client()
	drill.Check(t, c.Set(t.Context(), "big", strings.Repeat("x", valueSize), 0).Err())
	idle := residentSize(t, p)

	crowd := make([]net.Conn, number)
	greedy := 0
	for n := range crowd {
		nc, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
		if err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
		defer nc.Close()
		crowd[n] = nc
		text := "PING\r\n"
		switch kind := n % 10; {
		case n < 3: // asks for a gigabyte and does not read it
			text = strings.Repeat("GET big\r\n", 1024)
			greedy++
		case kind == 3: // says nothing
			text = ""
		case kind == 4: // never finishes a command, of which it announces much
			text = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\nxxxx"
		case kind == 5: // never finishes a line
			text = "SET k "
		}
		if _, err := nc.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if kind := n % 10; kind == 6 { // is gone without a word
			drill.Check(t, nc.(*net.TCPConn).SetLinger(0), nc.Close())
		} else if kind == 7 { // has said all it wants to say, and goes on reading
			drill.Check(t, nc.(*net.TCPConn).CloseWrite())
		}
	}
	var all sync.WaitGroup
	all.Go(func() { readSlowly(t, p.Port, valueSize) })
	for n := range ordinary {
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, PoolSize: 1, ReadTimeout: harness.Patience})
		defer c.Close()
		all.Go(func() {
			for i := range requests {
				key := fmt.Sprint(n, "-", i)
				if err := errors.Join(c.Set(t.Context(), key, key, 0).Err(), c.Get(t.Context(), key).Err()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	loaded := residentSize(t, p)
	t.Logf("%d clients: resident %d MB, %d MB before", len(crowd), loaded>>20, idle>>20)
	// A reply that is not taken is in the buffers once, however many were asked for.
	if most := idle + int64(len(crowd))*64<<10 + int64(greedy)*16*valueSize + 64<<20; loaded > most {
		t.Errorf("%d clients make the server take %d MB, more than %d MB", len(crowd), loaded>>20, most>>20)
	}
	for n := 8; n < len(crowd); n += 10 { // the quiet ones are served as well
		if err := answersPing(crowd[n]); err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
	}
	for _, nc := range crowd {
		nc.Close()
	}
	p.Terminate()
}

// answersPing reads the answer to the PING that was sent, and to another.
func answersPing(nc net.Conn) error {
	if err := nc.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		return err
	}
	if _, err := nc.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	const want = "+PONG\r\n+PONG\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		return fmt.Errorf("%q, %w", got, err)
	}
	return nil
}

// readSlowly takes a large reply in small pieces and checks that it is all there.
func readSlowly(t *testing.T, port string, size int) {
	nc, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	_ = nc.(*net.TCPConn).SetReadBuffer(64 << 10) // makes it slower; it works without
	if _, err := nc.Write([]byte("GET big\r\n")); err != nil {
		t.Error(err)
		return
	}
	r := bufio.NewReaderSize(nc, 16)
	if head, err := r.ReadString('\n'); err != nil || head != fmt.Sprintf("$%d\r\n", size) {
		t.Errorf("%q, %v", head, err)
		return
	}
	body := make([]byte, size+2)
	for at := 0; at < len(body); {
		n, err := r.Read(body[at:min(at+512, len(body))])
		if err != nil {
			t.Errorf("after %d bytes: %v", at, err)
			return
		}
		at += n
	}
}

// residentSize is the memory that a server takes, in bytes.
func residentSize(t *testing.T, p *harness.Process) (bytes int64) {
	t.Helper()
	for line := range strings.Lines(p.Client().Info(t.Context(), "memory").Val()) {
		if _, err := fmt.Sscanf(line, "used_memory_rss:%d", &bytes); err == nil && bytes > 0 {
			return bytes
		}
	}
	t.Fatal("INFO does not tell how much memory is taken")
	return 0
}

// needFiles checks that this process, and those that it starts, may open so many files. Go raises the limit
// as far as it may.
func needFiles(t *testing.T, want int) {
	t.Helper()
	var limit syscall.Rlimit
	drill.Check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur < uint64(want) {
		harness.Absent(t, "%d open files are needed, %d are allowed: ulimit -Hn", want, limit.Cur)
	}
}
