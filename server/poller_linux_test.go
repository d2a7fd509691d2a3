package server

import (
	"os"
	"testing"

	"mayfly/test/drill"
)

func TestPoller(t *testing.T) {
	t.Parallel()
	p, err := newPoller()
	drill.Check(t, err)
	defer p.Close()
	r, w, err := os.Pipe()
	drill.Check(t, err)
	defer r.Close()
	defer w.Close()
	fd := int(r.Fd())
	drill.Check(t, p.Add(fd))
	if got := p.Wait(0); len(got) > 0 {
		t.Errorf("nothing has happened: %v", got)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it was not read
		if got := p.Wait(-1); len(got) != 1 || int(got[0].Fd) != fd || p.IsWake(fd) {
			t.Errorf("%v, not descriptor %d", got, fd)
		}
	}
	p.Remove(fd)
	p.Remove(fd)
	p.Wake()
	p.Wake()
	for range 2 {
		if got := p.Wait(-1); len(got) != 1 || !p.IsWake(int(got[0].Fd)) {
			t.Errorf("%v, not a wake", got)
		}
	}
	p.Reset()
	if got := p.Wait(0); len(got) > 0 {
		t.Errorf("the wake was reset: %v", got)
	}
}
