package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace"
)

var importTool = tool{
	name:   "import",
	syntax: "[file | --in file | redis[s]://[user:password@]host:port/number] [<dir> | --dir <dir> | <host:port>] [--format ndjson|buntdb] [--container name [--ttl off|-1|n]] [--keep-times] [--apply-settings [--max-kill n]] [--resume file] [--partitions n] [--max-containers n] [--strict] [--dry-run]",
	summary: "Reads lines or a buntdb database as export writes them, and any buntdb database with the keys container/id and documents as values. " +
		"Into a data folder, new or existing, that no server uses: items keep the time of their last write, and with it what life they have left. " +
		"Into a running server: documents begin to live anew unless --keep-times is given; plain keys keep their end. An item that was written later in the folder stays. " +
		"A container that exists keeps its settings unless --apply-settings is given. " +
		"With --container it reads documents of other systems: an item of Cosmos DB keeps what is left of its ttl by its _ts. " +
		"From a Redis it reads strings, JSON documents, hashes, sets, sorted sets and lists of one database, with their ends, into --container or the database of that number. " +
		"Bad lines and keys are reported and left out. With a file and no target the folder is " + defaultDir + ". A new folder is named by --dir or by a path with a slash. " +
		"Exit code: 0 everything is in, 1 something is not, 2 it could not go on.",
	run: importItems,
}

// shownFaults is the number of bad lines or keys that are reported one by one.
const shownFaults = 100

// importOptions are the options of an import.
type importOptions struct {
	changes
	server                    serverOptions
	dir, in, format           string
	into, ttl                 string     // the container that is named, and its default
	defaultTTL                expiry.TTL // as ttl says
	resume, redisPassword     string     // files
	partitions, maxContainers int
	strict, keepTimes, dry    bool
}

func (o *importOptions) define(c *call) {
	o.server.define(c)
	f := c.flags
	f.StringVar(&o.dir, "dir", "", "data folder to import into")
	f.IntVar(&o.partitions, "partitions", 0, "of a new data folder; 0: 16")
	f.IntVar(&o.maxContainers, "max-containers", keyspace.DefaultMaxContainers, "most containers in a data folder besides the databases 0 to 15; 0: no limit")
	f.StringVar(&o.in, "in", "", "file to read; empty or -: standard input")
	f.StringVar(&o.format, "format", "", "of the file: "+formatLines+" or "+formatDatabase+"; empty: by its first byte")
	f.StringVar(&o.into, "container", "", "import documents of another system into this container: Cosmos DB's items, MongoDB's extended JSON, any JSON objects, in lines or as one array; or the keys of a Redis")
	f.StringVar(&o.ttl, "ttl", "", "default TTL with which to create that container: off, -1 or seconds; empty: it exists")
	f.BoolVar(&o.strict, "strict", false, "stop at the first bad line or key")
	f.BoolVar(&o.dry, "dry-run", false, "read and check everything, and write nothing")
	f.BoolVar(&o.keepTimes, "keep-times", false, "in a running server documents keep the time of their last write, too: Cosmos DB's _ts, or ts of an export")
	f.BoolVar(&o.apply, "apply-settings", false, "change default, mode, deadline and hold of containers that exist, as the file or --ttl says; without it they stay, and a line says how they differ")
	f.IntVar(&o.maxKill, "max-kill", 0, "most items of a container that --apply-settings may kill at once")
	f.StringVar(&o.resume, "resume", "", "file that keeps how far an import from a Redis is; if it is there, the import goes on")
	f.StringVar(&o.redisPassword, "redis-password-file", "", "file with the password of the Redis in its first line; empty: that of its address")
}

// validate refuses options that are illegal or do not belong together, before anything is made.
func (o *importOptions) validate(from, to string) (err error) {
	redis, server := isRedisURL(from), o.dir == "" && isAddress(to)
	switch {
	case o.into == "" && o.ttl != "" && !redis:
		return errors.New("--ttl is the default of the container that --container names")
	case o.into != "" && o.format == formatDatabase:
		return errors.New("--container is for lines and arrays: a buntdb database names its containers")
	case !redis && (o.resume != "" || o.redisPassword != ""):
		return errors.New("--resume and --redis-password-file are for an import from redis://")
	case o.maxKill < 0:
		return fmt.Errorf("invalid --max-kill %d: legal are whole numbers from 0", o.maxKill)
	case redis && o.format != "":
		return errors.New("--format is that of a file, and a Redis has none")
	case server && o.partitions != 0:
		return errors.New("the number of a running server's partitions is its own")
	}
	if o.ttl != "" {
		o.defaultTTL, err = expiry.ParseDefault(o.ttl)
	}
	return err
}

