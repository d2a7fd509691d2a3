package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/test/drill"
)

// heldCalls are the calls of each command that writes, against a container on hold ("c", selected) with a
// document d, plain keys k, n and e (which has an end), and a container "free" that is not. What follows
// vetoed is refused; what follows legal goes on.
var heldCalls = map[string]struct{ vetoed, legal []string }{
	"append":           {[]string{"APPEND k x"}, []string{"APPEND new x"}},
	"container.create": {nil, []string{"CONTAINER.CREATE another"}},
	"container.drop":   {[]string{"CONTAINER.DROP c"}, []string{"CONTAINER.DROP free", "CONTAINER.DROP none"}},
	"container.set": {[]string{"CONTAINER.SET c TTL 5", "CONTAINER.SET c TTL off", "CONTAINER.SET c TTLMODE lenient", "CONTAINER.SET c HOLD other", "CONTAINER.SET c HOLD other TTL 60", "CONTAINER.SET c DEADLINE end", "CONTAINER.SET c LOG 60"},
		[]string{"CONTAINER.SET c TTL 60", "CONTAINER.SET c HOLD 'case 4711'", "CONTAINER.SET c HOLD OFF", "CONTAINER.SET c TTL 5 HOLD off", "CONTAINER.SET free TTL 5"}},
	"container.undo":   {[]string{"CONTAINER.UNDO c", "CONTAINER.UNDO c AS new"}, []string{"CONTAINER.UNDO free", "CONTAINER.UNDO none"}},
	"copy":             {[]string{"COPY k d REPLACE", "COPY k n REPLACE"}, []string{"COPY k new", "COPY k new DB free", "COPY k n", "COPY d new DB free"}},
	"decr":             {[]string{"DECR n"}, []string{"DECR new"}},
	"decrby":           {[]string{"DECRBY n 2"}, []string{"DECRBY new 2"}},
	"del":              {[]string{"DEL k", "DEL none d", "DEL new k"}, []string{"DEL none"}},
	"delex":            {[]string{"DELEX k", "DELEX k IFEQ value", "DELEX d"}, []string{"DELEX none", "DELEX k IFNE value", "DELEX none IFNE x"}},
	"delifeq":          {[]string{"DELIFEQ k value"}, []string{"DELIFEQ k x", "DELIFEQ none x"}},
	"doc.del":          {[]string{"DOC.DEL c d", "DOC.DEL c d IFMATCH *"}, []string{"DOC.DEL c none", "DOC.DEL c d IFMATCH 0000000000000001", "DOC.DEL free f"}},
	"doc.gettouch":     {[]string{"DOC.GETTOUCH c d", "DOC.GETTOUCH c d MINAGE 1 PATH /v"}, []string{"DOC.GETTOUCH c d MINAGE 3600", "DOC.GETTOUCH c none"}},
	"doc.merge":        {[]string{`DOC.MERGE c d '{"v":2}'`}, []string{`DOC.MERGE c new '{"v":2}'`}},
	"doc.patch":        {[]string{"DOC.PATCH c d SET /v 2"}, []string{"DOC.PATCH c none SET /v 2", "DOC.PATCH c d IFMATCH 0000000000000001 SET /v 2"}},
	"doc.put":          {[]string{"DOC.PUT c d '{}'", "DOC.PUT c d '{}' XX", "DOC.PUT c d '{}' TTL 5"}, []string{"DOC.PUT c new '{}'", "DOC.PUT c d '{}' NX", "DOC.PUT c new '{}' TTL 1"}},
	"doc.setttl":       {[]string{"DOC.SETTTL c d 5", "DOC.SETTTL c d null"}, []string{"DOC.SETTTL c none 5"}},
	"doc.revive":       {nil, []string{"DOC.REVIVE c d", "DOC.REVIVE c none"}}, // a new life under a free id
	"doc.touch":        {[]string{"DOC.TOUCH c d", "DOC.TOUCH c none d"}, []string{"DOC.TOUCH c none"}},
	"expire":           {[]string{"EXPIRE k 5", "EXPIRE k 0", "EXPIRE d 5", "EXPIRE d -1"}, []string{"EXPIRE none 5"}},
	"expireat":         {[]string{"EXPIREAT k 5", "EXPIREAT k 1999999999", "EXPIREAT d 1999999999"}, []string{"EXPIREAT none 5"}},
	"flushall":         {[]string{"FLUSHALL", "FLUSHALL ASYNC"}, nil},
	"flushdb":          {[]string{"FLUSHDB", "FLUSHDB ASYNC"}, nil},
	"getdel":           {[]string{"GETDEL k"}, []string{"GETDEL none"}},
	"getex":            {[]string{"GETEX k EX 5", "GETEX e PERSIST", "GETEX k PERSIST", "GETEX k PXAT 5"}, []string{"GETEX k", "GETEX none EX 5"}},
	"getset":           {[]string{"GETSET k x"}, []string{"GETSET new x"}},
	"expiremember":     {[]string{"EXPIREMEMBER h f 5", "EXPIREMEMBER h f 0"}, []string{"EXPIREMEMBER h none 5", "EXPIREMEMBER none f 5"}},
	"expirememberat":   {[]string{"EXPIREMEMBERAT h f 1999999999"}, []string{"EXPIREMEMBERAT h none 1999999999"}},
	"hdel":             {[]string{"HDEL h f", "HDEL h none g"}, []string{"HDEL h none", "HDEL none f"}},
	"hexpire":          {[]string{"HEXPIRE h 5 FIELDS 1 f", "HEXPIRE h 0 FIELDS 1 f"}, []string{"HEXPIRE h 5 XX FIELDS 1 f", "HEXPIRE none 5 FIELDS 1 f"}},
	"hexpireat":        {[]string{"HEXPIREAT h 1999999999 FIELDS 1 f"}, []string{"HEXPIREAT h 1999999999 FIELDS 1 none"}},
	"hgetdel":          {[]string{"HGETDEL h FIELDS 1 f"}, []string{"HGETDEL h FIELDS 1 none"}},
	"hgetex":           {[]string{"HGETEX h EX 5 FIELDS 1 f", "HGETEX h PERSIST FIELDS 1 g"}, []string{"HGETEX h FIELDS 1 f", "HGETEX h PERSIST FIELDS 1 f"}},
	"hincrby":          {[]string{"HINCRBY h f 1"}, []string{"HINCRBY newh f 1"}},
	"hincrbyfloat":     {[]string{"HINCRBYFLOAT h f 1"}, []string{"HINCRBYFLOAT newh f 1"}},
	"hmset":            {[]string{"HMSET h f 1"}, []string{"HMSET newh f 1"}},
	"hpersist":         {[]string{"HPERSIST h FIELDS 1 g"}, []string{"HPERSIST h FIELDS 1 f"}},
	"hpexpire":         {[]string{"HPEXPIRE h 5000 FIELDS 1 f"}, []string{"HPEXPIRE h 5000 FIELDS 1 none"}},
	"hpexpireat":       {[]string{"HPEXPIREAT h 1999999999000 FIELDS 1 f"}, []string{"HPEXPIREAT h 5 GT FIELDS 1 f"}},
	"hset":             {[]string{"HSET h f 2", "HSET h new 2"}, []string{"HSET newh f 2"}},
	"hsetex":           {[]string{"HSETEX h EX 5 FIELDS 1 f 2", "HSETEX h KEEPTTL FIELDS 1 new 2"}, []string{"HSETEX h FNX FIELDS 1 f 2", "HSETEX newh EX 5 FIELDS 1 f 2"}},
	"hsetnx":           {[]string{"HSETNX h new 2"}, []string{"HSETNX h f 2", "HSETNX newh f 2"}},
	"sadd":             {[]string{"SADD s c"}, []string{"SADD s a", "SADD news a"}},
	"sdiffstore":       {[]string{"SDIFFSTORE s news", "SDIFFSTORE k s"}, []string{"SDIFFSTORE news s", "SDIFFSTORE news none"}},
	"sinterstore":      {[]string{"SINTERSTORE s s none", "SINTERSTORE h s s"}, []string{"SINTERSTORE news s s"}},
	"smove":            {[]string{"SMOVE s news a"}, []string{"SMOVE s s a", "SMOVE s news none", "SMOVE none s a"}},
	"spop":             {[]string{"SPOP s", "SPOP s 1", "SPOP s 5"}, []string{"SPOP s 0", "SPOP none 5"}},
	"srem":             {[]string{"SREM s a"}, []string{"SREM s none", "SREM none a"}},
	"sunionstore":      {[]string{"SUNIONSTORE s s s"}, []string{"SUNIONSTORE news s none"}},
	"blmove":           {[]string{"BLMOVE l newl LEFT LEFT 1"}, []string{"BLMOVE none l LEFT LEFT 0.001"}},
	"blmpop":           {[]string{"BLMPOP 1 2 none l LEFT"}, []string{"BLMPOP 0.001 1 none LEFT"}},
	"blpop":            {[]string{"BLPOP none l 1"}, []string{"BLPOP none 0.001"}},
	"brpop":            {[]string{"BRPOP l 1"}, []string{"BRPOP none 0.001"}},
	"brpoplpush":       {[]string{"BRPOPLPUSH l newl 1"}, []string{"BRPOPLPUSH none l 0.001"}},
	"linsert":          {[]string{"LINSERT l BEFORE b x", "LINSERT l AFTER b x"}, []string{"LINSERT l BEFORE none x", "LINSERT none BEFORE b x"}},
	"lmove":            {[]string{"LMOVE l newl LEFT LEFT", "LMOVE l l LEFT RIGHT"}, []string{"LMOVE none l LEFT LEFT"}},
	"lmpop":            {[]string{"LMPOP 2 none l RIGHT COUNT 2"}, []string{"LMPOP 1 none LEFT"}},
	"lpop":             {[]string{"LPOP l", "LPOP l 5"}, []string{"LPOP l 0", "LPOP none"}},
	"lpush":            {[]string{"LPUSH l x"}, []string{"LPUSH newl x"}},
	"lpushx":           {[]string{"LPUSHX l x"}, []string{"LPUSHX newl x"}},
	"lrem":             {[]string{"LREM l 0 a"}, []string{"LREM l 0 none", "LREM none 0 a"}},
	"lset":             {[]string{"LSET l 0 x"}, nil},
	"ltrim":            {[]string{"LTRIM l 1 -1", "LTRIM l 5 1"}, []string{"LTRIM l 0 -1", "LTRIM none 1 1"}},
	"rpop":             {[]string{"RPOP l", "RPOP l 1"}, []string{"RPOP none 5"}},
	"rpoplpush":        {[]string{"RPOPLPUSH l newl"}, []string{"RPOPLPUSH none l"}},
	"rpush":            {[]string{"RPUSH l x"}, []string{"RPUSH newl x"}},
	"rpushx":           {[]string{"RPUSHX l x"}, []string{"RPUSHX newl x"}},
	"bzmpop":           {[]string{"BZMPOP 1 2 none z MIN"}, []string{"BZMPOP 0.001 1 none MIN"}},
	"bzpopmax":         {[]string{"BZPOPMAX z 1"}, []string{"BZPOPMAX none 0.001"}},
	"bzpopmin":         {[]string{"BZPOPMIN none z 1"}, []string{"BZPOPMIN none 0.001"}},
	"zadd":             {[]string{"ZADD z 5 a", "ZADD z 5 new", "ZADD z INCR 1 a"}, []string{"ZADD z 1 a", "ZADD z NX 5 a", "ZADD newz 1 a"}},
	"zdiffstore":       {[]string{"ZDIFFSTORE z 1 newz", "ZDIFFSTORE k 1 z"}, []string{"ZDIFFSTORE newz 1 z", "ZDIFFSTORE newz 1 none"}},
	"zincrby":          {[]string{"ZINCRBY z 1 a", "ZINCRBY z 1 new"}, []string{"ZINCRBY newz 1 a", "ZINCRBY z 0 a"}},
	"zinterstore":      {[]string{"ZINTERSTORE z 2 z none", "ZINTERSTORE h 1 s"}, []string{"ZINTERSTORE newz 2 z z"}},
	"zmpop":            {[]string{"ZMPOP 2 none z MAX COUNT 2"}, []string{"ZMPOP 1 none MIN"}},
	"zpopmax":          {[]string{"ZPOPMAX z", "ZPOPMAX z 5"}, []string{"ZPOPMAX z 0", "ZPOPMAX none"}},
	"zpopmin":          {[]string{"ZPOPMIN z"}, []string{"ZPOPMIN none 5"}},
	"zrangestore":      {[]string{"ZRANGESTORE z z 0 0", "ZRANGESTORE z none 0 0"}, []string{"ZRANGESTORE newz z 0 -1"}},
	"zrem":             {[]string{"ZREM z a"}, []string{"ZREM z none", "ZREM none a"}},
	"zremrangebylex":   {[]string{"ZREMRANGEBYLEX z - +"}, []string{"ZREMRANGEBYLEX none - +"}},
	"zremrangebyrank":  {[]string{"ZREMRANGEBYRANK z 0 0"}, []string{"ZREMRANGEBYRANK z 5 6"}},
	"zremrangebyscore": {[]string{"ZREMRANGEBYSCORE z 1 1"}, []string{"ZREMRANGEBYSCORE z 7 8"}},
	"zunionstore":      {[]string{"ZUNIONSTORE z 2 z s"}, []string{"ZUNIONSTORE newz 2 z s"}},
	"incr":             {[]string{"INCR n"}, []string{"INCR new"}},
	"incrby":           {[]string{"INCRBY n 2"}, []string{"INCRBY new 2"}},
	"incrbyfloat":      {[]string{"INCRBYFLOAT n 2"}, []string{"INCRBYFLOAT new 2"}},
	"index.create":     {nil, []string{"INDEX.CREATE c /w"}}, // no document changes
	"index.drop":       {nil, []string{"INDEX.DROP c /v"}},
	"increx":           {[]string{"INCREX n", "INCREX n BYFLOAT 1 EX 5", "INCREX n EXAT 5"}, []string{"INCREX n UBOUND 0", "INCREX new EX 5", "INCREX new EXAT 5"}},
	"json.arrappend":   {[]string{"JSON.ARRAPPEND d $.l 1"}, []string{"JSON.ARRAPPEND d $.v 1", "JSON.ARRAPPEND d $.none 1"}},
	"json.arrinsert":   {[]string{"JSON.ARRINSERT d $.l 0 1"}, []string{"JSON.ARRINSERT d $.v 0 1"}},
	"json.arrpop":      {[]string{"JSON.ARRPOP d $.l"}, []string{"JSON.ARRPOP d $.v"}},
	"json.arrtrim":     {[]string{"JSON.ARRTRIM d $.l 0 0"}, []string{"JSON.ARRTRIM d $.l 0 -1"}},
	"json.clear":       {[]string{"JSON.CLEAR d", "JSON.CLEAR d $.l"}, []string{"JSON.CLEAR d $.none"}},
	"json.del":         {[]string{"JSON.DEL d", "JSON.DEL d $.v"}, []string{"JSON.DEL none", "JSON.DEL d $.none"}},
	"json.forget":      {[]string{"JSON.FORGET d", "JSON.FORGET d $.v"}, []string{"JSON.FORGET none", "JSON.FORGET d $.none"}},
	"json.merge":       {[]string{`JSON.MERGE d $ '{"v":2}'`}, []string{`JSON.MERGE new $ '{"v":2}'`, "JSON.MERGE d $.x.y 1"}},
	"json.mset":        {[]string{"JSON.MSET d $ {}", "JSON.MSET new $ {} d $.v 2"}, []string{"JSON.MSET new $ {} other $ 1", "JSON.MSET d $.x.y 2"}},
	"json.numincrby":   {[]string{"JSON.NUMINCRBY d $.v 1"}, []string{"JSON.NUMINCRBY d $.l 1"}},
	"json.nummultby":   {[]string{"JSON.NUMMULTBY d $.v 2"}, []string{"JSON.NUMMULTBY d $.l 2"}},
	"json.set":         {[]string{"JSON.SET d $ {}", "JSON.SET d $.v 2", "JSON.SET d $ {} XX", "JSON.SET d $ {} EX 5", "JSON.SET d $ 1 PXAT 5"}, []string{"JSON.SET new $ {}", "JSON.SET d $ {} NX", "JSON.SET d $ {} NX EX 5", "JSON.SET new $ {} PXAT 5", "JSON.SET d $.v 2 NX"}},
	"json.strappend":   {[]string{`JSON.STRAPPEND d $.s '"x"'`}, []string{`JSON.STRAPPEND d $.v '"x"'`}},
	"json.toggle":      {[]string{"JSON.TOGGLE d $.t"}, []string{"JSON.TOGGLE d $.v"}},
	"move":             {[]string{"MOVE k free", "MOVE d free"}, []string{"MOVE none free"}},
	"mset":             {[]string{"MSET k 1", "MSET new 1 k 1"}, []string{"MSET new 1 other 2", "MSET new 1 new 2"}},
	"msetex":           {[]string{"MSETEX 1 k 1", "MSETEX 2 new 1 k 1 EX 5", "MSETEX 1 k 1 XX PXAT 5"}, []string{"MSETEX 2 new 1 k 1 NX", "MSETEX 2 new 1 k 1 XX", "MSETEX 2 new 1 other 2 EX 5"}},
	"msetnx":           {nil, []string{"MSETNX k 1 new 1", "MSETNX new 1 other 1"}},
	"persist":          {[]string{"PERSIST e", "PERSIST d", "PERSIST k"}, []string{"PERSIST none"}},
	"pexpire":          {[]string{"PEXPIRE k 5000", "PEXPIRE k 0", "PEXPIRE d 5000"}, []string{"PEXPIRE none 5000"}},
	"pexpireat":        {[]string{"PEXPIREAT k 5", "PEXPIREAT k 1999999999000"}, []string{"PEXPIREAT none 5"}},
	"psetex":           {[]string{"PSETEX k 5000 x"}, []string{"PSETEX new 5000 x"}},
	"rename":           {[]string{"RENAME k new", "RENAME k d", "RENAME d new"}, []string{"RENAME none new"}},
	"renamenx":         {[]string{"RENAMENX k new"}, []string{"RENAMENX k n"}},
	"set": {[]string{"SET k x", "SET k x XX", "SET k x KEEPTTL", "SET k x GET", "SET k x EX 5", "SET k x PXAT 5", "SET k x IFEQ value", "SET d x"},
		[]string{"SET new x", "SET k x IFNE value", "SET new x IFNE x", "SET k x NX", "SET new x EX 5", "SET new x PXAT 5"}},
	"setex":    {[]string{"SETEX k 5 x"}, []string{"SETEX new 5 x"}},
	"setnx":    {nil, []string{"SETNX k x", "SETNX new x"}},
	"setrange": {[]string{"SETRANGE k 1 x"}, []string{"SETRANGE new 1 x", "SETRANGE k 0 ''"}},
	"swapdb":   {[]string{"SWAPDB c free", "SWAPDB free c", "SWAPDB c 3"}, []string{"SWAPDB 3 free", "SWAPDB c c"}},
	// A group says what consumers have read: it is theirs, and changes no entry.
	"xack":                  {nil, []string{"XACK __keyevent@c__:expired g 1-1"}},
	"xadd":                  {nil, []string{"XADD __keyevent@c__:expired * a b"}},
	"xautoclaim":            {nil, []string{"XAUTOCLAIM __keyevent@c__:expired g w 0 0"}},
	"xclaim":                {nil, []string{"XCLAIM __keyevent@c__:expired g w 0 1-1 1767225605001-0 FORCE"}},
	"xdel":                  {[]string{"XDEL __keyevent@c__:expired 1-1 1767225605001-0"}, []string{"XDEL __keyevent@c__:expired 1-1"}},
	"xgroup|create":         {nil, []string{"XGROUP CREATE __keyevent@c__:expired g 0"}},
	"xgroup|createconsumer": {nil, []string{"XGROUP CREATECONSUMER __keyevent@c__:expired g w"}},
	"xgroup|delconsumer":    {nil, []string{"XGROUP DELCONSUMER __keyevent@c__:expired g w"}},
	"xgroup|destroy":        {nil, []string{"XGROUP DESTROY __keyevent@c__:expired g"}},
	"xgroup|setid":          {nil, []string{"XGROUP SETID __keyevent@c__:expired g 0"}},
	"xreadgroup":            {nil, []string{"XREADGROUP GROUP g w STREAMS __keyevent@c__:expired >"}},
	"xsetid":                {nil, []string{"XSETID __keyevent@c__:expired 1-1"}},
	"xtrim":                 {[]string{"XTRIM __keyevent@c__:expired MAXLEN 0", "XTRIM __keyevent@c__:expired MINID 9999999999999"}, []string{"XTRIM __keyevent@c__:expired MAXLEN 1"}},
	"unlink":                {[]string{"UNLINK k", "UNLINK d new"}, []string{"UNLINK none"}},
}

