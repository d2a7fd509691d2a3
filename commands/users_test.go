package commands

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// Every row says which containers it touches. This is the list of the manual; a new command needs a line.
var touched = map[string]engine.Touches{
	"selected": engine.TouchesSelected, "named": engine.TouchesNamed, "streams": engine.TouchesStreams, "none": engine.TouchesNone,
	"all": engine.TouchesAll, "visible": engine.TouchesVisible, "others": engine.TouchesOthers,
	"selected others": engine.TouchesSelected | engine.TouchesOthers, "visible others": engine.TouchesVisible | engine.TouchesOthers,
	"named reads": engine.TouchesNamed | engine.ReadsUnnamed, "named writes": engine.TouchesNamed | engine.WritesUnnamed,
	"named visible": engine.TouchesNamed | engine.TouchesVisible, "channels": engine.TouchesChannels, "patterns": engine.TouchesPatterns,
}

var touchedBy = map[string]string{
	"selected": "append copy* dbsize decr decrby del delex delifeq digest eval eval_ro evalsha evalsha_ro exists expire expireat expiretime flushdb get getdel getex getrange getset " +
		"expiremember expirememberat hdel hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby hincrbyfloat hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield " +
		"hscan hset hsetex hsetnx hstrlen httl hvals " +
		"blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset ltrim rpop rpoplpush rpush rpushx " +
		"bzmpop bzpopmax bzpopmin zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex " +
		"zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore " +
		"sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop srandmember srem sscan sunion sunionstore " +
		"incr incrby incrbyfloat increx json.arrappend json.arrindex json.arrinsert json.arrlen json.arrpop json.arrtrim json.clear json.debug json.debug|help json.debug|memory json.del json.forget " +
		"json.get json.merge json.mget json.mset json.numincrby json.nummultby json.objkeys json.objlen json.resp json.set json.strappend json.strlen json.toggle json.type keys lcs " +
		"memory|usage mget mset msetex msetnx object object|encoding object|freq object|help object|idletime object|refcount persist pexpire pexpireat pexpiretime psetex pttl randomkey rename renamenx " +
		"scan set setex setnx setrange strlen substr touch ttl type unlink watch cluster|countkeysinslot cluster|getkeysinslot",
	"selected others": "copy move",
	"others":          "select swapdb",
	"visible others":  "client|kill client|list",
	"visible":         "client|unblock container.list info memory|stats pubsub|channels pubsub|numsub",
	"all":             "backup client|pause flushall monitor slowlog|get",
	"named": "container.create container.get container.history doc.count doc.del doc.exists doc.expiretime doc.explain doc.get doc.gettouch doc.merge doc.meta doc.mget doc.patch doc.pexpiretime " +
		"doc.pttl doc.put doc.revive doc.setttl doc.touch doc.ttl index.list",
	"named reads":   "container.due container.plan doc.query doc.scan",
	"named writes":  "container.drop container.set container.undo index.create index.drop",
	"named visible": "container.forecast",
	"streams": "xack xadd xautoclaim xclaim xdel xgroup xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|help xgroup|setid xinfo xinfo|consumers xinfo|groups xinfo|help xinfo|stream " +
		"xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim",
	"channels": "publish spublish ssubscribe subscribe",
	"patterns": "psubscribe",
	"none": "acl acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load acl|log acl|save acl|setuser acl|users acl|whoami asking auth bgrewriteaof bgsave client client|caching " +
		"client|getname client|getredir client|help client|id client|info client|no-evict client|no-touch client|reply client|setinfo client|setname client|tracking client|trackinginfo client|unpause " +
		"clock clock|advance clock|help clock|now clock|set compact config config|get config|help config|resetstat config|rewrite config|set discard echo exec hello lastsave module module|help module|list " +
		"multi ping punsubscribe quit readonly readwrite reset role save scrub shutdown sunsubscribe time unsubscribe unwatch wait waitaof " +
		"cluster cluster|add cluster|addslots cluster|addslotsrange cluster|bumpepoch cluster|count-failure-reports cluster|delslots cluster|delslotsrange " +
		"cluster|digest cluster|failover cluster|flushslots cluster|forget cluster|help cluster|info cluster|keyslot cluster|links cluster|meet cluster|myid " +
		"cluster|myshardid cluster|nodes cluster|remove cluster|replicas cluster|replicate cluster|reset cluster|saveconfig cluster|set-config-epoch " +
		"cluster|setslot cluster|shards cluster|slaves cluster|slots cluster|status cluster|transfer command command|count command|docs command|getkeys " +
		"command|getkeysandflags command|help command|info command|list latency latency|doctor latency|graph latency|help latency|histogram latency|history " +
		"latency|latest latency|reset memory memory|doctor memory|help memory|malloc-stats memory|purge pubsub pubsub|help pubsub|numpat pubsub|shardchannels " +
		"pubsub|shardnumsub script script|debug script|exists script|flush script|help script|kill script|load sentinel sentinel|ckquorum sentinel|config " +
		"sentinel|failover sentinel|flushconfig sentinel|get-master-addr-by-name sentinel|help sentinel|is-master-down-by-addr sentinel|master sentinel|masters " +
		"sentinel|monitor sentinel|myid sentinel|remove sentinel|replicas sentinel|reset sentinel|sentinels sentinel|set sentinel|slaves slowlog slowlog|help " +
		"slowlog|len slowlog|reset",
}

func TestEveryRowSaysWhatItTouches(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for what, names := range touchedBy {
		for name := range strings.FieldsSeq(names) {
			want[name] = what
		}
	}
	for _, r := range engine.AllRows {
		what, ok := want[r.FullName]
		if !ok || r.Touches != touched[what] {
			t.Errorf("%s touches %b, want %q", r.FullName, r.Touches, what)
		}
	}
}

