package wire

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands"
	"mayfly/test/harness"
)

var randomPipelines = flag.Int("random-pipelines", 400, "how many random pipelines to send to Redis and to mayfly")

var randomSeed = flag.Uint64("random-seed", 20260117, "which random pipelines")

// TestRandomPipelinesOnRedis sends the same random pipelines to mayfly and to a real redis-server, each on a
// new connection. It compares all replies, byte by byte, until the connection is closed. The commands are
// made from the table: each row's own notation, filled with likely and unlikely arguments, now and then
// spoiled. So a new row is tried without a word here, unless it is named in incomparable. Pipelines speak
// RESP2 or RESP3, open transactions, watch, subscribe and reset.
//
// A difference is shown with the shortest pipeline that still brings it about.
func TestRandomPipelinesOnRedis(t *testing.T) {
	servers := pair{
		"127.0.0.1:" + harness.Start(t, filepath.Join(t.TempDir(), "data")).Port,
		"127.0.0.1:" + startRedisServer(t),
	}
	maker := newPipelineMaker(rand.New(rand.NewPCG(*randomSeed, 1)))
	answered := 0
	for n := range *randomPipelines {
		pipeline := maker.pipeline()
		if n < len(pipelinesFirst) {
			pipeline = pipelinesFirst[n]
		}
		answered += servers.compare(t, pipeline)
	}
	if answered < 10**randomPipelines {
		t.Errorf("only %d lines came back: that tests little", answered)
	}
}

// TestRandomPipelinesWithPassword does the same with servers that demand a password, which not all
// pipelines give, or not at once.
func TestRandomPipelinesWithPassword(t *testing.T) {
	servers := pair{
		"127.0.0.1:" + harness.Start(t, filepath.Join(t.TempDir(), "data"), "--requirepass", "secret").Port,
		"127.0.0.1:" + startRedisServer(t, "--requirepass", "secret"),
	}
	for _, address := range servers {
		guardedServers.Store(address, true)
	}
	maker := newPipelineMaker(rand.New(rand.NewPCG(*randomSeed, 2)))
	ways := [][]string{
		{"AUTH", "secret"}, {"AUTH", "default", "secret"}, {"HELLO", "3", "AUTH", "default", "secret"}, {"HELLO", "2", "AUTH", "default", "secret"},
		{"AUTH", "wrong"}, {"AUTH", "nobody", "secret"}, {"HELLO", "3", "AUTH", "default", "wrong"}, {"AUTH"}, {"HELLO", "3"},
	}
	for range *randomPipelines / 4 {
		pipeline := maker.pipeline()
		// Redis closes a connection that RESET has made unauthenticated while longer replies are under way.
		pipeline = slices.DeleteFunc(pipeline, func(args []string) bool { return strings.EqualFold(args[0], "RESET") })
		// Who has not given it may send little: see HELLO and the limits.
		for range 1 + maker.IntN(3) {
			at := maker.IntN(min(len(pipeline), 5))
			pipeline = slices.Insert(pipeline, at, ways[maker.IntN(len(ways))])
		}
		servers.compare(t, pipeline)
	}
}

// pair are the addresses of a mayfly and of a redis-server.
type pair [2]string

// compare sends a pipeline to both servers and compares what comes back; a difference is shown with the
// shortest pipeline that brings it about. It returns how many lines Redis has sent.
func (servers pair) compare(t *testing.T, pipeline [][]string) int {
	t.Helper()
	ours, theirs := servers.play(t, pipeline)
	lines := bytes.Count(theirs, []byte("\r\n"))
	if sameAnswers(pipeline, ours, theirs) {
		return lines
	}
	pipeline = shorten(pipeline, func(shorter [][]string) bool {
		ours, theirs := servers.play(t, shorter)
		return !sameAnswers(shorter, ours, theirs)
	})
	ours, theirs = servers.play(t, pipeline)
	t.Errorf("-random-seed %d:\n%s%s", *randomSeed, written(pipeline), differing(ours, theirs))
	return lines
}