const heldReply = "(error) HELD container 'c' is on hold: case 4711"

// newHeldHarness returns a keyspace with a container on hold, as heldCalls expects it, 60 s after its items
// were written. logged gives it a log with one death.
func newHeldHarness(t *testing.T, logged bool, more ...string) *harness {
	w := newHarness(t)
	for _, line := range append([]string{
		"CONTAINER.SET c TTL 60", "CONTAINER.SET free TTL -1", "INDEX.CREATE c /v", "SELECT c",
		`DOC.PUT c d '{"v":1,"ttl":30,"l":[1,2],"s":"x","t":true}'`, "SET k value", "SET n 41", "SET e x EX 10", "DOC.PUT free f '{}'",
	}, more...) {
		w.do(1, splitCommand(t, line)...)
	}
	w.clock.Advance(5 * time.Second)
	if logged {
		w.logDeaths("c")
		w.expect("OK", "SET", "dead", "x", "PX", "1")
		w.clock.Advance(time.Millisecond)
		w.engine.Keyspace().PurgeOnce()
	}
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "case 4711")
	w.clock.Advance(time.Minute)
	return w
}

func splitCommand(t *testing.T, line string) []string {
	t.Helper()
	args, err := splitArgs(line)
	drill.Check(t, err)
	return args
}

