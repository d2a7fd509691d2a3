package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// get asks the metrics server for a page.
func get(t *testing.T, s *Server, path string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.metrics.Addr().String()+path, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}

// observed makes a server with metrics, and a page on a host if one is named. Its engine is still loading.
func observed(t *testing.T, page string, options ...string) (*Server, *engine.Engine) {
	t.Helper()
	return observedOn(t, vfs.OS, page, options...)
}

// observedOn is observed with the data on a disk.
func observedOn(t *testing.T, disk vfs.FS, page string, options ...string) (*Server, *engine.Engine) {
	t.Helper()
	s := newServerWith(t, func(s *config.Settings) {
		s.MetricsAddr = "127.0.0.1:0"
		if page != "" {
			s.WebAddr = net.JoinHostPort(page, "0")
		}
	}, append(options, "--bind", ownHost(t), "--port", strconv.Itoa(port))...)
	must(t, s.Listen())
	e := &engine.Engine{Host: s, Log: zerolog.Nop()}
	ks, err := keyspace.Open(keyspace.Options{FS: disk, Dir: s.Settings().Dir, Partitions: 4, OnDeath: e.Broker.OnDeath})
	must(t, err)
	e.SetKeyspace(ks)
	t.Cleanup(func() { must(t, ks.Close()) })
	return s, e
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s, e := observed(t, "")
	health := func() string {
		status, body := get(t, s, "/healthz")
		return fmt.Sprint(status, " ", body)
	}
	if got := health(); got != "503 loading\n" {
		t.Errorf("before the start: %s", got)
	}
	if status, body := get(t, s, "/metrics"); status != 200 || strings.Contains(body, "mayfly_") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("before the start: %d %s", status, body)
	}
	s.Start(e)
	if got := health(); got != "200 ok\n" {
		t.Errorf("while serving: %s", got)
	}
	lastReply, stopped := make(chan struct{}), make(chan error, 1)
	s.serving.Go(func() { <-lastReply }) // as a client does that has yet to take it
	go func() { stopped <- s.Stop(t.Context()) }()
	eventually(t, "it is stopping", func() bool { return s.stopping.Load() })
	if got := health(); got != "503 stopping\n" {
		t.Errorf("while stopping: %s", got)
	}
	close(lastReply)
	must(t, <-stopped)
	if nc, err := net.Dial("tcp", s.metrics.Addr().String()); err == nil {
		_ = nc.Close()
		t.Error("after the end it still listens")
	}
}

