package containers

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errIndexExists     = "ERR index %s exists"
	errIndexOther      = "ERR there is no index %s, but an index %s: name it so"
	errIndexesFull     = "ERR %d indexes: legal are at most %d a container"
	errNothingToSet    = "ERR CONTAINER.SET needs TTL <off|-1|seconds>, TTLMODE <strict|lenient>, DEADLINE <member>, HOLD <reason|off>, LOG <off|seconds> or several of them; for example CONTAINER.SET %s TTL 3600"
	errNothingToGuard  = "ERR MAXKILL and IFMATCH guard a change: CONTAINER.SET needs TTL, TTLMODE, DEADLINE, HOLD or LOG too; for example CONTAINER.SET %s TTL 3600 MAXKILL 0"
	errContainerTTL    = "ERR unknown container '%s': CONTAINER.SET needs TTL <off|-1|seconds> to create it"
	errContainersFull  = "ERR cannot create container '%s': max-containers allows %d; drop some or raise it"
	errContainerExists = "ERR container '%s' exists already; change it with CONTAINER.SET"
	errNumber          = "ERR container '%s' cannot be created: %v"
	errNumberStays     = "ERR container '%s' has the number %d, which cannot be changed"
	errDeadlineStays   = "ERR container '%[1]s' has items, whose ends are recorded: DEADLINE can be set while it is empty, see DOC.COUNT %[1]s and FLUSHDB"
	errDeadlineKept    = "ERR container '%[1]s' has items that UNDO can bring back, whose ends are recorded: DEADLINE can be set once it cannot, or after FLUSHDB"
	errUndoNotEmpty    = "ERR %[1]s holds items again; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoExists      = "ERR container '%[1]s' exists again; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoRuleAs      = "ERR the newest change of %[1]s is one of TTL or TTLMODE, which takes no AS: CONTAINER.UNDO %[1]s takes it back"
	errUndoNameTaken   = "ERR container '%[2]s' exists already; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoUnknown     = "ERR unknown container '%s': none of this name exists, and none was dropped within undo-window"
	errUndoNothing     = "ERR nothing to take back: %[1]s has had no change of TTL or TTLMODE and no flush, see CONTAINER.HISTORY %[1]s"
	errUndoNever       = "ERR the newest change of %s, %s at %s, cannot be taken back, nor can those before it"
	errUndoFlush       = "ERR the flush of %s at %s cannot be taken back: undo-window was not set then. CONFIG SET undo-window <seconds> is for flushes to come"
	errUndoNoWindow    = "ERR the newest change of %s, %s at %s, cannot be taken back: undo-window was 0 then, or the container was empty"
	errUndoEarly       = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window was ended before its time, as memory was full, SWAPDB or many changes followed, or UNDO brought the items back under another name"
	errUndoOver        = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window ended at %s"
	errDropDatabase    = "ERR container '%[1]s' is a database, which cannot be dropped; empty it with SELECT %[1]s and FLUSHDB"
)
