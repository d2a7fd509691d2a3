package keyspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/index"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/selection"
	"mayfly/query"
	"mayfly/query/page"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/tidwall/buntdb"
	"github.com/tidwall/gjson"
)

// judged are documents in a keyspace with indexes, and in buntdb with its own.
type judged struct {
	t      *testing.T
	random *rand.Rand
	ks     *keyspace.Keyspace
	db     *buntdb.DB
	docs   map[string]string

	log      *replicated
	follower *keyspace.Keyspace // of ks, which leads
	dir      string             // of the follower
}

// replicated is a [replica.Replicator] that commits all batches, and keeps them.
type replicated struct {
	mu      sync.Mutex // protects what follows
	batches []string
	tails   []replica.Tail
}

func (r *replicated) Replicate(_ uint64, moment int64, batch []byte, _ time.Duration) (replica.Tail, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := replica.Tail{Position: replica.Position{Index: uint64(len(r.tails)) + 2, Term: 1, Moment: moment}}
	r.batches, r.tails = append(r.batches, string(batch)), append(r.tails, t)
	return t, nil
}

func (r *replicated) Confirm(time.Duration) error { return nil }

// at returns the batch of an index, and where it ends.
func (r *replicated) at(index uint64) (batch string, tail replica.Tail) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batches[index-2], r.tails[index-2]
}

// TestIndexJudge compares queries by indexes with those of buntdb's indexes over the same documents: the same
// ids in the same order. A follower answers as the leader at each position in the log, and after a restart.
// It leaves out values that buntdb orders otherwise: true and composites. Of ours, missing members are in no
// order; of buntdb they are null.
func TestIndexJudge(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 3, 100, func(t *testing.T, seed uint64) {
		j := &judged{t: t, random: rand.New(rand.NewPCG(seed, 3)), docs: make(map[string]string)}
		j.open()
		documents := []int{50, 300, drill.Pick(600, 600, 2500)}[seed%3]
		for range documents {
			j.put()
		}
		for range 300 {
			for range j.random.IntN(5) {
				j.put()
			}
			j.remove()
			j.compare()
			if t.Failed() {
				t.Fatal("seed ", seed)
			}
		}
		j.restart()
		for range 20 {
			j.compare()
		}
		j.must(errors.Join(j.db.Close(), j.ks.Close(), j.follower.Close()))
	})
}

func (j *judged) must(err error) {
	j.t.Helper()
	drill.Check(j.t, err)
}

func (j *judged) open() {
	var err error
	j.log, j.dir = new(replicated), j.t.TempDir()
	j.ks = j.node(j.t.TempDir(), j.log)
	j.restart()
	for _, ks := range []*keyspace.Keyspace{j.ks, j.follower} {
		j.must(ks.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}}))
	}
	j.must(j.ks.Lead())
	j.db, err = buntdb.Open(":memory:")
	j.must(err)
	a, b := buntdb.IndexJSONCaseSensitive("a"), buntdb.IndexJSONCaseSensitive("b")
	j.must(j.db.CreateIndex("a", "*", a))
	j.must(j.db.CreateIndex("a b", "*", a, b))
	j.must(j.db.CreateSpatialIndex("p", "*", func(doc string) (low, high []float64) {
		if strings.HasPrefix(doc, "[") { // the box of a question
			return buntdb.IndexRect(doc)
		}
		at := gjson.Get(doc, "p.coordinates")
		if !at.Exists() {
			return []float64{1000, 1000}, []float64{1000, 1000} // in no box
		}
		low = []float64{at.Get("0").Num, at.Get("1").Num}
		return low, low
	}))
	var tx keyspace.Tx
	j.ks.BeginAll(&tx)
	c := tx.Container("0")
	for _, paths := range [][]string{{"/a"}, {"/a", "/b"}, {"/p"}} {
		d, err := index.Define(paths, paths[0] == "/p")
		j.must(err)
		tx.CreateIndex(c, d)
	}
	tx.Close()
	j.ks.BuildIndexes()
}

