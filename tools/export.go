package tools

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/repair"
	"mayfly/vfs"

	"github.com/gomodule/redigo/redis"
)

var exportTool = tool{
	name:   "export",
	syntax: "<dir or host:port> [--format ndjson|buntdb] [--out file | file]",
	summary: "Writes everything that lives: as lines of JSON, containers first, or as one buntdb database with the keys container/id. " +
		"From a data folder that no server uses, the export is exact. From a running server it holds what the user may see, but not when keys were written, or what past defaults have killed. " +
		"With --format buntdb the last argument is the file, and without another one the folder is " + defaultDir + ". " +
		"Exit code: 0 everything is written, 2 it could not be: then there is no file.",
	run: export,
}

// defaultDir is the folder of a server without options.
const defaultDir = "./data"

// The formats of an export.
const (
	formatLines    = "ndjson"
	formatDatabase = "buntdb"
)

func export(c *call) (_ int, err error) {
	var server serverOptions
	server.define(c)
	format := c.flags.String("format", formatLines, "of the file: "+formatLines+" or "+formatDatabase)
	out := c.flags.String("out", "", "file to write, which must not exist yet; empty: standard output, for "+formatLines)
	values, err := c.arguments()
	if err != nil {
		return exitFailed, err
	}
	from, to, err := c.exportPaths(values, *format, *out)
	if err != nil {
		return exitFailed, err
	}
	e := &exporter{call: c}
	source := func() error { return repair.Read(vfs.OS, from, c.Clock, e.container, e.item, c.status.File("reading")) }
	if isAddress(from) {
		source = func() error { return e.fromServer(from, &server) }
	}
	write := func(s sink) error {
		e.to = s
		return source()
	}
	switch {
	case *format == formatDatabase:
		err = createWhole(to, func(f *os.File) error { return exportDatabase(f, write) })
	case to != "":
		err = createWhole(to, func(f *os.File) error { return exportLines(f, write) })
	default:
		if c.Terminals.Out { // the lines show it
			c.status.Disable()
		}
		err = exportLines(c.Out, write)
	}
	if err != nil {
		return exitFailed, Advise(err, from)
	}
	seen := ""
	if isAddress(from) && server.user != "" { // who may not have rights to all containers
		seen = ", all that the user " + expiry.Quote(server.user) + " may see"
	}
	fmt.Fprintf(c.Err, "exported %d containers and %d items%s\n", e.containers, e.items, seen)
	return exitOK, nil
}

// createWhole creates a file that has its name only when it is complete and on disk. Until then it is
// called path.part, which an error removes, and a signal that ends the process.
func createWhole(path string, fill func(f *os.File) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists", path)
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is in the way: unless an export to it is running, remove it, or choose another file", part)
	}
	if err != nil {
		return err
	}
	defer removeAtSignal(part)()
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return vfs.SyncDir(vfs.OS, filepath.Dir(path))
}

