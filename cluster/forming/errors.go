package forming

import "fmt"

// RefusedError says why a node cannot come into a cluster before people change something.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// DamageError says that an identity is not what was written.
type DamageError struct {
	File   string
	Reason string
}

func (e *DamageError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Reason) }

// VersionError says that a newer program has written an identity.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("version %d of the identity is newer than this program, which knows %d", e.Version, fileVersion)
}