// pipelinesFirst are tried before the random ones: what those come to too rarely.
var pipelinesFirst = [][][]string{
	{ // each reply in EXEC is in the protocol of its time
		{"MULTI"}, {"GET", "nobody"}, {"CONFIG", "GET", "appendfsync"}, {"HELLO", "3"}, {"GET", "nobody"}, {"CONFIG", "GET", "appendfsync"},
		{"HELLO", "2"}, {"GET", "nobody"}, {"CONFIG", "GET", "appendfsync"}, {"EXEC"}, {"GET", "nobody"}, {"QUIT"},
	},
	{ // a failed EXEC of another protocol
		{"HELLO", "3"}, {"WATCH", "k"}, {"SET", "k", "1"}, {"MULTI"}, {"HELLO", "2"}, {"EXEC"}, {"GET", "nobody"}, {"QUIT"},
	},
	{ // what subscribers of RESP2 may and may not do
		{"SUBSCRIBE", "a"}, {"GET", "k"}, {"PING"}, {"PING", "x"}, {"PSUBSCRIBE", "b*", "b*"}, {"UNSUBSCRIBE", "a", "c"}, {"GET", "k"},
		{"RESET"}, {"GET", "k"}, {"QUIT"},
	},
	{ // messages to oneself
		{"HELLO", "3"}, {"SUBSCRIBE", "a"}, {"PSUBSCRIBE", "a*"}, {"SSUBSCRIBE", "a"}, {"PUBLISH", "a", "1"}, {"SPUBLISH", "a", "2"},
		{"MULTI"}, {"GET", "k"}, {"UNSUBSCRIBE"}, {"EXEC"}, {"PUBLISH", "a", "3"}, {"QUIT"},
	},
	{ // events to oneself
		{"HELLO", "3"}, {"CONFIG", "SET", "notify-keyspace-events", "KEA"}, {"PSUBSCRIBE", "__key*"}, {"SET", "k", "1", "EX", "100"}, {"GETDEL", "k"},
		{"MSET", "k", "1", "l", "2"}, {"RENAME", "k", "l"}, {"COPY", "l", "m"}, {"EXPIRE", "m", "-1"}, {"INCRBYFLOAT", "l", "1.5"}, {"PERSIST", "volatile"},
		{"MOVE", "l", "3"}, {"QUIT"},
	},
}

// startRedisServer starts a redis-server that keeps nothing and returns its port.
func startRedisServer(t *testing.T, args ...string) string {
	t.Helper()
	port := harness.FreePort(t)
	cmd := exec.Command(harness.Need(t, "redis-server"), append([]string{"--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
		"--set-proc-title", "no", "--proto-max-bulk-len", "16mb"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(harness.Patience); time.Now().Before(until); {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			return port
		}
		time.Sleep(10 * time.Millisecond) // another process: there is no clock of ours to move
	}
	t.Fatal("redis-server does not answer")
	return ""
}

// before is sent ahead of each pipeline, on a connection of its own. AUTH fails where there is no password.
var before = [][]string{
	{"AUTH", "secret"}, {"CLIENT", "UNPAUSE"}, {"FLUSHALL"}, {"CONFIG", "SET", "slowlog-log-slower-than", "-1", "notify-keyspace-events", ""},
	{"SLOWLOG", "RESET"}, {"LATENCY", "RESET"}, {"MSET", "int", "5", "text", "some text", "float", "1.5", "", "empty"},
	{"SET", "volatile", "7", "PXAT", "33177117420123"},
}

// play plays a pipeline on both servers.
func (servers pair) play(t *testing.T, pipeline [][]string) (ours, theirs []byte) {
	t.Helper()
	var out [2][]byte
	for i, address := range servers {
		send(t, address, append(slices.Clone(before), []string{"QUIT"}))
		out[i] = send(t, address, pipeline)
	}
	return out[0], out[1]
}

// guardedServers are the addresses of servers with a password. Each connection to them has an address of its own: after
// wrong passwords the next attempts of an address wait. sources counts these.
var (
	guardedServers sync.Map
	sources        atomic.Uint32
)

// send sends a pipeline on a connection of its own and returns what comes until it is closed.
func send(t *testing.T, address string, pipeline [][]string) []byte {
	t.Helper()
	var dialer net.Dialer
	_, guarded := guardedServers.Load(address)
	if guarded {
		n := sources.Add(1)
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1+byte(n>>16), byte(n>>8), byte(n))}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		t.Fatal(err)
	}
	var msg []byte
	for _, args := range pipeline {
		msg = appendRequest(msg, args)
	}
	// A connection that a command closes is closed before all is sent or read.
	_, _ = conn.Write(msg)
	// A half-closed connection would lose the replies to attempts to authenticate that wait.
	if !guarded || !closesAfterWaiting(pipeline) {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return nil
		}
	}
	got, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("%v after\n%s", err, written(pipeline))
	}
	return got
}

