package wire

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	_ "mayfly/commands" // fills the table of commands
	"mayfly/commands/engine"
	"mayfly/test/harness"
)

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

// dialogueTemplates are calls of which another client notices something.
var dialogueTemplates = []string{
	"WATCH key", "WATCH key key", "MULTI", "EXEC", "EXEC", "SET key value", "DEL key", "GET key", "INCR key", "FLUSHDB", "SWAPDB 0 1", "MOVE key 1",
	"SUBSCRIBE news other", "PSUBSCRIBE n*", "SSUBSCRIBE news", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH news value", "SPUBLISH news value",
	"CLIENT KILL TYPE pubsub", "RESET", "CONFIG SET notify-keyspace-events KEA", "CONFIG SET notify-keyspace-events KEg$",
	"PUBSUB NUMSUB news other", "PUBSUB NUMPAT", "PUBSUB CHANNELS",
}

// incomparable are the commands whose replies tell of the process or of chance, with the reason; * is
// for all subcommands. What they have in common with others, such as their arity, is tried all the same: they
// are called with senseless arguments only.
var incomparable = []string{
	"command *", "info", "time", "lastsave", "memory *", "latency doctor", "latency histogram", // figures and lists of what exists
	"client id", "client info", "client list", "client kill", "client help", "acl cat", "acl getuser", "acl list", "acl users", "acl log", "config help", "latency help", "memory help", "acl help", "module help", // lists of what mayfly has
	"config get", "config set", "config rewrite", "config resetstat", // options differ
	"randomkey", "acl genpass", "object encoding", "object refcount", "object idletime", // chance, and representation
	"bgsave", "bgrewriteaof", "save", "shutdown", "monitor", "client pause", // act on the process
	"client no-touch", "client setinfo", "waitaof", "delex", "delifeq", "digest", "increx", "msetex", // of Redis 7.2 and newer servers
	"object help", "slowlog help", "pubsub help", // worded by the table
	"module list",                 // names ReJSON
	"script debug", "script help", // there is no debugger
	"wait",                   // waits in Redis, for replicas that never come
	"select", "move", "copy", // take names of containers; see templates
	"xadd", "xsetid", "xgroup create", "xgroup help", "xinfo help", // clients write no streams; those of deaths are compared in package commands
	"cluster add", "cluster remove", "cluster transfer", "cluster status", "cluster digest", "cluster myshardid", // of mayfly, and of Redis 7.2
	"scan", "set", "xreadgroup", // see templates
	"hello", // checks all options before one takes effect; see templates
	// Of Redis 7.4, 8.0 and KeyDB, or random.
	"expiremember", "expirememberat", "hexpire", "hexpireat", "hexpiretime", "hgetdel", "hgetex", "hpersist", "hpexpire", "hpexpireat", "hpexpiretime", "hpttl", "hsetex", "httl",
	"hrandfield", "hscan",
	"sdiff", "sinter", "smembers", "spop", "srandmember", "sscan", "sunion", // the order of members is another; see templates
	"zrandmember", "zscan", // random, or in another order
	"blmove", "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin", // may wait for ever; see templates
}

