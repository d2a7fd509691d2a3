package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"
	"mayfly/vfs"

	"github.com/gomodule/redigo/redis"
)

// redisURL is the address of one database of a Redis: redis://user:password@host:port/0, or rediss:// for
// TLS.
type redisURL struct {
	address, user, password string
	db                      int
	tls                     bool
}

// isRedisURL reports whether an argument names a Redis to import from.
func isRedisURL(s string) bool {
	return strings.HasPrefix(s, "redis://") || strings.HasPrefix(s, "rediss://")
}

func parseRedisURL(text string) (r redisURL, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return r, errors.New("invalid address of a Redis: legal is redis://user:password@host:port/number, with special characters as %40")
	}
	r = redisURL{user: u.User.Username(), tls: u.Scheme == "rediss"}
	r.password, _ = u.User.Password()
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "6379"
	}
	r.address = net.JoinHostPort(host, port)
	if number := strings.Trim(u.Path, "/"); number != "" {
		r.db, err = strconv.Atoi(number)
	}
	if err != nil || r.db < 0 || u.RawQuery != "" || u.Fragment != "" {
		return r, fmt.Errorf("invalid address %s: legal is the number of a database after the port, as in redis://%s/0", u.Redacted(), r.address)
	}
	return r, nil
}

// redisReader imports the keys of one database of a Redis into a container. The
// Redis is only read, by SCAN, and may serve meanwhile.
type redisReader struct {
	*importer
	from redisURL
	conn *client

	progress redisProgress
	saved    int    // keys when the progress was saved
	portion  int    // keys to ask for at a time
	ending   string // the command that tells an end: PEXPIRETIME, or PTTL before Redis 7.0
	ends     elementEnds
}

// redisProgress is how far an import from a Redis is, and of which import it is.
type redisProgress struct {
	From      string `json:"from"`
	Run       string `json:"run"` // of the Redis: a cursor of SCAN is void after its restart
	To        string `json:"to"`
	Container string `json:"container"`
	Cursor    string `json:"cursor"`
	Keys      int    `json:"keys"`

	Bad  int                `json:"bad"` // keys that have not come
	Left map[string]leftOut `json:"left"`
}

// leftOut counts the keys of a type that cannot come.
type leftOut struct {
	Keys    int    `json:"keys"`
	Example string `json:"example"`
}

// saveEvery is the number of keys after which the progress is saved.
const saveEvery = 10_000

// newRedisReader connects to a Redis. to is the target, as the user names it.
func (m *importer) newRedisReader(from, to string) (r *redisReader, err error) {
	r = &redisReader{importer: m, portion: portionItems}
	m.unit = "key"
	if r.from, err = parseRedisURL(from); err != nil {
		return nil, err
	}
	if m.redisPassword != "" {
		if r.from.password, err = firstLine(m.redisPassword); err != nil {
			return nil, err
		}
	}
	if m.into == "" && r.from.db >= keyspace.Databases {
		return nil, fmt.Errorf("name the --container for database %d", r.from.db)
	}
	if m.into == "" {
		m.into = strconv.Itoa(r.from.db)
	}
	if err := validName(m.into); err != nil {
		return nil, err
	}
	source := serverOptions{redis: true, tls: r.from.tls, cacert: m.server.cacert, cert: m.server.cert, key: m.server.key}
	if r.conn, err = source.dial("tcp", r.from.address, r.from.user, r.from.password); err != nil {
		return nil, err
	}
	r.ends = elementEnds{r.conn, make(map[keyspace.Kind]bool)}
	if _, err = r.conn.do("SELECT", r.from.db); err == nil {
		err = r.begin(to)
	}
	if err != nil {
		r.conn.close()
		return nil, fmt.Errorf("the Redis at %s: %w", r.from.address, err)
	}
	return r, nil
}