// TestWalls calls every command of a user who may see nothing but the container mine, with the container
// theirs: none gets through, and none says whether it exists.
func TestWalls(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1")
	w.expect("OK", "CONTAINER.SET", "theirs", "TTL", "-1", "LOG", "100")
	w.expect("OK", "DOC.PUT", "theirs", "k", "{}")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "allchannels", "+@all", "db=mine")
	if got := w.do(2, "AUTH", "u", "x"); got.Str != "OK" {
		t.Fatal(got)
	}
	for _, r := range engine.AllRows {
		if r.Parse == nil || r.Flags&(engine.OnlyInCluster|engine.NoAuth) != 0 || r.Name == "help" {
			continue
		}
		const refused = "NOPERM No permissions to access database"
		for _, name := range []string{"theirs", "nosuch"} {
			args := strings.Split(r.FullName, "|")
			words := max(r.Arity, -r.Arity)
			switch r.Touches {
			case engine.TouchesStreams:
				args = append(args, slices.Repeat([]string{"__keyevent@" + name + "__:expired"}, 8)...)
				if r.KeysAfter.Word != "" {
					args = append(strings.Split(r.FullName, "|"), "GROUP", "g", "c", "STREAMS", "__keyevent@"+name+"__:expired", "0")
				}
			case engine.TouchesSelected, engine.TouchesSelected | engine.TouchesOthers:
				args = append(args, slices.Repeat([]string{"1"}, max(words-len(args), 3))...)
			case engine.TouchesOthers, engine.TouchesAll:
				args = append(args, slices.Repeat([]string{name}, words-len(args))...)
			case engine.TouchesNone, engine.TouchesVisible, engine.TouchesVisible | engine.TouchesOthers, engine.TouchesChannels, engine.TouchesPatterns:
				continue // these answer, see TestVisible
			default:
				args = append(args, slices.Repeat([]string{name}, words-len(args))...)
			}
			row, err := engine.Resolve(args)
			for n := len(args) - 1; row != nil && err != nil && n > 0; n-- { // the number of arguments is right
				row, err = engine.Resolve(args[:n])
				args = args[:n]
			}
			if got := w.do(2, args...); got.Str != refused {
				t.Errorf("%q: %s", args, notation(got))
			}
		}
	}

	// From the own container nothing goes to another one, and nothing is heard of it.
	w.expect("OK", "ACL", "SETUSER", "u", "resetchannels", "&__key*")
	w.do(2, "SELECT", "mine")
	w.do(2, "SET", "k", "v")
	for _, name := range []string{"theirs", "nosuch", "17", "0"} {
		for _, line := range []string{
			"COPY k k DB " + name, "COPY k other DB " + name + " REPLACE", "MOVE k " + name, "SELECT " + name, "SWAPDB mine " + name, "SWAPDB " + name + " mine",
			"CONTAINER.UNDO mine AS " + name, "DOC.GET " + name + " k", "SUBSCRIBE __keyevent@" + name + "__:set", "SUBSCRIBE __keyspace@" + name + "__:k",
			"PUBLISH __keyspace@" + name + "__:k set",
		} {
			if got := w.do(2, strings.Fields(line)...); !strings.HasPrefix(got.Str, "NOPERM ") {
				t.Errorf("%s: %s", line, notation(got))
			}
		}
	}
	// A number may be taken, a name is not told.
	w.expect("OK", "ACL", "SETUSER", "u", "db=mine*,0")
	for _, line := range []string{"CONTAINER.CREATE mine2 NUMBER 17", "CONTAINER.SET mine2 TTL 5 NUMBER 17"} {
		if got, want := w.do(2, strings.Fields(line)...), "ERR container 'mine2' cannot be created: number 17 is that of another container"; got.Str != want {
			t.Errorf("%s: %s", line, notation(got))
		}
	}
	for _, name := range []string{"theirs", "nosuch"} {
		if got := w.do(2, "DOC.PUT", "0", name, "{}"); got.Str != "OK" {
			t.Errorf("DOC.PUT 0 %s: %s", name, notation(got))
		}
	}
	w.expect("OK", "ACL", "SETUSER", "u", "db=mine")

	w.do(2, "PSUBSCRIBE", "__key*")
	if got := w.do(2, "PSUBSCRIBE", "__keyspace@theirs*"); !strings.HasPrefix(got.Str, "NOPERM ") {
		t.Error(notation(got)) // the pattern itself must be allowed
	}
}

// TestRunsWhatDryrunAllows compares what runs with the verdict of ACL DRYRUN, for all commands with one key.
func TestRunsWhatDryrunAllows(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1")
	compared := map[bool]int{}
	for _, rules := range []string{"%R~k* db=0,mine +@all", "%W~k* db=mine +@all", "~k db=0 +@read", "~k* resetdbs +@all", "-@all (~k db=mine +@all)", "allkeys alldbs -@all +get +doc.put"} {
		w.do(1, append(strings.Fields("ACL SETUSER u reset on nopass allchannels"), strings.Fields(rules)...)...)
		w.do(2, "AUTH", "u", "x")
		u, s := w.host.Users().Table().User("u"), w.session(2)
		for _, r := range engine.AllRows {
			for _, key := range []string{"k", "other"} {
				args := strings.Split(r.FullName, "|")
				if r.Keys != engine.OneKey && r.Keys != engine.OneID {
					continue
				}
				for len(args) < max(r.Arity, -r.Arity, r.Keys.First+1) {
					args = append(args, "mine")
				}
				args[r.Keys.First] = key
				may := w.engine.Dryrun(s, u, r, args).Reason == access.Allowed
				if reply := w.do(2, args...); strings.HasPrefix(reply.Str, "NOPERM") == may {
					t.Errorf("%s: %q: %s, DRYRUN allows it: %t", rules, args, notation(reply), may)
				}
				compared[may]++
			}
		}
	}
	if compared[true] < 50 || compared[false] < 50 {
		t.Error(compared)
	}
}