// A damaged file that cannot be written anew is told, but the server stays healthy: a restart would lose what
// it has.
func TestHealthOfADamagedFolder(t *testing.T) {
	t.Parallel()
	s, e := observed(t, "")
	s.Start(e)
	file := filepath.Join(s.Settings().Dir, "partition-001.db")
	content, err := os.ReadFile(file)
	must(t, err)
	content[50] ^= 1
	must(t, os.WriteFile(file, content, 0o600))
	inTheWay := file + ".tmp"
	must(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	if err := e.Keyspace().Scrubber().Scrub(t.Context(), nil); err == nil {
		t.Error("nothing is in the way")
	}
	status, body := get(t, s, "/healthz")
	if want := "ok; do not restart, the files on disk are damaged: partition-001.db is damaged at bytes "; status != 200 || !strings.HasPrefix(body, want) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := get(t, s, "/metrics"); !strings.Contains(body, "\nmayfly_damaged_files 1\n") || !strings.Contains(body, "\nmayfly_scrub_found_files_total 1\n") {
		t.Error("the metrics do not tell")
	}
	must(t, os.RemoveAll(inTheWay))
	must(t, e.Keyspace().Scrubber().Scrub(t.Context(), nil))
	if status, body := get(t, s, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("after the repair: %d %s", status, body)
	}
}

// A disk that hangs is told, as long as it does.
func TestHealthOfADiskThatHangs(t *testing.T) {
	drill.Slow(t) // it waits until the disk counts as one that hangs
	t.Parallel()
	var hangs atomic.Bool
	goOn := make(chan struct{})
	disk := vfstest.New()
	disk.OnWrite = func(vfs.File, []byte, int64) error {
		if hangs.Load() {
			<-goOn
		}
		return nil
	}
	s, e := observedOn(t, disk, "")
	s.Start(e)
	end := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(end)
	hangs.Store(true)
	c := dial(t, strings.TrimPrefix(s.Addresses()[0], "tcp "))
	c.send("SET k v\r\n")
	health := func() string {
		status, body := get(t, s, "/healthz")
		return fmt.Sprint(status, " ", body)
	}
	eventually(t, "it tells", func() bool { return health() == "503 a write to the disk hangs\n" })
	hangs.Store(false)
	end()
	c.expect("+OK\r\n")
	if got := health(); got != "200 ok\n" {
		t.Errorf("when the disk goes on: %s", got)
	}
}

// A scrape has the figures that clients caused, in legal lines only.
func TestScrape(t *testing.T) {
	t.Parallel()
	s, e := observed(t, "")
	s.Start(e)
	c := dial(t, strings.TrimPrefix(s.Addresses()[0], "tcp "))
	c.send("SET k v\r\nGET k\r\nGET none\r\nGET\r\nINCR k\r\nCONTAINER.SET orders TTL 100\r\nDOC.PUT orders 1 {}\r\nSUBSCRIBE c\r\n")
	c.expect("+OK\r\n$1\r\nv\r\n$-1\r\n-ERR wrong number of arguments for 'get' command\r\n-ERR value is not an integer or out of range\r\n" +
		"+OK\r\n+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
	status, body := get(t, s, "/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, want := range []string{
		`mayfly_command_duration_seconds_count{command="get"} 2`,
		`mayfly_command_duration_seconds_bucket{command="get",le="17.179869184"} 2`,
		`mayfly_command_duration_seconds_bucket{command="get",le="+Inf"} 2`,
		`mayfly_command_rejected_total{command="get"} 1`,
		`mayfly_command_failed_total{command="incr"} 1`,
		`mayfly_command_failed_total{command="get"} 0`,
		`mayfly_errors_total{code="ERR"} 2`,
		`mayfly_keyspace_hits_total 1`,
		`mayfly_keyspace_misses_total 1`,
		`mayfly_connected_clients 1`,
		`mayfly_pubsub_clients 1`,
		`mayfly_pubsub_channels 1`,
		`mayfly_journal_write_ok 1`,
		`mayfly_container_items{container="0"} 1`,
		`mayfly_container_items{container="orders"} 1`,
		`mayfly_container_expiring_items{container="orders"} 1`,
		`mayfly_container_expiring_items{container="0"} 0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("it lacks %s", want)
		}
	}
	for _, want := range []string{"\ngo_goroutines ", "\nprocess_resident_memory_bytes ", "\nmayfly_memory_used_bytes ", "\nmayfly_expiry_cycles_total "} {
		if !strings.Contains(body, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [-+.e0-9]+)$`)
	for l := range strings.Lines(body) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("not a line of Prometheus: %s", l)
		}
	}
	if status, _ := get(t, s, "/debug/pprof/"); status != 404 {
		t.Errorf("profiles are served unasked: %d", status)
	}
	must(t, s.Stop(t.Context()))
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	s, e := observed(t, "", "--metrics-pprof", "yes")
	s.Start(e)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
		if status, body := get(t, s, path); status != 200 || body == "" {
			t.Errorf("%s: %d", path, status)
		}
	}
	must(t, s.Stop(t.Context()))
}

func TestMetricsAddrInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	s := newTestServer(t, "--bind", ownHost(t), "--port", strconv.Itoa(port), "--metrics-addr", ln.Addr().String())
	if err := s.Listen(); err == nil || err.Error() != fmt.Sprintf("cannot listen on metrics-addr %s: address already in use", ln.Addr()) {
		t.Errorf("it says %v", err)
	}
	for _, address := range s.Addresses() {
		if nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp ")); err == nil {
			_ = nc.Close()
			t.Errorf("%s is left open", address)
		}
	}
}
