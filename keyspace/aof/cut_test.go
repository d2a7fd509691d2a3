package aof

import (
	"errors"
	"os"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

const cutPath = vfstest.Dir + "/a.db"

// cuttable makes a file on a disk, and opens it.
func cuttable(t *testing.T) (*vfstest.Faulty, vfs.File) {
	t.Helper()
	disk := vfstest.New()
	vfstest.Write(t, disk, cutPath, []byte("a head and a tail"))
	f, err := disk.OpenFile(cutPath, os.O_RDWR, 0)
	drill.Check(t, err)
	return disk, f
}

// If the end cannot be kept aside it is not cut off, and no half copy of it stays.
func TestCutTailThatFails(t *testing.T) {
	t.Parallel()
	disk, f := cuttable(t)
	disk.FailSyncs.Store(true)
	err := CutTail(disk, f, 6, 17, 1, zerolog.Nop())
	entries, _ := disk.ReadDir(vfstest.Dir)
	if text := vfstest.Read(t, disk, cutPath); !errors.Is(err, vfstest.ErrDisk) || len(entries) != 1 || string(text) != "a head and a tail" {
		t.Errorf("%v leaves %v, and %q in the file", err, entries, text)
	}
}

// On a full disk the cut makes room for the copy. Without room even so, the end is lost, and that is logged.
func TestCutTailOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, room := range map[string]int64{"the cut makes room": 18, "there is none": 10} {
		t.Run(name, func(t *testing.T) {
			disk, f := cuttable(t)
			disk.FS.(*vfstest.Memory).Limit(room)
			var log strings.Builder
			drill.Check(t, CutTail(disk, f, 6, 17, 1, zerolog.New(&log)))
			if text := vfstest.Read(t, disk, cutPath); string(text) != "a head" {
				t.Errorf("the file has %q", text)
			}
			kept, err := vfs.ReadFile(disk, cutPath+".torn-1")
			if fits := room == 18; fits && string(kept) != " and a tail" || !fits && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%q is kept, %v", kept, err)
			}
			if said := strings.Contains(log.String(), "no room"); said == (room == 18) || strings.Count(log.String(), "\n") != 1 {
				t.Error(log.String())
			}
		})
	}
}
