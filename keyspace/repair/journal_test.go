package repair

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// newJournalled returns a folder whose stores are empty and whose changes are in three journals, as three
// runs that were killed leave it. Run n has put "shared" and "only-n", and deleted "gone-n".
func newJournalled(t *testing.T) *lived {
	t.Helper()
	o := open(t, 3)
	var l *lived
	for run := range 3 {
		if run > 0 {
			var err error
			if o, err = openIn(t, l.dir, aoftest.Epoch+int64(run)*5000, 3); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(o.stop)
		}
		o.put("0", fmt.Sprint("gone-", run), `{"is":"here"}`, 0)
		o.put("0", "shared", fmt.Sprintf(`{"run":%d}`, run), 0)
		o.delete("0", fmt.Sprint("gone-", run))
		o.put("0", fmt.Sprint("only-", run), fmt.Sprintf(`{"only":%d}`, run), 0)
		o.put("0", "end", fmt.Sprintf(`{"end":%d}`, run), 0)
		l = o.copied(o.dump())
	}
	if names := l.journals(); len(names) != 3 || len(l.state) != 5 {
		t.Fatal(names, l.state)
	}
	return l
}

// problemAt returns the problem of a file that covers an offset.
func problemAt(t *testing.T, files []FileReport, file string, at int64) Problem {
	t.Helper()
	for _, f := range files {
		for _, p := range f.Problems {
			if f.File == file && p.From <= at && at < p.To {
				return p
			}
		}
	}
	t.Errorf("no problem covers %d in %s: %+v", at, file, files)
	return Problem{}
}

// checkDamaged checks that Inspect and a start refuse a folder.
func checkDamaged(t *testing.T, what, dir string) []FileReport {
	t.Helper()
	in := mustInspect(t, dir)
	if in.State != Damaged {
		t.Errorf("%s: the folder is %s", what, in.State)
	}
	if _, err := starts(t, dir); err == nil {
		t.Errorf("%s: it starts", what)
	}
	return in.Files
}

// A wrong bit in a set costs that version of the item, in a finished journal and in the newest.
func TestRepairOfASetInAJournal(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	for run, file := range l.journals() {
		at := int64(strings.Index(string(vfstest.Read(t, disk, filepath.Join(l.dir, file))), `{"only":`))
		dir := l.flipIn(file, `{"only":`, 3)
		p := problemAt(t, checkDamaged(t, file, dir), file, at)
		if p.ID != fmt.Sprint("only-", run) || p.Container != "0" {
			t.Errorf("%s: %+v", file, p)
		}
		report, state := repaired(t, dir)
		if len(report.Lost) != 1 || report.Lost[0].ID != p.ID || report.Lost[0].File != file || len(report.Older)+len(report.Doubtful) > 0 {
			t.Errorf("%s: %+v", file, report)
		}
		want := maps.Clone(l.state)
		delete(want, place{"0", p.ID})
		compare(t, file, want, state, nil)

		dir = l.flipIn(file, `{"run":`, 3)
		checkDamaged(t, file, dir)
		report, state = repaired(t, dir)
		switch got := state[place{"0", "shared"}].Body; {
		case run == 0 && got != `{"run":2}`, run == 1 && got != `{"run":2}`:
			t.Errorf("%s: a newer version is lost: %s", file, got)
		case run == 2 && (got != `{"run":1}` || len(report.Older) != 1 || report.Older[0].ID != "shared" || report.Older[0].File != file):
			t.Errorf("%s: %s, %+v", file, got, report)
		}
	}
}

