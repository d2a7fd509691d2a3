package jsondoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsontext"
	"mayfly/redisfmt"
)

// Patch is a list of operations on the text of a document. They apply one after the other, all or none.
// What they do not name stays unchanged, byte for byte: white space, the spelling of numbers, the order
// of members.
//
// An operation passes over the text once, MOVE twice, and adds at most its own length. So applying a
// patch takes time linear in the document.
type Patch []operation

// MaxOperations is the largest number of operations of a patch, as in Cosmos DB.
const MaxOperations = 10

// operators are the operations of Cosmos DB's partial document update. ADD, REPLACE, REMOVE and MOVE are
// those of JSON Patch (RFC 6902). COPY and TEST are not supported.
var operators = []operator{
	{"ADD", []string{"path", "value"}, operation.applyAdd},
	{"SET", []string{"path", "value"}, operation.applySet},
	{"REPLACE", []string{"path", "value"}, operation.applyReplace},
	{"REMOVE", []string{"path"}, operation.applyRemove},
	{"INCR", []string{"path", "number"}, operation.applyIncr},
	{"MOVE", []string{"from", "path"}, operation.applyMove},
}

// operator is a kind of operation.
type operator struct {
	name      string                                          // in upper case
	arguments []string                                        // the kinds of its arguments
	apply     func(op operation, text string) (string, error) // edits a valid object
}

// operation is one operation of a patch.
type operation struct {
	*operator
	path  Pointer // never the whole document
	from  Pointer // likewise
	value string  // JSON without white space around it
}

// ParsePatch reads a patch: operations with their arguments, names in any case. Errors are one line and
// say which operation is wrong.
func ParsePatch(args []string) (Patch, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no operation: legal are 1 to %d", MaxOperations)
	}
	var all Patch
	for len(args) > 0 {
		if len(all) == MaxOperations {
			return nil, fmt.Errorf("too many operations: legal are 1 to %d", MaxOperations)
		}
		op, rest, err := parseOperation(args)
		if err != nil {
			return nil, op.wrapError(len(all), err)
		}
		all = append(all, op)
		args = rest
	}
	return all, nil
}

// parseOperation reads the operation at the head of args. rest is what follows it.
func parseOperation(args []string) (op operation, rest []string, err error) {
	i := slices.IndexFunc(operators, func(o operator) bool { return redisfmt.EqualFold(args[0], o.name) })
	if i < 0 {
		return op, nil, fmt.Errorf("unknown operation %s: legal are ADD, SET, REPLACE, REMOVE, INCR, MOVE", expiry.Quote(args[0]))
	}
	op.operator = &operators[i]
	rest = args[1:]
	if len(rest) < len(op.arguments) {
		return op, nil, errors.New("missing argument: needs " + strings.Join(op.arguments, " and "))
	}
	for i, argument := range op.arguments {
		switch argument {
		case "path":
			op.path, err = parsePatchPath(rest[i])
		case "from":
			op.from, err = parsePatchPath(rest[i])
		case "value":
			op.value, err = parsePatchValue(rest[i])
		case "number":
			op.value, err = parsePatchNumber(rest[i])
		}
		if err != nil {
			return op, nil, err
		}
	}
	return op, rest[len(op.arguments):], nil
}

// parsePatchPath reads a path that a patch may change. The members _ts and _etag are the server's. All
// others are the user's, the id among them.
func parsePatchPath(text string) (Pointer, error) {
	p, err := ParsePointer(text)
	if err != nil {
		return "", err
	}
	switch name, ok := p.root(); {
	case !ok:
		return "", errors.New("the path of the whole document: DOC.PUT replaces it")
	case isMeta(name):
		return "", fmt.Errorf("%s is the server's and cannot be patched", name)
	}
	return p, nil
}

func parsePatchValue(text string) (string, error) {
	if err := check(text); err != nil {
		return "", err
	}
	return strings.Trim(text, jsontext.Space), nil
}

func parsePatchNumber(text string) (string, error) {
	value, err := parsePatchValue(text)
	if err == nil {
		_, err = parseNumber(value)
	}
	return value, err
}

// wrapError says in an error which operation of a patch failed; i counts from 0.
func (op operation) wrapError(i int, err error) error {
	what := ""
	if op.operator != nil {
		what = op.name
		for _, path := range []Pointer{op.from, op.path} {
			if path != "" {
				what += " " + expiry.Quote(string(path))
			}
		}
		what = " (" + what + ")"
	}
	return fmt.Errorf("operation %d%s: %w", i+1, what, err)
}

// Touches reports whether the patch may change a root member.
func (p Patch) Touches(member string) bool {
	return slices.ContainsFunc(p, func(op operation) bool {
		to, _ := op.path.root()
		from, _ := op.from.root()
		return to == member || from == member
	})
}

// Apply applies the patch to a valid object. Errors are one line: that the document is not an object, the
// operation that failed, or that the result is larger than maxSize bytes or nested too deep.
func (p Patch) Apply(object string, maxSize int) (Document, error) {
	if !IsObject(object) {
		return Document{}, errNotObject
	}
	text, err := p.edit(object)
	if err != nil {
		return Document{}, err
	}
	return Edited(text, maxSize)
}

