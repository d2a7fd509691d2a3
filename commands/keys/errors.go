package keys

import "mayfly/commands/engine"

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errKeyNumber     = engine.Error("ERR invalid numkeys value")
	errKeyPairs      = engine.Error("ERR wrong number of key-value pairs")
	errCondition     = engine.Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	errConditionType = engine.Error("ERR Key should be of string type if conditions are specified")
	errDecrement     = engine.Error("ERR decrement would overflow")
	errTooLong       = engine.Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	errSameObject    = engine.Error("ERR source and destination objects are the same")
	errOffset        = engine.Error("ERR offset is out of range")
	errLCSType       = engine.Error("ERR The specified keys must contain string values")
	errLCSOptions    = engine.Error("ERR If you want both the length and indexes, please just use IDX.")
	errLCSMemory     = engine.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	errNoLFU         = engine.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	errNoIdleTime    = engine.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	errIndex         = "ERR invalid %s DB index" // first or second
)
