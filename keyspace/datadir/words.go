package datadir

import (
	"path/filepath"
	"strings"
)

// WithoutPath returns an error without the path of a data folder, which is not for clients. Nil stays nil.
func WithoutPath(err error, dir string) error {
	if err == nil {
		return nil
	}
	return &shortError{err, strings.ReplaceAll(err.Error(), filepath.Clean(dir)+string(filepath.Separator), "")}
}

// shortError is an error in other words.
type shortError struct {
	err  error
	text string
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }
