package keyspace

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/store"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the examples in FORMAT.md")

// opGroup has the changes of one transaction.
type opGroup []aof.Op

func (c opGroup) AppendTo(dst aof.Commands) aof.Commands {
	dst.Text = aof.AppendOps(dst.Text, c)
	return dst
}

// burial returns the entry of the death of an order.
func burial(order Item) aof.Op {
	e := deathlog.Entry{
		ID: streamid.ID{Ms: uint64(epoch + 30_004), Seq: 3}, Item: "order-1", Cause: expiry.ByDocument, At: order.ExpireAt,
		TS: order.TS, Etag: order.Version, Own: order.ExpireAt, Policy: 0x1f, Kind: order.Kind, Body: order.Body, HasBody: true,
	}
	key := string(record.AppendLogKey(nil, 41, string(deathlog.AppendID(nil, e.ID, e.Item))))
	it := Item{Kind: record.Entry, Body: string(e.AppendBody(nil)), TS: epoch + 30_004, Version: e.Etag}
	return aof.Op{Key: key, Rec: string(record.Append(nil, key, it))}
}

// The examples in FORMAT.md are the bytes of real files.
func TestFormatDocumentShowsRealFiles(t *testing.T) {
	disk, dir := vfstest.NewMemory(), vfstest.Dir
	order := Item{Kind: Document, Body: `{"sku":"A-1","ttl":30}`, TS: epoch, ExpireAt: epoch + 30_000, Version: 42}
	rec := string(record.Append(nil, "12:order-1", order))

	path := filepath.Join(dir, datadir.PartitionName(7))
	vfstest.Write(t, disk, path, aof.FirstSeal(0x9f3a11c0).Append(nil))
	s, err := store.Open(disk, path, store.Options{Log: zerolog.Nop(), Now: epoch})
	drill.Check(t, err)
	for n, ops := range [][]aof.Op{{{Key: "12:order-1", Rec: rec}}, {aoftest.Del("12:order-1")}} {
		drill.Check(t, s.Apply(ops), s.Sync(uint64(41+n)))
	}
	drill.Check(t, s.Close())

	catalogue := filepath.Join(dir, datadir.CatalogueName)
	vfstest.Write(t, disk, catalogue, aof.FirstSeal(0x5d20e7b4).Append(nil))
	cat, err := store.Open(disk, catalogue, store.Options{Log: zerolog.Nop(), Now: epoch})
	drill.Check(t, err)
	orders := record.Container{Number: 12, Name: "orders", DB: 16, Created: epoch, Policy: expiry.Policy{Default: 3600},
		Indexes: [][]string{{"/status", "/total"}, {"/tags/[]"}, {"/loc", GeoMark}}, Log: &record.Log{Number: 41, MaxLen: 1_000_000, Bodies: true}}
	log := record.Container{Number: 41, Created: epoch, Policy: expiry.Policy{Default: 86400}, Hidden: &record.Hidden{LogOf: 12}}
	group := record.Container{Number: 57, Created: epoch, Policy: expiry.Policy{Default: expiry.Forever}, Hidden: &record.Hidden{GroupOf: 41, Group: "mailer"}}
	var ops []aof.Op
	for _, c := range []record.Container{orders, log, group} {
		ops = append(ops, aof.Op{Key: record.ContainerKey(c.Number), Rec: string(c.Append(nil))})
	}
	drill.Check(t, cat.Apply(ops), cat.Sync(41), cat.Close())

	aof.NewMark = func() uint32 { return 0x71b20c5d }
	defer func() { aof.NewMark = rand.Uint32 }()
	before := journal.FileInfo{Path: journal.FileName(3), Generation: 3, Size: 4212, Mark: 0x2c90ab41}
	j, err := journal.Open(journal.Options{FS: disk, Dir: dir, Finished: []journal.FileInfo{before}, First: 41, Log: zerolog.Nop()})
	drill.Check(t, err)
	clock := aof.Op{Key: record.ClockKey, Rec: string(record.Append(nil, record.ClockKey, Item{Kind: record.ClockKind, TS: epoch}))}
	for _, ops := range []opGroup{{{Key: "12:order-1", Rec: rec}}, {aoftest.Del("12:order-1"), burial(order), clock}} {
		drill.Check(t, j.Wait(j.Append(ops)), j.Sync())
	}
	drill.Check(t, j.Close())

	listing := storage.NewManifest(false, []*store.Store{s}, j.Files())

	folder := "/folder"
	d, err := datadir.Open(disk, folder, 16, zerolog.Nop())
	if err == nil {
		err = d.Close()
	}
	drill.Check(t, err)

	b, err := os.ReadFile("FORMAT.md")
	drill.Check(t, err)
	doc := string(b)
	entry := burial(order)
	stateKey := string(record.AppendLogKey(nil, 41, deathlog.StateID(3, 16)))
	state := deathlog.State{Added: 17, Last: streamid.ID{Ms: uint64(epoch + 30_004), Seq: 3}, MaxDeleted: streamid.ID{Ms: uint64(epoch + 30_001)}}
	for _, part := range []string{
		"    " + entry.Key + "    the key", "    " + entry.Rec + "\n", "    " + entry.Rec[strings.Index(entry.Rec, "4 dd "):] + "\n",
		"`" + stateKey + "`", "    " + string(record.Append(nil, stateKey, state.Item(epoch+30_005, 43))) + "\n",
	} {
		if !strings.Contains(doc, part) {
			t.Errorf("FORMAT.md lacks %q", part)
		}
	}
	for name, content := range map[string]string{
		datadir.PartitionName(7): string(vfstest.Read(t, disk, path)),
		datadir.CatalogueName:    string(vfstest.Read(t, disk, catalogue)),
		journal.FileName(4):      string(vfstest.Read(t, disk, filepath.Join(dir, journal.FileName(4)))),
		datadir.ManifestName:     listing.Text(),
		datadir.FormatName:       string(vfstest.Read(t, disk, filepath.Join(folder, datadir.FormatName))),
	} {
		before, rest, ok := strings.Cut(doc, "\n```\n# "+name+"\n")
		_, after, ok2 := strings.Cut(rest, "```\n")
		if !ok || !ok2 {
			t.Fatalf("there is no example of %s", name)
		}
		shown := strings.ReplaceAll(content, "\n", "\\n\n")
		shown = strings.ReplaceAll(shown, "\r", "\\r")
		want := before + "\n```\n# " + name + "\n" + shown + "```\n" + after
		if *rewrite {
			doc = want
		} else if doc != want {
			t.Errorf("the example of %s should read\n%s", name, shown)
		}
	}
	if *rewrite {
		drill.Check(t, os.WriteFile("FORMAT.md", []byte(doc), 0o644))
	}
}