// Of a damaged commit of several changes the sets are rescued by their checksums, and the items of its
// deletes are doubtful.
func TestRepairOfACommitInAJournal(t *testing.T) {
	t.Parallel()
	o := open(t, 3)
	ids := []string{"x", "y", "z"}
	for _, id := range ids {
		o.put("0", id, fmt.Sprintf(`{"old":%q}`, id), 0)
	}
	var tx keyspace.Tx
	o.BeginKeys(&tx, ids)
	c := tx.Container("0")
	tx.Put(c, "x", record.Document, `{"new":"x"}`, 0)
	tx.Put(c, "y", record.Document, `{"new":"y"}`, 0)
	tx.Delete(c, "z")
	o.commit(&tx)
	o.put("0", "after", "{}", 0)
	l := o.copied(o.dump())
	file := l.journals()[0]
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, file)))

	doubtful := func(what, dir string) *Report {
		t.Helper()
		checkDamaged(t, what, dir)
		report, state := repaired(t, dir)
		if len(report.Doubtful) != 1 || report.Doubtful[0].ID != "z" || report.Doubtful[0].Item.Body != `{"old":"z"}` {
			t.Errorf("%s: %+v", what, report)
			return report
		}
		z := report.Doubtful[0]
		if z.File != file || content[z.From:z.To] != string(aof.AppendDel(nil, string(record.AppendKey(nil, number(t, content, "z"), "z")))) {
			t.Errorf("%s: the delete is said to lie in %s at %d to %d", what, z.File, z.From, z.To)
		}
		compare(t, what, l.state, state, func(at place) bool { return at.id == "x" && len(report.Older) == 1 && report.Older[0].ID == "x" })
		return report
	}
	if report := doubtful("a set", l.flipIn(file, `{"new":"x"}`, 3)); len(report.Older) != 1 {
		t.Errorf("%+v", report)
	}
	for _, s := range l.seals(file) {
		commit := content[s.From:s.At]
		if !strings.Contains(commit, `{"new":"x"}`) {
			continue
		}
		dir := l.copy(file, func(b []byte) []byte { b[s.At+aof.SealSize-10] ^= 1; return b })
		if report := doubtful("the seal", dir); len(report.Older)+len(report.Lost) > 0 {
			t.Errorf("%+v", report)
		}
		return
	}
	t.Error("the commit has no seal")
}

// number returns the number of the container of an item that is deleted somewhere.
func number(t *testing.T, content, id string) uint32 {
	t.Helper()
	end := strings.LastIndex(content, ":"+id+"\r\n")
	key := content[strings.LastIndex(content[:end], "\n")+1 : end+1+len(id)]
	k, err := record.SplitKey(key)
	drill.Check(t, err)
	return k.Container
}

// A wrong bit in any seal, the head too, costs nothing: the sets have checksums, and the other commits have
// seals of their own. Only deletes are uncertain.
func TestRepairOfSealsInAJournal(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	for _, file := range l.journals() {
		for n, s := range l.seals(file) {
			for _, offset := range []int64{0, 30, aof.SealSize - 30, aof.SealSize - 1}[n%4:][:1] { // one of them each
				what := fmt.Sprintf("%s, seal %d at %d", file, n, offset)
				dir := l.copy(file, func(b []byte) []byte { b[s.At+offset] ^= 1; return b })
				problemAt(t, checkDamaged(t, what, dir), file, s.At)
				report, state := repaired(t, dir)
				if report.Clean() || len(report.Lost)+len(report.Older) > 0 {
					t.Errorf("%s: %+v", what, report)
				}
				compare(t, what, l.state, state, nil)
			}
		}
	}
}

// A missing journal between two others is reported, and the others are copied.
func TestRepairWithoutAJournal(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	names := l.journals()
	dir := l.without(names[1])
	files := checkDamaged(t, "without a journal", dir)
	for file, reason := range map[string]string{names[1]: "the file is missing", names[2]: "the journal before it is missing"} {
		if f := fileIn(t, files, file); f.State != Damaged || f.Problems[0].Reason != reason {
			t.Errorf("%+v", f)
		}
	}
	report, state := repaired(t, dir)
	if report.Clean() || report.Unknown == 0 {
		t.Errorf("%+v", report)
	}
	want := maps.Clone(l.state)
	delete(want, place{"0", "only-1"})
	compare(t, "without a journal", want, state, nil)
}

