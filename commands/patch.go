package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/redisfmt"
	"mayfly/expiry"

	"github.com/tidwall/gjson"
)

// DOC.PATCH applies operations to the text of a document one after the other, all of them or none.
// Whatever they do not name stays as it is: white space, the spelling of numbers, the order of members.
// An operation passes over the text once, move twice, and the text grows by no more than the command
// is long. So the partition is locked for a time linear in the document.

// mostOperations is how many operations a patch may have, as in Cosmos DB.
const mostOperations = 10

// operators are the operations of Cosmos DB's partial document update. ADD, REPLACE, REMOVE and MOVE are
// those of JSON Patch (RFC 6902); its COPY and TEST are not there.
var operators = []operator{
	{"ADD", []string{"path", "value"}, operation.add},
	{"SET", []string{"path", "value"}, operation.set},
	{"REPLACE", []string{"path", "value"}, operation.replace},
	{"REMOVE", []string{"path"}, operation.remove},
	{"INCR", []string{"path", "number"}, operation.incr},
	{"MOVE", []string{"from", "path"}, operation.move},
}

// operator is a kind of operation: its name, what comes after that, and what it makes of a valid object.
type operator struct {
	name      string // in upper case
	arguments []string
	apply     func(op operation, text string) (string, error)
}

// operation is one operation of a patch.
type operation struct {
	*operator
	path  pointer // from the root, never the root itself
	from  pointer // likewise
	value string  // JSON without white space around it
}

func parseDocPatch(in *Input) (Run, error) {
	args := in.Args[3:]
	var when condition
	if redisfmt.EqualFold(args[0], "IFMATCH") {
		if err := when.parseMatch(args[1]); err != nil {
			return nil, err
		}
		args = args[2:]
	}
	operations, err := parseOperations(args)
	if err != nil {
		return nil, err
	}
	touchesTTL := slices.ContainsFunc(operations, operation.touchesTTL)
	most := in.MaxValue
	return onDocument(func(x *Context, d oneDocument) Reply {
		if !d.found || !when.holds(d.found, d.item.Version) {
			return Null
		}
		text, err := patch(d.item.Body, operations)
		if err != nil {
			return Fail(err)
		}
		return d.rewrite(x, text, most, touchesTTL, eventDocPatch)
	}), nil
}

// parseOperations reads the operations of a patch. Errors say which one is wrong.
func parseOperations(args []string) ([]operation, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no operation: legal are 1 to %d", mostOperations)
	}
	var all []operation
	for len(args) > 0 {
		if len(all) == mostOperations {
			return nil, fmt.Errorf("more than %d operations", mostOperations)
		}
		op, rest, err := parseOperation(args)
		if err != nil {
			return nil, op.failed(len(all), err)
		}
		all = append(all, op)
		args = rest
	}
	return all, nil
}

