package aof_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// TestCommands: commands with large texts in parts are the bytes of the same commands in one piece, with
// their sum.
func TestCommands(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("large", 20_000)
	var c aof.Commands
	var want []byte
	for _, body := range []string{"", "small", large, strings.Repeat("x", 5000), large, large} {
		c.Set("1:a", "header ", body)
		want = aof.AppendSet(want, "1:a", "header "+body)
		c.Del("1:b")
		want = aof.AppendDel(want, "1:b")
		if got := strings.Join(c.Parts(c.Text), ""); got != string(want) {
			t.Fatalf("%d bytes differ from %d", len(got), len(want))
		}
		if c.Size() != int64(len(want)) || c.Sum() != record.Sum(0, string(want)) {
			t.Errorf("size %d, sum %08x", c.Size(), c.Sum())
		}
	}
	if got := strings.Join(c.Parts(append(c.Text, "seal"...)), ""); got != string(want)+"seal" {
		t.Error("what follows the commands is not the last part")
	}
	if got := aof.AppendOps(nil, []aof.Op{{Key: "1:a", Rec: "header ", Body: large}}); string(got) != string(aof.AppendSet(nil, "1:a", "header "+large)) {
		t.Error("a record in two parts is written differently")
	}
}

// TestAppendParts: parts are appended all or, after an error, none.
func TestAppendParts(t *testing.T) {
	t.Parallel()
	disk, path := vfstest.New(), vfstest.Dir+"/a.db"
	f, err := vfs.CreateNew(disk, path)
	drill.Check(t, err)
	file := aof.NewFile(disk, f, path, 0)
	defer file.Close()
	if err := file.AppendParts([]string{"one", "", "two"}); err != nil || file.End() != 6 {
		t.Errorf("%v, end %d", err, file.End())
	}
	disk.Most.Store(6 + int64(len("three")) + 1) // the second part is written in part
	if err := file.AppendParts([]string{"three", "four"}); !errors.Is(err, syscall.EFBIG) {
		t.Error(err)
	}
	if content := vfstest.Read(t, disk, path); string(content) != "onetwo" || file.End() != 6 {
		t.Errorf("%q, end %d", content, file.End())
	}
}

// The commands of a large transaction are not moved to larger memory in proportion to their size, nor is
// another's when they are added to it.
func TestCommandsAreMovedSeldom(t *testing.T) {
	t.Parallel()
	const most = 1 << 20 // bytes
	for name, add := range map[string]func(c *aof.Commands){
		"set": func(c *aof.Commands) { c.Set("1:key", "record", "") },
		"two": func(c *aof.Commands) { c.Set("1:key", "record", "body") },
		"del": func(c *aof.Commands) { c.Del("1:key") },
	} {
		var c aof.Commands
		moved := 0
		for range 200_000 {
			first, size := unsafe.SliceData(c.Text), len(c.Text)
			if add(&c); unsafe.SliceData(c.Text) != first && len(c.Text) > size {
				moved += size
			}
		}
		if moved > most || c.Size() < 3*most {
			t.Errorf("%s: %d bytes are moved for %d", name, moved, c.Size())
		}
		other := aof.Commands{Text: []byte("first")}
		want := "first" + strings.Join(c.Parts(c.Text), "")
		other.Add(&c)
		parts := other.Parts(other.Text)
		if strings.Join(parts, "") != want || other.Size() != int64(len(want)) {
			t.Errorf("%s: commands that are added to others are not theirs", name)
		}
		if unsafe.StringData(parts[1]) != unsafe.StringData(c.Parts(nil)[0]) {
			t.Errorf("%s: the parts are copied", name)
		}
	}
}
