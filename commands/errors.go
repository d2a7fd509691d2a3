package commands

import (
	"fmt"
	"strings"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// The errors on the wire, with the words of Redis where Redis has the case.
const (
	errNoAuth      = Error("NOAUTH Authentication required.")
	errNoAuthHello = Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	errWrongPass   = Error("WRONGPASS invalid username-password pair or user is disabled.")
	errNoPassword  = Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	errNoProto     = Error("NOPROTO unsupported protocol version")
	errPlainKey    = Error("WRONGTYPE Operation against a key holding the wrong kind of value: it is a plain key, for GET and SET")
	errWrongType   = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	errInternal    = Error("ERR internal error; the server's log has the details")

	errNestedMulti  = Error("ERR MULTI calls can not be nested")
	errWatchInMulti = Error("ERR WATCH inside MULTI is not allowed")
	errNotInMulti   = Error("ERR Command not allowed inside a transaction")
	errOOM          = Error("OOM command not allowed when used memory > 'maxmemory'.")
	errClientMemory = Error("ERR " + ClientMemoryText)
	errAbandoned    = Error("ERR the command ended early: the client has left or the server stops")
	errReloaded     = Error("LOADING the node has loaded its data anew; connect again")
	errExecAbort    = Error("EXECABORT Transaction discarded because of previous errors.")
	errExecInternal = Error("EXECABORT Transaction discarded because of an internal error; the server's log has the details")

	errNoCluster  = Error("ERR This instance has cluster support disabled")
	errSaving     = Error("ERR Background save already in progress")
	errNoShutdown = Error("ERR No shutdown in progress.")
	errShutdown   = Error("ERR Errors trying to SHUTDOWN. Check logs.")

	errMonitorInMulti = Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	errMonitoring     = Error("ERR Replica can't interact with the keyspace") // to Redis a monitor is a replica
	errSlowlogCount   = Error("ERR count should be greater than or equal to -1")

	errSyntax         = Error("ERR syntax error")
	errNotInteger     = Error("ERR value is not an integer or out of range")
	errNotFloat       = Error("ERR value is not a valid float")
	errNotFinite      = Error("ERR increment would produce NaN or Infinity")
	errOverflow       = Error("ERR increment or decrement would overflow")
	errDecrement      = Error("ERR decrement would overflow")
	errInvalidCursor  = Error("ERR invalid cursor")
	errTooLong        = Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	errShardInMulti   = Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
	errDatabase       = Error("ERR DB index is out of range")
	errProtoVersion   = Error("ERR Protocol version is not an integer or out of range")
	errKillID         = Error("ERR client-id should be greater than 0")
	errTimeout        = Error("ERR timeout is not an integer or out of range")
	errNegativeTime   = Error("ERR timeout is negative")
	errPauseMode      = Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
	errUnblockReason  = Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	errNoSuchClient   = Error("ERR No such client")
	errClientID       = Error("ERR Invalid client ID")
	errNoKeys         = Error("ERR The command has no key arguments")
	errNoSuchCommand  = Error("ERR Invalid command specified")
	errKeysArity      = Error("ERR Invalid number of arguments specified for command")
	errKeysInvalid    = Error("ERR Invalid arguments specified for command")
	errSameObject     = Error("ERR source and destination objects are the same")
	errNoSuchKey      = Error("ERR no such key")
	errNotInt32       = Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	errOffset         = Error("ERR offset is out of range")
	errLCSType        = Error("ERR The specified keys must contain string values")
	errLCSOptions     = Error("ERR If you want both the length and indexes, please just use IDX.")
	errLCSMemory      = Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	errNoLFU          = Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	errNoIdleTime     = Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	errExpireConflict = Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	errExpireOrder    = Error("ERR GT and LT options at the same time are not compatible")
)

// The errors of mayfly's own commands.
const (
	errEmptyID          = Error("ERR empty id: legal are 1 to 65536 bytes")
	errPutConflict      = Error("ERR NX and XX or IFMATCH options at the same time are not compatible")
	errMetaLast         = Error("ERR WITHMETA comes last: DOC.MGET container id [id ...] WITHMETA")
	errQueryCursor      = Error(`ERR invalid cursor: legal are "0" and what the page before returned`)
	errQueryIndexGone   = Error(`ERR invalid cursor: its index is gone; begin again with "0"`)
	errQueryOtherFolder = Error(`ERR invalid cursor: it belongs to another data folder; begin again with "0"`)
	errIDsOfGroups      = Error("ERR WITHIDS is legal for documents only, not for aggregates, GROUP BY and DISTINCT")
	errMetaNeedsAll     = Error("ERR WITHMETA is legal with SELECT * only")
	errMetaNeedsDoc     = Error("ERR WITHMETA needs WITHDOCS: DOC.SCAN container cursor WITHDOCS WITHMETA")
	errBackupPath       = Error("ERR invalid path of a backup: it names a new folder")
	errBackupInside     = Error("ERR a backup cannot be in the data folder")
)

// ClientMemoryText is why a command is refused for which no memory is left.
const ClientMemoryText = "all clients together hold too much memory: try again later, or raise maxmemory-clients"

// ErrNoConfigFile is the error of CONFIG REWRITE without a config file.
const ErrNoConfigFile = Error("ERR The server is running without a config file")

// The errors that name something, for [errorf].
const (
	errWrongArity      = "ERR wrong number of arguments for '%s' command" // the full name: "get", "config|get"
	errNoSubcommand    = "ERR unknown subcommand '%s'. Try %s HELP."
	errSubcommandCall  = "ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP."
	errNoCategory      = "ERR Unknown category '%s'"
	errNoMulti         = "ERR %s without MULTI"
	errOnlySubscribed  = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	errInvalidExpire   = "ERR invalid expire time in '%s' command"
	errExpireOption    = "ERR Unsupported option %s"
	errUnprintable     = "ERR %s cannot contain spaces, newlines or special characters."
	errLongClientInfo  = "ERR %s cannot be longer than %d bytes."
	errSetInfoOption   = "ERR Unrecognized option '%s'"
	errClientType      = "ERR Unknown client type '%s'"
	errNoSuchUser      = "ERR No such user '%s'"
	errHelloOption     = "ERR Syntax error in HELLO option '%s'"
	errIndex           = "ERR invalid %s DB index" // first or second
	errNoSamples       = "ERR No samples available for event '%s'"
	errInProgress      = "ERR %s already in progress"
	errTooLongName     = "ERR %s of %d bytes is too long: legal are up to %d" // an id, a pattern, a channel
	errExecWork        = "EXECABORT Transaction discarded because its commands walk and write more than %d bytes of values"
	errExecTime        = "EXECABORT Transaction discarded because it takes longer than %s, while others wait for its keys"
	errLongReplies     = "ERR the replies of this transaction exceed %d bytes"
	errOptionTwice     = "ERR option %s is given twice"
	errUnquoted        = "ERR the query is %s alone, and %s is no option: quote the query, as in \"WHERE a = 1\""
	errUnknownOption   = "ERR unknown option '%s': legal are %s"
	errExchanged       = "ERR '%s' is a database and '%s' a container: DOC.PUT %s %s puts the document into the container"
	errMeantOption     = "ERR unknown option '%s': legal are %s; did you mean %s?"
	errOptionValue     = "ERR option %s needs a value: %s"
	errMatchOneID      = "ERR IFMATCH goes with one id: %s container id IFMATCH etag"
	errScanCursor      = "ERR invalid cursor %s: legal are 0 to begin and the cursor of the last reply"
	errScanCount       = "ERR invalid COUNT %s: legal are whole numbers of at least 1"
	errMetaAfterPath   = "ERR WITHMETA comes before PATH: %s container id WITHMETA PATH path [path ...]"
	errPathTwice       = "ERR option PATH is given twice: %s container id PATH path [path ...]"
	errMinAge          = "ERR invalid MINAGE %s: legal are 0 to %d seconds"
	errQueryCount      = "ERR invalid COUNT %s: legal are 1 to %d"
	errQueryParams     = "ERR PARAMS with %d values: legal are pairs of a name and its value in JSON"
	errQueryParamsLast = "ERR %s after PARAMS: PARAMS is the last option, and its names begin with @"
	errQueryBudget     = "ERR query would examine more than %d documents (query-budget)"
	errQueryBudgetWork = "; it stopped after %d, as each %d KiB of text and values counts as one more"
	errIndexExists     = "ERR index %s exists"
	errIndexOther      = "ERR there is no index %s, but an index %s: name it so"
	errIndexesFull     = "ERR %d indexes: legal are at most %d a container"
	errNothingToSet    = "ERR CONTAINER.SET needs TTL <off|-1|seconds>, TTLMODE <strict|lenient>, DEADLINE <member>, HOLD <reason|off>, LOG <off|seconds> or several of them; for example CONTAINER.SET %s TTL 3600"
	errNothingToGuard  = "ERR MAXKILL and IFMATCH guard a change: CONTAINER.SET needs TTL, TTLMODE, DEADLINE, HOLD or LOG too; for example CONTAINER.SET %s TTL 3600 MAXKILL 0"
	errContainerTTL    = "ERR CONTAINER.SET needs TTL <off|-1|seconds> to create container '%s'"
	errContainersFull  = "ERR cannot create container '%s': max-containers allows %d; drop some or raise it"
	errContainerExists = "ERR container '%s' exists already; change it with CONTAINER.SET"
	errNumber          = "ERR container '%s' cannot be created: %v"
	errNumberStays     = "ERR container '%s' has the number %d, which cannot be changed"
	errDeadlineStays   = "ERR container '%[1]s' has items, whose ends are recorded: DEADLINE can be set while it is empty, see DOC.COUNT %[1]s and FLUSHDB"
	errDeadlineKept    = "ERR container '%[1]s' has items that UNDO can bring back, whose ends are recorded: DEADLINE can be set once it cannot, or after FLUSHDB"
	errNoLog           = "ERR no log: CONTAINER.SET %s LOG 3600 makes one"
	errUndoNotEmpty    = "ERR %[1]s holds items again; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoExists      = "ERR container '%[1]s' exists again; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoRuleAs      = "ERR the newest change of %[1]s is one of TTL or TTLMODE, which takes no AS: CONTAINER.UNDO %[1]s takes it back"
	errUndoNameTaken   = "ERR container '%[2]s' exists already; CONTAINER.UNDO %[1]s AS <new name>"
	errUndoUnknown     = "ERR unknown container '%s': none of this name exists, and none was dropped within undo-window"
	errUndoNothing     = "ERR nothing to take back: %[1]s has had no change of TTL or TTLMODE and no flush, see CONTAINER.HISTORY %[1]s"
	errUndoNever       = "ERR the newest change of %s, %s at %s, cannot be taken back, nor can those before it"
	errUndoFlush       = "ERR the flush of %s at %s cannot be taken back: undo-window was not set then. CONFIG SET undo-window <seconds> is for flushes to come"
	errUndoNoWindow    = "ERR the newest change of %s, %s at %s, cannot be taken back: undo-window was 0 then, or the container was empty"
	errUndoEarly       = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window was ended before its time, as memory was full, undo-window was lowered, SWAPDB or many changes followed, or UNDO brought the items back under another name"
	errUndoOver        = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window ended at %s"
	errDropDatabase    = "ERR container '%[1]s' is a database, which cannot be dropped; empty it with SELECT %[1]s and FLUSHDB"
	errNoContainer     = "ERR unknown container '%[1]s'; create it with CONTAINER.SET %[1]s TTL <off|-1|seconds>"
)

// errorf returns an error with its parts. Texts of users are to be shortened: see [shown].
func errorf(format string, parts ...any) error { return Error(fmt.Sprintf(format, parts...)) }

// execAborted is the error of an EXEC that is refused itself.
func execAborted(cause error) error {
	return Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(cause.Error(), "ERR "))
}

