package undo

import (
	"errors"

	"mayfly/expiry"
)

// Undone is a change that was taken back.
type Undone struct {
	What expiry.Action // set, flushed or dropped
	At   int64         // ms; when the change was made
	By   string        // see [expiry.HistoryEntry]
}

// The errors of taking back. Nothing has changed.
var (
	ErrNotEmpty   = errors.New("the container holds items")
	ErrExists     = errors.New("the name of what was dropped has a container, which is empty")
	ErrNameTaken  = errors.New("the new name is taken")
	ErrRuleAs     = errors.New("a changed rule has no other name")
	ErrFullOfName = errors.New("no more containers may be made")
)

// NothingError says why nothing can be taken back. Nothing has changed.
type NothingError struct {
	Unknown bool                // the name has no container
	Change  expiry.HistoryEntry // the newest change, which cannot be taken back; What is empty if there is none
}

func (e *NothingError) Error() string { return "there is nothing to take back" }

// Target says where a change is taken back.
type Target int

// The targets.
const (
	Rule   Target = iota // the former policy rules the container again
	Listed               // the listed container gets its former items back
	Free                 // the container that was set aside gets a free name
)

// Names are what [Window.Target] asks of the catalogue.
type Names struct {
	Listed bool        // the name has a container
	Lives  func() bool // which has living items
	Taken  bool        // the new name has a container
}

// Target returns where the change is taken back. as is a new name for what was flushed or dropped, "" for the
// former. The error is one of those above.
func (w *Window[C]) Target(as string, n Names) (Target, error) {
	switch {
	case w.Rule && as != "":
		return 0, ErrRuleAs
	case w.Rule:
		return Rule, nil
	case as != "" && n.Taken:
		return 0, ErrNameTaken
	case as != "" || !n.Listed:
		return Free, nil
	case n.Lives():
		return 0, ErrNotEmpty
	case w.Aside.What != expiry.Flushed:
		return 0, ErrExists
	default:
		return Listed, nil
	}
}