// A finished journal ends with its last commit. If it is cut at the end of an earlier seal or within the
// range behind it, the manifest tells.
func TestInspectFinishedJournalsThatAreCut(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	names := l.journals()
	file := names[1]
	size := len(vfstest.Read(t, disk, filepath.Join(l.dir, file)))
	var ends []int
	for _, s := range l.seals(file) {
		ends = append(ends, int(s.At+aof.SealSize))
	}
	if ends[len(ends)-1] != size {
		t.Fatalf("%s of %d bytes has seals up to %d", file, size, ends)
	}
	for at := 1; at < size; at += 61 {
		cuts := []int{at}
		if i := slices.IndexFunc(ends, func(end int) bool { return end >= at && end < at+61 && end < size }); i >= 0 {
			cuts = append(cuts, ends[i])
		}
		for _, at := range cuts {
			what := fmt.Sprint("cut to ", at)
			dir := l.copy(file, func(b []byte) []byte { return b[:at] })
			reason := "a finished journal does not end with a commit"
			switch {
			case slices.Contains(ends, at):
				reason = "the manifest confirms this range, but the file ends before it"
			case at < ends[0]:
				reason = "there is no seal in it"
			}
			in := mustInspect(t, dir)
			if in.State != Damaged || fileIn(t, in.Files, file).State != Damaged {
				t.Errorf("%s of %v: not reported: %+v", what, ends, in.Files)
			}
			damage, ok := errors.AsType[*aof.DamageError](startError(t, dir))
			if !ok || filepath.Base(damage.File) != file || !strings.Contains(damage.Reason, reason) {
				t.Errorf("%s of %v: a start says %+v", what, ends, damage)
			}
			report, state := repaired(t, dir)
			if report.Clean() {
				t.Errorf("%s: nothing is reported: %+v", what, report)
			}
			compare(t, what, l.state, state, func(at place) bool {
				return at.id == "only-1" || at.id == "gone-1" && report.Exposed > 0 // its delete was cut off
			})
		}
	}
}

// fileIn returns what is reported of a file.
func fileIn(t *testing.T, files []FileReport, name string) FileReport {
	t.Helper()
	i := slices.IndexFunc(files, func(f FileReport) bool { return f.File == name })
	if i < 0 {
		t.Fatalf("%s is not among %+v", name, files)
	}
	return files[i]
}

// startError returns why a start refuses a folder.
func startError(t *testing.T, dir string) error {
	t.Helper()
	_, err := starts(t, dir)
	return err
}

// The newest journal that ends within a commit is torn, wherever it is cut, and neither a start nor a repair
// reports a loss: the commit was never confirmed.
func TestInspectATornJournal(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	names := l.journals()
	file := names[2]
	seals := l.seals(file)
	from := seals[len(seals)-2]
	size := int64(len(vfstest.Read(t, disk, filepath.Join(l.dir, file))))
	whole := from.At + aof.SealSize
	want, err := starts(t, l.copy(file, func(b []byte) []byte { return b[:whole] }))
	if err != nil || compareQuietly(want, l.state) == 0 {
		t.Fatal("the last commit changes nothing", err)
	}
	for _, at := range []int64{whole, whole + 1, whole + 20, whole + 70, (whole + size) / 2, size - aof.SealSize, size - 100, size - 1, size} {
		for what, spoil := range map[string]func(b []byte) []byte{
			"cut":                   func(b []byte) []byte { return b[:at] },
			"cut and preallocated":  func(b []byte) []byte { return append(b[:at:at], make([]byte, 3000)...) },
			"cut within the zeroes": func(b []byte) []byte { clear(b[at:]); return b },
		} {
			what = fmt.Sprint(what, " at ", at)
			dir := l.copy(file, spoil)
			in := mustInspect(t, dir)
			state, expected := Torn, want
			if at == whole {
				state = Sound
			} else if at == size {
				state, expected = Sound, l.state
			}
			if last := fileIn(t, in.Files, file); in.State != state || last.State != state {
				t.Errorf("%s: %s, %+v", what, in.State, last)
			}
			report, got := repaired(t, dir)
			if !report.Clean() {
				t.Errorf("%s: %+v", what, report)
			}
			compare(t, what, expected, got, nil)
			if got, err = starts(t, dir); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			compare(t, what, expected, got, nil)
		}
	}
}

