package engine

import (
	"fmt"
	"strings"

	"mayfly/commands/suggest"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// The errors on the wire, with the words of Redis where Redis has the case.
const (
	ErrNoAuth      = Error("NOAUTH Authentication required.")
	ErrNoAuthHello = Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	ErrWrongPass   = Error("WRONGPASS invalid username-password pair or user is disabled.")
	ErrNoPassword  = Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	ErrNoProto     = Error("NOPROTO unsupported protocol version")
	ErrPlainKey    = Error("WRONGTYPE Operation against a key holding the wrong kind of value: it is a plain key, for GET and SET")
	ErrWrongType   = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrInternal    = Error("ERR internal error; the server's log has the details")

	errNestedMulti  = Error("ERR MULTI calls can not be nested")
	errWatchInMulti = Error("ERR WATCH inside MULTI is not allowed")
	errNotInMulti   = Error("ERR Command not allowed inside a transaction")
	ErrOOM          = Error("OOM command not allowed when used memory > 'maxmemory'.")
	ErrClientMemory = Error("ERR " + ClientMemoryText)
	ErrAbandoned    = Error("ERR the command ended early: the client has left or the server stops")
	ErrReloaded     = Error("LOADING the node has loaded its data anew; connect again")
	ErrExecAbort    = Error("EXECABORT Transaction discarded because of previous errors.")
	ErrExecInternal = Error("EXECABORT Transaction discarded because of an internal error; the server's log has the details")

	ErrNoCluster  = Error("ERR This instance has cluster support disabled")
	ErrSaving     = Error("ERR Background save already in progress")
	ErrNoShutdown = Error("ERR No shutdown in progress.")
	ErrShutdown   = Error("ERR Errors trying to SHUTDOWN. Check logs.")

	ErrMonitorInMulti = Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	errMonitoring     = Error("ERR Replica can't interact with the keyspace") // to Redis a monitor is a replica
	ErrSlowlogCount   = Error("ERR count should be greater than or equal to -1")

	ErrSyntax         = Error("ERR syntax error")
	ErrNotInteger     = Error("ERR value is not an integer or out of range")
	ErrNotFloat       = Error("ERR value is not a valid float")
	ErrNotFinite      = Error("ERR increment would produce NaN or Infinity")
	ErrOverflow       = Error("ERR increment or decrement would overflow")
	ErrKeyNumber      = Error("ERR invalid numkeys value")
	ErrKeyPairs       = Error("ERR wrong number of key-value pairs")
	ErrCondition      = Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	ErrDigest         = Error("ERR The digest must be exactly 16 hexadecimal characters")
	ErrConditionType  = Error("ERR Key should be of string type if conditions are specified")
	ErrDecrement      = Error("ERR decrement would overflow")
	ErrInvalidCursor  = Error("ERR invalid cursor")
	ErrTooLong        = Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	ErrShardInMulti   = Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
	ErrDatabase       = Error("ERR DB index is out of range")
	ErrProtoVersion   = Error("ERR Protocol version is not an integer or out of range")
	ErrKillID         = Error("ERR client-id should be greater than 0")
	ErrOptionRange    = "ERR invalid %s %s: legal are %d to %d%s"
	ErrTimeout        = Error("ERR timeout is not an integer or out of range")
	ErrNegativeTime   = Error("ERR timeout is negative")
	ErrPauseMode      = Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
	ErrUnblockReason  = Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	ErrNoSuchClient   = Error("ERR No such client")
	ErrClientID       = Error("ERR Invalid client ID")
	ErrNoKeys         = Error("ERR The command has no key arguments")
	ErrNoSuchCommand  = Error("ERR Invalid command specified")
	ErrKeysArity      = Error("ERR Invalid number of arguments specified for command")
	ErrKeysInvalid    = Error("ERR Invalid arguments specified for command")
	ErrSameObject     = Error("ERR source and destination objects are the same")
	ErrNoSuchKey      = Error("ERR no such key")
	ErrNotInt32       = Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	ErrOffset         = Error("ERR offset is out of range")
	ErrLCSType        = Error("ERR The specified keys must contain string values")
	ErrLCSOptions     = Error("ERR If you want both the length and indexes, please just use IDX.")
	ErrLCSMemory      = Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	ErrNoLFU          = Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	ErrNoIdleTime     = Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	ErrExpireConflict = Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	ErrExpireOrder    = Error("ERR GT and LT options at the same time are not compatible")
)

// The errors of mayfly's own commands.
const (
	ErrEmptyID          = Error("ERR empty id: legal are 1 to 65536 bytes")
	errPutConflict      = Error("ERR NX and XX or IFMATCH options at the same time are not compatible")
	ErrMetaLast         = Error("ERR WITHMETA comes last: DOC.MGET container id [id ...] WITHMETA")
	ErrQueryCursor      = Error(`ERR invalid cursor: legal are "0" and what the page before returned`)
	ErrQueryIndexGone   = Error(`ERR invalid cursor: its index is gone; begin again with "0"`)
	ErrQueryOtherFolder = Error(`ERR invalid cursor: it belongs to another data folder; begin again with "0"`)
	ErrIDsOfGroups      = Error("ERR WITHIDS is legal for documents only, not for aggregates, GROUP BY and DISTINCT")
	ErrMetaNeedsAll     = Error("ERR WITHMETA is legal with SELECT * only")
	ErrMetaNeedsDoc     = Error("ERR WITHMETA needs WITHDOCS: DOC.SCAN container cursor WITHDOCS WITHMETA")
	ErrBackupPath       = Error("ERR invalid path of a backup: it names a new folder")
	ErrBackupInside     = Error("ERR a backup cannot be in the data folder")
)

// ClientMemoryText is why a command is refused for which no memory is left.
const ClientMemoryText = "all clients together hold too much memory: try again later, or raise maxmemory-clients"

// ErrNoUserFile is the error of ACL LOAD and ACL SAVE without a file of users.
const ErrNoUserFile = Error("ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.")

// ErrNoConfigFile is the error of CONFIG REWRITE without a config file.
const ErrNoConfigFile = Error("ERR The server is running without a config file")

// The errors that name something, for [errorf].
const (
	ErrWrongArity      = "ERR wrong number of arguments for '%s' command" // the full name: "get", "config|get"
	errNoSubcommand    = "ERR unknown subcommand '%s'. Try %s HELP."
	ErrSubcommandCall  = "ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP."
	ErrNoCategory      = "ERR Unknown category '%s'"
	errNoMulti         = "ERR %s without MULTI"
	errOnlySubscribed  = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	ErrInvalidExpire   = "ERR invalid expire time in '%s' command"
	ErrExpireOption    = "ERR Unsupported option %s"
	errUnprintable     = "ERR %s cannot contain spaces, newlines or special characters."
	errLongClientInfo  = "ERR %s cannot be longer than %d bytes."
	ErrSetInfoOption   = "ERR Unrecognized option '%s'"
	ErrClientType      = "ERR Unknown client type '%s'"
	ErrClientAge       = "ERR %s is not an integer or out of range"
	ErrClientAgeZero   = "ERR %s should be greater than 0"
	ErrClientFlags     = "ERR Unknown flags found in the provided filter: %s"
	ErrNoSuchUser      = "ERR No such user '%s'"
	ErrHelloOption     = "ERR Syntax error in HELLO option '%s'"
	ErrIndex           = "ERR invalid %s DB index" // first or second
	ErrNoSamples       = "ERR No samples available for event '%s'"
	ErrInProgress      = "ERR %s already in progress"
	ErrTooLongName     = "ERR %s of %d bytes is too long: legal are up to %d" // an id, a pattern, a channel
	errExecWork        = "EXECABORT Transaction discarded because its commands walk and write more than %d bytes of values"
	errExecTime        = "EXECABORT Transaction discarded because it takes longer than %s, while others wait for its keys"
	errLongReplies     = "ERR the replies of this transaction exceed %d bytes"
	ErrOptionTwice     = "ERR option %s is given twice"
	ErrUnquoted        = "ERR the query is %s alone, and %s is no option: quote the query, as in \"WHERE a = 1\""
	ErrUnknownOption   = "ERR unknown option '%s': legal are %s"
	ErrExchanged       = "ERR '%s' is a database and '%s' a container: DOC.PUT %s %s puts the document into the container"
	ErrMeantOption     = "ERR unknown option '%s': legal are %s; did you mean %s?"
	ErrOptionValue     = "ERR option %s needs a value: %s"
	ErrMatchOneID      = "ERR IFMATCH goes with one id: %s container id IFMATCH etag"
	ErrScanCursor      = "ERR invalid cursor %s: legal are 0 to begin and the cursor of the last reply"
	ErrScanCount       = "ERR invalid COUNT %s: legal are whole numbers of at least 1"
	ErrMetaAfterPath   = "ERR WITHMETA comes before PATH: %s container id WITHMETA PATH path [path ...]"
	ErrPathTwice       = "ERR option PATH is given twice: %s container id PATH path [path ...]"
	ErrMinAge          = "ERR invalid MINAGE %s: legal are 0 to %d seconds%s"
	ErrQueryCount      = "ERR invalid COUNT %s: legal are 1 to %d"
	ErrQueryParams     = "ERR PARAMS with %d values: legal are pairs of a name and its value in JSON"
	ErrQueryParamsLast = "ERR %s after PARAMS: PARAMS is the last option, and its names begin with @"
	ErrQueryBudget     = "ERR query would examine more than %d documents (query-budget)"
	ErrQueryBudgetWork = "; it stopped after %d, as each %d KiB of text and values counts as one more"
	ErrIndexExists     = "ERR index %s exists"
	ErrIndexOther      = "ERR there is no index %s, but an index %s: name it so"
	ErrIndexesFull     = "ERR %d indexes: legal are at most %d a container"
	ErrNothingToSet    = "ERR CONTAINER.SET needs TTL <off|-1|seconds>, TTLMODE <strict|lenient>, DEADLINE <member>, HOLD <reason|off>, LOG <off|seconds> or several of them; for example CONTAINER.SET %s TTL 3600"
	ErrNothingToGuard  = "ERR MAXKILL and IFMATCH guard a change: CONTAINER.SET needs TTL, TTLMODE, DEADLINE, HOLD or LOG too; for example CONTAINER.SET %s TTL 3600 MAXKILL 0"
	ErrContainerTTL    = "ERR CONTAINER.SET needs TTL <off|-1|seconds> to create container '%s'"
	ErrContainersFull  = "ERR cannot create container '%s': max-containers allows %d; drop some or raise it"
	ErrContainerExists = "ERR container '%s' exists already; change it with CONTAINER.SET"
	ErrNumber          = "ERR container '%s' cannot be created: %v"
	ErrNumberStays     = "ERR container '%s' has the number %d, which cannot be changed"
	ErrDeadlineStays   = "ERR container '%[1]s' has items, whose ends are recorded: DEADLINE can be set while it is empty, see DOC.COUNT %[1]s and FLUSHDB"
	ErrDeadlineKept    = "ERR container '%[1]s' has items that UNDO can bring back, whose ends are recorded: DEADLINE can be set once it cannot, or after FLUSHDB"
	ErrNoLog           = "ERR no log: CONTAINER.SET %s LOG 3600 makes one"
	ErrUndoNotEmpty    = "ERR %[1]s holds items again; CONTAINER.UNDO %[1]s AS <new name>"
	ErrUndoExists      = "ERR container '%[1]s' exists again; CONTAINER.UNDO %[1]s AS <new name>"
	ErrUndoRuleAs      = "ERR the newest change of %[1]s is one of TTL or TTLMODE, which takes no AS: CONTAINER.UNDO %[1]s takes it back"
	ErrUndoNameTaken   = "ERR container '%[2]s' exists already; CONTAINER.UNDO %[1]s AS <new name>"
	ErrUndoUnknown     = "ERR unknown container '%s': none of this name exists, and none was dropped within undo-window"
	ErrUndoNothing     = "ERR nothing to take back: %[1]s has had no change of TTL or TTLMODE and no flush, see CONTAINER.HISTORY %[1]s"
	ErrUndoNever       = "ERR the newest change of %s, %s at %s, cannot be taken back, nor can those before it"
	ErrUndoFlush       = "ERR the flush of %s at %s cannot be taken back: undo-window was not set then. CONFIG SET undo-window <seconds> is for flushes to come"
	ErrUndoNoWindow    = "ERR the newest change of %s, %s at %s, cannot be taken back: undo-window was 0 then, or the container was empty"
	ErrUndoEarly       = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window was ended before its time, as memory was full, SWAPDB or many changes followed, or UNDO brought the items back under another name"
	ErrUndoOver        = "ERR the newest change of %s, %s at %s, cannot be taken back any more: its window ended at %s"
	ErrDropDatabase    = "ERR container '%[1]s' is a database, which cannot be dropped; empty it with SELECT %[1]s and FLUSHDB"
	errNoContainer     = "ERR unknown container '%[1]s'; create it with CONTAINER.SET %[1]s TTL <off|-1|seconds>"
)

// Errorf returns an error with its parts. Texts of users are to be shortened: see [shown].
func Errorf(format string, parts ...any) error { return Error(fmt.Sprintf(format, parts...)) }

// execAborted is the error of an EXEC that is refused itself.
func execAborted(cause error) error {
	return Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(cause.Error(), "ERR "))
}