// templates are calls that the table's notation does not lead to.
var templates = []string{
	"MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "HELLO 3", "HELLO 2", "WATCH key", "WATCH key key",
	"HELLO", "HELLO 3 SETNAME junk", "HELLO 2 AUTH default x", "HELLO 3 AUTH nobody x", "HELLO 4", "HELLO junk", "HELLO 2 AUTH x", "HELLO 3 junk",
	setTemplate, setTemplate, setTemplate, setTemplate, readGroupTemplate, readGroupTemplate,
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
	"SCAN 0 COUNT junk", "SCAN 0 MATCH", "HSCAN key 0", "HSCAN key 0 MATCH pattern COUNT 10", "HSCAN key junk", "HSCAN key 0 COUNT 0", "HSCAN absent 0 COUNT junk",
	"HRANDFIELD absent", "HRANDFIELD absent 3 WITHVALUES", "HRANDFIELD key junk", "HRANDFIELD key 0", "HRANDFIELD key 3 junk",
	"SADD key member", "SADD key a b", "SREM key a b", "SINTERSTORE key key key", "SDIFF absent key", "SINTER key absent", "SINTER key junk", "SUNION absent absent",
	"SMEMBERS absent", "SPOP absent", "SPOP absent 2", "SPOP key junk", "SPOP key -1", "SPOP key 1 2", "SRANDMEMBER absent", "SRANDMEMBER absent 2", "SRANDMEMBER key junk",
	"SRANDMEMBER key 0", "SRANDMEMBER key 1 2", "SSCAN absent 0 COUNT junk", "SSCAN key junk", "SSCAN key 0 COUNT 0", "SINTERCARD 2 key key LIMIT 1", "SINTERCARD 1 key junk",
	"ZADD key 1 a 2 b", "ZADD key NX CH 3 a 4 c", "ZADD key 1 member", "ZINCRBY key 2 a", "ZRANGE key 0 -1 WITHSCORES", "ZRANGEBYSCORE key 1 (3", "ZADD key junk a", "ZUNIONSTORE key 2 key key WEIGHTS 1 2",
	"ZRANDMEMBER absent", "ZRANDMEMBER absent 2", "ZRANDMEMBER key junk", "ZSCAN absent 0 COUNT junk", "ZSCAN key junk", "BZPOPMIN key 0.01", "BZMPOP 0.01 1 key MAX COUNT 2", "BZPOPMAX key junk",
	"RPUSH key a b c", "LPUSH key x", "LRANGE key 0 -1", "LPOP key 2", "LINSERT key BEFORE a y", "LMOVE key key LEFT RIGHT", "LREM key 0 a", "BLPOP key 0.01", "BLMOVE key key LEFT RIGHT 0.01", "BRPOPLPUSH key key -1",
	"BLMPOP 0.01 2 absent key LEFT COUNT 2", "BRPOP key junk",
	"HSET key field value", "HSET key a 1", "HSET key a 1 b 2", "HINCRBY key a 1", "HDEL key a b", "KEYS mort*", "KEYS [", "KEYS i*",
}

// The syntax in Redis 7.0.
const (
	readGroupTemplate = "XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]"
	setTemplate       = "SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"
)

// talkMaker makes up talks.
type talkMaker struct {
	*rand.Rand
	calls []string // in the notation of the table
}

func newTalkMaker(random *rand.Rand, extra []string) *talkMaker {
	m := &talkMaker{random, slices.Concat(templates, extra)}
	for _, c := range engine.TableSorted {
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

func (m *talkMaker) add(name, syntax string) {
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

// pipelineTalk makes up what one client sends, as the n-th.
func (m *talkMaker) pipelineTalk(n int) talk {
	if n < len(pipelinesFirst) {
		return talk{sides: pipelinesFirst[n : n+1]}
	}
	return talk{sides: [][][]string{m.pipeline()}}
}

// ways are those to give a password.
var ways = [][]string{
	{"AUTH", "secret"}, {"AUTH", "default", "secret"}, {"HELLO", "3", "AUTH", "default", "secret"}, {"HELLO", "2", "AUTH", "default", "secret"},
	{"AUTH", "wrong"}, {"AUTH", "nobody", "secret"}, {"HELLO", "3", "AUTH", "default", "wrong"}, {"AUTH"}, {"HELLO", "3"},
}

// passwordTalk makes up what one client sends that must give a password first.
func (m *talkMaker) passwordTalk(int) talk {
	pipeline := slices.DeleteFunc(m.pipeline(), func(args []string) bool {
		// Redis closes a connection that RESET has made unauthenticated while longer replies are under way.
		return strings.EqualFold(args[0], "RESET")
	})
	// Who has not given it may send little: see HELLO and the limits.
	for range 1 + m.IntN(3) {
		pipeline = slices.Insert(pipeline, m.IntN(min(len(pipeline), 5)), ways[m.IntN(len(ways))])
	}
	return talk{sides: [][][]string{pipeline}}
}

// dialogue makes up what two clients send.
func (m *talkMaker) dialogue(n int) talk {
	if n == 0 { // chance brings messages and aborted transactions too rarely
		aborted := [][]string{{"WATCH", "w"}, {"SET", "w", "1"}, {"MULTI"}, {"GET", "w"}, {"EXEC"}, {"QUIT"}}
		return talk{[][][]string{pipelinesFirst[3], aborted}, m.Uint64()}
	}
	d := talk{make([][][]string, 2), m.Uint64()}
	for i := range d.sides {
		// Nothing would tell that CLIENT REPLY has been carried out.
		pipeline := slices.DeleteFunc(m.pipeline(), isClientReply)
		multi := slices.ContainsFunc(pipeline, func(args []string) bool { return strings.EqualFold(args[0], "MULTI") })
		if !multi && m.IntN(2) == 0 { // Redis 7.0 would put events into the middle of the reply of EXEC
			pipeline = slices.Insert(pipeline, m.IntN(min(len(pipeline), 3)), []string{"PSUBSCRIBE", "__key*"})
		}
		d.sides[i] = pipeline
	}
	if m.IntN(2) == 0 {
		d.sides[0] = slices.Insert(d.sides[0], m.IntN(len(d.sides[0])), m.pause()...)
		// Who is held back could disconnect who ends the pause before its reply has left.
		d.sides[1] = slices.DeleteFunc(d.sides[1], func(args []string) bool { return slices.Contains(args, "KILL") })
	}
	return d
}

func (m *talkMaker) pipeline() [][]string {
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
			return isClientReply(args) || strings.HasSuffix(strings.ToUpper(args[0]), "PUBLISH")
		})
	}
	return append(pipeline, []string{"QUIT"})
}