// TestNothingChangesWhatIsOnHold calls every command that writes, by itself and in the middle of a
// transaction. What would change the container is vetoed, and then nothing of the command or the transaction
// has happened.
func TestNothingChangesWhatIsOnHold(t *testing.T) {
	t.Parallel()
	w := newHeldHarness(t, true, "HSET h f 1 g 2", "HEXPIRE h 10 FIELDS 1 g", "SADD s a b", "RPUSH l a b", "ZADD z 1 a 2 b")
	state := func() (all []string) {
		all = w.dump()
		for _, read := range []string{"HGETALL h", "SMEMBERS s", "LRANGE l 0 -1", "ZRANGE z 0 -1"} {
			all = append(all, notation(w.do(1, strings.Fields(read)...)))
		}
		return all
	}
	before := state()
	unchanged := func(call string) {
		t.Helper()
		if after := state(); !slices.Equal(after, before) {
			t.Fatalf("%s has changed\n%q to\n%q", call, before, after)
		}
	}
	for n := range 100 { // some of these names are in the partition of h, whose pages need not move then
		w.expect(heldReply, "RENAME", "h", fmt.Sprint("h-", n))
	}
	w.engine.Keyspace().PurgeOnce()
	unchanged("RENAME")
	writes := 0
	for _, r := range engine.AllRows {
		if r.Flags&engine.Write == 0 {
			if calls, ok := heldCalls[r.FullName]; ok {
				t.Errorf("%s writes nothing: %v", r.FullName, calls)
			}
			continue
		}
		calls, ok := heldCalls[r.FullName]
		if writes++; !ok {
			t.Errorf("%s is not tried against a container on hold", r.FullName)
		}
		for _, line := range append(slices.Clone(calls.vetoed), calls.legal...) {
			if name, _, _ := strings.Cut(r.FullName, "|"); !strings.EqualFold(strings.Fields(line)[0], name) {
				t.Errorf("%s is a call of %s", line, r.FullName)
			}
		}
		for _, line := range calls.vetoed {
			w.expect(heldReply, splitCommand(t, line)...)
			unchanged(line)
			w.expect("OK", "MULTI")
			for _, queued := range []string{"SET brand-new 1", "SELECT free", "SET brand-new 1", "SELECT c", line, "SET brand-new 2"} {
				w.expect("QUEUED", splitCommand(t, queued)...)
			}
			w.expect(heldReply, "EXEC")
			unchanged("EXEC with " + line)
			w.expect(`"value"`, "GET", "k") // the container is still selected
		}
	}
	if writes != len(heldCalls) {
		t.Errorf("%d commands write, %d are tried", writes, len(heldCalls))
	}
	w.restart()
	w.expect("OK", "SELECT", "c")
	unchanged("a restart")
	w.expect(heldReply, "DEL", "k")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "OFF", "TTL", "3600")
	w.expect(`"value"`, "GET", "k")
	w.expect("(nil)", "GET", "e")
	w.expect("(nil)", "DOC.GET", "c", "d")
	w.expect("(integer) 1", "DEL", "k")
}