// keysOf are calls of the commands that may have several keys, A and B.
var keysOf = map[string]string{
	"blmove": "A B LEFT LEFT 0", "blmpop": "0 2 A B LEFT", "blpop": "A B 0", "brpop": "A B 0", "brpoplpush": "A B 0", "bzmpop": "0 2 A B MIN", "bzpopmax": "A B 0", "bzpopmin": "A B 0",
	"copy": "A B", "del": "A B", "doc.del": "mine A B", "doc.exists": "mine A B", "doc.mget": "mine A B", "doc.revive": "mine A B", "doc.touch": "mine A B", "exists": "A B",
	"json.mget": "A B $", "json.mset": "A $ 1 B $ 2", "lcs": "A B", "lmove": "A B LEFT LEFT", "lmpop": "2 A B LEFT", "mget": "A B", "mset": "A 1 B 2", "msetex": "2 A 1 B 2", "msetnx": "A 1 B 2",
	"rename": "A B", "renamenx": "A B", "rpoplpush": "A B", "sdiff": "A B", "sdiffstore": "A B", "sinter": "A B", "sintercard": "2 A B", "sinterstore": "A B", "smove": "A B 1", "sunion": "A B", "sunionstore": "A B",
	"touch": "A B", "unlink": "A B", "watch": "A B", "zdiff": "2 A B", "zdiffstore": "A 1 B", "zinter": "2 A B", "zintercard": "2 A B", "zinterstore": "A 1 B", "zmpop": "2 A B MIN",
	"zrangestore": "A B 0 1", "zunion": "2 A B", "zunionstore": "A 1 B", "eval": "return 2 A B", "eval_ro": "return 2 A B", "evalsha": "x 2 A B", "evalsha_ro": "x 2 A B",
}

// TestRunsWhatDryrunAllowsOfSeveralKeys does so for those with several.
func TestRunsWhatDryrunAllowsOfSeveralKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1")
	compared := map[bool]int{}
	for _, rules := range []string{"%R~a* ~b db=0,mine +@all", "%W~a ~b db=0,mine +@all", "%R~a %W~b db=0,mine +@all", "%W~a %R~b db=0,mine +@all", "-@all db=mine (~a +@all) (~b +@all)"} {
		w.do(1, append(strings.Fields("ACL SETUSER u reset on nopass allchannels"), strings.Fields(rules)...)...)
		w.do(2, "AUTH", "u", "x")
		u, s := w.host.Users().Table().User("u"), w.session(2)
		for _, r := range engine.AllRows {
			several := r.Keys != engine.OneKey && r.Keys != engine.OneID && r.Keys != (engine.Keys{}) && !strings.Contains(r.Access, "not_key")
			call := keysOf[r.FullName]
			if several && call == "" {
				t.Errorf("%s has several keys, and no line here", r.FullName)
			}
			if call == "" {
				continue
			}
			for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "a"}, {"b", "b"}, {"a", "other"}, {"other", "b"}} {
				args := append([]string{r.FullName}, strings.Fields(strings.NewReplacer("A", keys[0], "B", keys[1]).Replace(call))...)
				may := w.engine.Dryrun(s, u, r, args).Reason == access.Allowed
				compared[may]++
				if may && r.Flags&engine.Blocking != 0 {
					continue // it would wait
				}
				if reply := w.do(2, args...); strings.HasPrefix(reply.Str, "NOPERM") == may {
					t.Errorf("%s: %q: %s, DRYRUN allows it: %t", rules, args, notation(reply), may)
				}
				w.do(2, "UNWATCH")
			}
		}
	}
	if compared[true] < 200 || compared[false] < 200 {
		t.Error(compared)
	}
}

// hostileLines are what a hostile user tries. <N> is a container, <K> a key, <U> a number.
var hostileLines = strings.Split(`SELECT <N>|SELECT 17|SELECT 18|MOVE <K> <N>|COPY <K> <K> DB <N>|COPY <K> <K> DB <N> REPLACE|SWAPDB <N> <N>|RENAME <K> <K>|RENAMENX <K> <K>|MULTI|EXEC|DISCARD|WATCH <K>
GET <K>|SET <K> <U>|SET <K> v NX GET|DEL <K>|TYPE <K>|EXISTS <K>|TTL <K>|EXPIRE <K> <U>|DBSIZE|KEYS *|SCAN 0|SCAN <U>|FLUSHDB|TOUCH <K>|OBJECT FREQ <K>|MEMORY USAGE <K>
HSET <K> f <U>|HGETALL <K>|HGETDEL <K> FIELDS 1 f|SADD <K> <U>|SUNIONSTORE <K> <K> <K>|ZADD <K> <U> m|RPUSH <K> <U>|LMOVE <K> <K> LEFT RIGHT|TTL <K> f
DOC.PUT <N> <K> {"a":<U>}|DOC.GET <N> <K>|DOC.MGET <N> <K> <K>|DOC.META <N> <K>|DOC.TOUCH <N> <K>|DOC.SCAN <N> 0|DOC.SCAN <N> <U>|DOC.QUERY <N> WHERE~a>0|DOC.QUERY <N> SELECT~* CURSOR <U>|DOC.COUNT <N>|DOC.EXPLAIN <N> <K>|DOC.REVIVE <N> <K>|DOC.DEL <N> <K>
CONTAINER.GET <N>|CONTAINER.SET <N> TTL <U>|CONTAINER.CREATE <N> TTL 5|CONTAINER.DROP <N>|CONTAINER.UNDO <N>|CONTAINER.UNDO <N> AS <N>|CONTAINER.HISTORY <N>|CONTAINER.PLAN <N> TTL <U>|CONTAINER.FORECAST <N>|CONTAINER.FORECAST *|CONTAINER.DUE <N> 0|CONTAINER.LIST|CONTAINER.LIST WITHNUMBERS
INDEX.CREATE <N> /a|INDEX.LIST <N>|INDEX.DROP <N> /a|JSON.SET <K> $ <U>|JSON.GET <K> $|JSON.MGET <K> <K> $|XRANGE __keyevent@<N>__:expired - +|XLEN __keyevent@<N>__:expired|XREAD COUNT 2 STREAMS __keyevent@<N>__:expired 0|XADD <K> * a b
XGROUP CREATE __keyevent@<N>__:expired g 0|XREADGROUP GROUP g c STREAMS __keyevent@<N>__:expired >|XINFO STREAM __keyevent@<N>__:expired|TYPE __keyevent@<N>__:expired|EXISTS __keyevent@<N>__:expired|XPENDING __keyevent@<N>__:expired g
INFO keyspace|INFO deaths|PUBSUB CHANNELS|PUBSUB NUMSUB __keyevent@<N>__:set|PUBLISH __keyevent@<N>__:set <U>|CLIENT LIST|CLIENT UNBLOCK 3|CLIENT KILL ID 3|CLIENT TRACKING ON BCAST|CLIENT TRACKING OFF
EVAL return{redis.pcall('get',KEYS[1])} 1 <K>|EVAL return{redis.pcall('select',ARGV[1]),redis.pcall('get',KEYS[1])} 1 <K> <N>|EVAL return{redis.pcall('doc.get',ARGV[1],KEYS[1])} 1 <K> <N>|EVAL return{redis.pcall('copy',KEYS[1],'z','DB',ARGV[1])} 1 <K> <N>
EVAL return{redis.acl_check_cmd('DOC.GET',ARGV[1],'k')} 0 <N>|EVAL return{redis.pcall('container.list')} 0`, "\n")

