package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/keyspace"

	"github.com/redis/go-redis/v9"
)

var exportTool = tool{
	name:   "export",
	syntax: "<dir or host:port> [--out file]",
	summary: "Writes all that lives as lines of JSON: containers first, then documents and plain keys. From a data folder that no server uses " +
		"everything, exactly; from a running server what its clients can see: not when plain keys were written, nor what past defaults have killed.",
	run: export,
}

func export(c *call) (_ int, err error) {
	var server serverOptions
	server.define(c)
	out := c.flags.String("out", "", "file to write, which must not exist yet; empty: standard output")
	values, err := c.parse("dir or host:port")
	if err != nil {
		return exitFailed, err
	}
	e := &exporter{call: c}
	source := func() error { return keyspace.ReadFolder(values[0], c.Clock, e.container, e.item) }
	if isAddress(values[0]) {
		source = func() error { return e.fromServer(context.Background(), values[0], &server) }
	}
	write := func(w io.Writer) error {
		e.out = w
		return source()
	}
	if *out == "" {
		w := bufio.NewWriterSize(c.Out, 1<<20)
		err = errors.Join(write(w), w.Flush())
	} else {
		err = exportTo(*out, write)
	}
	if err != nil {
		return exitFailed, err
	}
	fmt.Fprintf(c.Err, "exported %d containers and %d items\n", e.containers, e.items)
	return exitOK, nil
}

// exportTo writes a file that is there under its name only when it is complete.
func exportTo(path string, write func(w io.Writer) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists", path)
	}
	part := path + ".part"
	err := writeNew(part, write)
	if errors.Is(err, os.ErrExist) {
		return err
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}

// exporter writes lines.
type exporter struct {
	*call
	out               io.Writer
	lines             lineWriter
	containers, items int
}

func (e *exporter) container(s keyspace.ContainerRecord) error {
	e.containers++
	_, err := e.out.Write(e.lines.container(s))
	return err
}

func (e *exporter) item(container, id string, it keyspace.Item) error {
	e.items++
	e.progress("%d items", e.items)
	_, err := e.out.Write(e.lines.item(container, id, it))
	return err
}

// Items are asked for in portions of about so many bytes, and not more than so many items.
const (
	portionBytes = 1 << 20
	portionItems = 500
)

// fromServer exports what a client can see. Each item is as it was at one moment, all together are
// not: what is written meanwhile may be there in its old or its new state.
func (e *exporter) fromServer(ctx context.Context, address string, o *serverOptions) error {
	conn, shut, err := o.connect(ctx, address)
	if err != nil {
		return err
	}
	defer shut()
	names, err := conn.Do(ctx, "CONTAINER.LIST").StringSlice()
	if err != nil {
		return fmt.Errorf("CONTAINER.LIST: %w", err)
	}
	var sources []source
	for _, name := range names {
		s := source{exporter: e, conn: conn}
		if ok, err := s.describe(ctx, name); err != nil {
			return err
		} else if !ok {
			continue // dropped meanwhile
		}
		sources = append(sources, s)
		if err := e.container(s.state); err != nil {
			return err
		}
	}
	for _, s := range sources {
		if err := s.documents(ctx); err != nil {
			return err
		}
		if err := s.plainKeys(ctx); err != nil {
			return err
		}
	}
	return nil
}

// source is a container of a running server.
type source struct {
	*exporter
	conn    *redis.Conn
	state   keyspace.ContainerRecord
	portion int // items to ask for at a time
}

// describe asks for what there is to know of the container; false if there is none.
func (s *source) describe(ctx context.Context, name string) (bool, error) {
	reply, err := do(ctx, s.conn, "CONTAINER.GET", name)
	if err != nil || reply == nil {
		return false, err
	}
	ttl, err1 := field[string](reply, "ttl")
	mode, err2 := field[string](reply, "ttlmode")
	created, err3 := field[int64](reply, "created")
	documents, err4 := field[int64](reply, "documents")
	keys, err5 := field[int64](reply, "keys")
	bytes, err6 := field[int64](reply, "bytes")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return false, err
	}
	s.state = keyspace.ContainerRecord{Name: name, Created: created}
	if mode == expiry.Lenient.String() {
		s.state.Policy.Mode = expiry.Lenient
	}
	s.state.Policy.Default, err = expiry.ParseDefault(ttl)
	s.portion = int(min(portionItems, max(1, portionBytes*(documents+keys)/max(1, bytes))))
	return true, err
}

// documents exports the container's documents: each portion of them in one transaction, so that a
// document and the time of its last write belong together.
func (s *source) documents(ctx context.Context) error {
	name := s.state.Name
	scan := []any{"DOC.SCAN", name}
	return s.each(ctx, scan, nil, "DOC.GET", "DOC.META", []any{name}, func(id string, body string, meta any) error {
		ts, err := field[int64](meta, "ts")
		if err != nil {
			return err
		}
		doc, err := jsondoc.Parse(body, jsondoc.MaxSize)
		if err != nil {
			return fmt.Errorf("document %s of %s: %w", expiry.Quote(id), name, err)
		}
		return s.item(name, id, keyspace.Item{Kind: keyspace.Document, Body: body, TS: ts, ExpireAt: expiry.OwnEnd(ts, doc.TTL)})
	})
}

// plainKeys exports the container's plain keys, with the end they have: whether it is their own or by
// the container's default cannot be seen.
func (s *source) plainKeys(ctx context.Context) error {
	name := s.state.Name
	if _, err := do(ctx, s.conn, "SELECT", name); err != nil {
		return err
	}
	scan, ofType := []any{"SCAN"}, []any{"TYPE", "string"}
	return s.each(ctx, scan, ofType, "GET", "PEXPIRETIME", nil, func(id string, body string, end any) error {
		own, ok := end.(int64)
		switch {
		case !ok:
			return errors.New("PEXPIRETIME: no number")
		case own < 0 && s.state.Policy.Default > 0:
			own = expiry.Never
		case own < 0:
			own = expiry.Inherit
		}
		return s.item(name, id, keyspace.Item{Kind: keyspace.Plain, Body: body, ExpireAt: own})
	})
}

// each scans the container and asks two questions about every id, in one transaction a portion.
func (s *source) each(ctx context.Context, scan, options []any, ask, askAlso string, of []any, visit func(id, body string, more any) error) error {
	for cursor := "0"; ; {
		command := append(append(append([]any{}, scan...), cursor, "COUNT", strconv.Itoa(s.portion)), options...)
		page, err := s.conn.Do(ctx, command...).Slice()
		if err != nil || len(page) != 2 {
			return fmt.Errorf("%v: %w", scan[0], err)
		}
		ids, _ := page[1].([]any)
		var bodies, more []*redis.Cmd
		_, err = s.conn.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				bodies = append(bodies, p.Do(ctx, append(append([]any{ask}, of...), id)...))
				more = append(more, p.Do(ctx, append(append([]any{askAlso}, of...), id)...))
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("%s: %w", ask, err)
		}
		for i, id := range ids {
			body, err := bodies[i].Text()
			if errors.Is(err, redis.Nil) {
				continue // gone since the scan
			}
			if err != nil {
				return fmt.Errorf("%s: %w", ask, err)
			}
			if err := visit(fmt.Sprint(id), body, more[i].Val()); err != nil {
				return err
			}
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			return nil
		}
	}
}