func importItems(c *call) (code int, err error) {
	m := &importer{call: c, unit: "line"}
	m.each = m.line
	m.define(c)
	values, err := c.arguments()
	if err != nil {
		return exitFailed, err
	}
	from, to, err := c.importPaths(values, m.in, m.dir)
	if err == nil {
		err = m.validate(from, to)
	}
	if err != nil {
		return exitFailed, err
	}
	var f *os.File
	switch {
	case isRedisURL(from):
	case from != "":
		if f, err = os.Open(from); err != nil {
			return exitFailed, err
		}
		defer f.Close()
	default:
		if err := c.peekInput(m.into != ""); err != nil {
			return exitFailed, err
		}
	}
	read, err := m.reader(from, to, f)
	if err != nil {
		return exitFailed, err
	}
	if m.to, err = m.target(to); err != nil {
		return exitFailed, err
	}
	if err = m.makeNamed(); err != nil {
		return exitFailed, errors.Join(err, m.to.close())
	}
	err = errors.Join(read(), m.to.close())
	m.report()
	switch {
	case err != nil:
		return exitFailed, err
	case m.faults > 0:
		return exitIncomplete, nil
	}
	return exitOK, nil
}

// reader returns the function that imports a Redis, a file or, if it is nil, standard input.
func (m *importer) reader(from, to string, f *os.File) (read func() error, err error) {
	if isRedisURL(from) {
		r, err := m.newRedisReader(from, to)
		if err != nil {
			return nil, err
		}
		return r.read, nil
	}
	if m.into == "" {
		return m.source(f, m.format)
	}
	if err := validName(m.into); err != nil {
		return nil, err
	}
	in := bufio.NewReader(m.In)
	if f != nil {
		in.Reset(f)
	}
	r := &documentReader{m}
	m.each = r.document
	return func() error { return r.read(in) }, nil
}

// target opens what to import into.
func (m *importer) target(to string) (target, error) {
	switch {
	case m.dir == "" && isAddress(to):
		return m.newServerTarget(to)
	case m.dry:
		return m.newDryFolder(to)
	}
	return m.newFolderTarget(to)
}

// makeNamed creates the container that an option names, if another names its default.
func (m *importer) makeNamed() error {
	if m.ttl == "" {
		return nil
	}
	made := settings{ContainerRecord: keyspace.ContainerRecord{Name: m.into, Created: m.Clock.Now()}}
	made.Policy.Default = m.defaultTTL
	return m.container(made)
}

// report says what the import has done.
func (m *importer) report() {
	verb := "imported"
	if m.dry {
		verb = "nothing is written; the import would be of"
	}
	fmt.Fprintf(m.Err, "%s %d containers and %d items; %d are dead, %d are older than the target's, %d %ss are bad\n",
		verb, m.containers, m.done[keyspace.Stored], m.done[keyspace.Dead], m.done[keyspace.Newer], m.faults, m.unit)
}

