package commands

import "mayfly/expiry"

// MaxDocument is the size in bytes of the largest document that any server can be told to take.
const MaxDocument = 512 << 20

// ReadDocument checks that a text is a document, as DOC.PUT does, and reads its own time to live. ignored
// says why one that does not count is not, in ttl, as if it were absent (rule 4).
func ReadDocument(text string) (ttl expiry.TTL, ignored, err error) {
	b, err := parseBody(text, MaxDocument)
	return b.ttl, b.bad, err
}