// removeAtSignal removes a file if a signal ends the process before the end is called.
func removeAtSignal(path string) (end func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has SIGHUP ignored
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			_ = os.Remove(path)
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// sink takes what an export reads: containers before their items.
type sink interface {
	container(c keyspace.ContainerRecord) error
	item(container, id string, it keyspace.Item) error
}

// lineSink writes an export as lines.
type lineSink struct {
	out   io.Writer
	lines lineWriter
}

// exportLines lets a source write lines.
func exportLines(out io.Writer, write func(s sink) error) error {
	w := bufio.NewWriterSize(out, 1<<20)
	return cmp.Or(write(&lineSink{out: w}), w.Flush())
}

func (s *lineSink) container(c keyspace.ContainerRecord) error {
	_, err := s.out.Write(s.lines.container(c))
	return err
}

func (s *lineSink) item(container, id string, it keyspace.Item) error {
	_, err := s.out.Write(s.lines.item(container, id, it))
	return err
}

// exporter counts what it passes on.
type exporter struct {
	*call
	to                sink
	containers, items int
}

func (e *exporter) container(c keyspace.ContainerRecord) error {
	e.containers++
	return e.to.container(c)
}

func (e *exporter) item(container, id string, it keyspace.Item) error {
	e.items++
	e.status.Count(e.items, "items")
	return e.to.item(container, id, it)
}

const (
	// A request asks for at most this many items, of about this many bytes.
	portionBytes = 1 << 20
	portionItems = 500
)

// fromServer exports what a client can see. Each item is as it was at one moment; together they are
// not. An item that changes during the export appears in its old or in its new state.
func (e *exporter) fromServer(address string, o *serverOptions) (err error) {
	conn, err := o.connect(address)
	if err != nil {
		return err
	}
	defer conn.close()
	defer func() { err = cmp.Or(conn.passedOn(err), err) }()
	reply, err := conn.do("CONTAINER.LIST")
	names, err := redis.Strings(reply, err)
	if err != nil {
		return err
	}
	var sources []source
	for _, name := range names {
		s := source{exporter: e, conn: conn}
		if ok, err := s.containerState(name); err != nil {
			return err
		} else if !ok {
			continue // dropped during the export
		}
		sources = append(sources, s)
		if err := e.container(s.state); err != nil {
			return err
		}
	}
	for _, s := range sources {
		if err := s.documents(); err != nil {
			return err
		}
		if err := s.keys(); err != nil {
			return err
		}
	}
	return nil
}

// source is a container of a running server.
type source struct {
	*exporter
	conn    *client
	state   keyspace.ContainerRecord
	portion int // items to ask for at a time
}

// containerState reads the state of a container. It returns false if the container does not exist.
func (s *source) containerState(name string) (bool, error) {
	d, err := s.conn.container(name)
	if err != nil || d == nil {
		return false, err
	}
	s.state = d.ContainerRecord
	s.portion = int(min(portionItems, max(1, portionBytes*d.items/max(1, d.bytes))))
	s.state.Indexes, err = indexesOf(s.conn, name)
	return true, err
}

// described is a container of a server, as CONTAINER.GET describes it: without indexes and past defaults.
type described struct {
	keyspace.ContainerRecord
	items, bytes int64
	etag         string
}

// container describes a container; nil if it does not exist.
func (c *client) container(name string) (*described, error) {
	reply, err := c.do("CONTAINER.GET", name)
	if err != nil || reply == nil {
		return nil, err
	}
	ttl, err1 := field[string](reply, "ttl")
	mode, err2 := field[string](reply, "ttlmode")
	created, err3 := field[int64](reply, "created")
	documents, err4 := field[int64](reply, "documents")
	keys, err5 := field[int64](reply, "keys")
	bytes, err6 := field[int64](reply, "bytes")
	number, err7 := field[int64](reply, "number")
	etag, err8 := field[string](reply, "etag")
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return nil, err
	}
	d := &described{items: documents + keys, bytes: bytes, etag: etag}
	d.ContainerRecord = keyspace.ContainerRecord{Name: name, DB: uint32(number), Created: created}
	if mode == expiry.Lenient.String() {
		d.Policy.Mode = expiry.Lenient
	}
	d.Policy.Deadline, _ = field[string](reply, "deadline") // null for none
	d.Policy.Hold, _ = field[string](reply, "hold")
	d.Policy.Default, err = expiry.ParseDefault(ttl)
	return d, err
}

// indexesOf returns the indexes of a container of a server, as a record has them: paths, with "geo" at the
// end of one over points.
func indexesOf(conn *client, name string) (list [][]string, err error) {
	reply, err := conn.do("INDEX.LIST", name)
	if err != nil {
		return nil, err
	}
	indexes, _ := reply.([]any)
	for _, described := range indexes {
		all, err1 := field[[]any](described, "paths")
		geo, err2 := field[int64](described, "geo")
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("INDEX.LIST: %w", err)
		}
		var paths []string
		for _, path := range all {
			paths = append(paths, fmt.Sprint(path))
		}
		if geo != 0 {
			paths = append(paths, keyspace.GeoMark)
		}
		list = append(list, paths)
	}
	return list, nil
}