// command makes a call up and sometimes spoils it.
func (m *talkMaker) command() []string {
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

// spoiledTooFar reports whether a call has become one that cannot be compared.
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
	case "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME": // ours take an element
		return len(args) > 2
	case "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "BLMOVE", "BRPOPLPUSH":
		return waitsLong(args[len(args)-1], 0.01)
	case "BLMPOP", "BZMPOP":
		return waitsLong(arg(1), 0.01)
	case "WAIT":
		return waitsLong(arg(2), 10)
	case "XREAD", "XREADGROUP":
		for i := range args {
			if arg(i) == "+" || arg(i) == "BLOCK" && waitsLong(arg(i+1), 10) { // the id + is of Redis 7.4
				return true
			}
		}
	case "ZRANK", "ZREVRANK":
		return len(args) > 3 // WITHSCORE is of Redis 7.2
	case "ACL": // Redis has users without a name
		return slices.Contains(args, "")
	case "MEMORY":
		return arg(1) == "USAGE" && arg(2) != "ABSENT"
	case "OBJECT":
		return len(args) == 3 && arg(1) != "FREQ" && arg(2) != "ABSENT"
	case "CLIENT":
		if n, err := strconv.Atoi(arg(2)); arg(1) == "PAUSE" && err == nil && n > 0 { // would hold the test up
			return true
		}
		// Redis tells at the end of a turn, and not of SWAPDB; see the transcript of tracking.
		if arg(1) == "TRACKING" && arg(2) == "ON" && !slices.Contains(args, "REDIRECT") {
			return true
		}
		// Ours has filters of Valkey, in any number, and several ids.
		if _, err := strconv.Atoi(arg(4)); arg(1) == "LIST" && len(args) > 4 || arg(1) == "KILL" && err == nil {
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

// waitsLong reports whether a timeout of a command holds the test up: it is more than most, or 0, which is
// none.
func waitsLong(timeout string, most float64) bool {
	n, err := strconv.ParseFloat(timeout, 64)
	return err == nil && (n == 0 || n > most)
}

func (m *talkMaker) one(words ...string) string { return words[m.IntN(len(words))] }

// fill makes arguments of a call in the notation of the table.
func (m *talkMaker) fill(call string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|", "..."} {
		call = strings.ReplaceAll(call, mark, " "+mark+" ")
	}
	words := strings.Fields(call)
	return m.sequence(&words)
}

// sequence fills the words up to a closing bracket or the end, and takes them off.
func (m *talkMaker) sequence(words *[]string) []string {
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
func (m *talkMaker) value(name string) string {
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

// pause is a pause for writers, by one who does not write meanwhile: of several that are held back it is
// chance who goes on first.
func (m *talkMaker) pause() [][]string {
	list := [][]string{{"CLIENT", "PAUSE", "100000", "WRITE"}}
	for range m.IntN(8) {
		list = append(list, m.fill(m.one("GET key", "WATCH key", "PING", "STRLEN key", "PUBSUB NUMSUB news", "EXISTS key")))
	}
	return append(list, []string{"CLIENT", "UNPAUSE"})
}
