package journal

// A checkpoint is due when the journal's files reach a multiple of the live bytes of the stores, within
// bounds. Items that are overwritten or die before the next checkpoint never reach the stores, so a large
// journal saves work. But the next start has to read it, and at the end of a checkpoint the stores hold the
// same bytes again. So there is an upper bound.
const (
	// MinLimit is the least limit in bytes.
	MinLimit = 8 << 20
	maxLimit = 512 << 20
)

// LimitFor returns the size of the journal at which a checkpoint is due if the stores have this many live
// bytes; least is MinLimit, or less in a test.
func LimitFor(live, least int64) int64 { return min(max(live, least), maxLimit) }