// node opens the keyspace of a node, which follows.
func (j *judged) node(dir string, r replica.Replicator) *keyspace.Keyspace {
	ks, err := keyspace.Open(keyspace.Options{FS: vfstest.Fast(), Dir: dir, Partitions: 3, Clock: clock.NewManual(1e12), NoPurge: true, Replicator: r})
	j.must(err)
	return ks
}

// restart opens the follower, again if it is open.
func (j *judged) restart() {
	if j.follower != nil {
		j.must(j.follower.Close())
	}
	j.follower = j.node(j.dir, new(replicated))
}

// follow has the follower apply what the leader has written.
func (j *judged) follow() {
	j.t.Helper()
	j.must(j.ks.Halt())
	for from := j.follower.Position().Index; from < j.ks.Position().Index; from++ {
		j.must(j.follower.Apply(j.log.at(from + 1)))
	}
	j.follower.BuildIndexes()
}

// value returns a JSON value that both sides order alike.
func (j *judged) value() string {
	switch j.random.IntN(8) {
	case 0:
		return "false"
	case 1:
		return strconv.Itoa(j.random.IntN(7) - 3)
	case 2:
		return strconv.FormatFloat(j.random.NormFloat64()*1000, 'g', -1, 64)
	case 3:
		return []string{"0", "-0.0", "1e300", "-1e300", "1e-300", "9007199254740993"}[j.random.IntN(6)]
	}
	return j.text()
}

// text returns a string in JSON.
func (j *judged) text() string {
	s := []string{"", "abcdefg", "abcdefgh", "é", "😀"}[j.random.IntN(5)]
	for range j.random.IntN(4) {
		s += []string{"a", "b", "B", "é", "Z", " ", `\u0000`, `\"`}[j.random.IntN(8)]
	}
	return `"` + s + `"`
}

func (j *judged) put() {
	var members []string
	if v := j.value(); j.random.IntN(8) > 0 {
		if j.random.IntN(10) == 0 {
			v = "null"
		}
		members = append(members, `"a":`+v)
	}
	if j.random.IntN(4) > 0 { // null is not told from missing here
		members = append(members, `"b":`+j.value())
	}
	if j.random.IntN(2) == 0 {
		members = append(members, fmt.Sprintf(`"p":{"type":"Point","coordinates":[%g,%g]}`, j.random.Float64()*360-180, j.random.Float64()*180-90))
	}
	id, doc := fmt.Sprint("id-", j.random.IntN(3000)), "{"+strings.Join(members, ",")+"}"
	j.docs[id] = doc
	var tx keyspace.Tx
	j.ks.BeginKey(&tx, id)
	tx.Put(tx.Container("0"), id, keyspace.Document, doc, expiry.Inherit)
	tx.Close()
	j.must(j.db.Update(func(tx *buntdb.Tx) error {
		_, _, err := tx.Set(id, doc, nil)
		return err
	}))
}

func (j *judged) remove() {
	for id := range j.docs {
		delete(j.docs, id)
		var tx keyspace.Tx
		j.ks.BeginKey(&tx, id)
		tx.Delete(tx.Container("0"), id)
		tx.Close()
		j.must(j.db.Update(func(tx *buntdb.Tx) error {
			_, err := tx.Delete(id)
			return err
		}))
		return
	}
}