// begin goes on where an import of the same keys to the same target has ended, if its file is there.
func (r *redisReader) begin(to string) error {
	info, err := redis.String(r.conn.do("INFO", "server"))
	if err != nil {
		return err
	}
	r.ending = "PEXPIRETIME"
	_, version, _ := strings.Cut(info, "redis_version:")
	if major, _, _ := strings.Cut(version, "."); len(major) == 1 && major < "7" {
		r.ending = "PTTL"
	}
	_, run, _ := strings.Cut(info, "run_id:")
	run, _, _ = strings.Cut(run, "\r\n")
	r.progress = redisProgress{From: fmt.Sprintf("%s/%d", r.from.address, r.from.db), Run: run, To: to, Container: r.into, Cursor: "0"}
	if r.resume == "" {
		return nil
	}
	text, err := os.ReadFile(r.resume)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var had redisProgress
	if err == nil {
		err = json.Unmarshal(text, &had)
	}
	now := r.progress
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w: remove it to begin anew", r.resume, err)
	case had.From != now.From || had.To != now.To || had.Container != now.Container:
		return fmt.Errorf("%s is of the import from %s to container %s of %s: remove it, or name another file", r.resume, had.From, expiry.Quote(had.Container), had.To)
	case had.Run != run || run == "":
		fmt.Fprintf(r.Err, "the Redis has been started again: the import begins anew\n")
		return nil
	}
	fmt.Fprintf(r.Err, "the import goes on after %d keys\n", had.Keys)
	r.progress, r.saved, r.faults = had, had.Keys, had.Bad
	return nil
}

// save keeps how far the import is, once the target has confirmed what came so far.
func (r *redisReader) save() error {
	if r.resume == "" || r.dry || r.progress.Keys < r.saved+saveEvery {
		return nil
	}
	r.saved, r.progress.Bad = r.progress.Keys, r.faults
	text, err := json.Marshal(r.progress)
	if err != nil {
		return err
	}
	part := r.resume + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return vfs.OS.Rename(part, r.resume)
}

// read imports all keys.
func (r *redisReader) read() error {
	defer r.conn.close()
	total, err := redis.Int(r.conn.do("DBSIZE"))
	if err != nil {
		return err
	}
	for done := false; !done && r.stopped == nil; done = r.progress.Cursor == "0" {
		reply, err := redis.Values(r.conn.do("SCAN", r.progress.Cursor, "COUNT", portionItems))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &r.progress.Cursor, &keys); err != nil {
			return err
		}
		if err := r.keys(keys, total); err != nil {
			return err
		}
		if err := r.to.flush(); err != nil {
			return err
		}
		if err := r.save(); err != nil {
			return err
		}
	}
	if r.stopped != nil {
		return r.stopped
	}
	r.reportLeftOut()
	if r.saved == 0 || r.dry {
		return nil
	}
	return os.Remove(r.resume)
}

// keys imports some keys, by their types.
func (r *redisReader) keys(keys []string, total int) error {
	for _, key := range keys {
		if err := r.conn.send("TYPE", key); err != nil {
			return err
		}
	}
	ofType := map[string][]string{}
	for _, key := range keys {
		reply, err := r.conn.receive()
		kind, ok := reply.(string)
		if err := r.check(place{key: key}, serverError(err)); err != nil {
			return err
		}
		if ok {
			ofType[kind] = append(ofType[kind], key)
		}
	}
	for kind, keys := range ofType {
		if kind == "none" { // it has died after the scan
			continue
		}
		from, ok := sources[kind]
		if !ok {
			r.leave(kind, keys)
		} else if err := r.values(&from, keys); err != nil {
			return err
		}
	}
	r.progress.Keys += len(keys)
	r.status.Count(r.progress.Keys, fmt.Sprintf("of %d keys", total))
	return nil
}

// leave counts keys of a type that cannot come.
func (r *redisReader) leave(kind string, keys []string) {
	if r.strict {
		r.fault(place{key: keys[0]}, errors.New("it is of type "+kind+": only "+typesThatCome+" can come"))
		return
	}
	if r.progress.Left == nil {
		r.progress.Left = make(map[string]leftOut)
	}
	l := r.progress.Left[kind]
	if l.Keys == 0 {
		l.Example = keys[0]
	}
	l.Keys += len(keys)
	r.progress.Left[kind] = l
	r.faults += len(keys)
}

