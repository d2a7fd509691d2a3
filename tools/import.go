package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

var importTool = tool{
	name:   "import",
	syntax: "(<dir> | --dir <dir> | <host:port>) [--partitions n] [--in file] [--strict]",
	summary: "Reads lines as export writes them. Into a data folder, new or existing, that no server uses: items keep the time of their last write, and with it what life they have left. " +
		"Into a running server: documents begin to live anew; plain keys keep their end. An item that was written later where it goes to stays as it is there. " +
		"Bad lines are reported and left out. Exit code: 0 all lines are in, 1 some are not, 2 it could not go on.",
	run: importLines,
}

// longestLine is the most bytes that a line may have: the largest value in base64 and what is around it.
const longestLine = 1 << 30

// shownLines is how many bad lines are reported one by one.
const shownLines = 100

func importLines(c *call) (code int, err error) {
	var server serverOptions
	server.define(c)
	dir := c.flags.String("dir", "", "data folder to import into")
	partitions := c.flags.Int("partitions", 0, "of a new data folder; 0: 16")
	in := c.flags.String("in", "", "file to read; empty: standard input")
	strict := c.flags.Bool("strict", false, "stop at the first bad line")
	targets, err := c.arguments()
	if *dir != "" {
		targets = append(targets, *dir)
	}
	switch {
	case err != nil:
		return exitFailed, err
	case len(targets) != 1:
		return exitFailed, fmt.Errorf("one data folder or one server must be named: mayfly %s %s", c.tool.name, c.tool.syntax)
	}
	source := c.In
	if *in != "" {
		f, err := os.Open(*in)
		if err != nil {
			return exitFailed, err
		}
		defer f.Close()
		source = f
	}
	m := &importer{call: c, strict: *strict}
	if *dir == "" && isAddress(targets[0]) {
		if *partitions != 0 {
			return exitFailed, errors.New("the number of a running server's partitions is its own")
		}
		m.to, err = newServerTarget(context.Background(), targets[0], &server, c.Clock, m.refused)
	} else {
		m.to, err = newFolderTarget(targets[0], *partitions, c.Clock)
	}
	if err != nil {
		return exitFailed, err
	}
	err = m.read(source)
	err = errors.Join(err, m.to.close())
	fmt.Fprintf(c.Err, "imported %d containers and %d items; %d are dead, %d were written later where they go to, %d lines are bad\n",
		m.containers, m.done[keyspace.Stored], m.done[keyspace.Dead], m.done[keyspace.Newer], m.badLines)
	switch {
	case err != nil:
		return exitFailed, err
	case m.badLines > 0:
		return exitIncomplete, nil
	}
	return exitOK, nil
}

// target is where lines go. An error is one of the line unless it is fatal.
type target interface {
	container(s keyspace.ContainerRecord) error
	// item stores an item; fresh: its line does not say when it was written. ignored is why its ttl
	// does not count, if so.
	item(number int, l *line, id string, it keyspace.Item, ignored error) (keyspace.Restored, error)
	close() error
}

// fatal is an error after which it makes no sense to go on.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// importer reads lines and counts.
type importer struct {
	*call
	to         target
	strict     bool
	containers int
	done       [3]int // by keyspace.Restored
	badLines   int
	stopped    error // by strict
}

// read reads all lines.
func (m *importer) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<20), longestLine)
	number := 0
	for lines.Scan() && m.stopped == nil {
		number++
		if len(lines.Bytes()) == 0 {
			continue
		}
		m.progress("%d lines", number)
		err := m.line(number, lines.Bytes())
		if f, ok := errors.AsType[fatal](err); ok {
			return fmt.Errorf("line %d: %w", number, f.error)
		}
		if err != nil {
			m.bad(number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	return m.stopped
}

func (m *importer) line(number int, text []byte) error {
	l, err := readLine(text)
	if err != nil {
		return err
	}
	state, ok, err := l.state()
	if ok && err == nil {
		err = m.to.container(state)
	}
	if ok {
		if err == nil {
			m.containers++
		}
		return err
	}
	id, it, ignored, err := l.item(m.Clock.Now())
	if err != nil {
		return err
	}
	done, err := m.to.item(number, l, id, it, ignored)
	if err == nil {
		m.done[done]++
	}
	return err
}

// bad reports a line that could not be imported.
func (m *importer) bad(number int, err error) {
	m.badLines++
	if m.strict && m.stopped == nil {
		m.stopped = fmt.Errorf("line %d: %w", number, err)
		return
	}
	switch {
	case m.badLines <= shownLines:
		fmt.Fprintf(m.Err, "line %d: %v\n", number, err)
	case m.badLines == shownLines+1:
		fmt.Fprintln(m.Err, "further bad lines are only counted")
	}
}

// refused reports a line that a server has refused after it was counted.
func (m *importer) refused(number int, err error) {
	m.done[keyspace.Stored]--
	m.bad(number, err)
}

// folderTarget imports into a data folder.
type folderTarget struct {
	ks      *keyspace.Keyspace
	pending keyspace.LSN
	items   int
}

// commitEvery is how many items are written to the journal at once.
const commitEvery = 1000

func newFolderTarget(dir string, partitions int, clock clock.Clock) (*folderTarget, error) {
	have, err := keyspace.FolderPartitions(dir)
	if err != nil {
		return nil, err
	}
	if have != 0 && partitions != 0 && have != partitions {
		return nil, fmt.Errorf("data folder %s has %d partitions, which cannot be changed: import into a new one", dir, have)
	}
	ks, err := keyspace.Open(keyspace.Options{Dir: dir, Partitions: partitions, Clock: clock, Fsync: keyspace.No, Log: zerolog.Nop(), NoPurge: true})
	if err != nil {
		return nil, err
	}
	return &folderTarget{ks: ks}, nil
}

func (f *folderTarget) container(s keyspace.ContainerRecord) error {
	var tx keyspace.Tx
	f.ks.BeginAll(&tx)
	tx.RestoreContainer(s)
	return f.commit(tx.Close())
}

func (f *folderTarget) item(_ int, l *line, id string, it keyspace.Item, ignored error) (keyspace.Restored, error) {
	var tx keyspace.Tx
	f.ks.BeginKey(&tx, id)
	c := tx.Container(l.Container)
	var done keyspace.Restored
	var err error
	switch {
	case c == nil:
		err = noContainer(l.Container)
	case l.TS == 0 && refuses(c.Policy(), ignored):
		err = ignored
	default:
		done = tx.Restore(c, id, it)
	}
	f.pending = max(f.pending, tx.Close())
	if f.items++; err == nil && f.items%commitEvery == 0 {
		return done, f.commit(f.pending)
	}
	return done, err
}

// refuses tells whether a container refuses a new document (rule 4). What comes from an export was
// accepted once, and stays.
func refuses(p *expiry.Policy, ignored error) bool {
	return ignored != nil && p.Mode == expiry.Strict && p.Default != expiry.Off
}

func noContainer(name string) error {
	return fmt.Errorf("no container %s: its line must come first, {\"container\":%q,\"default\":\"-1\"}", expiry.Quote(name), name)
}

func (f *folderTarget) commit(t keyspace.LSN) error {
	if err := f.ks.Wait(t); err != nil {
		return fatal{err}
	}
	return nil
}

func (f *folderTarget) close() error { return f.ks.Close() }
