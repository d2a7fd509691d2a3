package keyspace

import (
	"errors"
	"fmt"
	"strconv"
)

const (
	// Databases is the number of containers "0", "1", … that exist from the start (SELECT): others have
	// higher numbers.
	Databases = 16
	// MaxDB is the highest number of a container. Programs list all numbers up to the highest in use.
	MaxDB = 1<<20 - 1
)

// TakenError refuses a container because another has its number.
type TakenError struct {
	Number uint32
	By     string // the other's name; "": it is not told
}

func (e *TakenError) Error() string {
	if e.By == "" {
		return fmt.Sprintf("number %d is that of another container", e.Number)
	}
	return fmt.Sprintf("number %d is that of container '%s'", e.Number, e.By)
}

// ownError refuses a number for a container whose name is another number.
type ownError struct{ Number uint32 }

func (e *ownError) Error() string {
	return fmt.Sprintf("container %[1]d has the number %[1]d", e.Number)
}

// errUsedUp refuses a container because all numbers are taken.
var errUsedUp = errors.New("all numbers are taken")

// numberOfName returns the number that a name is, if it is one without leading zeros, up to MaxDB.
func numberOfName(name string) (n uint32, ok bool) {
	parsed, err := strconv.ParseUint(name, 10, 32)
	return uint32(parsed), err == nil && parsed <= MaxDB && (name[0] != '0' || name == "0")
}

// numberTable has the containers by number.
type numberTable map[uint32]*Container

// Highest returns the highest number.
func (t numberTable) Highest() (highest uint32) {
	for n := range t {
		highest = max(highest, n)
	}
	return highest
}

// Choose returns the number of a new container. wanted is the one that its creator names; 0: any. last is the
// number given last. next reports whether the number is the next one, which is then the one given last. The
// error is a TakenError, an ownError or errUsedUp.
func (t numberTable) Choose(name string, wanted, last uint32) (n uint32, next bool, err error) {
	n = wanted
	own, isNumber := numberOfName(name)
	switch {
	case isNumber && n != 0 && n != own:
		return 0, false, &ownError{own}
	case isNumber:
		n = own
	case n == 0:
		n, err = t.Next(last)
		return n, true, err
	}
	if other, taken := t[n]; taken {
		return 0, false, &TakenError{n, other.name}
	}
	return n, false, nil
}

// Next returns the free number after the one given last. The error is errUsedUp.
func (t numberTable) Next(last uint32) (uint32, error) {
	if len(t) > MaxDB {
		return 0, errUsedUp
	}
	for n := max(last, Databases-1) + 1; ; n++ {
		if n > MaxDB {
			n = Databases
		}
		if _, taken := t[n]; !taken {
			return n, nil
		}
	}
}