// parseOperation reads the operation at the head of args and gives what comes after it.
func parseOperation(args []string) (op operation, rest []string, err error) {
	i := slices.IndexFunc(operators, func(o operator) bool { return redisfmt.EqualFold(args[0], o.name) })
	if i < 0 {
		return op, nil, fmt.Errorf("unknown operation %s: legal are ADD, SET, REPLACE, REMOVE, INCR, MOVE", expiry.Quote(args[0]))
	}
	op.operator = &operators[i]
	rest = args[1:]
	if len(rest) < len(op.arguments) {
		return op, nil, errors.New("it needs " + strings.Join(op.arguments, " and "))
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

// parsePatchPath reads a path that a patch may change. What the server itself says of a document, it
// says under names that a patch cannot take; all other members are the user's, the id among them.
func parsePatchPath(text string) (pointer, error) {
	p, err := parsePointer(text)
	if err != nil {
		return "", err
	}
	switch name, ok := p.root(); {
	case !ok:
		return "", errors.New("the path of the whole document: DOC.PUT replaces it")
	case name == tsMember || name == etagMember:
		return "", fmt.Errorf("%s is the server's and cannot be patched", name)
	}
	return p, nil
}

func parsePatchValue(text string) (string, error) {
	if err := checkJSON(text); err != nil {
		return "", err
	}
	return strings.Trim(text, jsonSpace), nil
}

func parsePatchNumber(text string) (string, error) {
	value, err := parsePatchValue(text)
	if err == nil {
		_, err = parseNumber(value)
	}
	return value, err
}

// failed says which operation of a patch an error is about; i counts from 0.
func (op operation) failed(i int, err error) error {
	what := ""
	if op.operator != nil {
		what = op.name
		for _, path := range []pointer{op.from, op.path} {
			if path != "" {
				what += " " + expiry.Quote(string(path))
			}
		}
		what = " (" + what + ")"
	}
	return fmt.Errorf("operation %d%s: %w", i+1, what, err)
}

// touchesTTL tells whether an operation may change the root member ttl.
func (op operation) touchesTTL() bool {
	to, _ := op.path.root()
	from, _ := op.from.root()
	return to == ttlMember || from == ttlMember
}

// patch applies operations to a valid object.
func patch(text string, operations []operation) (string, error) {
	for i, op := range operations {
		var err error
		if text, err = op.apply(op, text); err != nil {
			return "", op.failed(i, err)
		}
	}
	return text, nil
}

// add puts a member into an object, in place of one that is there, or an element into an array, before
// the one with that index.
func (op operation) add(text string) (string, error) { return addAt(text, op.path, op.value) }

func addAt(text string, path pointer, value string) (string, error) {
	at, err := path.find(text)
	switch {
	case err != nil:
		return "", err
	case at.found && !at.array:
		return at.replace(text, value), nil
	case at.array && at.index > at.n:
		return "", at.missing(path)
	}
	return at.insert(text, value), nil
}

// set is add, but that it replaces elements of an array and makes no new ones.
func (op operation) set(text string) (string, error) {
	at, err := op.path.find(text)
	switch {
	case err != nil:
		return "", err
	case at.found:
		return at.replace(text, op.value), nil
	case at.array:
		return "", fmt.Errorf("%w; ADD makes a new one", at.missing(op.path))
	}
	return at.insert(text, op.value), nil
}

// replace replaces what is there.
func (op operation) replace(text string) (string, error) {
	at, err := op.path.findThere(text)
	if err != nil {
		return "", err
	}
	return at.replace(text, op.value), nil
}

// remove removes what is there.
func (op operation) remove(text string) (string, error) {
	at, err := op.path.findThere(text)
	if err != nil {
		return "", err
	}
	return at.remove(text), nil
}

// incr adds a number to one that is there, or makes a member that is not there. Elements must be there.
func (op operation) incr(text string) (string, error) {
	at, err := op.path.find(text)
	switch {
	case err != nil:
		return "", err
	case !at.found && at.array:
		return "", at.missing(op.path)
	case !at.found:
		return at.insert(text, op.value), nil
	}
	sum, err := addNumbers(text[at.from:at.to], op.value)
	if err != nil {
		return "", err
	}
	return at.replace(text, sum), nil
}

// move removes what is at one path and adds it at the other, which is a path of what is left.
func (op operation) move(text string) (string, error) {
	if op.path.below(op.from) {
		return "", errors.New("nothing can be moved into itself")
	}
	at, err := op.from.findThere(text)
	if err != nil || op.path == op.from {
		return text, err
	}
	return addAt(at.remove(text), op.path, text[at.from:at.to])
}

// findThere is [pointer.find] where something must be.
func (p pointer) findThere(text string) (place, error) {
	at, err := p.find(text)
	if err == nil && !at.found {
		err = at.missing(p)
	}
	return at, err
}

// missing is the error for a place where nothing is.
func (at place) missing(path pointer) error {
	if at.array {
		return fmt.Errorf("the array ends before that, it has %d elements", at.n)
	}
	return fmt.Errorf("there is no %s", expiry.Quote(string(path)))
}

// replace puts another value where one is.
func (at place) replace(text, value string) string { return text[:at.from] + value + text[at.to:] }

// remove takes a member or an element out of the text, with the comma and the space between it and the
// one before, or if it is the first, the one after.
func (at place) remove(text string) string {
	switch {
	case at.before > 0:
		return text[:at.before] + text[at.to:]
	case at.n > 1:
		return text[:at.start] + text[skip(text, at.to, ','):]
	}
	return text[:at.start] + text[at.to:]
}

// insert puts a member behind the others, or an element before the one that is there, or behind the
// others.
func (at place) insert(text, value string) string {
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

// quoteJSON writes a name as JSON, without escapes where it needs none.
func quoteJSON(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		return string(gjson.AppendJSONString(nil, name))
	}
	return `"` + name + `"`
}

// number is a number of JSON: a whole one of 64 bits if it is written so, else a double, as in Cosmos DB.
type number struct {
	whole  bool
	n      int64
	double float64
}

// parseNumber reads a JSON value that must be a number.
func parseNumber(value string) (number, error) {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return number{}, fmt.Errorf("%s is not a number", expiry.Quote(value))
	}
	n, whole := redisfmt.ParseInt(value)
	double, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return number{}, fmt.Errorf("the number %s is out of range", expiry.Quote(value))
	}
	return number{whole, n, double}, nil
}

// addNumbers adds two numbers given as JSON. Whole ones stay whole, and exact; the sum of others is the
// shortest text that reads as it, as in JavaScript.
func addNumbers(value, by string) (string, error) {
	a, err := parseNumber(value)
	if err != nil {
		return "", err
	}
	b, err := parseNumber(by)
	if err != nil {
		return "", err
	}
	if a.whole && b.whole {
		if sum, ok := redisfmt.AddInt(a.n, b.n); ok {
			return strconv.FormatInt(sum, 10), nil
		}
	} else if sum, err := json.Marshal(a.double + b.double); err == nil { // not for infinity
		return string(sum), nil
	}
	return "", fmt.Errorf("the sum of %s and %s is out of range", expiry.Quote(value), expiry.Quote(by))
}