// compare compares the answers to a random query.
func (j *judged) compare() {
	j.t.Helper()
	var text string
	var want []string
	var ask func(tx *buntdb.Tx, visit func(id, doc string) bool) error
	defined := func(doc string) bool { return gjson.Get(doc, "a").Exists() } // others are in no order of ours
	keep := defined
	pivot := func(v string) string { return `{"a":` + v + `}` }
	low, high := j.value(), j.value()
	for gjson.Parse(low).Type != gjson.Parse(high).Type {
		low, high = j.value(), j.value()
	}
	less := buntdb.IndexJSONCaseSensitive("a")
	if less(pivot(high), pivot(low)) {
		low, high = high, low
	}
	ordered := true
	switch j.random.IntN(9) {
	case 0:
		text = "ORDER BY a"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error { return tx.Ascend("a", visit) }
	case 1:
		text = "ORDER BY a DESC"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error { return tx.Descend("a", visit) }
	case 2:
		text = "ORDER BY a, b"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error { return tx.Ascend("a b", visit) }
	case 3:
		text = "ORDER BY a DESC, b DESC"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error { return tx.Descend("a b", visit) }
	case 4:
		text = "WHERE a >= " + low + " AND a < " + high + " ORDER BY a"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error {
			return tx.AscendRange("a", pivot(low), pivot(high), visit)
		}
	case 5:
		text = "WHERE a > " + low + " AND a <= " + high + " ORDER BY a DESC"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error {
			return tx.DescendRange("a", pivot(high), pivot(low), visit)
		}
	case 6:
		text = "WHERE a = " + low + " ORDER BY a"
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error {
			return tx.AscendEqual("a", pivot(low), visit)
		}
	case 7: // the order of what follows an equality
		text = "WHERE a = " + low + " ORDER BY b"
		keep = func(doc string) bool { return gjson.Get(doc, "b").Exists() }
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error {
			return tx.Ascend("a b", func(id, doc string) bool {
				if !less(doc, pivot(low)) && !less(pivot(low), doc) {
					visit(id, doc)
				}
				return true
			})
		}
	default:
		west, south := j.random.Float64()*300-180, j.random.Float64()*150-90
		east, north := west+j.random.Float64()*(180-west), south+j.random.Float64()*(90-south)
		text = fmt.Sprintf("WHERE ST_WITHIN(p, ST_BOX(%g, %g, %g, %g))", west, south, east, north)
		keep, ordered = func(string) bool { return true }, false
		ask = func(tx *buntdb.Tx, visit func(id, doc string) bool) error {
			return tx.Intersects("p", buntdb.Rect([]float64{west, south}, []float64{east, north}), visit)
		}
	}
	j.must(j.db.View(func(tx *buntdb.Tx) error {
		return ask(tx, func(id, doc string) bool {
			if keep(doc) {
				want = append(want, id)
			}
			return true
		})
	}))
	got := j.query(j.ks, text)
	j.follow()
	if follows := j.query(j.follower, text); !slices.Equal(follows, got) {
		j.t.Errorf("%s:\nfollower %q\nleader   %q", text, follows, got)
	}
	if !ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		j.t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				for _, ids := range [][]string{got, want} {
					for k := max(0, i-2); k < min(len(ids), i+3); k++ {
						j.t.Logf("%s %s", ids[k], j.docs[ids[k]])
					}
				}
				break
			}
		}
	}
}

// query returns the ids of a query by an index of a node.
func (j *judged) query(ks *keyspace.Keyspace, text string) (ids []string) {
	q, err := query.Parse(text, nil)
	j.must(err)
	var tx keyspace.Tx
	ks.BeginSweep(&tx)
	defer tx.Close()
	c := tx.Container("0")
	p, ok := selection.Choose(c.IndexSet(), q, "")
	if !ok {
		j.t.Fatalf("%s: no index serves it", text)
	}
	from, err := page.ParseCursor(q, "0")
	j.must(err)
	r, err := page.New(q, page.Options{Count: page.MaxCount, Ordered: p.Ordered, Proven: p.Proves}, from)
	j.must(err)
	j.must(tx.Reader(c).Index(&p, selection.Place{}, func(s selection.Slice, _ func(int) selection.Place) bool {
		for _, at := range s.Items {
			_, err := r.Add(&query.Document{Text: at.Item.Body, ID: at.ID, Time: at.Item.TS, Proven: at.Proven})
			j.must(err)
		}
		return true
	}))
	rows, _, err := r.Finish("")
	j.must(err)
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}
