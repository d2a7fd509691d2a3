package commands

import (
	"sync"
	"testing"

	"mayfly/commands/engine"
)

// Logs come and go while commands that lock nothing look at them.
func TestLogsComeAndGo(t *testing.T) {
	t.Parallel()
	w, _ := newGroupHarness(t, 10)
	commands := [][]string{
		{"XLEN", streamKey},
		{"XRANGE", streamKey, "-", "+"},
		{"XREAD", "STREAMS", streamKey, "$"},
		{"XINFO", "STREAM", streamKey, "FULL"},
		{"XPENDING", streamKey, "g"},
	}
	var wg sync.WaitGroup
	for i, args := range commands {
		s := w.session(20 + i)
		wg.Go(func() {
			for range 300 {
				if r := w.engine.Execute(s, args).Reply; r.Kind == engine.KindError && r.Str == string(engine.ErrInternal) {
					t.Errorf("%q: %s", args, notation(r))
					return
				}
			}
		})
	}
	s := w.session(2)
	for range 300 {
		w.engine.Execute(s, []string{"CONTAINER.SET", "c", "LOG", "OFF"})
		w.engine.Execute(s, []string{"CONTAINER.SET", "c", "LOG", "60"})
	}
	wg.Wait()
}
