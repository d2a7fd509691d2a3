package documents

import "mayfly/commands/engine"

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errMetaLast     = engine.Error("ERR WITHMETA comes last: DOC.MGET container id [id ...] WITHMETA")
	errMetaNeedsDoc = engine.Error("ERR WITHMETA needs WITHDOCS: DOC.SCAN container cursor WITHDOCS WITHMETA")
	errExchanged    = "ERR '%s' is a database and '%s' a container: DOC.PUT %s %s puts the document into the container"
	errMatchOneID   = "ERR IFMATCH goes with one id: %s container id IFMATCH etag"
	errScanCount    = "ERR invalid COUNT %s: legal are whole numbers of at least 1"
	errMinAge       = "ERR invalid MINAGE %s: legal are 0 to %d seconds%s"
)