// TestHostileUser plays what a user tries who may see one container, beside two others whose contents differ:
// no reply and no message differs.
func TestHostileUser(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, some := range hostileLines {
		lines = append(lines, strings.Split(some, "|")...)
	}
	drill.Seeds(t, 4, 30, 2000, func(t *testing.T, seed uint64) {
		worlds := [2]*hostileWorld{newHostileWorld(t, 0), newHostileWorld(t, 1)}
		r := rand.New(rand.NewPCG(seed, 0))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		for range 200 {
			words := strings.Fields(pick(lines...))
			for i, word := range words {
				words[i] = strings.NewReplacer("~", " ", "<N>", pick("mine", "theirs", "nosuch", "0"), "<U>", strconv.Itoa(r.IntN(12)),
					"<K>", pick("k", "k2", "mine", "__keyevent@theirs__:expired", "__keyevent@mine__:expired")).Replace(word)
			}
			moves := r.IntN(5) == 0
			var got [2]string
			for i, world := range worlds {
				got[i] = world.play(words, moves)
			}
			if got[0] != got[1] {
				t.Fatalf("%q: beside one content\n%s\nbeside another\n%s", words, got[0], got[1])
			}
		}
	})
}

// hostileWorld is a server with a user of the container mine, and a container theirs.
type hostileWorld struct {
	*harness
	n int
}

func newHostileWorld(t *testing.T, n int) *hostileWorld {
	w := &hostileWorld{newHarness(t), n}
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1", "LOG", "1000")
	w.expect("OK", "CONTAINER.SET", "theirs", "TTL", "5", "LOG", "1000")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "resetchannels", "&__key*", "+@all", "-@admin", "-@dangerous", "+info", "+keys", "+flushdb", "+swapdb", "+client", "db=mine")
	w.do(2, "HELLO", "3", "AUTH", "u", "x")
	w.do(4, "HELLO", "3", "AUTH", "u", "x")
	w.do(4, "PSUBSCRIBE", "__key*")
	w.do(2, "SELECT", "mine")
	return w
}

// play runs a command of the user, and returns all that the user is told. Before it others write what depends
// on the world, and time passes.
func (w *hostileWorld) play(words []string, moves bool) string {
	for i := range 1 + 3*w.n {
		w.do(1, "DOC.PUT", "theirs", fmt.Sprint("k", i), fmt.Sprintf(`{"a":%d}`, w.n))
		w.do(1, "SET", "k", strings.Repeat("x", 100*w.n))
	}
	if w.n > 0 {
		w.do(1, "DOC.DEL", "theirs", "k2")
		w.do(1, "SADD", "k2", "a")
	}
	if moves {
		w.clock.Advance(2 * time.Second)
	}
	told := notation(w.do(2, words...))
	if s := w.session(2); s.Wait != nil {
		w.engine.Waiters.Unblock(2, false)
	}
	for _, session := range []int{2, 4} {
		for _, m := range w.received(session) {
			told += "\n" + notation(m)
		}
	}
	return varying.ReplaceAllString(told, "")
}

// varying are etags, which count the writes of all, as the manual says, and estimates.
var varying = regexp.MustCompile(`\b[0-9a-f]{16}\b|avg_ttl=[0-9]+`)

// TestVisible shows what commands answer that answer for what a user may see.
func TestVisible(t *testing.T) {
	t.Parallel()
	play := func(theirs bool) (replies []string) {
		w := newHarness(t)
		w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1", "LOG", "100")
		w.expect("OK", "DOC.PUT", "mine", "k", "{}")
		if theirs {
			w.expect("OK", "CONTAINER.SET", "theirs", "TTL", "-1", "LOG", "100")
			w.expect("OK", "DOC.PUT", "theirs", "k", `{"a":1}`)
			w.expect("OK", "SET", "k", "v")
			w.do(3, "SUBSCRIBE", "__keyevent@theirs__:set", "__keyevent@0__:set")
		}
		w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "allchannels", "+@all", "db=mine")
		w.do(2, "AUTH", "u", "x")
		for _, line := range []string{"CONTAINER.LIST", "CONTAINER.LIST WITHNUMBERS", "CONTAINER.FORECAST *", "INFO keyspace", "INFO deaths",
			"PUBSUB CHANNELS", "PUBSUB NUMSUB __keyevent@theirs__:set", "CLIENT LIST ID 1 3", "CLIENT KILL ID 3", "CLIENT UNBLOCK 3", "SELECT 0", "SELECT 1", "SELECT theirs"} {
			replies = append(replies, line+": "+notation(w.do(2, strings.Fields(line)...)))
		}
		stats := w.do(2, "MEMORY", "STATS")
		for i, e := range stats.Elems {
			if slices.Contains([]string{"keys.count", "dataset.bytes", "total.allocated", "keys.bytes-per-key"}, e.Str) {
				replies = append(replies, fmt.Sprint(e.Str, stats.Elems[i+1].Int))
			}
		}
		return replies
	}
	with, without := play(true), play(false)
	for i := range with {
		if with[i] != without[i] {
			t.Errorf("with a forbidden container:\n%s\nwithout:\n%s", with[i], without[i])
		}
	}
	if !strings.Contains(with[0], "mine") {
		t.Error(with[0])
	}
}

