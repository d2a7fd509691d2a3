package items

import "mayfly/commands/engine"

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errDigest         = engine.Error("ERR The digest must be exactly 16 hexadecimal characters")
	errOptionRange    = "ERR invalid %s %s: legal are %d to %d%s"
	errTimeout        = engine.Error("ERR timeout is not an integer or out of range")
	errNegativeTime   = engine.Error("ERR timeout is negative")
	ErrNotPositive    = engine.Error("ERR value is out of range, must be positive")
	errNotInt32       = engine.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	errExpireConflict = engine.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	errExpireOrder    = engine.Error("ERR GT and LT options at the same time are not compatible")
	errEmptyID        = engine.Error("ERR empty id: legal are 1 to 65536 bytes")
	errExpireOption   = "ERR Unsupported option %s"
	errOptionTwice    = "ERR option %s is given twice"
	errUnknownOption  = "ERR unknown option '%s': legal are %s"
	errMeantOption    = "ERR unknown option '%s': legal are %s; did you mean %s?"
	errOptionValue    = "ERR option %s needs a value: %s"
	errMetaAfterPath  = "ERR WITHMETA comes before PATH: %s container id WITHMETA PATH path [path ...]"
	errPathTwice      = "ERR option PATH is given twice: %s container id PATH path [path ...]"
)
