package replica

import (
	"errors"
	"testing"
	"time"
)

// confirms is a Replicator that does something while it confirms.
type confirms func() error

func (c confirms) Confirm(time.Duration) error                                  { return c() }
func (c confirms) Replicate(uint64, int64, []byte, time.Duration) (Tail, error) { return Tail{}, nil }

// TestConfirmLSN shows that a read counts only if the node has led without a break since it was made,
// whatever happens while it is confirmed.
func TestConfirmLSN(t *testing.T) {
	t.Parallel()
	const read = 7
	again := func(r *Role) { // another node leads, then this one again
		r.Follow()
		r.EndLed(read)
		r.Lead(1)
	}
	handsOver := func(r *Role) {
		r.Drain()
		r.EndDrained(read)
	}
	for _, tt := range []struct {
		name           string
		before, during func(*Role)
		confirmed      error
		want           error
	}{
		{name: "it leads"},
		{name: "it has no majority", confirmed: ErrNoMajority, want: ErrNoMajority},
		{name: "it has followed before", before: again, want: ErrNoMajority},
		{name: "it has followed meanwhile", during: again, want: ErrNoMajority},
		{name: "it follows meanwhile", during: (*Role).Follow, want: ErrNoMajority},
		{name: "it drains", before: (*Role).Drain},
		{name: "it drains without a majority", before: (*Role).Drain, confirmed: ErrNoMajority, want: ErrNoMajority},
		{name: "it has handed over", before: handsOver, confirmed: ErrNoMajority},
		{name: "it hands over meanwhile", during: handsOver, confirmed: ErrNoMajority},
		{name: "it has handed over and leads again", before: func(r *Role) { handsOver(r); r.Lead(1) }, confirmed: ErrNoMajority},
		{name: "it was deposed while it drained", before: func(r *Role) { r.Drain(); r.Follow(); r.EndLed(read) }, want: ErrNoMajority},
	} {
		var r *Role
		r = NewRole(confirms(func() error {
			if tt.during != nil {
				tt.during(r)
			}
			return tt.confirmed
		}))
		r.Lead(1)
		if tt.before != nil {
			tt.before(r)
		}
		if err := r.ConfirmLSN(read, 0); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := NewRole(nil).ConfirmLSN(read, 0); err != nil {
		t.Errorf("a follower's read: %v", err)
	}
}