// Zeros behind the newest journal are preallocated. Behind a finished one they are damage, but cost nothing.
func TestInspectZerosBehindAJournal(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	for n, file := range l.journals() {
		for _, zeros := range []int{1, 511, 5000, 1 << 20} {
			what := fmt.Sprint(zeros, " zeros behind ", file)
			dir := l.copy(file, func(b []byte) []byte { return append(b, make([]byte, zeros)...) })
			in := mustInspect(t, dir)
			want := Damaged
			if n == 2 {
				want = Sound
			}
			if in.State != want {
				t.Errorf("%s: the folder is %s", what, in.State)
			}
			report, state := repaired(t, dir)
			if len(report.Lost)+len(report.Older)+len(report.Doubtful) > 0 || report.Clean() != (want == Sound) {
				t.Errorf("%s: %+v", what, report)
			}
			compare(t, what, l.state, state, nil)
			if _, err := starts(t, dir); (err == nil) != (want == Sound) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// A client that knows the offset of its value fills it with more seals than the file has of its own. They
// prove nothing.
func TestRepairIsNotFooledByForgedSeals(t *testing.T) {
	t.Parallel()
	o := open(t, 1)
	o.put("0", "victim", `{"true":1}`, 0)
	o.put("0", "other", `{"other":1}`, 0)
	l := o.copied(o.dump())
	file := l.journals()[0]
	seals := l.seals(file)
	last := seals[len(seals)-1]
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, file)))
	victim := string(record.AppendKey(nil, number(t, content, "victim"), "victim"))
	forged := string(record.Append(nil, victim, record.Item{Kind: record.Document, Body: `{"forged":1}`, TS: aoftest.Epoch + 1}))
	value := func(base int64) (out []byte) {
		for n := range 3 * len(seals) {
			from := base + int64(len(out))
			commands := aof.AppendSet(nil, victim, forged)
			out = append(out, commands...)
			out = aof.Seal{
				Mark: 0xf0f0f0f0, From: from, At: base + int64(len(out)), Sum: crc32.Checksum(commands, record.Castagnoli),
				LSN: 1000 + uint64(n),
			}.Append(out)
		}
		return out
	}
	attack := strings.Replace(victim, "victim", "attack", 1)
	set := func(body []byte) []byte {
		rec := record.Append(nil, attack, record.Item{Kind: record.Plain, Body: string(body), TS: aoftest.Epoch + 1, Version: 1})
		return aof.AppendSet(nil, attack, string(rec))
	}
	body := value(0)
	from := last.At + aof.SealSize
	body = value(from + int64(len(set(body))-len("\r\n")-len(body)))
	commands := set(body)
	commit := aof.Seal{
		Mark: last.Mark, From: from, At: from + int64(len(commands)), Sum: crc32.Checksum(commands, record.Castagnoli), LSN: last.LSN + 1,
	}.Append(commands)
	l.dir = l.copy(file, func(b []byte) []byte { return append(b, commit...) })
	if in := mustInspect(t, l.dir); in.State != Sound || len(l.seals(file)) < 4*len(seals) {
		t.Fatalf("%+v", in)
	}
	_, state := repaired(t, l.flipIn(file, `{"other":1}`, 3))
	if got := state[place{"0", "victim"}].Body; got != `{"true":1}` {
		t.Errorf("the victim is %s", got)
	}
	if got := state[place{"0", "attack"}].Body; got != string(body) {
		t.Errorf("the attack is stored as %d bytes", len(got))
	}
}

// Each damaged range is reported, even if all its records are right and only a delete is wrong.
func TestRepairReportsEachDamagedRange(t *testing.T) {
	t.Parallel()
	l := newJournalled(t)
	file := l.journals()[0]
	content := string(vfstest.Read(t, disk, filepath.Join(l.dir, file)))
	deleted, set := strings.LastIndex(content, ":gone-0"), strings.Index(content, `{"end":0}`)
	dir := l.copy(file, func(b []byte) []byte {
		b[deleted+len(":gone-")] ^= 1 // 0 becomes 1
		b[set+3] ^= 1
		return b
	})
	files := checkDamaged(t, "two ranges", dir)
	if p := problemAt(t, files, file, int64(deleted)); p.Key != "" || !strings.Contains(p.Reason, "all records in it do") {
		t.Errorf("%+v", p)
	}
	if p := problemAt(t, files, file, int64(set)); p.ID != "end" {
		t.Errorf("%+v", p)
	}
	report, _ := repaired(t, dir)
	if report.Unknown == 0 || report.Exposed == 0 {
		t.Errorf("%+v", report)
	}
}