// WrongArity is the error of a call with a wrong number of arguments. For mayfly's own commands it shows
// the usage.
func (r *Row) WrongArity(args []string) error {
	err := Errorf(ErrWrongArity, r.FullName)
	if !r.IsOwn() {
		return err
	}
	name := strings.ToUpper(strings.ReplaceAll(r.FullName, "|", " "))
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
	if text := suggest.Hint(args, Names()); text != "" {
		with = text + " With"
	}
	return Error("ERR unknown command '" + Shown(args[0]) + "', " + with + " args beginning with: " + preview.String())
}

// MaxPattern is the largest size in bytes of a pattern that takes time to match. Matching takes steps in
// proportion to the product of the lengths of pattern and text.
const MaxPattern = 1 << 10

// CheckPattern returns an error if a pattern takes too long to match. Without * and classes a pattern of
// any length is compared once, up to the first difference.
func CheckPattern(pattern string) error {
	if len(pattern) > MaxPattern && strings.ContainsAny(pattern, "*[") {
		return Errorf(ErrTooLongName, "pattern", len(pattern), MaxPattern)
	}
	return nil
}

// UnknownContainer is the error of an unknown container. It says how to create it if the name is legal.
func UnknownContainer(name string) error {
	if !keyspace.ValidName(name) {
		return InvalidName(name)
	}
	return Errorf(errNoContainer, name)
}

// Shown returns what an error shows of a user's text, as Redis does: up to its first zero byte, and 128
// bytes.
func Shown(s string) string { return Truncate(redisfmt.CString(s)) }

// Truncate shortens a user's text to 128 bytes for an error, as Redis does.
func Truncate(s string) string {
	const maxShown = 128
	if len(s) > maxShown {
		return s[:maxShown]
	}
	return s
}

func InvalidName(name string) error {
	return fmt.Errorf("invalid container name %s: legal are 1 to 255 of letters, digits, _ . : -", expiry.Quote(name))
}
