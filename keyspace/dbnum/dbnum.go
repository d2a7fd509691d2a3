package dbnum

import (
	"errors"
	"fmt"
	"strconv"
)

const (
	// First is the lowest number of a container that is no database.
	First = 16
	// Max is the highest number. Programs list all numbers up to the highest in use.
	Max = 1<<20 - 1
)

// TakenError refuses a container because another has its number.
type TakenError struct {
	Number uint32
	By     string // the other's name
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("number %d is that of container '%s'", e.Number, e.By)
}

// OwnError refuses a number for a container whose name is another number.
type OwnError struct{ Number uint32 }

func (e *OwnError) Error() string {
	return fmt.Sprintf("container %[1]d has the number %[1]d", e.Number)
}

// ErrUsedUp refuses a container because all numbers are taken.
var ErrUsedUp = errors.New("all numbers are taken")

// OfName returns the number that a name is, if it is one without leading zeros, up to Max.
func OfName(name string) (n uint32, ok bool) {
	parsed, err := strconv.ParseUint(name, 10, 32)
	return uint32(parsed), err == nil && parsed <= Max && (name[0] != '0' || name == "0")
}

// Table has the containers by number.
type Table[C interface{ Name() string }] map[uint32]C

// Highest returns the highest number.
func (t Table[C]) Highest() (highest uint32) {
	for n := range t {
		highest = max(highest, n)
	}
	return highest
}

// Choose returns the number of a new container. wanted is the one that its creator names; 0: any. last is the number
// given last. next reports whether the number is the next one, which is then the one given last. The error is a
// TakenError, an OwnError or ErrUsedUp.
func (t Table[C]) Choose(name string, wanted, last uint32) (n uint32, next bool, err error) {
	n = wanted
	own, isNumber := OfName(name)
	switch {
	case isNumber && n != 0 && n != own:
		return 0, false, &OwnError{own}
	case isNumber:
		n = own
	case n == 0:
		n, err = t.Next(last)
		return n, true, err
	}
	if other, taken := t[n]; taken {
		return 0, false, &TakenError{n, other.Name()}
	}
	return n, false, nil
}

// Next returns the free number after the one given last. The error is ErrUsedUp.
func (t Table[C]) Next(last uint32) (uint32, error) {
	if len(t) > Max {
		return 0, ErrUsedUp
	}
	for n := max(last, First-1) + 1; ; n++ {
		if n > Max {
			n = First
		}
		if _, taken := t[n]; !taken {
			return n, nil
		}
	}
}
