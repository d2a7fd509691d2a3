package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"mayfly/commands/access"
	"mayfly/commands/events"
	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/undo"
	"mayfly/redisfmt"

	"github.com/rs/zerolog"
)

// Option is one row of the table of options. From it follow the option's flag, its environment variable,
// its line in a config file and in --help, and its part in CONFIG GET and CONFIG SET.
type Option struct {
	Name    string // as in Redis where Redis has the option
	Default string // as a user would write it
	Unit    string // of numbers
	Doc     string
	Mutable bool // CONFIG SET can change it
	Reread  bool // names a file, which CONFIG SET reads again even if the name stays
	Compat  bool // exists for programs that expect it of Redis
	Many    bool // takes several values: --bind 127.0.0.1 ::1

	AliasOf        string // the option that this is another name of; empty: it is none
	AcceptedWeaker bool   // other values ask for less than the server does: a config file may have them

	in func(*Settings) value
}

// Settings are the values of all options at one moment. They must not be modified: CONFIG SET makes new
// ones.
type Settings struct {
	ConfigFile string // path; empty if there is none

	Network
	TLS
	Access
	Data
	Limits
	Reports
	Pages
	Process
	Cluster ClusterSettings
}

// Network says where the server listens and whom it serves.
type Network struct {
	Port           int      // 0: do not listen; -1: auto, until the server listens
	Bind           []string // addresses; a leading - means that one may fail
	UnixSocket     string   // path; empty: none
	UnixSocketPerm uint32   // 0: as the umask says
	TCPBacklog     int
	TCPKeepAlive   time.Duration // 0: none
	Timeout        time.Duration // after which an idle client is closed; 0: never
	MaxClients     int

	ReservedClients int // places of MaxClients for clients from this machine

	IOThreads int // loops; 0: a goroutine for each connection, -1: chosen by the number of processors

	portIsAuto bool // what the option says; Port is what the server got
}

// TLS says how the server speaks TLS.
type TLS struct {
	TLSPort        int // as Port
	TLSCertFile    string
	TLSKeyFile     string
	TLSCACertFile  string
	TLSAuthClients string // yes, no or optional

	tlsPortIsAuto bool // as portIsAuto
}

// Access says what clients must show, and what they may do.
type Access struct {
	RequirePass   string        // empty: none
	AuthTimeout   time.Duration // to give it; 0: no limit
	ProtectedMode bool
	Scripts       bool // EVAL and its relatives are allowed

	ACLFile     string     // path of the file of users; empty: none
	UserLines   [][]string // users of the configuration: the words of each line after "user"
	ACLLogLen   int
	AllChannels bool // new users have all channels

	users *access.Users // for CONFIG REWRITE
}

// Data says how items are kept, in memory and on disk.
type Data struct {
	Dir                string // absolute
	Partitions         int
	AppendFsync        keyspace.Fsync
	ActiveExpireEffort int
	UndoWindow         time.Duration // -1: auto
	EraseWithin        time.Duration // 0: no promise
	ScrubInterval      time.Duration // from one check of the files on disk to the next; 0: never
	DiskReserve        int64         // bytes; 0: none
	Ephemeral          bool          // nothing outlasts the process; Dir is a private folder while the server runs
	dirOption          string        // what dir says, if Dir is another folder; see KeepIn
	ManualClock        bool          // time stands still until CLOCK ADVANCE or CLOCK SET
	ClockStart         int64         // ms; where a manual clock begins; 0: at the wall clock's time
	Compaction         keyspace.Compaction
	Eviction           eviction.Options
}

// Limits bound what clients and items take.
type Limits struct {
	MaxMemory        int64 // bytes; 0: no limit
	MaxMemoryClients int64 // bytes; 0: no limit; negative: per cent of MaxMemory. See ClientMemoryLimit.
	MaxValueSize     int   // bytes
	MaxContainers    int   // 0: no limit
	TrackedKeys      int   // 0: no limit
	QueryBufferLimit int   // bytes of a command that is half read
	QueryBudget      int   // documents
	OutputLimits     OutputLimits
	LuaTimeLimit     time.Duration // 0: none
	Encodings        redisfmt.Encodings
}