// typeSource is how the keys of a type are read: the command, and what follows the key.
type typeSource struct {
	kind  keyspace.Kind
	get   string
	args  []any
	pairs bool // the reply has pairs
}

var sources = map[string]typeSource{
	"string":    {keyspace.Plain, "GET", nil, false},
	"ReJSON-RL": {keyspace.Document, "JSON.GET", nil, false},
	"hash":      {keyspace.HashKind, "HGETALL", nil, true},
	"set":       {keyspace.SetKind, "SMEMBERS", nil, false},
	"zset":      {keyspace.ZSetKind, "ZRANGE", []any{0, -1, "WITHSCORES"}, true},
	"list":      {keyspace.ListKind, "LRANGE", []any{0, -1}, false},
}

const typesThatCome = "strings, JSON documents, hashes, sets, sorted sets and lists"

func (r *redisReader) reportLeftOut() {
	for _, kind := range slices.Sorted(maps.Keys(r.progress.Left)) {
		l := r.progress.Left[kind]
		fmt.Fprintf(r.Err, "left out: %d keys of type %s, such as %s: only %s can come\n", l.Keys, kind, expiry.Quote(l.Example), typesThatCome)
	}
}

// values imports keys of one type. It asks for about portionBytes at a time.
func (r *redisReader) values(from *typeSource, keys []string) error {
	for len(keys) > 0 {
		some := keys[:min(r.portion, len(keys))]
		keys = keys[len(some):]
		for _, key := range some {
			if err := errors.Join(r.conn.send(r.ending, key), r.conn.send(from.get, append([]any{key}, from.args...)...)); err != nil {
				return err
			}
		}
		bytes := 0
		var read []keyValue
		for _, key := range some {
			end, err := redis.Int64(r.conn.receive())
			if r.ending == "PTTL" && end >= 0 {
				end += r.Clock.Now()
			}
			value, err1 := r.conn.receive()
			body, ok := from.bodyOf(value)
			bytes += len(body)
			if err = serverError(errors.Join(err, err1)); err == nil && ok && end != -2 { // else it has died meanwhile
				read = append(read, keyValue{key, body, end})
			}
			if err := r.check(place{key: key}, err); err != nil {
				return err
			}
		}
		for _, v := range read {
			body, err := v.body, error(nil)
			if from.kind == keyspace.HashKind {
				body, err = r.ends.add(v.key, from.kind, v.body)
			}
			if err == nil && (body != "" || from.kind == keyspace.Plain) {
				err = r.key(v.key, from.kind, body, v.end)
			}
			if err := r.check(place{key: v.key}, err); err != nil {
				return err
			}
		}
		r.portion = min(portionItems, max(1, portionBytes*len(some)/max(1, bytes)))
	}
	return nil
}

// keyValue is what was read of a key with its end in ms; negative: none.
type keyValue struct {
	key, body string
	end       int64
}

// bodyOf returns the body of an item from the reply of the command that reads it, false if there is none.
func (from *typeSource) bodyOf(reply any) (body string, ok bool) {
	list, isList := reply.([]any)
	if !isList {
		body, ok = reply.(string)
		return body, ok
	}
	var b []byte
	for len(list) > 0 {
		e := keyspace.Element{}
		e.Field, _ = list[0].(string)
		if list = list[1:]; from.pairs && len(list) > 0 {
			e.Value, _ = list[0].(string)
			list = list[1:]
		}
		b = elements.Append(b, e)
	}
	return string(b), len(b) > 0
}

// goneElement is what servers reply for the end of an element that there is not.
const goneElement = -2

// elementEnds asks a server for the ends of elements.
type elementEnds struct {
	conn *client
	none map[keyspace.Kind]bool // it has none
}