// TestWhatGoesOnUnderAHold: new ids, and writes that change nothing of what is there.
func TestWhatGoesOnUnderAHold(t *testing.T) {
	t.Parallel()
	for _, calls := range heldCalls {
		for _, line := range calls.legal {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				w := newHeldHarness(t, false)
				before := w.dump()
				if got := notation(w.do(1, splitCommand(t, line)...)); strings.Contains(got, "HELD") {
					t.Error(got)
				}
				if strings.Contains(strings.ToLower(line), "hold off") {
					return
				}
				after := w.dump()
				for _, item := range before {
					if strings.HasPrefix(item, "c/") && !slices.Contains(after, item) {
						t.Errorf("%s has changed to %q", item, after)
					}
				}
			})
		}
	}
}

// TestHoldsInTransactions: a hold counts from its command on, and goes with the transaction that set it.
func TestHoldsInTransactions(t *testing.T) {
	t.Parallel()
	w := newHeldHarness(t, false)
	for _, queued := range []string{"MULTI", "SET new 1", "APPEND new 2", "DEL new", "MSET new 1 new 2", "EXPIRE new 100", "RENAME new other"} {
		w.do(1, splitCommand(t, queued)...)
	}
	w.expect("1) OK\n2) (integer) 2\n3) (integer) 1\n4) OK\n5) (integer) 1\n6) OK", "EXEC") // what it has created itself
	w.expect(heldReply, "DEL", "other")

	w.expect("OK", "SELECT", "free")
	w.expect("OK", "SET", "a", "1")
	w.expect("OK", "SET", "b", "1")
	for _, queued := range []string{"MULTI", "DEL a", "CONTAINER.SET free HOLD 'case 12'", "SET c 1", "DEL b"} {
		w.do(1, splitCommand(t, queued)...)
	}
	w.expect("(error) HELD container 'free' is on hold: case 12", "EXEC")
	w.expect("(integer) 2", "EXISTS", "a", "b", "c")
	w.expect("(integer) 1", "DEL", "a") // the hold was rolled back

	for _, queued := range []string{"MULTI", "CONTAINER.SET free HOLD 'case 12'", "SET c 1", "CONTAINER.SET free HOLD off", "DEL b"} {
		w.do(1, splitCommand(t, queued)...)
	}
	w.expect("1) OK\n2) OK\n3) OK\n4) (integer) 1", "EXEC")
	w.expect("(integer) 1", "DEL", "c")

	// Messages and events of what was rolled back do not leave, and the selected container is that of before.
	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "EA")
	w.do(2, "HELLO", "3")
	w.do(2, "PSUBSCRIBE", "__key*__:*")
	w.received(2)
	for _, queued := range []string{"MULTI", "SET x 1", "SELECT c", "SET y 1", "DEL k"} {
		w.do(1, splitCommand(t, queued)...)
	}
	w.expect(heldReply, "EXEC")
	w.expect(heldReply, "FLUSHALL")
	if events := w.received(2); len(events) != 0 {
		t.Errorf("events of what has not happened: %v", events)
	}
	w.expect("(integer) 0", "EXISTS", "x")
}