// Reports say what the server tells of its work.
type Reports struct {
	NotifyKeyspaceEvents events.Classes

	SlowlogThreshold int           // µs; negative: log nothing
	SlowlogLength    int           // commands
	LatencyThreshold time.Duration // 0: record nothing

	LatencyTracking    bool
	LatencyPercentiles []float64 // 0 to 100

	Version string // of Redis, for clients

	LogLevel  zerolog.Level
	LogFormat LogFormat
	LogFile   string // path; empty: standard error
}

// Pages are what the server shows over HTTP.
type Pages struct {
	MetricsAddr  string   // host:port; empty: do not listen
	MetricsHosts []string // names that requests may use; * for all
	MetricsPprof bool

	WebAddr     string   // host:port of the page; empty: none
	WebHosts    []string // names that requests may use; * for all
	WebReadOnly bool
}

// Process is what supervisors and scripts see of the process.
type Process struct {
	PidFile    string // path; empty: none
	PortFile   string // path; empty: none
	Supervised Supervision
}

// ClientMemoryLimit is maxmemory-clients in bytes; 0: no limit. As in Redis, a share of maxmemory is no limit
// while maxmemory has none.
func (s *Settings) ClientMemoryLimit() int64 {
	if s.MaxMemoryClients < 0 {
		return int64(float64(s.MaxMemory) * float64(-s.MaxMemoryClients) / 100)
	}
	return s.MaxMemoryClients
}

// Supervision says whether the server notifies its supervisor when it is ready.
type Supervision uint8

// Kinds of supervision.
const (
	NotSupervised  Supervision = iota
	BySystemd                  // notify systemd
	MaybeBySystemd             // notify systemd if it asks for it
)

// LogFormat is the form of log lines.
type LogFormat uint8

// Log formats.
const (
	LogAuto   LogFormat = iota // pretty on a terminal, JSON otherwise
	LogPretty                  // for people
	LogJSON                    // one JSON object a line
)

var (
	fsyncs = oneOf([]choice[keyspace.Fsync]{
		{"everysec", keyspace.EverySec}, {"always", keyspace.Always}, {"no", keyspace.No},
	})
	evictions = oneOf(func() (list []choice[eviction.Policy]) {
		for _, p := range []eviction.Policy{ // in the order of Redis' error
			eviction.VolatileLRU, eviction.VolatileLFU, eviction.VolatileRandom, eviction.VolatileTTL,
			eviction.AllKeysLRU, eviction.AllKeysLFU, eviction.AllKeysRandom, eviction.None,
		} {
			list = append(list, choice[eviction.Policy]{p.String(), p})
		}
		return list
	}())
	clientAuths = oneOf([]choice[string]{{"no", "no"}, {"yes", "yes"}, {"optional", "optional"}})
	logLevels   = oneOf([]choice[zerolog.Level]{ // Redis' names, then those of zerolog
		{"debug", zerolog.TraceLevel}, {"verbose", zerolog.DebugLevel}, {"notice", zerolog.InfoLevel}, {"warning", zerolog.WarnLevel},
		{"info", zerolog.InfoLevel}, {"warn", zerolog.WarnLevel}, {"error", zerolog.ErrorLevel},
	})
	supervisions = oneOf([]choice[Supervision]{{"no", NotSupervised}, {"systemd", BySystemd}, {"auto", MaybeBySystemd}})
	clocks       = oneOf([]choice[bool]{{"system", false}, {"manual", true}})
	logFormats   = oneOf([]choice[LogFormat]{{"auto", LogAuto}, {"pretty", LogPretty}, {"json", LogJSON}})
)

// Bounds of max-value-size: the smallest useful size, and the largest that Redis allows.
const (
	minValueSize = 1 << 10
	maxValueSize = 512 << 20
)

// Options is the table of options.
var Options = slices.Concat(options, EncodingOptions)

