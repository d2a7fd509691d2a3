package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// TestSeed: a folder keeps its seed, and gets another if the file is lost or damaged.
func TestSeed(t *testing.T) {
	t.Parallel()
	d, err := Open(vfstest.Fast(), t.TempDir(), 2, zerolog.Nop())
	drill.Check(t, err)
	defer d.Close()
	first, kept := d.ReadSeed()
	if again, _ := d.ReadSeed(); kept || again == first {
		t.Errorf("a new folder has the seed %x", first)
	}
	drill.Check(t, d.WriteSeed(first))
	if again, kept := d.ReadSeed(); !kept || again != first {
		t.Errorf("the seed is %x, want %x", again, first)
	}
	path := filepath.Join(d.Path, SeedName)
	for _, text := range []string{"", "mayfly seed\n0011\n", "mayfly seed\nxx", "00112233445566778899aabbccddeeff\n"} {
		drill.Check(t, os.WriteFile(path, []byte(text), 0o600))
		if again, kept := d.ReadSeed(); kept || again == first {
			t.Errorf("a damaged file %q has the seed %x", text, again)
		}
	}
	drill.Check(t, os.Remove(path), os.Mkdir(path, 0o700))
	if err := d.WriteSeed(first); err == nil {
		t.Error("a folder in the place of the file is no error")
	}
}