// add adds the ends of elements to a hash, if the server has them: Redis from 7.4 on, and mayfly, which tells
// them of sets and sorted sets too. It leaves out what has died since: the body may become empty.
func (r *elementEnds) add(key string, kind keyspace.Kind, body string) (string, error) {
	var b []byte
	var some []keyspace.Element
	flush := func() error {
		ends, err := r.of(key, kind, some)
		if err != nil {
			return err
		}
		for i, e := range some {
			if i < len(ends) {
				if ends[i] == goneElement {
					continue // since it was read
				}
				e.End = max(0, ends[i])
			}
			b = elements.Append(b, e)
		}
		some = some[:0]
		return nil
	}
	for e := range elements.Each(body) {
		if some = append(some, e); len(some) == portionItems {
			if err := flush(); err != nil {
				return "", err
			}
		}
	}
	err := flush()
	return string(b), err
}

// of returns the ends in ms of elements; not positive: it has none. Without ends the server knows none.
func (r *elementEnds) of(key string, kind keyspace.Kind, some []keyspace.Element) (ends []int64, err error) {
	if r.none[kind] || len(some) == 0 {
		return nil, nil
	}
	fields := make([]any, 0, len(some))
	for _, e := range some {
		fields = append(fields, e.Field)
	}
	if kind == keyspace.HashKind {
		ends, err = redis.Int64s(r.conn.do("HPEXPIRETIME", append([]any{key, "FIELDS", len(fields)}, fields...)...))
	} else {
		ends, err = r.ofMembers(key, fields)
	}
	_, unknown := errors.AsType[unknownCommand](err)
	if refused, ok := errors.AsType[redis.Error](err); unknown || ok && strings.Contains(refused.Error(), "wrong number of arguments") {
		r.none[kind] = true
		return nil, nil
	}
	return ends, serverError(err)
}

func (r *elementEnds) ofMembers(key string, members []any) (ends []int64, err error) {
	for _, member := range members {
		if err := r.conn.send("PEXPIRETIME", key, member); err != nil {
			return nil, err
		}
	}
	for range members {
		end, refused := redis.Int64(r.conn.receive())
		ends, err = append(ends, end), cmp.Or(err, refused)
	}
	return ends, err
}

// serverError makes errors fatal that are none of the server's.
func serverError(err error) error {
	if _, ok := errors.AsType[redis.Error](err); ok || err == nil {
		return err
	}
	return fatal{err}
}

// key imports the value of a key with its end in ms; negative: none.
func (r *redisReader) key(key string, kind keyspace.Kind, body string, end int64) error {
	now := r.Clock.Now()
	e := entry{container: r.into, id: key, fresh: true, item: keyspace.Item{Kind: kind, Body: body, TS: now}}
	if len(key) > keyspace.MaxIDLength {
		return fmt.Errorf("a key of %d bytes: legal are at most %d", len(key), keyspace.MaxIDLength)
	}
	if kind == keyspace.Document {
		if err := e.setJSON(body, end); err != nil {
			return err
		}
	} else if end >= 0 {
		e.item.ExpireAt = max(end, now+1)
	}
	at := place{key: key}
	err := r.item(at, e)
	if missing, ok := errors.AsType[missingContainer](err); ok {
		return missing.withoutTTL()
	}
	return err
}

// setJSON makes an item the document of a key of RedisJSON with its end in ms; negative: none.
func (e *entry) setJSON(body string, end int64) error {
	doc, err := jsondoc.ParseValue(body, jsondoc.MaxSize)
	switch {
	case err != nil:
		return err
	case e.id == "":
		return errors.New("a document's id is empty")
	case doc.TTL != expiry.Absent || doc.TTLErr != nil:
		return errors.New("the document has a member ttl, which means nothing to Redis and would end it here: rename it first")
	}
	e.item.Kind, e.item.Body = keyspace.Document, doc.JSON
	if end < 0 {
		return nil
	}
	return e.setTTL(max(end-e.item.TS, 1))
}