// EncodingOptions are those that say what OBJECT ENCODING shows, as Redis would have it, and nothing else.
var EncodingOptions = []Option{
	encoding("hash-max-listpack-entries", "512", "fields", "up to which OBJECT ENCODING of a hash is listpack, as Redis would have it; nothing else", func(e *redisfmt.Encodings) *int { return &e.HashEntries }),
	encoding("hash-max-listpack-value", "64", "bytes", "of a field or a value, likewise", func(e *redisfmt.Encodings) *int { return &e.HashValue }),
	anotherName("hash-max-listpack-entries", encoding("hash-max-ziplist-entries", "512", "fields", "", func(e *redisfmt.Encodings) *int { return &e.HashEntries })),
	anotherName("hash-max-listpack-value", encoding("hash-max-ziplist-value", "64", "bytes", "", func(e *redisfmt.Encodings) *int { return &e.HashValue })),
	encoding("set-max-intset-entries", "512", "members", "up to which OBJECT ENCODING of a set of integers is intset, likewise", func(e *redisfmt.Encodings) *int { return &e.SetIntegers }),
	encoding("zset-max-listpack-entries", "128", "members", "up to which OBJECT ENCODING of a sorted set is listpack, likewise", func(e *redisfmt.Encodings) *int { return &e.SortedSetEntries }),
	encoding("zset-max-listpack-value", "64", "bytes", "of a member, likewise", func(e *redisfmt.Encodings) *int { return &e.SortedSetValue }),
	anotherName("zset-max-listpack-entries", encoding("zset-max-ziplist-entries", "128", "members", "", func(e *redisfmt.Encodings) *int { return &e.SortedSetEntries })),
	anotherName("zset-max-listpack-value", encoding("zset-max-ziplist-value", "64", "bytes", "", func(e *redisfmt.Encodings) *int { return &e.SortedSetValue })),
}

// anotherName makes an option another name of one with the same values.
func anotherName(of string, o Option) Option {
	o.AliasOf, o.Doc = of, "another name of "+of
	return o
}

// isMirror reports whether the option must have the value of max-value-size.
func (o *Option) isMirror() bool {
	_, is := o.in(new(Settings)).(mirror)
	return is
}

// named returns the option by its first name.
func (o *Option) named() *Option {
	if o.AliasOf == "" {
		return o
	}
	return lookUpOption(o.AliasOf)
}

func encoding(name, preset, unit, doc string, of func(*redisfmt.Encodings) *int) Option {
	return Option{Name: name, Default: preset, Unit: unit, Mutable: true, Doc: doc,
		in: func(s *Settings) value { return count(0, math.MaxInt32).of(of(&s.Encodings)) }}
}

