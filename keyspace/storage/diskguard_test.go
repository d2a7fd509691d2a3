package storage

import (
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// idleJournal has nothing.
type idleJournal struct{}

func (idleJournal) Begin() error   { return nil }
func (idleJournal) Err() error     { return nil }
func (idleJournal) Size() int64    { return 0 }
func (idleJournal) Waiting() int64 { return 0 }

// TestOneReleaseForWritesAtOnce: of two writes that meet the full disk at the same time, the second does not
// release the last part, which the next start or the next shortage needs.
func TestOneReleaseForWritesAtOnce(t *testing.T) {
	t.Parallel()
	disk, _ := sized(1<<40, 1<<30)
	wakes := 0
	g, err := newDiskGuard(disk, vfstest.Dir, 160_000, zerolog.Nop(), func() { wakes++ })
	if err == nil {
		err = g.Begin(idleJournal{})
	}
	drill.Check(t, err)
	defer g.Close()
	since := g.Releases()
	for range 2 {
		if !g.MakeRoom(since) || g.Held() != 10_000 || !g.Full() {
			t.Fatalf("it holds %d bytes", g.Held())
		}
	}
	since = g.Releases()
	if !g.MakeRoom(since) || g.Held() != 0 {
		t.Errorf("the room of the first release is used up: it holds %d bytes", g.Held())
	}
	if !g.MakeRoom(since) {
		t.Error("a write that met the full disk before the last release is not repeated")
	}
	if g.MakeRoom(g.Releases()) {
		t.Error("it has made room of nothing")
	}
	if wakes != 2 {
		t.Errorf("%d checkpoints are asked for", wakes)
	}
}