// documents exports the container's documents.
func (s *source) documents() error {
	return s.scan([]any{"DOC.SCAN", s.state.Name}, nil, func(ids []any) error {
		_, err := s.documentsOf(ids) // what has another type by now is a key
		return err
	})
}

// documentsOf exports the documents among ids, and returns those that have another type. One transaction
// reads them, so that a document and the time of its last write belong together.
func (s *source) documentsOf(ids []any) (others []any, err error) {
	name := s.state.Name
	return s.ask(ids, &questions{"DOC.GET", []any{name}, nil, "DOC.META"}, func(id string, answer, meta any) error {
		body := fmt.Sprint(answer)
		ts, err := field[int64](meta, "ts")
		if err != nil {
			return err
		}
		doc, err := jsondoc.ParseValue(body, jsondoc.MaxSize)
		if err != nil {
			return fmt.Errorf("document %s of %s: %w", expiry.Quote(id), name, err)
		}
		if !doc.IsObject() {
			own, err := momentOf(meta)
			if err != nil {
				return err
			}
			return s.item(name, id, keyspace.Item{Kind: keyspace.Document, Body: body, TS: ts, ExpireAt: own})
		}
		doc.ReadDeadline(s.state.Policy.Deadline)
		return s.item(name, id, keyspace.Item{Kind: keyspace.Document, Body: body, TS: ts, ExpireAt: doc.ExpireAt(ts)})
	})
}

// momentOf returns the own end in ms of a document that is not an object, as DOC.META tells it. In a
// container that is off or on hold it tells none.
func momentOf(meta any) (own int64, err error) {
	source, err := field[string](meta, "source")
	if err != nil || source != "document" {
		return expiry.Inherit, err
	}
	return field[int64](meta, "expiresat")
}