// edit applies the operations to a valid object.
func (p Patch) edit(text string) (string, error) {
	for i, op := range p {
		var err error
		if text, err = op.apply(op, text); err != nil {
			return "", op.wrapError(i, err)
		}
	}
	return text, nil
}

// applyAdd adds or replaces a member of an object, or inserts an element into an array before its index.
func (op operation) applyAdd(text string) (string, error) { return addAt(text, op.path, op.value) }

func addAt(text string, path Pointer, value string) (string, error) {
	at, err := path.find(text)
	switch {
	case err != nil:
		return "", err
	case at.found && !at.array:
		return at.replace(text, value), nil
	case at.array && at.index > at.n:
		return "", at.errMissing(path)
	}
	return at.insert(text, value), nil
}

// applySet is applyAdd, but replaces elements of arrays and adds none.
func (op operation) applySet(text string) (string, error) {
	at, err := op.path.find(text)
	switch {
	case err != nil:
		return "", err
	case at.found:
		return at.replace(text, op.value), nil
	case at.array:
		return "", fmt.Errorf("%w; ADD appends one", at.errMissing(op.path))
	}
	return at.insert(text, op.value), nil
}

// applyReplace replaces a value that exists.
func (op operation) applyReplace(text string) (string, error) {
	at, err := op.path.findExisting(text)
	if err != nil {
		return "", err
	}
	return at.replace(text, op.value), nil
}

// applyRemove removes a member or element that exists.
func (op operation) applyRemove(text string) (string, error) {
	at, err := op.path.findExisting(text)
	if err != nil {
		return "", err
	}
	return at.remove(text), nil
}

// applyIncr adds to a number. It creates a missing member; an element must exist.
func (op operation) applyIncr(text string) (string, error) {
	at, err := op.path.find(text)
	switch {
	case err != nil:
		return "", err
	case !at.found && at.array:
		return "", at.errMissing(op.path)
	case !at.found:
		return at.insert(text, op.value), nil
	}
	sum, err := addNumbers(text[at.from:at.to], op.value)
	if err != nil {
		return "", err
	}
	return at.replace(text, sum), nil
}

// applyMove removes the value at one path and adds it at the other, a path in what is left.
func (op operation) applyMove(text string) (string, error) {
	if op.path.below(op.from) {
		return "", errors.New("a value cannot be moved into itself")
	}
	at, err := op.from.findExisting(text)
	if err != nil || op.path == op.from {
		return text, err
	}
	return addAt(at.remove(text), op.path, text[at.from:at.to])
}

// findExisting is find, but a missing target is an error.
func (p Pointer) findExisting(text string) (location, error) {
	at, err := p.find(text)
	if err == nil && !at.found {
		err = at.errMissing(p)
	}
	return at, err
}

// errMissing returns the error of a missing target.
func (at location) errMissing(path Pointer) error {
	if at.array {
		return fmt.Errorf("the array has only %d elements", at.n)
	}
	return fmt.Errorf("there is no %s", expiry.Quote(string(path)))
}

// replace replaces the value at the location.
func (at location) replace(text, value string) string { return text[:at.from] + value + text[at.to:] }

// remove removes the member or element, with the comma and the space before it. For the first one, it
// removes those after it.
func (at location) remove(text string) string {
	switch {
	case at.before > 0:
		return text[:at.before] + text[at.to:]
	case at.n > 1:
		return text[:at.start] + text[jsontext.Skip(text, at.to, ','):]
	}
	return text[:at.start] + text[at.to:]
}

// insert inserts an element before the existing one, or appends a member or an element.
func (at location) insert(text, value string) string {
	if at.found {
		return text[:at.start] + value + "," + text[at.start:]
	}
	if !at.array {
		value = quoteJSON(at.name) + ":" + value
	}
	if at.n > 0 {
		value = "," + value
	}
	return text[:at.last] + value + text[at.last:]
}

// quoteJSON writes a name as JSON, with escapes only if it needs any.
func quoteJSON(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		return string(jsontext.AppendString(nil, name))
	}
	return `"` + name + `"`
}

// number is a number of JSON: an integer of 64 bits if it is written so, else a double, as in Cosmos DB.
type number struct {
	isInt  bool
	n      int64
	double float64
}

// parseNumber reads a JSON value that must be a number.
func parseNumber(value string) (number, error) {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return number{}, fmt.Errorf("%s is not a number", expiry.Quote(value))
	}
	n, isInt := redisfmt.ParseInt(value)
	double, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return number{}, fmt.Errorf("the number %s is out of range", expiry.Quote(value))
	}
	return number{isInt, n, double}, nil
}

// addNumbers adds two numbers given as JSON. The sum of integers is exact. Another sum is written as the
// shortest text that reads as the same double, as in JavaScript.
func addNumbers(value, by string) (string, error) {
	a, err := parseNumber(value)
	if err != nil {
		return "", err
	}
	b, err := parseNumber(by)
	if err != nil {
		return "", err
	}
	if a.isInt && b.isInt {
		if sum, ok := redisfmt.AddInt(a.n, b.n); ok {
			return strconv.FormatInt(sum, 10), nil
		}
	} else if sum, err := json.Marshal(a.double + b.double); err == nil { // not for infinity
		return string(sum), nil
	}
	return "", fmt.Errorf("the sum of %s and %s is out of range", expiry.Quote(value), expiry.Quote(by))
}