// closesAfterWaiting reports whether the pipeline has attempts to authenticate that may wait, and makes the server close
// the connection. After CLIENT REPLY, Redis does not close it at QUIT.
func closesAfterWaiting(pipeline [][]string) bool {
	attempts := 0
	for _, args := range pipeline {
		switch strings.ToUpper(args[0]) {
		case "CLIENT":
			return false
		case "AUTH", "HELLO":
			attempts++
		}
	}
	return attempts > 2 && strings.EqualFold(pipeline[len(pipeline)-1][0], "QUIT")
}

func appendRequest(msg []byte, args []string) []byte {
	msg = fmt.Appendf(msg, "*%d\r\n", len(args))
	for _, arg := range args {
		msg = fmt.Appendf(msg, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return msg
}

// volatile are the parts of replies that differ from run to run: the id of the connection in HELLO.
var volatile = regexp.MustCompile(`(\r\n\$2\r\nid\r\n:)\d+`)

// modules is the list of modules in the reply of HELLO: ours has ReJSON, whose commands are built in.
var modules = regexp.MustCompile(`(\r\n\$7\r\nmodules\r\n)\*1\r\n[*%]\d\r\n\$4\r\nname\r\n\$6\r\nReJSON\r\n(?:.*\r\n)+?\*0\b`)

// withoutReJSON returns replies of mayfly with the modules of Redis in HELLO: none.
func withoutReJSON(replies []byte) []byte { return modules.ReplaceAll(replies, []byte("${1}*0")) }

// unordered are the commands that list in any order. SCAN does too, but may also end sooner or later.
var unordered = []string{"CONFIG", "KEYS", "SCAN", "PUBSUB", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}

// sameAnswers compares what two servers have answered to a pipeline, with allowance for the time between
// and for what comes in any order.
func sameAnswers(pipeline [][]string, ours, theirs []byte) bool {
	a := bytes.Split(volatile.ReplaceAll(withoutReJSON(ours), []byte("${1}0")), []byte("\r\n"))
	b := bytes.Split(volatile.ReplaceAll(theirs, []byte("${1}0")), []byte("\r\n"))
	if slices.ContainsFunc(pipeline, func(args []string) bool { return slices.Contains(unordered, strings.ToUpper(args[0])) }) {
		slices.SortFunc(a, byMoment)
		slices.SortFunc(b, byMoment)
	}
	return slices.EqualFunc(a, b, sameLine)
}

// sameLine compares lines of replies; moments and times to live may differ a little.
func sameLine(ours, theirs []byte) bool {
	const slack = 5000 // ms, or as many seconds: ends are much farther apart
	if bytes.Equal(ours, theirs) {
		return true
	}
	n, ok1 := moment(ours)
	m, ok2 := moment(theirs)
	return ok1 && ok2 && max(n-m, m-n) <= slack
}

// moment reads a line that may be a moment or a time to live.
func moment(line []byte) (n int64, ok bool) {
	if len(line) < 5 || line[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	return n, err == nil
}

// byMoment orders lines so that those that may differ a little stand at the same place in both answers.
func byMoment(a, b []byte) int {
	n, ok1 := moment(a)
	m, ok2 := moment(b)
	switch {
	case ok1 && ok2:
		return cmp.Compare(n, m)
	case ok1:
		return 1
	case ok2:
		return -1
	}
	return bytes.Compare(a, b)
}

// differing shows the lines at which answers differ.
func differing(ours, theirs []byte) string {
	a, b := bytes.Split(ours, []byte("\r\n")), bytes.Split(theirs, []byte("\r\n"))
	first := 0
	for first < min(len(a), len(b)) && sameLine(a[first], b[first]) {
		first++
	}
	return fmt.Sprintf("from line %d on\nmayfly:\t%.800q\nRedis:\t%.800q\n", first, a[first:], b[first:])
}

// shortenings is how many shorter pipelines are tried: each waits for a second, if mayfly answers less than Redis.
const shortenings = 60

// shorten leaves commands out of a pipeline as long as it still fails.
func shorten(pipeline [][]string, fails func([][]string) bool) [][]string {
	tries := 0
	for i := 0; i < len(pipeline)-1 && tries < shortenings; tries++ { // the last is QUIT
		shorter := slices.Delete(slices.Clone(pipeline), i, i+1)
		if fails(shorter) {
			pipeline = shorter
		} else {
			i++
		}
	}
	return pipeline
}

func written(pipeline [][]string) string {
	var out strings.Builder
	for _, args := range pipeline {
		fmt.Fprintf(&out, "\t%.300q\n", args)
	}
	return out.String()
}

// incomparable are the commands whose replies tell of the process or of chance, with the reason; * is
// for all subcommands. What they have in common with others, such as their arity, is tried all the same: they
// are called with senseless arguments only.
var incomparable = []string{
	"command *", "info", "time", "lastsave", "memory *", "latency doctor", "latency histogram", // figures and lists of what exists
	"client id", "client info", "client list", "client kill", "client help", "acl cat", "config help", "latency help", "memory help", "acl help", "module help", // lists of what mayfly has
	"config get", "config set", "config rewrite", "config resetstat", // options differ
	"randomkey", "object encoding", "object refcount", "object idletime", // chance, and representation
	"bgsave", "bgrewriteaof", "save", "shutdown", "monitor", "client pause", // act on the process
	"client no-touch", "client setinfo", // of Redis 7.2
	"object help", "slowlog help", "pubsub help", // worded by the table
	"module list",                 // names ReJSON
	"script debug", "script help", // there is no debugger
	"wait",                   // waits in Redis, for replicas that never come
	"select", "move", "copy", // take names of containers; see templates
	"xadd", "xsetid", "xgroup create", "xgroup help", "xinfo help", // clients write no streams; those of deaths are compared in package commands
	"cluster add", "cluster remove", "cluster transfer", "cluster status", "cluster digest", "cluster myshardid", // of mayfly, and of Redis 7.2
	"scan",  // see templates
	"hello", // checks all options before one takes effect; see templates
}

// templates are calls that the table's notation does not lead to.
var templates = []string{
	"MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "HELLO 3", "HELLO 2", "WATCH key", "WATCH key key",
	"HELLO", "HELLO 3 SETNAME junk", "HELLO 2 AUTH default x", "HELLO 3 AUTH nobody x", "HELLO 4", "HELLO junk", "HELLO 2 AUTH x", "HELLO 3 junk",
	"SELECT index", "SELECT index", "MOVE key index", "COPY key key [DB index] [REPLACE]", "COPY key key [REPLACE] [DB index]",
	"NOSUCH key", "GET", "SET key", "CLIENT nosuch", "CONFIG nosuch x", "OBJECT nosuch key",
	"OBJECT ENCODING absent", "OBJECT IDLETIME absent", "OBJECT FREQ key",
	"CLIENT KILL nobody:1", "CLIENT KILL ID junk", "CLIENT KILL ID 999999999", "CLIENT KILL TYPE junk", "CLIENT KILL USER junk",
	"CLIENT KILL SKIPME junk", "CLIENT KILL ID 99999999 ADDR nobody:1", "CLIENT KILL LADDR junk SKIPME no",
	"CLIENT LIST TYPE junk", "CLIENT LIST ID junk", "CLIENT LIST ID 99999999", "CLIENT LIST TYPE REPLICA", "CLIENT LIST junk",
	"CLIENT PAUSE junk", "CLIENT PAUSE -1", "CLIENT PAUSE 0 WRITE",
	"CONFIG GET nosuch", "CONFIG GET appendfsync", "CONFIG GET slowlog-*", "CONFIG SET nosuch x", "CONFIG SET slowlog-max-len x",
	"CONFIG SET slowlog-max-len 100 slowlog-max-len 100", "CONFIG SET slowlog-max-len", "CONFIG SET appendfsync junk",
	"CONFIG SET latency-tracking-info-percentiles x", "CONFIG SET latency-tracking-info-percentiles 101", "CONFIG SET latency-tracking junk",
	"CONFIG GET latency-tracking*",
	"CONFIG SET slowlog-max-len -1", "CONFIG SET notify-keyspace-events Q", "CONFIG SET notify-keyspace-events KEA",
	"CONFIG RESETSTAT",
	"MEMORY USAGE absent", "MEMORY USAGE absent SAMPLES x", "MEMORY USAGE absent SAMPLES -1", "MEMORY USAGE absent SAMPLES 0",
	"COMMAND GETKEYS SET k v", "COMMAND GETKEYS nosuch x", "COMMAND GETKEYS MSET a b c d", "COMMAND GETKEYS PING x", "COMMAND GETKEYS GET",
	"COMMAND GETKEYSANDFLAGS SET k v GET", "COMMAND INFO nosuch get", "COMMAND LIST FILTERBY MODULE x",
	"COMMAND LIST FILTERBY junk x", "COMMAND LIST FILTERBY PATTERN ge?", "COMMAND nosuch", "COMMAND INFO get|x config|get",
	"SCAN 0 COUNT 1000 MATCH pattern", "SCAN 0 COUNT 1000", "SCAN 0 MATCH mort* COUNT 1000 TYPE string", "SCAN 0 COUNT 1000 TYPE junk", "SCAN junk", "SCAN 0 COUNT 0",
	"SCAN 0 COUNT junk", "SCAN 0 MATCH", "KEYS mort*", "KEYS [", "KEYS i*",
}

// pipelineMaker makes up pipelines.
type pipelineMaker struct {
	*rand.Rand
	calls []string // in the notation of the table
}

func newPipelineMaker(random *rand.Rand) *pipelineMaker {
	m := &pipelineMaker{random, slices.Clone(templates)}
	for c := range commands.All() {
		if c.Group == harness.OfRedisJSON {
			continue // in Redis it is of a module
		}
		if c.Parse != nil && !c.IsOwn() {
			m.add(c.Name, c.Syntax)
		}
		for _, sub := range c.Sub {
			if !sub.IsOwn() {
				m.add(c.Name+" "+sub.Name, sub.Syntax)
			}
		}
	}
	return m
}

func (m *pipelineMaker) add(name, syntax string) {
	group, _, _ := strings.Cut(name, " ")
	if slices.Contains(incomparable, name) || slices.Contains(incomparable, group+" *") {
		return
	}
	call := strings.ToUpper(name) + " " + syntax
	m.calls = append(m.calls, call)
	if syntax != "" { // and more often, the more there is to vary
		m.calls = append(m.calls, slices.Repeat([]string{call}, 1+strings.Count(syntax, "["))...)
	}
}

func (m *pipelineMaker) pipeline() [][]string {
	var pipeline [][]string
	if m.IntN(2) == 0 {
		pipeline = append(pipeline, []string{"HELLO", "3"})
	}
	for range 1 + m.IntN(30) {
		pipeline = append(pipeline, m.command())
	}
	if slices.ContainsFunc(pipeline, func(args []string) bool { return strings.EqualFold(args[0], "MULTI") }) {
		// At CLIENT REPLY Redis 7.0 ends the reply of EXEC in its middle, and there it also puts messages.
		pipeline = slices.DeleteFunc(pipeline, func(args []string) bool {
			return strings.EqualFold(args[0], "CLIENT") && len(args) > 1 && strings.EqualFold(args[1], "REPLY") ||
				strings.HasSuffix(strings.ToUpper(args[0]), "PUBLISH")
		})
	}
	return append(pipeline, []string{"QUIT"})
}

// command makes a call up and sometimes spoils it.
func (m *pipelineMaker) command() []string {
	args := m.fill(m.one(m.calls...))
	if m.IntN(3) == 0 {
		args = append(args, m.fill(m.one("", "", "NX", "XX", "GET", "EX seconds", "junk", "key"))...)
	}
	switch at := m.IntN(len(args)); m.IntN(16) {
	case 0:
		args = slices.Insert(args, 1+m.IntN(len(args)), m.value("junk"))
	case 1:
		if at > 0 {
			args = slices.Delete(args, at, at+1)
		}
	case 2:
		if at > 0 {
			args[at] = m.value("junk")
		}
	case 3:
		args[at] = strings.ToLower(args[at])
	}
	if spoiledTooFar(args) {
		return m.command()
	}
	return args
}

// spoiledTooFar tells whether a call has become one that cannot be compared.
func spoiledTooFar(args []string) bool {
	arg := func(i int) string {
		if i < len(args) {
			return strings.ToUpper(args[i])
		}
		return ""
	}
	_, noNumber := strconv.Atoi(arg(1))
	switch arg(0) {
	case "SCAN": // cursors have no meaning of their own
		return noNumber == nil && (arg(1) != "0" || !slices.Contains(args, "1000"))
	case "HELLO":
		return len(args) > 5 || len(args) > 4 && arg(2) != "AUTH"
	case "SELECT":
		return len(args) == 2 && noNumber != nil
	case "MEMORY":
		return arg(1) == "USAGE" && arg(2) != "ABSENT"
	case "OBJECT":
		return len(args) == 3 && arg(1) != "FREQ" && arg(2) != "ABSENT"
	case "CLIENT":
		if n, err := strconv.Atoi(arg(2)); arg(1) == "PAUSE" && err == nil && n > 0 { // would hold the test up
			return true
		}
		fallthrough
	case "COMMAND", "CONFIG":
		if arg(1) == "SET" && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "\x00") }) { // ends the value in Redis
			return true
		}
		return slices.Contains(args, "*") || len(args) == 2 && slices.Contains(incomparable, strings.ToLower(args[0]+" "+args[1])) ||
			arg(0) == "COMMAND" && len(args) < 3
	}
	return false
}