// source returns the function that imports a file; nil is standard input. It checks a database as a
// whole, before the import changes anything.
func (m *importer) source(f *os.File, format string) (read func() error, err error) {
	in := bufio.NewReader(m.In)
	if f != nil {
		in.Reset(f)
	}
	if format == "" {
		format = formatLines
		if first, _ := in.Peek(1); string(first) == "*" {
			format = formatDatabase
		}
	}
	switch {
	case format == formatLines:
		return func() error { return m.readLines(in) }, nil
	case format != formatDatabase:
		return nil, fmt.Errorf("invalid format %s: legal are %s and %s", expiry.Quote(format), formatLines, formatDatabase)
	case f == nil:
		return nil, errors.New("a buntdb database cannot be read from standard input: name its file")
	}
	m.unit = "key"
	db, err := m.openDatabase(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return func() error { return errors.Join(m.readDatabase(db), db.Close()) }, nil
}

// target takes the containers and items of an import. An error concerns one of them unless it is fatal.
type target interface {
	// container creates a container. One that exists keeps its settings unless changes are wanted.
	container(c settings) (received, error)
	item(at place, e entry) (keyspace.Restored, error)
	flush() error // waits until all that was passed on is taken
	close() error
}

// received says what a target has done with a container.
type received struct {
	number uint32 // which may differ
	note   string // that its settings differ, or were changed; empty: neither
}

// changes says what an import does with the settings of containers that exist.
type changes struct {
	apply   bool
	maxKill int // the most items of a container that a change may kill
}

// kept and changed are the notes of containers whose settings differ.
func kept(differences []string) string {
	return "keeps its settings: " + strings.Join(differences, ", ") + "; --apply-settings changes them"
}

func changed(differences []string, kills int64) string {
	return fmt.Sprintf("has the settings of the import now; they had been: %s; the change has killed %d items", strings.Join(differences, ", "), kills)
}

func would(differences []string, kills int64) string {
	return fmt.Sprintf("would get the settings of the import; they are: %s; the change would kill %d items", strings.Join(differences, ", "), kills)
}

// admit refuses a change that would kill more than allowed.
func (c changes) admit(name string, kills int64) error {
	if kills <= int64(c.maxKill) {
		return nil
	}
	return unsettled(fmt.Sprintf("the settings would kill %d items of container %s at once, more than --max-kill %d: nothing has changed", kills, expiry.Quote(name), c.maxKill))
}

// unsettled is the error for a container whose settings an import does not change.
type unsettled string

func (text unsettled) Error() string { return string(text) }

// place is where the file of an import holds something: in a line, in an array, or under a key.
type place struct {
	line int // 0: elsewhere
	item int // of an array, from 1; 0: elsewhere
	key  string
}

func (p place) String() string {
	switch {
	case p.line > 0:
		return fmt.Sprintf("line %d", p.line)
	case p.item > 0:
		return fmt.Sprintf("item %d", p.item)
	}
	return "key " + expiry.Quote(p.key)
}

// fatal is an error that ends an import.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// missingContainer is the error for an item of a container that does not exist.
type missingContainer string

func (name missingContainer) Error() string {
	return fmt.Sprintf("no container %s: its line must come first, {\"container\":%q,\"default\":\"-1\"}", expiry.Quote(string(name)), string(name))
}

// withoutTTL ends an import whose container is named by an option.
func (name missingContainer) withoutTTL() error {
	return fatal{fmt.Errorf("no container %s: create it with --ttl off, -1 or seconds", expiry.Quote(string(name)))}
}

// importer reads a file and counts.
type importer struct {
	*call
	importOptions
	to         target
	unit       string                            // line, item or key
	each       func(at place, text []byte) error // imports a line
	containers int
	done       [3]int           // by keyspace.Restored
	far        map[string]int64 // of a database: seconds left, by key, of ends that no document can have
	faults     int
	stopped    error // by strict
}

// longestLine is the most bytes of a line: the largest value in base64 and the members around it.
const longestLine = 1 << 30

func (m *importer) readLines(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<20), longestLine)
	number := 0
	for lines.Scan() && m.stopped == nil {
		number++
		if len(lines.Bytes()) == 0 {
			continue
		}
		m.status.Count(number, "lines")
		at := place{line: number}
		if err := m.check(at, m.each(at, lines.Bytes())); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	return m.stopped
}

func (m *importer) line(at place, text []byte) error {
	l, err := readLine(text)
	if err != nil {
		return err
	}
	state, ok, err := l.state()
	if err != nil {
		return err
	}
	if ok {
		return m.container(state)
	}
	e, err := l.entry(m.Clock.Now())
	if err != nil {
		return err
	}
	return m.item(at, e)
}

func (m *importer) container(c settings) error {
	r, err := m.to.container(c)
	if err != nil {
		return err
	}
	m.containers++
	if r.note != "" {
		fmt.Fprintf(m.Err, "container %s %s\n", c.Name, r.note)
	}
	if c.DB != 0 && r.number != c.DB {
		fmt.Fprintf(m.Err, "container %s has the number %d, not %d\n", c.Name, r.number, c.DB)
	}
	return nil
}

func (m *importer) item(at place, e entry) error {
	done, err := m.to.item(at, e)
	if err == nil {
		m.done[done]++
	}
	return err
}

// check reports an error of one line or key. It returns only a fatal one.
func (m *importer) check(at place, err error) error {
	if f, ok := errors.AsType[fatal](err); ok {
		return fmt.Errorf("%v: %w", at, f.error)
	}
	if err != nil {
		m.fault(at, err)
	}
	return nil
}

// fault reports a line or a key that could not be imported.
func (m *importer) fault(at place, err error) {
	m.faults++
	if m.strict && m.stopped == nil {
		m.stopped = fmt.Errorf("%v: %w", at, err)
		return
	}
	switch {
	case m.faults <= shownFaults:
		fmt.Fprintf(m.Err, "%v: %v\n", at, err)
	case m.faults == shownFaults+1:
		fmt.Fprintf(m.Err, "further bad %ss are only counted\n", m.unit)
	}
}

// refused reports what a server has refused after it was counted.
func (m *importer) refused(at place, err error) {
	m.done[keyspace.Stored]--
	m.fault(at, err)
}