// TestEventsOfForbiddenContainers shows who receives events: only who may see the container, also after a
// change.
func TestEventsOfForbiddenContainers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1")
	w.expect("OK", "CONTAINER.SET", "theirs", "TTL", "-1")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "allchannels", "+@all", "db=mine")
	w.do(2, "AUTH", "u", "x")
	w.do(2, "PSUBSCRIBE", "__key*")
	w.received(2)
	heard := func() (channels []string) {
		w.expect("OK", "DOC.PUT", "mine", "k", "{}")
		w.expect("OK", "DOC.PUT", "theirs", "k", "{}")
		w.do(1, "PUBLISH", "__keyevent@theirs__:x", "m")
		w.do(1, "PUBLISH", "__key", "m")
		for _, m := range w.received(2) {
			channels = append(channels, m.Elems[2].Str)
		}
		return channels
	}
	first := heard()
	if !slices.Contains(first, "__keyspace@mine__:k") || !slices.Contains(first, "__key") || strings.Contains(strings.Join(first, " "), "@theirs") || strings.Contains(strings.Join(first, " "), "@17") {
		t.Errorf("the user hears %q", first)
	}
	w.expect("OK", "ACL", "SETUSER", "u", "db=theirs")
	second := strings.Join(heard(), " ")
	if strings.Contains(second, "@mine") || !strings.Contains(second, "__keyspace@theirs__:k") {
		t.Errorf("after the change the user hears %q", second)
	}
}

// TestCachesOfRestrictedUsers: BCAST tells of the keys that a user may read, by the rights of now. A change
// of rights tells all clients that nothing holds any more.
func TestCachesOfRestrictedUsers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "~a*", "%W~*", "allchannels", "+@all", "db=0,mine", "(~b* +get db=1)")
	w.expect("OK", "ACL", "SETUSER", "all", "on", "nopass", "allkeys", "allchannels", "+@all")
	for session, user := range map[int]string{2: "u", 3: "all", 4: "u"} {
		w.do(session, "HELLO", "3", "AUTH", user, "x")
		mode := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
		if session == 4 {
			mode = mode[:3]
		}
		if reply := notation(w.do(session, mode...)); reply != "OK" {
			t.Error(reply)
		}
	}
	told := func(session int) (names string) {
		for _, m := range w.received(session) {
			names += notation(m) + " "
		}
		return names
	}
	w.do(1, "CONTAINER.CREATE", "mine", "TTL", "-1")
	w.do(1, "CONTAINER.CREATE", "theirs", "TTL", "-1")
	w.received(2)
	w.received(3)
	for _, line := range []string{
		"MULTI", "SET a1 v", "SET b1 v", "DOC.PUT mine a2 {}", "DOC.PUT mine b2 {}", "DOC.PUT theirs a3 {}",
		"SELECT 1", "SET a4 v", "SET b4 v", "SELECT 0", "EXEC",
	} {
		w.do(1, strings.Fields(line)...)
	}
	some, all := told(2), told(3)
	for name, may := range map[string]bool{
		`"a1"`: true, `"b1"`: false, `"a2"`: true, `"mine"`: true, `"b2"`: false, `"a3"`: false, `"theirs"`: false, `"a4"`: false, `"b4"`: true,
	} {
		if strings.Contains(some, name) != may || !strings.Contains(all, name) {
			t.Errorf("%s: who may read some is told %s, who may read all %s", name, some, all)
		}
	}
	w.do(4, "GET", "a1")
	w.expect("OK", "ACL", "SETUSER", "all", "resetkeys", "~other")
	w.expect("OK", "SET", "a1", "v")
	for _, session := range []int{3, 4} {
		if text := told(session); !strings.Contains(text, "nil") || session == 3 && strings.Contains(text, `"a1"`) {
			t.Errorf("after the change client %d is told %q", session, text)
		}
	}
}

// TestLostConnections shows whose connections a change of users closes.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	closed := func() (ids []int64) {
		for _, s := range w.host.disconnected {
			ids = append(ids, s.ID)
		}
		w.host.disconnected = nil
		slices.Sort(ids)
		return ids
	}
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "+@all", "&a", "&b*")
	w.expect("OK", "ACL", "SETUSER", "v", "on", "nopass", "+@all", "&*")
	for id, user := range map[int]string{2: "u", 3: "u", 4: "u", 5: "v"} {
		w.do(id, "AUTH", user, "x")
	}
	w.do(2, "SUBSCRIBE", "a")
	w.do(3, "PSUBSCRIBE", "b*")
	w.do(5, "SUBSCRIBE", "a")
	for _, tt := range []struct {
		args []string
		want []int64
	}{
		{[]string{"ACL", "SETUSER", "u", "&c"}, nil},
		{[]string{"ACL", "SETUSER", "u", "off", ">new"}, nil},
		{[]string{"ACL", "SETUSER", "u", "resetchannels", "&a"}, []int64{3}},
		{[]string{"ACL", "SETUSER", "u", "resetchannels", "&b*"}, []int64{2}},
		{[]string{"ACL", "SETUSER", "v", "resetchannels", "&a"}, nil},
		{[]string{"ACL", "DELUSER", "u"}, []int64{2, 3, 4}},
	} {
		w.do(1, tt.args...)
		if got := closed(); !slices.Equal(got, tt.want) {
			t.Errorf("%q closes %d, want %d", tt.args, got, tt.want)
		}
	}
	for id, name := range map[int]string{7: "m", 8: "n"} {
		w.expect("OK", "ACL", "SETUSER", name, "on", "nopass", "+@all", "&*")
		w.do(id, "AUTH", name, "x")
		w.do(id, "MONITOR")
	}
	for _, tt := range []struct {
		args []string
		want []int64
	}{
		{[]string{"ACL", "SETUSER", "m", "-get"}, nil},
		{[]string{"ACL", "SETUSER", "m", "db=a"}, []int64{7}},
		{[]string{"ACL", "SETUSER", "n", "-monitor"}, []int64{8}},
	} {
		w.do(1, tt.args...)
		if got := closed(); !slices.Equal(got, tt.want) {
			t.Errorf("%q closes %d, want %d", tt.args, got, tt.want)
		}
	}
	if w.do(6, "AUTH", "v", "x"); w.do(6, "ACL", "DELUSER", "v").Int != 1 || !w.last.Close {
		t.Error("who removes the own user stays connected")
	}
}