func (m *pipelineMaker) one(words ...string) string { return words[m.IntN(len(words))] }

// fill makes arguments of a call in the notation of the table.
func (m *pipelineMaker) fill(call string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|", "..."} {
		call = strings.ReplaceAll(call, mark, " "+mark+" ")
	}
	words := strings.Fields(call)
	return m.sequence(&words)
}

// sequence fills the words up to a closing bracket or the end, and takes them off.
func (m *pipelineMaker) sequence(words *[]string) []string {
	alternatives := [][]string{nil}
	for len(*words) > 0 {
		word := (*words)[0]
		*words = (*words)[1:]
		last := &alternatives[len(alternatives)-1]
		switch word {
		case "]", ">":
			return alternatives[m.IntN(len(alternatives))]
		case "|":
			alternatives = append(alternatives, nil)
		case "...":
		case "[":
			if chosen := m.sequence(words); m.IntN(2) == 0 {
				*last = append(*last, chosen...)
			}
		case "<":
			*last = append(*last, m.sequence(words)...)
		default:
			*last = append(*last, m.value(word))
		}
	}
	return alternatives[m.IntN(len(alternatives))]
}

var argumentName = regexp.MustCompile(`^[a-z-]+$`)

// value makes up an argument: by its name if it is one that the notation names, else it is a word to be
// written as it stands.
func (m *pipelineMaker) value(name string) string {
	switch name {
	case "key", "key1", "key2", "newkey", "source", "destination":
		return m.one("int", "text", "float", "volatile", "nobody", "new", "", "int", "text")
	case "value", "message":
		return m.one("1", "-7", "text", "1.5", "", "\x00\xff\r\n", strings.Repeat("long", 30), "9223372036854775807", "x")
	case "increment", "decrement":
		return m.one("1", "-1", "1.5", "0", "9223372036854775807", "-9223372036854775808", "1e400", "nan", "inf", "-inf", "abc", "", " 1", "0x10",
			"3.0e-5", "1e17", "1e18", "123456789012345678901234567890", "-0", "+1", "01")
	case "seconds", "milliseconds":
		return m.one("1000000", "20000000000", "1000000", "0", "-1", "9223372036854775807", "9223372036854775", "9223372036854776", "junk", "", "1.5",
			"-9223372036854775808", "9223370266883")
	case "unix-time-seconds": // and no past: the dead that nobody has met yet are counted in Redis
		return m.one("33177117420", "33177117420", "0", "-5", "9223372036854775", "9223372036854776", "9223372036854775807", "x")
	case "unix-time-milliseconds":
		return m.one("33177117420123", "33177117420123", "0", "-5", "9223372036854775807", "-9223372036854775808", "x")
	case "start", "end", "offset", "len", "count", "minmatchlen":
		return m.one("0", "1", "2", "-1", "-2", "5", "100", "-100", "9223372036854775807", "-9223372036854775808", "x", "", "536870912")
	case "db", "index", "destination-db", "index1", "index2":
		return m.one("0", "1", "9", "15", "16", "-1", "x", "", "4294967296", "99999999999999999999")
	case "pattern", "channel", "shardchannel":
		return m.one("news", "n*", "", "[", "other")
	case "junk":
		return m.one("", "junk", "0", "-1", "99999999999999999999", "\r\n", "x\ny\n", "NX", "\x00", "*", "'", "key", "MATCH", "x y",
			strings.Repeat("j", 100), "1e3", "ü")
	}
	if !argumentName.MatchString(name) || m.IntN(2) == 0 {
		return name // a word, or the name of an argument not told of above
	}
	return m.value(m.one("junk", "count", "value"))
}
