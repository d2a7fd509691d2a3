package scripts

import "mayfly/commands/scripts/lua"

// Kind is the kind of a Value: the types of RESP2 and RESP3 that commands and scripts reply with.
type Kind byte

// Nil is the zero Kind: a null bulk string, or RESP3's null.
const (
	Nil       Kind = iota
	NullArray      // a null array of RESP2
	Bool           // Int is 0 or 1
	Int            // Int
	Double         // Double
	Big            // Str has the digits
	Verbatim       // Str has the format, a colon and the text: "txt:..."
	Bulk           // Str
	Status         // Str without the plus sign
	Error          // Str without the minus sign: "ERR ...", "WRONGTYPE ..."
	Array          // Elems, in which a Block stands for its own
	Map            // Elems has keys and values in turn
	Set            // Elems
	Block          // Elems: some of an array. A long one that grew at once would hold up all clients while it is moved
)

// Value is a reply: of a command to a script, or of a script to its client.
type Value struct {
	Kind   Kind
	Str    string
	Int    int64
	Double float64
	Elems  []Value
}

// ErrorValue returns an error reply with its whole text, without the minus sign.
func ErrorValue(text string) Value { return Value{Kind: Error, Str: text} }

// Caller is what a running script calls, one method at a time: in the goroutine of Run, or in that of a
// coroutine for which it waits.
type Caller interface {
	// Call runs a command. args has at least one element; the Caller may keep it and its strings.
	// A reply of the command, errors included, is a Value in the shape of the script's protocol
	// (SetProtocol); a script can catch an error Value with redis.pcall or pcall.
	// A non-nil error ends the script: Run returns it, and no pcall of the script catches it.
	Call(args []string) (Value, error)
	// Allowed is redis.acl_check_cmd: known reports whether the command exists.
	Allowed(args []string) (allowed, known bool)
	// Log is redis.log: level is 0 (debug) to 3 (warning).
	Log(level int, text string)
	// SetProtocol is redis.setresp: replies of later calls have the shapes of RESP2 or RESP3. A script
	// begins with 2; Run does not call SetProtocol at its start.
	SetProtocol(proto int)
}

// Interrupt ends a script from outside. A nil Interrupt never does.
type Interrupt = lua.Interrupt

// Limits bounds one run of a script. A zero field has the default.
type Limits struct {
	// Memory bounds the bytes that the script's values take: 64 MB by default.
	Memory int64
	// Result bounds the bytes of the script's reply: Memory by default.
	Result int64
	// Arg bounds the bytes of the arguments of one call of a command: Memory by default.
	Arg int64
}
