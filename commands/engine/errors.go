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
	ErrNoAuth    = Error("NOAUTH Authentication required.")
	ErrWrongPass = Error("WRONGPASS invalid username-password pair or user is disabled.")
	ErrPlainKey  = Error("WRONGTYPE Operation against a key holding the wrong kind of value: it is a plain key, for GET and SET")
	ErrWrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrInternal  = Error("ERR internal error; the server's log has the details")

	errNestedMulti  = Error("ERR MULTI calls can not be nested")
	errWatchInMulti = Error("ERR WATCH inside MULTI is not allowed")
	errNotInMulti   = Error("ERR Command not allowed inside a transaction")
	errGuessInMulti = Error("ERR wrong passwords delay the next attempt, and a transaction does not wait: send it outside MULTI")
	ErrOOM          = Error("OOM command not allowed when used memory > 'maxmemory'.")
	ErrClientMemory = Error("ERR " + ClientMemoryText)
	ErrAbandoned    = Error("ERR the command ended early: the client has left or the server stops")
	ErrReloaded     = Error("LOADING the node has loaded its data anew; connect again")
	ErrExecAbort    = Error("EXECABORT Transaction discarded because of previous errors.")
	ErrExecInternal = Error("EXECABORT Transaction discarded because of an internal error; the server's log has the details")

	ErrNoCluster = Error("ERR This instance has cluster support disabled")
	ErrShutdown  = Error("ERR Errors trying to SHUTDOWN. Check logs.")

	errMonitoring = Error("ERR Replica can't interact with the keyspace") // to Redis a monitor is a replica

	ErrSyntax        = Error("ERR syntax error")
	ErrNotInteger    = Error("ERR value is not an integer or out of range")
	ErrNotFloat      = Error("ERR value is not a valid float")
	ErrNotFinite     = Error("ERR increment would produce NaN or Infinity")
	ErrOverflow      = Error("ERR increment or decrement would overflow")
	ErrInvalidCursor = Error("ERR invalid cursor")
	ErrDatabase      = Error("ERR DB index is out of range")
	ErrNoSuchKey     = Error("ERR no such key")
)

// The errors of mayfly's own commands.
const (
	errPutConflict      = Error("ERR NX and XX or IFMATCH options at the same time are not compatible")
	ErrQueryOtherFolder = Error(`ERR invalid cursor: it belongs to another data folder; begin again with "0"`)
)

// ClientMemoryText is why a command is refused for which no memory is left.
const ClientMemoryText = "all clients together hold too much memory: try again later, or raise maxmemory-clients"

// ErrNoUserFile is the error of ACL LOAD and ACL SAVE without a file of users.
const ErrNoUserFile = Error("ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.")

// ErrNoConfigFile is the error of CONFIG REWRITE without a config file.
const ErrNoConfigFile = Error("ERR The server is running without a config file")

// The errors that name something, for [errorf].
const (
	ErrWrongArity     = "ERR wrong number of arguments for '%s' command" // the full name: "get", "config|get"
	errNoSubcommand   = "ERR unknown subcommand '%s'. Try %s HELP."
	ErrSubcommandCall = "ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP."
	errNoMulti        = "ERR %s without MULTI"
	errOnlySubscribed = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	ErrInvalidExpire  = "ERR invalid expire time in '%s' command"
	errUnprintable    = "ERR %s cannot contain spaces, newlines or special characters."
	errLongClientInfo = "ERR %s cannot be longer than %d bytes."
	ErrTooLongName    = "ERR %s of %d bytes is too long: legal are up to %d" // an id, a pattern, a channel
	errExecWork       = "EXECABORT Transaction discarded because its commands walk and write more than %d bytes of values"
	errExecTime       = "EXECABORT Transaction discarded because it takes longer than %s, while others wait for its keys"
	errLongReplies    = "ERR the replies of this transaction exceed %d bytes"
	ErrScanCursor     = "ERR invalid cursor %s: legal are 0 to begin and the cursor of the last reply"
	ErrNoLog          = "ERR no log: CONTAINER.SET %s LOG 3600 makes one"
	errNoContainer    = "ERR unknown container '%[1]s'; create it with CONTAINER.SET %[1]s TTL <off|-1|seconds>"
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
