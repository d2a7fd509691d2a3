package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// ops are the changes of one transaction.
type ops []aof.Op

// AppendTo implements [Changes].
func (o ops) AppendTo(dst aof.Commands) aof.Commands {
	dst.Text = aof.AppendOps(dst.Text, o)
	return dst
}

// set returns the change of one plain item.
func set(key, body string) ops { return ops{aoftest.Set(key, body)} }

// del returns the change that deletes one item.
func del(key string) ops { return ops{aoftest.Del(key)} }

func mustOpen(t *testing.T, disk vfs.FS, generation uint64, first LSN, policy Policy) *Journal {
	t.Helper()
	j, err := Open(Options{FS: disk, Dir: vfstest.Dir, Finished: before(generation), First: first, Policy: policy, Log: zerolog.Nop()})
	drill.Check(t, err)
	return j
}

// commit commits changes.
func (j *Journal) commit(t *testing.T, o ops) LSN {
	t.Helper()
	lsn := j.Append(o)
	drill.Check(t, j.Wait(lsn))
	return lsn
}

// put commits a plain item.
func (j *Journal) put(t *testing.T, key, body string) LSN {
	t.Helper()
	return j.commit(t, set(key, body))
}

// text describes changes: "key=body" for an item, "-key" for a delete.
func text(o ...aof.Op) (texts []string) {
	for _, o := range o {
		it, _, err := record.Decode(o.Key, o.Rec)
		switch {
		case o.Del:
			texts = append(texts, "-"+o.Key)
		case err != nil:
			texts = append(texts, fmt.Sprintf("%s: %v", o.Key, err))
		default:
			texts = append(texts, o.Key+"="+it.Body)
		}
	}
	return texts
}

// replayed returns the changes in all journals of a folder as text, and the last LSN.
func replayed(disk vfs.FS) (changes []string, last LSN, err error) {
	_, last, err = replayFolder(disk, func(o aof.Op) error {
		changes = append(changes, text(o)...)
		return nil
	})
	return changes, last, err
}

func checkReplayed(t *testing.T, disk vfs.FS, want ...string) {
	t.Helper()
	if got, _, err := replayed(disk); err != nil || !slices.Equal(got, want) {
		t.Fatalf("the journals hold %q, %v; want %q", got, err, want)
	}
}

// checkDamaged checks that a replay reports damage that includes the byte at an offset.
func checkDamaged(t *testing.T, disk vfs.FS, at int64, what string) {
	t.Helper()
	_, _, err := replayed(disk)
	var damage *aof.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("%s returns %v", what, err)
	}
	if at < damage.From || at >= damage.To {
		t.Fatalf("%s is reported as %v", what, damage)
	}
}

// path is that of the file of a generation.
func path(generation uint64) string { return filepath.Join(vfstest.Dir, FileName(generation)) }

// planted returns a disk with the file of the first generation.
func planted(t *testing.T, content []byte) vfs.FS {
	t.Helper()
	disk := vfstest.New()
	vfstest.Write(t, disk, path(1), content)
	return disk
}

// checkNothingKept checks that nothing was cut off the file of the first generation.
func checkNothingKept(t *testing.T, disk vfs.FS) {
	t.Helper()
	if found := aoftest.Kept(t, disk, path(1)); len(found) > 0 {
		t.Errorf("files were made: %v", found)
	}
}

// emptyFile is the content of a journal's file without commits.
func emptyFile() []byte { return aof.FirstSeal(7).Append(nil) }

// appendCommit appends a commit to the content of a file, with a right seal unless change alters it.
func appendCommit(content []byte, mark uint32, lsn LSN, o ops, change func(*aof.Seal)) []byte {
	from := len(content)
	content = aof.AppendOps(content, o)
	s := aof.Seal{Mark: mark, From: int64(from), At: int64(len(content)), LSN: uint64(lsn), Sum: record.Sum(0, string(content[from:]))}
	if change != nil {
		change(&s)
	}
	return s.Append(content)
}

// smallJournal makes a journal's file with three commits, and returns it with the offsets at which they end.
// The first commit was forced to disk before the others.
func smallJournal(t *testing.T) (content []byte, ends []int64, changes []string) {
	t.Helper()
	disk := vfstest.New()
	j := mustOpen(t, disk, 1, 1, No)
	j.put(t, "1:a", "alpha")
	ends = append(ends, j.Size())
	drill.Check(t, j.Sync())
	const odd = "\r\n*3\r\n \x00\x00\n-1 "
	j.commit(t, ops{aoftest.Del("1:a"), aoftest.Set("1:b", odd)})
	ends = append(ends, j.Size())
	j.put(t, "1:c", "")
	ends = append(ends, j.Size())
	content = vfstest.Read(t, disk, path(1))
	drill.Check(t, j.Close())
	return content, ends, []string{"1:a=alpha", "-1:a", "1:b=" + odd, "1:c="}
}

// gate returns a disk whose first write waits until open is closed. Then all writes return err.
func gate(err error) (disk *vfstest.Faulty, reached, open chan struct{}) {
	disk, reached, open = vfstest.New(), make(chan struct{}), make(chan struct{})
	var first sync.Once
	disk.OnWrite = func(_ vfs.File, _ []byte, at int64) error {
		if at == 0 { // the head of a new file
			return nil
		}
		first.Do(func() { close(reached); <-open })
		return err
	}
	return disk, reached, open
}

// placeholder marks the place of a forged seal in a body.
var placeholder = strings.Repeat("?", int(aof.SealSize))

// forge replaces the placeholders in the body of an item by seals that name their own offset, if the
// item's command begins at from. Everything else in the seals is as given.
func forge(from int64, key, body string, seal aof.Seal) string {
	for {
		at := strings.Index(string(aof.AppendSet(nil, key, aoftest.Rec(key, body))), placeholder)
		if at < 0 {
			return body
		}
		seal.At = from + int64(at)
		body = strings.Replace(body, placeholder, string(seal.Append(nil)), 1)
	}
}

// before returns the files of a journal that goes on in a generation.
func before(generation uint64) []FileInfo {
	if generation == 1 {
		return nil
	}
	return []FileInfo{{Generation: generation - 1}}
}

// replayFolder replays the journals of a folder, and returns the last generation and LSN.
func replayFolder(disk vfs.FS, visit func(aof.Op) error) (generation uint64, last LSN, err error) {
	files, last, err := Replay(ReplayOptions{FS: disk, Dir: vfstest.Dir, Log: zerolog.Nop(), Now: aoftest.Epoch, Visit: visit})
	if len(files) > 0 {
		generation = files[len(files)-1].Generation
	}
	return generation, last, err
}