// TestLongValuesOnHold: values that are walked without locks are vetoed too.
func TestLongValuesOnHold(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	w.expect("OK", "SELECT", "c")
	w.expect("OK", "DOC.PUT", "c", "d", longDocument())
	w.expect("OK", "SET", "k", strings.Repeat("x", 2*engine.SlowBytes))
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "case 4711")
	for _, line := range []string{"DOC.PATCH c d SET /n 5", "DOC.TOUCH c d", "DOC.GETTOUCH c d", "DOC.SETTTL c d 5", "APPEND k x", "SETRANGE k 1 y", "EXPIRE d 5", "RENAME d e"} {
		w.expect(heldReply, splitCommand(t, line)...)
	}
	w.expect(heldReply, "DOC.PUT", "c", "d", longDocument())
	w.expect(`"0"`, "DOC.GET", "c", "d", "PATH", "/n")
	w.expect("(integer) 1", "COPY", "d", "new")
}

func TestHoldArguments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "60")
	legal := "legal are OFF, and reasons of 1 to 255 bytes in one printable line of UTF-8"
	for _, reason := range []string{"", strings.Repeat("x", 256), "two\nlines", "two\r\n-ERR lines", "\x00", "\xff"} {
		w.expect("(error) ERR invalid HOLD "+expiry.Quote(reason)+": "+legal, "CONTAINER.SET", "c", "HOLD", reason)
	}
	w.expect(`(error) ERR unknown option '4711': legal are TTL, TTLMODE, DEADLINE, LOG, MAXLEN, BODIES, DELETES, NUMBER, HOLD, MAXKILL, IFMATCH; did you mean CONTAINER.SET c HOLD "case 4711"?`, "CONTAINER.SET", "c", "HOLD", "case", "4711")
	w.expect(`(error) ERR invalid HOLD no: legal are a reason, such as 'case 4711', and OFF`, "CONTAINER.SET", "c", "HOLD", "no")
	w.expect("(error) ERR option HOLD needs a value: a reason or off", "CONTAINER.SET", "c", "HOLD")
	w.expect("(error) ERR unknown container 'none': CONTAINER.SET needs TTL <off|-1|seconds> to create it", "CONTAINER.SET", "none", "HOLD", "x")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "oFf")
	for _, reason := range []string{"x", strings.Repeat("x", 255), "Az. 12 O 4711/26 – Müller ./. Meier", `"quoted"`} {
		w.expect("OK", "CONTAINER.SET", "c", "HOLD", reason)
		w.expect("OK", "CONTAINER.SET", "c", "HOLD", reason)
		w.expect("OK", "DOC.PUT", "c", fmt.Sprint(len(reason)), "{}")
		w.restart()
		w.expect("(error) HELD container 'c' is on hold: "+reason, "CONTAINER.DROP", "c")
		w.expect("OK", "CONTAINER.SET", "c", "HOLD", "OFF")
	}
	w.expect("OK", "CONTAINER.SET", "made", "TTL", "60", "HOLD", "x")
	w.expect("(error) HELD container 'made' is on hold: x", "CONTAINER.DROP", "made")
	if got := notation(w.do(1, "CONTAINER.CREATE", "other", "HOLD", "x")); !strings.Contains(got, "unknown option 'HOLD'") {
		t.Error(got)
	}
}