// keys exports the container's plain keys and collections with their ends. The server does not tell whether
// an end is a key's own or follows from the container's default, nor any end of a key on hold.
func (s *source) keys() error {
	if _, err := s.conn.do("SELECT", s.state.Name); err != nil {
		return err
	}
	ends := elementEnds{s.conn, make(map[keyspace.Kind]bool)}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		from := sources[name]
		if from.kind == keyspace.Document {
			continue
		}
		err := s.scan([]any{"SCAN"}, []any{"TYPE", name}, func(ids []any) error {
			others, err := s.keysOf(ids, &from, &ends)
			for err == nil && len(others) > 0 {
				others, err = s.changed(others, name, &ends)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// changed exports keys that have got another type since they were found, if that is one of those which the
// server was asked for up to last: the others are found with their type. It returns those that have changed
// again.
func (s *source) changed(ids []any, last string, ends *elementEnds) (again []any, err error) {
	for _, id := range ids {
		reply, err := s.conn.do("TYPE", id)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint(reply)
		from, ok := sources[name]
		var others []any
		switch {
		case !ok:
		case from.kind == keyspace.Document:
			others, err = s.documentsOf([]any{id})
		case name <= last:
			others, err = s.keysOf([]any{id}, &from, ends)
		}
		if err != nil {
			return nil, err
		}
		again = append(again, others...)
	}
	return again, nil
}

// keysOf exports the keys of a type among ids, and returns those that have another one.
func (s *source) keysOf(ids []any, from *typeSource, ends *elementEnds) (others []any, err error) {
	var changed []any // between the two transactions
	others, err = s.ask(ids, &questions{from.get, nil, from.args, "PEXPIRETIME"}, func(id string, answer, end any) error {
		body, ok := from.bodyOf(answer)
		if !ok {
			return nil // it has died
		}
		if from.kind.IsCollection() && from.kind != keyspace.ListKind {
			var err error
			if body, err = ends.add(id, from.kind, body); isWrongType(err) {
				changed = append(changed, id)
				return nil
			}
			if err != nil || body == "" {
				return err
			}
		}
		own, ok := end.(int64)
		switch {
		case !ok:
			return errors.New("PEXPIRETIME: no number")
		case own < 0 && s.state.Policy.Default > 0 && s.state.Policy.Hold == "":
			own = expiry.Never
		case own < 0:
			own = expiry.Inherit
		}
		return s.item(s.state.Name, id, keyspace.Item{Kind: from.kind, Body: body, ExpireAt: own})
	})
	return append(others, changed...), err
}

// scan scans the container, and visits the ids of each portion.
func (s *source) scan(command, options []any, visit func(ids []any) error) error {
	for cursor := "0"; ; {
		args := append(append(slices.Clone(command[1:]), cursor, "COUNT", s.portion), options...)
		reply, err := s.conn.do(command[0].(string), args...)
		if err != nil {
			return err
		}
		page, _ := reply.([]any)
		if len(page) != 2 {
			return fmt.Errorf("%v: the reply has %d parts", command[0], len(page))
		}
		if ids, _ := page[1].([]any); len(ids) > 0 {
			if err := visit(ids); err != nil {
				return err
			}
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			return nil
		}
	}
}

// questions are two about an id: a command with its arguments before and after the id, and another.
type questions struct {
	ask           string
	before, after []any
	askAlso       string
}

// ask asks two questions about each id, in one transaction, and visits the answers. It returns the ids whose
// items have another type. If the server refuses the whole, as it does if the replies are too long, it is
// asked for halves.
func (s *source) ask(ids []any, q *questions, visit func(id string, answer, more any) error) (others []any, err error) {
	answers, err := s.transact(ids, q)
	if half := len(ids) / 2; err != nil && half > 0 {
		if others, err = s.ask(ids[:half], q, visit); err != nil {
			return nil, err
		}
		more, err := s.ask(ids[half:], q, visit)
		return append(others, more...), err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.ask, err)
	}
	for i, id := range ids {
		answer, more := answers[2*i], answers[2*i+1]
		switch err, _ := answer.(error); {
		case answer == nil: // it died or was deleted after the scan
		case err != nil:
			others = append(others, id)
		default:
			if err := visit(fmt.Sprint(id), answer, more); err != nil {
				return nil, err
			}
		}
	}
	return others, nil
}

// transact returns the answers in turn. Those about an item of another type are errors.
func (s *source) transact(ids []any, q *questions) (answers []any, err error) {
	if err := s.conn.send("MULTI"); err != nil {
		return nil, err
	}
	for _, id := range ids {
		args := append(slices.Clone(q.before), id)
		if err := errors.Join(s.conn.send(q.ask, append(args, q.after...)...), s.conn.send(q.askAlso, args...)); err != nil {
			return nil, err
		}
	}
	if err := s.conn.send("EXEC"); err != nil {
		return nil, err
	}
	var reply any
	var refused error
	for range 2*len(ids) + 2 { // those of MULTI and of each question come first
		var err error
		if reply, err = s.conn.receiveParts(); err != nil {
			refused = cmp.Or(refused, err)
		}
	}
	answers, _ = reply.([]any)
	if refused == nil && len(answers) != 2*len(ids) {
		refused = fmt.Errorf("EXEC has %d replies for %d questions", len(answers), 2*len(ids))
	}
	for _, a := range answers {
		if err, _ := a.(error); err != nil && !isWrongType(err) {
			refused = cmp.Or(refused, err)
		}
	}
	return answers, refused
}

// isWrongType reports whether an error of the server says that an item has another type than a command reads.
func isWrongType(err error) bool {
	var refused redis.Error
	return errors.As(err, &refused) && strings.HasPrefix(string(refused), "WRONGTYPE ")
}