// TestRedirectBehindWalls: who does not see all containers may not redirect to a client of another user.
func TestRedirectBehindWalls(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*", "db=0")
	for id, user := range map[int]string{2: "u", 3: "u", 4: "default"} {
		w.do(id, "AUTH", user, "x")
	}
	for id, want := range map[string]string{"3": "OK", "4": "(error) ERR The client ID you want redirect to does not exist"} {
		if got := notation(w.do(2, "CLIENT", "TRACKING", "ON", "REDIRECT", id)); got != want {
			t.Errorf("to %s: %s", id, got)
		}
		w.do(2, "CLIENT", "TRACKING", "OFF")
	}
}

// TestBlockedReaderIsJudgedAgain shows that a reader that waits loses its right with the change.
func TestBlockedReaderIsJudgedAgain(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1", "LOG", "1000")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "+@all", "db=mine")
	w.do(2, "AUTH", "u", "x")
	s := w.session(2)
	out := w.engine.Execute(s, []string{"XREAD", "BLOCK", "0", "STREAMS", "__keyevent@mine__:expired", "$"})
	if !out.Deferred || s.Wait == nil {
		t.Fatal("the reader does not wait")
	}
	w.expect("OK", "ACL", "SETUSER", "u", "resetdbs")
	w.engine.Waiters.Unblock(2, false)
	<-out.Resume
	out = w.engine.Execute(s, []string{"XREAD", "BLOCK", "0", "STREAMS", "__keyevent@mine__:expired", "$"})
	if out.Reply.Str != "NOPERM No permissions to access database" || s.Wait != nil {
		t.Errorf("%s", notation(out.Reply))
	}
}

// A client that waits for an entry gets none after it has lost the right, and the next one does.
func TestWaitingForElementsIsJudgedAgain(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"resetdbs", "-blpop", "resetkeys"} {
		w := newHarness(t)
		w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "+@all", "db=0")
		w.do(2, "AUTH", "u", "x")
		out := w.engine.Execute(w.session(2), []string{"BLPOP", "k", "0"})
		if !out.Deferred {
			t.Fatal("the client does not wait")
		}
		w.expect("OK", "ACL", "SETUSER", "u", lost)
		w.expect("(integer) 1", "RPUSH", "k", "v")
		<-out.Resume
		out = w.engine.Execute(w.session(2), []string{"BLPOP", "k", "0"})
		if !strings.HasPrefix(out.Reply.Str, "NOPERM ") {
			t.Errorf("after %s: %s", lost, notation(out.Reply))
		}
		w.expect("(integer) 1", "LLEN", "k")
	}
}

func TestACLLog(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "ACL", "SETUSER", "u", "on", ">x", "~k*", "+get", "+multi", "+exec", "+eval", "+select", "db=0,1")
	w.do(2, "AUTH", "u", "wrong")
	w.do(2, "AUTH", "u", "x")
	for _, line := range []string{"GET a", "GET a", "SET k v", "SELECT 2", "MULTI", "GET a", "EXEC"} {
		w.do(2, strings.Fields(line)...)
	}
	w.do(2, "EVAL", "return redis.pcall('get', 'a')", "0")
	var got []string
	for _, e := range w.do(1, "ACL", "LOG").Elems {
		f := map[string]engine.Reply{}
		for i := 0; i < len(e.Elems); i += 2 {
			f[e.Elems[i].Str] = e.Elems[i+1]
		}
		if !strings.Contains(f["client-info"].Str, "addr=127.0.0.1:50002") {
			t.Errorf("client-info %q", f["client-info"].Str)
		}
		_, command, _ := strings.Cut(f["client-info"].Str, " cmd=")
		command, _, _ = strings.Cut(command, " ")
		got = append(got, fmt.Sprint(command, " ", f["count"].Int, " ", f["reason"].Str, " ", f["context"].Str, " ", f["object"].Str, " ", f["username"].Str, " ", f["entry-id"].Int))
	}
	want := []string{"eval 1 key lua a u 5", "get 1 key multi a u 4", "select 1 database toplevel 2 u 3", "set 1 command toplevel set u 2", "get 2 key toplevel a u 1", "auth 1 auth toplevel AUTH u 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	info := w.do(1, "INFO", "stats").Str
	for _, line := range []string{"acl_access_denied_auth:1", "acl_access_denied_cmd:1", "acl_access_denied_key:4", "acl_access_denied_channel:0", "acl_access_denied_db:1"} {
		if !strings.Contains(info, line+"\r\n") {
			t.Errorf("INFO lacks %s", line)
		}
	}
	w.expect("OK", "ACL", "LOG", "RESET")
	w.expect("(empty array)", "ACL", "LOG")
}