// TestNothingDiesOnHold: neither by ttl, nor by an end of its own, nor by the container's default, nor by
// eviction. The end of the hold kills the overdue at once.
func TestNothingDiesOnHold(t *testing.T) {
	t.Parallel()
	w := newHeldHarness(t, false)
	w.clock.Advance(365 * 24 * time.Hour)
	w.engine.Keyspace().PurgeOnce()
	for _, key := range []string{"k", "n", "e", "d"} {
		w.expect("(integer) 1", "EXISTS", key)
		w.expect("(integer) -1", "TTL", key)
		w.expect("(integer) -1", "PEXPIRETIME", key)
	}
	w.expect("(integer) 4", "DBSIZE")
	w.expect("(integer) 1", "DOC.COUNT", "c")
	w.expect(strings.Join([]string{
		`1# "ts" => (integer) 1767225600000`, `2# "etag" => "0000010000000102"`, `3# "ttl" => (integer) -1`, `4# "source" => "hold"`,
		`5# "expiresat" => (integer) -1`, `6# "ttlleft" => (integer) -1`, `7# "size" => (integer) 43`}, "\n"), "DOC.META", "c", "d")
	w.expect("1) \"0\"\n2) 1) \"{\\\"_id\\\":\\\"d\\\",\\\"_ttl\\\":-1}\"", "DOC.QUERY", "c", "SELECT _id, _ttl, _expiresat")
	w.expect("(error) HELD container 'c' is on hold: case 4711", "FLUSHALL")

	// Items that came during the hold are under its rules too.
	w.expect("OK", "SET", "past", "x", "PXAT", "5")
	w.expect("OK", "SET", "short", "x", "PX", "1")
	w.expect("OK", "DOC.PUT", "c", "fresh", "{}")
	w.clock.Advance(time.Second)
	w.engine.Keyspace().PurgeOnce()
	w.restart()
	w.expect("OK", "SELECT", "c")
	w.expect("(integer) 7", "DBSIZE")
	w.expect("(integer) 7", "EXISTS", "past", "short", "fresh", "k", "n", "e", "d")

	w.do(1, "CONFIG", "SET", "notify-keyspace-events", "Ex")
	w.do(2, "HELLO", "3")
	w.do(2, "PSUBSCRIBE", "__keyevent@c__:expired")
	w.received(2)
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "OFF")
	w.expect("(integer) 1", "DBSIZE") // fresh has some of its 60 s left
	w.expect("(integer) 59", "TTL", "fresh")
	if deaths := w.received(2); len(deaths) != 6 {
		t.Errorf("%d deaths are reported, want 6", len(deaths))
	}
}

