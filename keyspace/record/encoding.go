package record

// Encoding says how Redis holds a plain key, for OBJECT ENCODING, or what is known of a document. It is not
// on disk.
type Encoding uint8

// The encodings. A write sets Chosen, unless it leaves the body as it is.
const (
	Chosen Encoding = iota // as Redis chooses for a value that is set
	Raw                    // the value was appended to or overwritten in part
	Text                   // the value may be a number but is not held as one

	Compact = Raw // of a document: its JSON is as JSON.GET shows it
)
