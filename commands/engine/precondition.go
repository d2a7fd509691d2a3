package engine

import (
	"fmt"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
)

// PutInput is what DOC.PUT stores, and under which condition.
type PutInput struct {
	Doc  jsondoc.Document
	When Precondition
	TS   int64 // when it was written elsewhere, ms; 0: it is written now
}

// Precondition is the condition under which a write takes place. The zero value always holds.
type Precondition struct {
	Absent, Present bool   // NX; XX or IFMATCH *
	matchVersion    bool   // IFMATCH etag: the document has this version
	version         uint64 // if matchVersion
}

// ParseMatch reads the value of IFMATCH. shownBy is the command that shows such etags, for the error.
func (w *Precondition) ParseMatch(value, shownBy string) (err error) {
	if value == "*" {
		w.Present = true
		return nil
	}
	w.matchVersion = true
	w.version, err = parseEtag(value, shownBy)
	return err
}

// Validate refuses a condition that can never hold. XX with IFMATCH is legal, though redundant.
func (w *Precondition) Validate() error {
	if w.Absent && (w.Present || w.matchVersion) {
		return errPutConflict
	}
	return nil
}

// Holds reports whether the condition holds for a document of a version, or for none.
func (w *Precondition) Holds(found bool, version uint64) bool {
	switch {
	case w.Absent:
		return !found
	case w.matchVersion:
		return found && version == w.version
	case w.Present:
		return found
	}
	return true
}

// ETag returns an item's version as users see it in WITHMETA, DOC.META and IFMATCH. Every write changes
// it.
func ETag(version uint64) string { return string(AppendETag(nil, version)) }

func AppendETag(dst []byte, version uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[version>>shift&0xf])
	}
	return dst
}

// The commands that show the etags of documents and of containers.
const (
	DocETags       = "DOC.META"
	ContainerETags = "CONTAINER.GET"
)

// parseEtag is the inverse of etag. It accepts quotes around the etag, as in HTTP. shownBy is as in
// ParseMatch.
func parseEtag(s, shownBy string) (version uint64, err error) {
	bare := s
	if len(s) >= 2 && strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		bare = s[1 : len(s)-1]
	}
	version, err = strconv.ParseUint(bare, 16, 64)
	if err != nil || len(bare) != 16 {
		return 0, fmt.Errorf("invalid etag %s: legal are * and the 16 hexadecimal digits that %s shows", expiry.Quote(s), shownBy)
	}
	return version, nil
}