// TestHoldsInForesight: PLAN says what the end of a hold kills, MAXKILL guards it, and the history has both
// ends.
func TestHoldsInForesight(t *testing.T) {
	t.Parallel()
	w := newHeldHarness(t, false)
	w.expect("OK", "SET", "new", "x")
	held := func(want string, field int, args ...string) {
		t.Helper()
		if got := notation(w.do(1, args...).Elems[field]); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	held("(integer) 4", 7, "CONTAINER.PLAN", "c", "TTL", "60")   // kills
	held("(integer) 2", 7, "CONTAINER.PLAN", "c", "TTL", "3600") // what HOLD OFF TTL 3600 kills
	w.expect("(error) ERR HOLD OFF would kill more than 3 items at once, see CONTAINER.PLAN c TTL 60; nothing has changed", "CONTAINER.SET", "c", "HOLD", "OFF", "MAXKILL", "3")
	w.expect("(error) ERR HOLD OFF would kill more than 1 items at once, see CONTAINER.PLAN c TTL 3600; nothing has changed", "CONTAINER.SET", "c", "HOLD", "OFF", "TTL", "3600", "MAXKILL", "1")
	w.expect(heldReply, "DEL", "k")
	w.expect("(nil)", "CONTAINER.SET", "c", "HOLD", "OFF", "IFMATCH", "0000000000000001")
	w.expect(heldReply, "DEL", "k")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "OFF", "TTL", "3600", "MAXKILL", "2")
	w.expect("(integer) 3", "DBSIZE")
	history := notation(w.do(1, "CONTAINER.HISTORY", "c", "COUNT", "3"))
	for _, want := range []string{`"what" => "released"`, `"what" => "held"`, `"reason" => "case 4711"`, `"ttl" => "3600"`} {
		if !strings.Contains(history, want) {
			t.Errorf("%s is not in %s", want, history)
		}
	}
	w.restart()
	w.expect("OK", "SELECT", "c")
	if after := notation(w.do(1, "CONTAINER.HISTORY", "c", "COUNT", "3")); after != history {
		t.Errorf("after a restart the history is %s, not %s", after, history)
	}
	w.expect("(integer) 3", "DBSIZE")
}

