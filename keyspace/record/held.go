package record

import "fmt"

// HeldError is the veto of a container on hold against a change.
type HeldError struct {
	Container string // its name
	Reason    string // of the hold
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("container '%s' is on hold: %s", e.Container, e.Reason)
}