var options = []Option{
	{Name: "config", Doc: "path of a config file in the syntax of redis.conf; also as the first argument",
		in: func(s *Settings) value { return asIs.of(&s.ConfigFile) }},

	{Name: "port", Default: "6379", Mutable: true, Doc: "TCP port to listen on; 0 for none, auto for a free one",
		in: func(s *Settings) value { return port{&s.Port, &s.portIsAuto} }},
	{Name: "bind", Default: "127.0.0.1 -::1", Unit: "addresses", Mutable: true, Many: true,
		Doc: "addresses to listen on, * and ::* for all; an address after - may be missing from the machine",
		in:  func(s *Settings) value { return words(16).of(&s.Bind) }},
	{Name: "unixsocket", Doc: "path of a Unix socket to listen on",
		in: func(s *Settings) value { return asIs.of(&s.UnixSocket) }},
	{Name: "unixsocketperm", Default: "0", Unit: "octal", Doc: "permissions of the Unix socket; 0 for the owner's only",
		in: func(s *Settings) value { return fileMode.of(&s.UnixSocketPerm) }},
	{Name: "tls-port", Default: "0", Mutable: true, Doc: "TCP port to listen on with TLS; 0 for none, auto for a free one",
		in: func(s *Settings) value { return port{&s.TLSPort, &s.tlsPortIsAuto} }},
	{Name: "tls-cert-file", Mutable: true, Reread: true, Doc: "certificate of the server, PEM",
		in: func(s *Settings) value { return asIs.of(&s.TLSCertFile) }},
	{Name: "tls-key-file", Mutable: true, Reread: true, Doc: "its private key, PEM",
		in: func(s *Settings) value { return asIs.of(&s.TLSKeyFile) }},
	{Name: "tls-ca-cert-file", Mutable: true, Reread: true, Doc: "certificates of the authorities that sign those of clients, PEM",
		in: func(s *Settings) value { return asIs.of(&s.TLSCACertFile) }},
	{Name: "tls-auth-clients", Default: "yes", Mutable: true, Doc: "whether TLS clients must show a certificate",
		in: func(s *Settings) value { return clientAuths.of(&s.TLSAuthClients) }},
	{Name: "requirepass", Mutable: true, Doc: "password that clients must give; none if empty",
		in: func(s *Settings) value { return asIs.of(&s.RequirePass) }},
	{Name: "aclfile", Doc: "file of users and their rights, for ACL LOAD and ACL SAVE; a relative path starts in dir; none if empty",
		in: func(s *Settings) value { return asIs.of(&s.ACLFile) }},
	{Name: "acl-pubsub-default", Default: "resetchannels", Mutable: true, Doc: "the channels of a new user: resetchannels for none, allchannels for all",
		in: func(s *Settings) value {
			return oneOf([]choice[bool]{{"resetchannels", false}, {"allchannels", true}}).of(&s.AllChannels)
		}},
	{Name: "acllog-max-len", Default: strconv.Itoa(access.DefaultLogLength), Unit: "entries", Mutable: true, Doc: "length of the log of commands that users may not run (ACL LOG)",
		in: func(s *Settings) value { return count(0, access.MostLogged).of(&s.ACLLogLen) }},
	{Name: "auth-timeout", Default: "60", Unit: "seconds", Mutable: true, Doc: "with a password set, close a client that has not given it in this time; 0 for never",
		in: func(s *Settings) value { return number(time.Second, 0, math.MaxInt32).of(&s.AuthTimeout) }},
	{Name: "protected-mode", Default: "yes", Mutable: true, Doc: "without a password, refuse clients from other machines",
		in: func(s *Settings) value { return yesNo.of(&s.ProtectedMode) }},
	{Name: "maxclients", Default: "10000", Unit: "clients", Mutable: true, Doc: "most clients at a time",
		in: func(s *Settings) value { return count(1, math.MaxUint32).of(&s.MaxClients) }},
	{Name: "reserved-clients", Default: "0", Unit: "clients", Mutable: true, Doc: "places of maxclients that are kept for clients from this machine",
		in: func(s *Settings) value { return count(0, math.MaxUint32).of(&s.ReservedClients) }},
	{Name: "io-threads", Default: auto, Unit: "threads", Doc: "threads that serve most clients, auto for one per two processors; 0 gives each client a goroutine of its own",
		in: func(s *Settings) value { return automatic(128).of(&s.IOThreads) }},
	{Name: "timeout", Default: "0", Unit: "seconds", Mutable: true, Doc: "close a client after this idle time; 0 for never",
		in: func(s *Settings) value { return number(time.Second, 0, math.MaxInt32).of(&s.Timeout) }},
	{Name: "tcp-keepalive", Default: "300", Unit: "seconds", Mutable: true, Doc: "probe quiet TCP connections at this interval; 0 for never",
		in: func(s *Settings) value { return number(time.Second, 0, math.MaxInt32).of(&s.TCPKeepAlive) }},
	{Name: "tcp-backlog", Default: "511", Unit: "connections", Doc: "most connections that wait to be accepted",
		in: func(s *Settings) value { return count(0, math.MaxInt32).of(&s.TCPBacklog) }},
	{Name: "max-value-size", Default: "16mb", Unit: "bytes", Mutable: true, Doc: "largest value and document; k, kb, m, mb, g or gb may follow the number",
		in: func(s *Settings) value { return memory[int](minValueSize, maxValueSize).of(&s.MaxValueSize) }},

	{Name: "max-containers", Default: "100000", Mutable: true, Doc: "most containers besides the databases 0 to 15; a folder with more is served, but gets no new ones; 0 for no limit",
		in: func(s *Settings) value { return count(0, math.MaxInt32).of(&s.MaxContainers) }},
	{Name: "tracking-table-max-keys", Default: "1000000", Mutable: true, Doc: "most keys that are noted for clients with CLIENT TRACKING; beyond it some are told to have changed; 0 for no limit",
		in: func(s *Settings) value { return count(0, math.MaxInt64).of(&s.TrackedKeys) }},
	{Name: "undo-window", Default: auto, Unit: "seconds", Mutable: true, Doc: "how long CONTAINER.UNDO can take back a changed default, CONTAINER.DROP, FLUSHDB and FLUSHALL; what they removed stays in memory as long; 0 for not at all; auto is 300, but 0 for FLUSHDB and FLUSHALL, which free memory, and for changes of empty containers",
		in: func(s *Settings) value {
			return namingAuto(orAuto(number(time.Second, 0, undo.MaxWindow))).of(&s.UndoWindow)
		}},

	{Name: "maxmemory-clients", Default: "1gb", Unit: "bytes", Mutable: true,
		Doc: "most memory that all clients together may hold besides items; above it the largest clients are disconnected; 0 for no limit",
		in:  func(s *Settings) value { return memoryOrShare.of(&s.MaxMemoryClients) }},
	{Name: "client-query-buffer-limit", Default: "1gb", Unit: "bytes", Mutable: true,
		Doc: "disconnect a client whose half-sent command exceeds it; a command has at most four times max-value-size besides",
		in:  func(s *Settings) value { return memory[int](1<<20, math.MaxInt64).of(&s.QueryBufferLimit) }},
	{Name: "client-output-buffer-limit", Default: "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", Mutable: true, Many: true,
		Doc: "disconnect a subscriber or monitor whose unsent messages exceed the hard limit, or the soft limit for the given seconds",
		in:  func(s *Settings) value { return outputLimits{&s.OutputLimits} }},
	{Name: "notify-keyspace-events", Mutable: true, Doc: "events to publish and how; none if empty",
		in: func(s *Settings) value { return eventClasses.of(&s.NotifyKeyspaceEvents) }},

	{Name: "dir", Default: "./data", Doc: "data folder; made if missing",
		in: func(s *Settings) value { return filled.of(&s.Dir) }},
	{Name: "ephemeral", Default: "no", Doc: "for tests: start empty and keep nothing, whatever dir says; the files are in a private folder of TMPDIR and go with the server",
		in: func(s *Settings) value { return yesNo.of(&s.Ephemeral) }},
	{Name: "clock", Default: "system", Doc: "for tests: with manual, time moves only by CLOCK ADVANCE and CLOCK SET; that needs ephemeral",
		in: func(s *Settings) value { return clocks.of(&s.ManualClock) }},
	{Name: "clock-start", Doc: "where a manual clock begins, in milliseconds since 1970 or as in 2030-01-01T00:00:00Z; now if empty",
		in: func(s *Settings) value { return moment.of(&s.ClockStart) }},
	{Name: "partitions", Default: "16", Unit: "partitions", Doc: "parts of the keyspace; fixed when the data folder is made",
		in: func(s *Settings) value { return count(1, 256).of(&s.Partitions) }},
	{Name: "appendfsync", Default: "everysec", Mutable: true, Doc: "when writes are forced to disk; no leaves that to the system",
		in: func(s *Settings) value { return fsyncs.of(&s.AppendFsync) }},
	{Name: "disk-reserve", Default: "128mb", Unit: "bytes", Doc: "room to hold in the data folder for when the disk is full, at most a sixteenth of the disk; 0 for none",
		in: func(s *Settings) value { return memory[int64](0, math.MaxInt64/2).of(&s.DiskReserve) }},
	{Name: "active-expire-effort", Default: "1", Mutable: true, Doc: "effort to find dead documents, 1 for least",
		in: func(s *Settings) value { return count(1, 10).of(&s.ActiveExpireEffort) }},

	{Name: "slowlog-log-slower-than", Default: "10000", Unit: "microseconds", Mutable: true, Doc: "log commands that take at least this long; 0 for all, -1 for none",
		in: func(s *Settings) value { return count(-1, math.MaxInt64).of(&s.SlowlogThreshold) }},
	{Name: "query-budget", Default: "1000000", Mutable: true, Doc: "most documents that a DOC.QUERY examines; within MULTI or a script a tenth",
		in: func(s *Settings) value { return count(1, math.MaxInt32).of(&s.QueryBudget) }},
	{Name: "scripts", Default: "yes", Mutable: true, Doc: "run Lua scripts (EVAL and its relatives)",
		in: func(s *Settings) value { return yesNo.of(&s.Scripts) }},
	{Name: "lua-time-limit", Default: "5000", Unit: "milliseconds", Mutable: true,
		Doc: "answer other commands with BUSY while a script runs for longer; a script is ended after twice that time, and not before 10 s; 0 for no BUSY",
		in:  func(s *Settings) value { return number(time.Millisecond, 0, math.MaxInt32).of(&s.LuaTimeLimit) }},
	anotherName("lua-time-limit", Option{Name: "busy-reply-threshold", Default: "5000", Unit: "milliseconds", Mutable: true,
		in: func(s *Settings) value { return number(time.Millisecond, 0, math.MaxInt32).of(&s.LuaTimeLimit) }}),
	{Name: "slowlog-max-len", Default: "128", Unit: "commands", Mutable: true, Doc: "most commands in the slow log",
		in: func(s *Settings) value { return count(0, math.MaxInt64).of(&s.SlowlogLength) }},
	{Name: "latency-monitor-threshold", Default: "0", Unit: "milliseconds", Mutable: true, Doc: "record events for LATENCY that take at least this long; 0 for none",
		in: func(s *Settings) value {
			return number(time.Millisecond, 0, math.MaxInt32).of(&s.LatencyThreshold)
		}},
	{Name: "latency-tracking", Default: "yes", Mutable: true, Doc: "count how long commands take, for INFO latencystats and LATENCY HISTOGRAM",
		in: func(s *Settings) value { return yesNo.of(&s.LatencyTracking) }},
	{Name: "latency-tracking-info-percentiles", Default: "50 99 99.9", Unit: "percentiles", Mutable: true, Many: true,
		Doc: "the percentiles in INFO latencystats; none if empty",
		in:  func(s *Settings) value { return percentiles.of(&s.LatencyPercentiles) }},
	{Name: "reported-version", Default: "7.4.0", Unit: "version", Mutable: true,
		Doc: "the version of Redis that HELLO and INFO report; some libraries ask for one before they use what it has",
		in:  func(s *Settings) value { return redisVersion.of(&s.Version) }},
	{Name: "metrics-addr", Unit: "address", Doc: "host:port of an HTTP server with /metrics for Prometheus and /healthz; none if empty",
		in: func(s *Settings) value { return hostPort.of(&s.MetricsAddr) }},
	{Name: "metrics-hosts", Unit: "names", Many: true, Doc: "names of this machine that requests to metrics-addr may use, besides IP addresses, localhost, and the host of metrics-addr; * for all",
		in: func(s *Settings) value { return optionalWords(64).of(&s.MetricsHosts) }},
	{Name: "metrics-pprof", Default: "no", Doc: "serve profiles of the program on metrics-addr, under /debug/pprof/",
		in: func(s *Settings) value { return yesNo.of(&s.MetricsPprof) }},
	{Name: "web-addr", Unit: "address", Doc: "host:port of an HTTP server with a page to look at; none if empty; HTTPS if tls-port is set",
		in: func(s *Settings) value { return hostPort.of(&s.WebAddr) }},
	{Name: "web-hosts", Unit: "names", Many: true, Doc: "names of this machine that requests to web-addr may use, besides IP addresses, localhost, and the host of web-addr; * for all",
		in: func(s *Settings) value { return optionalWords(64).of(&s.WebHosts) }},
	{Name: "web-readonly", Default: "no", Doc: "let the page change nothing",
		in: func(s *Settings) value { return yesNo.of(&s.WebReadOnly) }},
	{Name: "maxmemory", Default: "0", Unit: "bytes", Mutable: true, Doc: "most memory that items and containers may take; 0 for no limit",
		in: func(s *Settings) value { return memory[int64](0, math.MaxInt64).of(&s.MaxMemory) }},
	{Name: "maxmemory-policy", Default: "noeviction", Mutable: true,
		Doc: "at the limit, refuse commands that may grow memory, or evict: of all items or of those that will die (volatile), the longest unused, the least often used, any, or those that die soonest",
		in:  func(s *Settings) value { return evictions.of(&s.Eviction.Policy) }},
	{Name: "maxmemory-samples", Default: "5", Unit: "items", Mutable: true,
		Doc: "items to draw for each one that is evicted; more choose better and take longer; above 64 as 64",
		in:  func(s *Settings) value { return count(1, math.MaxInt32).of(&s.Eviction.Samples) }},
	{Name: "lfu-log-factor", Default: "10", Mutable: true, Doc: "the greater, the more accesses it takes to grow a frequency of LFU",
		in: func(s *Settings) value { return count(0, math.MaxInt32).of(&s.Eviction.LogFactor) }},
	{Name: "lfu-decay-time", Default: "1", Unit: "minutes", Mutable: true, Doc: "time after which a frequency of LFU falls by one; 0 for never",
		in: func(s *Settings) value { return count(0, math.MaxInt32).of(&s.Eviction.DecayTime) }},
	{Name: "auto-compact-percentage", Default: "100", Unit: "percent", Mutable: true,
		Doc: "compact a file when its garbage reaches this share of its live data, or the worst file when all reach half of it; 0 for never",
		in:  func(s *Settings) value { return count(0, math.MaxInt32).of(&s.Compaction.Percentage) }},
	{Name: "auto-compact-min-size", Default: "64mb", Unit: "bytes", Mutable: true, Doc: "do not compact while all files together are smaller than this",
		in: func(s *Settings) value { return memory[int64](0, math.MaxInt64).of(&s.Compaction.MinSize) }},
	{Name: "erase-within", Default: "0", Unit: "seconds", Mutable: true,
		Doc: "what is gone is in no file of the data folder after this time; 0: it leaves in time, without a promise",
		in:  func(s *Settings) value { return orZero(time.Second, 600, math.MaxInt32).of(&s.EraseWithin) }},
	{Name: "scrub-interval", Default: "86400", Unit: "seconds", Mutable: true, Doc: "read and check all files on disk this often, and write damaged ones anew; 0 for never",
		in: func(s *Settings) value { return number(time.Second, 0, math.MaxInt32).of(&s.ScrubInterval) }},

	{Name: "cluster-id", Doc: "name of this node; makes the server a node of a cluster, with cluster-addr and cluster-peers",
		in: func(s *Settings) value { return clusterName.of(&s.Cluster.ID) }},
	{Name: "cluster-addr", Unit: "address", Doc: "host:port at which the other nodes reach this one",
		in: func(s *Settings) value { return clusterAddr.of(&s.Cluster.Addr) }},
	{Name: "cluster-peers", Doc: "the nodes that form the cluster, this one among them; nodes that CLUSTER ADD announces name one that exists, and themselves",
		in: func(s *Settings) value { return clusterPeers.of(&s.Cluster.Peers) }},
	{Name: "cluster-node-timeout", Default: "1000", Unit: "milliseconds", Doc: "without a word of the leader for this time, the other nodes elect a new one",
		in: func(s *Settings) value {
			return number(time.Millisecond, 100, 60_000).of(&s.Cluster.NodeTimeout)
		}},
	{Name: "cluster-read-index", Default: "no", Doc: "ask a majority of the nodes before each reply, instead of trusting that the clocks of machines run equally fast",
		in: func(s *Settings) value { return yesNo.of(&s.Cluster.ReadIndex) }},
	{Name: "cluster-proxy", Default: "no", Mutable: true, Doc: "pass commands that only the leader runs on to it, for clients that do not follow MOVED",
		in: func(s *Settings) value { return yesNo.of(&s.Cluster.Proxy) }},
	{Name: "cluster-announce-addr", Unit: "address", Doc: "host:port at which clients reach this node; the host of cluster-addr and the port if empty",
		in: func(s *Settings) value { return clusterAddr.of(&s.Cluster.AnnounceAddr) }},
	{Name: "cluster-name", Default: "mymaster", Doc: "name of the leader for clients that ask Sentinel; commands answer to any name",
		in: func(s *Settings) value { return masterName.of(&s.Cluster.Name) }},
	{Name: "cluster-cert-file", Doc: "certificate of this node for the others, PEM",
		in: func(s *Settings) value { return asIs.of(&s.Cluster.CertFile) }},
	{Name: "cluster-key-file", Doc: "its private key, PEM",
		in: func(s *Settings) value { return asIs.of(&s.Cluster.KeyFile) }},
	{Name: "cluster-ca-cert-file", Doc: "certificates of the authorities that sign those of nodes, PEM",
		in: func(s *Settings) value { return asIs.of(&s.Cluster.CACertFile) }},
	{Name: "cluster-secret-file", Doc: fmt.Sprintf("file with a secret of at least %d bytes that all nodes share, instead of certificates", minClusterSecret),
		in: func(s *Settings) value { return asIs.of(&s.Cluster.SecretFile) }},
	{Name: "repl-log-size", Default: "64mb", Unit: "bytes", Doc: "how much of the replicated log to keep for nodes that were away; they get the whole data folder beyond that",
		in: func(s *Settings) value { return memory[int64](1<<20, 1<<40).of(&s.Cluster.LogSize) }},

	{Name: "loglevel", Default: "notice", Mutable: true, Doc: "least important messages to log",
		in: func(s *Settings) value { return logLevels.of(&s.LogLevel) }},
	{Name: "log-format", Default: "auto", Doc: "format of the log on standard error; auto is pretty on a terminal, json elsewhere",
		in: func(s *Settings) value { return logFormats.of(&s.LogFormat) }},
	{Name: "logfile", Doc: "file to append the log to, made anew if it was moved away; standard error if empty",
		in: func(s *Settings) value { return asIs.of(&s.LogFile) }},
	{Name: "pidfile", Doc: "file that holds the process id while the server runs; none if empty",
		in: func(s *Settings) value { return asIs.of(&s.PidFile) }},
	{Name: "port-file", Doc: "file that holds the port while the server listens, and tls-port on a line of its own; none if empty",
		in: func(s *Settings) value { return asIs.of(&s.PortFile) }},
	{Name: "supervised", Default: "no", Doc: "notify systemd when the server is ready; auto if systemd asks for it",
		in: func(s *Settings) value { return supervisions.of(&s.Supervised) }},

	{Name: "proto-max-bulk-len", Default: "16mb", Mutable: true, Compat: true, Doc: "Redis' limit on values",
		in: func(s *Settings) value { return mirror{&s.MaxValueSize, "max-value-size"} }},
	{Name: "appendonly", Default: "yes", Mutable: true, Compat: true, AcceptedWeaker: true, Doc: "every write is logged",
		in: only("yes")},
	{Name: "save", Mutable: true, Compat: true, AcceptedWeaker: true, Many: true, Doc: "there are no snapshots: every write is logged",
		in: only("")},
	{Name: "databases", Default: "16", Compat: true, Doc: "the databases are the containers 0 to 15; CONTAINER.CREATE adds others",
		in: only("16")},
	{Name: "cluster-enabled", Default: "no", Compat: true, Doc: "cluster-id, cluster-addr and cluster-peers make a node of a cluster",
		in: func(s *Settings) value { return clusterEnabled{&s.Cluster} }},
	{Name: "daemonize", Default: "no", Compat: true, Doc: "the server stays in the foreground",
		in: only("no")},
}

// only makes an option that has one value.
func only(s fixed) func(*Settings) value { return func(*Settings) value { return s } }