// TestHoldsAndUndo: while a hold lasts nothing is taken back. A default that was set at its end can be.
func TestHoldsAndUndo(t *testing.T) {
	t.Parallel()
	w := newHeldHarness(t, false)
	w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
	w.expect("OK", "CONTAINER.SET", "free", "TTL", "5")
	w.expect("(nil)", "DOC.GET", "free", "f")
	w.expect("OK", "CONTAINER.SET", "free", "HOLD", "case 12")
	w.expect("(error) HELD container 'free' is on hold: case 12", "CONTAINER.UNDO", "free")
	w.clock.Advance(time.Minute)
	w.restart()
	w.expect("(nil)", "DOC.GET", "free", "f")
	w.expect("OK", "CONTAINER.SET", "free", "HOLD", "off")
	if got := notation(w.do(1, "CONTAINER.UNDO", "free")); !strings.Contains(got, `"what" => "set"`) {
		t.Error(got)
	}
	w.expect(`"{}"`, "DOC.GET", "free", "f")

	w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "off", "TTL", "100000")
	w.expect("OK", "SELECT", "c")
	w.expect(`"value"`, "GET", "k")
	w.expect("OK", "CONTAINER.SET", "c", "HOLD", "case 13")
	w.expect("OK", "CONTAINER.SET", "c", "TTL", "1", "HOLD", "off")
	w.expect("(nil)", "GET", "k")
	w.engine.Keyspace().PurgeOnce()
	w.restart()
	w.expect("OK", "SELECT", "c")
	if got := notation(w.do(1, "CONTAINER.UNDO", "c")); !strings.Contains(got, `"what" => "set"`) {
		t.Error(got)
	}
	w.expect(`"value"`, "GET", "k")
	w.expect("(integer) 1", "DEL", "k")
}

// TestEvictionSparesWhatIsOnHold: at the memory limit other containers lose items, and without any the write
// is refused.
func TestEvictionSparesWhatIsOnHold(t *testing.T) {
	t.Parallel()
	for _, policy := range []eviction.Policy{eviction.AllKeysLRU, eviction.AllKeysLFU, eviction.AllKeysRandom, eviction.VolatileLRU, eviction.VolatileLFU, eviction.VolatileRandom, eviction.VolatileTTL} {
		w := newHarness(t)
		w.expect("OK", "CONTAINER.SET", "c", "TTL", "6000", "HOLD", "case 4711")
		w.expect("OK", "CONTAINER.SET", "free", "TTL", "6000")
		for i := range 300 {
			w.do(1, "DOC.PUT", "c", fmt.Sprint("h", i), `{"ttl":60}`)
			w.do(1, "DOC.PUT", "free", fmt.Sprint("f", i), `{"ttl":60}`)
		}
		ks := w.engine.Keyspace()
		options := ks.Eviction()
		options.Policy = policy
		ks.SetEviction(options)
		evicted := 0
		count := func(c *keyspace.Container, id string) {
			if evicted++; c.Name() != "free" {
				t.Errorf("%v evicts %s of %s", policy, id, c.Name())
			}
		}
		if _, ok := ks.Evict(1, count); ok || evicted != 300 {
			t.Errorf("%v: %d items are evicted, %v", policy, evicted, ok)
		}
		w.expect("(integer) 300", "DOC.COUNT", "c")
		w.expect("OK", "CONTAINER.SET", "c", "HOLD", "OFF")
		evicted = 0
		ks.Evict(1, func(*keyspace.Container, string) { evicted++ })
		if evicted != 300 {
			t.Errorf("%v: %d items are evicted after the hold", policy, evicted)
		}
	}
}