// TestUsersAreShown shows the user in listings, and the secrets that no listing shows.
func TestUsersAreShown(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(9, "MONITOR")
	w.expect("OK", "CONFIG", "SET", "slowlog-log-slower-than", "0")
	w.expect("OK", "ACL", "SETUSER", "alice", "on", ">secret1", "allkeys", "+@all")
	w.do(2, "AUTH", "alice", "secret1")
	w.do(3, "HELLO", "3", "AUTH", "alice", "secret1")
	w.do(2, "CLIENT", "SETNAME", "app")
	w.do(2, "CONTAINER.SET", "orders", "TTL", "5")
	if line := w.do(1, "CLIENT", "LIST", "USER", "alice").Str; strings.Count(line, " user=alice ") != 2 {
		t.Errorf("CLIENT LIST: %s", line)
	}
	w.expect("(error) ERR No such user 'bob'", "CLIENT", "LIST", "USER", "bob")
	if by := notation(w.do(1, "CONTAINER.HISTORY", "orders")); !strings.Contains(by, `"127.0.0.1:50002 alice (app)"`) {
		t.Errorf("HISTORY: %s", by)
	}
	shown := notation(w.do(1, "SLOWLOG", "GET", "-1"))
	for _, m := range w.received(9) {
		shown += "\n" + m.Str
	}
	if strings.Contains(shown, "secret") || strings.Contains(shown, "allkeys") || !strings.Contains(shown, "(redacted)") {
		t.Errorf("secrets are shown: %s", shown)
	}
}

// TestClearingHistoryIsAChange: who may only read a container may not erase its history.
func TestClearingHistoryIsAChange(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.CREATE", "orders", "TTL", "5")
	for user, rules := range map[string][]string{
		"reader": {"-@all", "+@read", "~*"}, "keys": {"+@all", "%R~*"}, "writer": {"-@all", "+container.history", "+container.set", "~*"},
	} {
		w.do(1, append([]string{"ACL", "SETUSER", user, "on", "nopass", "db=orders"}, rules...)...)
		if r := w.do(1, "ACL", "DRYRUN", user, "CONTAINER.HISTORY", "orders"); r.Str != "OK" {
			t.Errorf("%s reads the history: %s", user, notation(r))
		}
		if r := w.do(1, "ACL", "DRYRUN", user, "CONTAINER.HISTORY", "orders", "CLEAR"); (r.Str == "OK") != (user == "writer") {
			t.Errorf("%s clears the history: %s", user, notation(r))
		}
	}
}

// TestProxyOfUsers shows what a follower passes on for a user who may not do everything: what that user may
// do, with the user's name.
func TestProxyOfUsers(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, follows())
	w.engine.SetProxy(true)
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "~k*", "+@all", "-@dangerous", "db=0,1")
	if w.do(1, "GET", "k"); w.last.Forward == nil || w.last.Forward.State.User != "default" || w.last.Forward.State.Restricted {
		t.Fatalf("the default's command: %+v", w.last.Forward)
	}
	w.do(2, "AUTH", "u", "x")
	for _, tt := range []struct{ line, reply string }{ // no reply: it is passed on
		{"GET k", ""}, {"GET other", "NOPERM"}, {"DOC.GET 0 k", ""}, {"DOC.GET theirs k", "NOPERM"}, {"FLUSHALL", "NOPERM"}, {"EVAL return 1 k", ""},
		{"EVAL return 1 other", "NOPERM"}, {"WATCH other", "NOPERM"}, {"WATCH k", ""}, {"UNWATCH", "OK"},
		{"MULTI", "OK"}, {"SELECT 1", "QUEUED"}, {"SELECT 2", "NOPERM"}, {"EXEC", "EXECABORT"},
		{"MULTI", "OK"}, {"SELECT 1", "QUEUED"}, {"SET k v", "QUEUED"}, {"EXEC", ""},
		{"MULTI", "OK"}, {"SELECT 1", "QUEUED"}, {"SET k v", "QUEUED"}, {"!db=0", "OK"}, {"EXEC", "EXECABORT"}, {"!db=0,1", "OK"}, {"SET k v", ""},
	} {
		session, args := 2, strings.Fields(tt.line)
		if rule, ok := strings.CutPrefix(tt.line, "!"); ok {
			session, args = 1, []string{"ACL", "SETUSER", "u", rule}
		}
		reply := w.do(session, args...)
		switch f := w.last.Forward; {
		case tt.reply == "" && (f == nil || f.State.User != "u" || !f.State.Restricted || !strings.HasPrefix(f.Moved, "MOVED ")):
			t.Errorf("%s: %s, %+v", tt.line, notation(reply), f)
		case tt.reply != "" && (f != nil || !strings.HasPrefix(reply.Str, tt.reply)):
			t.Errorf("%s: %s, %+v, want %s", tt.line, notation(reply), f, tt.reply)
		}
	}
}

// TestLeaderJudgesUsersOfOthers shows what the leader runs for a client of another node: what its own users
// may do. A user who is unknown or off may do nothing.
func TestLeaderJudgesUsersOfOthers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i, user := range []string{"default", "u", "nobody", ""} {
		s := w.session(2 + i)
		s.Authenticated.Store(true)
		s.ServeFor(user)
	}
	w.expect("OK", "ACL", "SETUSER", "u", "on", ">secret", "~k*", "+@all", "db=0")
	const unknown = "NOPERM the leader does not know the user"
	for _, tt := range []struct {
		session int
		line    string
		reply   string
	}{
		{2, "SET k v", "OK"}, {3, "GET k", "v"}, {3, "GET other", "NOPERM this user"}, {3, "SELECT 1", "NOPERM No permissions to access database"},
		{3, "ACL WHOAMI", "u"}, {4, "GET k", unknown}, {4, "SELECT 0", unknown}, {4, "MULTI", unknown}, {5, "GET k", unknown},
		{1, "ACL SETUSER u off", "OK"}, {3, "GET k", unknown}, {1, "ACL SETUSER u on", "OK"}, {3, "GET k", "v"},
		{3, "MULTI", "OK"}, {3, "GET k", "QUEUED"}, {1, "ACL DELUSER u", ""}, {3, "EXEC", "EXECABORT Transaction discarded because of: " + unknown},
		{1, "ACL SETUSER default off", "OK"}, {2, "GET k", unknown}, {1, "ACL SETUSER admin on +@all allkeys", "OK"},
	} {
		if reply := w.do(tt.session, strings.Fields(tt.line)...); !strings.HasPrefix(reply.Str, tt.reply) {
			t.Errorf("%d: %s: %s, want %s", tt.session, tt.line, notation(reply), tt.reply)
		}
	}
}