// wrongArity is the error of a call with a wrong number of arguments. For mayfly's own commands it shows
// the usage.
func (r *row) wrongArity(args []string) error {
	err := errorf(errWrongArity, r.full)
	if !r.IsOwn() {
		return err
	}
	name := strings.ToUpper(strings.ReplaceAll(r.full, "|", " "))
	text := err.Error() + "; usage: " + strings.TrimSpace(name+" "+r.Syntax)
	if r.Example != "" {
		text += "; for example " + name + " " + r.Example
	}
	if r.Name == "doc.count" && len(args) > 2 && keyspace.ValidName(args[1]) {
		text += "; a query counts too: DOC.QUERY " + args[1] + " \"SELECT COUNT(1) WHERE status = 'open'\""
	}
	return Error(text)
}

// unknownCommand is the error of an unknown command. As in Redis it shows about 128 bytes of the
// arguments. It suggests a command of mayfly if the name resembles one.
func unknownCommand(args []string) error {
	const maxShown = 128
	var preview strings.Builder
	for _, arg := range args[1:] {
		if preview.Len() >= maxShown {
			break
		}
		arg = redisfmt.CString(arg)
		preview.WriteString("'" + arg[:min(len(arg), maxShown-preview.Len())] + "' ")
	}
	with := "with"
	if text := hint(args); text != "" {
		with = text + " With"
	}
	return Error("ERR unknown command '" + shown(args[0]) + "', " + with + " args beginning with: " + preview.String())
}

// maxPattern is the largest size in bytes of a pattern that takes time to match. Matching takes steps in
// proportion to the product of the lengths of pattern and text.
const maxPattern = 1 << 10

// checkPattern returns an error if a pattern takes too long to match. Without * and classes a pattern of
// any length is compared once, up to the first difference.
func checkPattern(pattern string) error {
	if len(pattern) > maxPattern && strings.ContainsAny(pattern, "*[") {
		return errorf(errTooLongName, "pattern", len(pattern), maxPattern)
	}
	return nil
}

// unknownContainer is the error of an unknown container. It says how to create it if the name is legal.
func unknownContainer(name string) error {
	if !keyspace.ValidName(name) {
		return invalidName(name)
	}
	return errorf(errNoContainer, name)
}

// shown returns what an error shows of a user's text, as Redis does: up to its first zero byte, and 128 bytes.
func shown(s string) string { return truncate(redisfmt.CString(s)) }

// truncate shortens a user's text to 128 bytes for an error, as Redis does.
func truncate(s string) string {
	const maxShown = 128
	if len(s) > maxShown {
		return s[:maxShown]
	}
	return s
}