// TestUsersConcurrently changes users while their sessions run commands and subscribe: for the race detector.
// No reply says anything but what one of the rights allows.
func TestUsersConcurrently(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	w.expect("OK", "SET", "k", "v")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "~*", "&*", "+@all")
	var wg sync.WaitGroup
	const rounds = 200
	for id := range 3 {
		s := w.session(10 + id)
		wg.Go(func() {
			w.engine.Execute(s, []string{"AUTH", "u", "x"})
			w.engine.Execute(s, []string{"HELLO", "3"})
			w.engine.Execute(s, []string{"PSUBSCRIBE", "__key*"})
			for range rounds {
				for _, args := range [][]string{{"GET", "k"}, {"SET", "k", "v"}, {"EVAL", "return redis.pcall('get', 'k')", "0"}, {"CONTAINER.LIST"}, {"CLIENT", "INFO"}} {
					if out := w.engine.Execute(s, args); out.Reply.Kind == engine.KindError && !strings.Contains(out.Reply.Str, "NOPERM") && !strings.Contains(out.Reply.Str, "executing the script") {
						t.Errorf("%q: %s", args, out.Reply.Str)
					}
				}
			}
		})
	}
	admin := w.session(9)
	wg.Go(func() {
		for i := range rounds {
			w.engine.Execute(admin, []string{"ACL", "SETUSER", "u", []string{"-get", "+get", "db=1", "alldbs", "resetkeys", "allkeys"}[i%6]})
			w.engine.Execute(admin, []string{"ACL", "LOG"})
			w.engine.Execute(admin, []string{"CLIENT", "LIST"})
		}
	})
	wg.Wait()
}

// TestNumbersUnderLocks: the rights of a command that names a container by its number are judged while EXEC
// or a script has the locks of the whole keyspace.
func TestNumbersUnderLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "mine", "TTL", "-1") // number 16
	w.expect("OK", "CONTAINER.SET", "theirs", "TTL", "-1")
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "&__key*", "+@all", "db=mine")
	w.do(2, "HELLO", "3", "AUTH", "u", "x")
	w.do(2, "SELECT", "mine")
	w.do(2, "SUBSCRIBE", "__keyevent@16__:set")
	w.do(2, "MULTI")
	w.do(2, "FLUSHDB") // needs all locks
	want := []string{"OK"}
	for _, line := range [][2]string{
		{"SELECT 16", "OK"},
		{"MOVE k 16", "(error) ERR source and destination objects are the same"},
		{"COPY k k2 DB 16", "(integer) 0"},
		{"PUBSUB CHANNELS", `1) "__keyevent@16__:set"`},
		{"ACL DRYRUN u SELECT 17", `"This user has no permissions to access the 'theirs' database"`},
		{"EVAL return{redis.pcall('select','17')} 0", "1) (error) ERR The user executing the script can't access the database"},
		{"EVAL return{redis.acl_check_cmd('SELECT','17')} 0", "1) (nil)"},
	} {
		w.do(2, strings.Fields(line[0])...)
		want = append(want, line[1])
	}
	r := w.do(2, "EXEC")
	if len(r.Elems) != len(want) {
		t.Fatal(notation(r))
	}
	for i, reply := range r.Elems {
		if got := notation(reply); got != want[i] {
			t.Errorf("reply %d is %s, want %s", i, got, want[i])
		}
	}
}

// TestEveryRowUnderLocks calls every command within EXEC, and of a script, while that has the locks of the
// whole keyspace, as a user whose rights are judged again: a command that reads in a second transaction waits
// for the first for ever. No reply names a container that the user may not see, unless the command is for
// administrators.
func TestEveryRowUnderLocks(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, name := range []string{"mine", "theirs", "c"} { // number 16, 17, 18
		w.expect("OK", "CONTAINER.SET", name, "TTL", "-1", "LOG", "100")
	}
	w.expect("OK", "ACL", "SETUSER", "u", "on", "nopass", "allkeys", "&__key*", "+@all", "db=mine,c")
	w.do(2, "HELLO", "3", "AUTH", "u", "x")
	w.do(2, "SELECT", "mine")
	lines := slices.Clone(hostileLines)
	for i, line := range lines {
		lines[i] = strings.NewReplacer("~", " ", "<N>", "17", "<U>", "1", "<K>", "k").Replace(line)
	}
	lines = strings.Split(strings.Join(lines, "|"), "|")
	for _, calls := range heldCalls {
		lines = append(append(lines, calls.vetoed...), calls.legal...)
	}
	for name, keys := range keysOf {
		lines = append(lines, name+" "+keys)
	}
	for _, r := range engine.AllRows {
		for _, word := range []string{"c", "17", "16"}[:drill.Pick(1, 3, 3)] {
			for n := max(r.Arity, -r.Arity); n < 6; n++ {
				words := strings.Split(r.FullName, "|")
				words = append(words, slices.Repeat([]string{word}, max(0, n-len(words)))...)
				lines = append(lines, strings.Join(words, " "))
			}
		}
	}
	executed, scripted := map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		words := splitCommand(t, line)
		name := strings.ToLower(words[0])
		if name == "shutdown" || name == "quit" || name == "reset" {
			continue
		}
		w.do(2, "MULTI")
		w.do(2, words...)
		w.do(2, "FLUSHDB") // needs all locks
		r := w.do(2, "EXEC")
		if len(r.Elems) == 2 {
			executed[name] = true
		}
		s := w.do(2, append([]string{"EVAL", "redis.call('FLUSHDB') return redis.pcall(unpack(ARGV))", "0"}, words...)...)
		if s.Kind != engine.KindError {
			scripted[name] = true
		}
		told := notation(r) + notation(s)
		if row, err := engine.Resolve(words); err == nil && row.Flags&engine.Admin == 0 && !strings.Contains(line, "theirs") && strings.Contains(told, "theirs") {
			t.Errorf("%s: %s", line, told)
		}
		w.do(2, "SELECT", "mine")
	}
	if len(executed) < 250 || len(scripted) < 150 {
		t.Errorf("only %d commands were executed, %d by scripts", len(executed), len(scripted))
	}
}
