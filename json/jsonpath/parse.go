package jsonpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting is how deep filters and parentheses may nest.
const maxNesting = 32

// SyntaxError is why a text is no path. Its message is one line, in the words of RedisJSON.
type SyntaxError struct {
	Path     string
	Position int      // in bytes
	Expected []string // what may stand there
	Reason   string   // else what is wrong
}

func (e *SyntaxError) Error() string {
	what := e.Reason
	if what == "" {
		what = "expected one of the following: " + strings.Join(e.Expected, ", ")
	}
	before, after := lastOf(e.Path[:e.Position]), firstOf(e.Path[e.Position:])
	if after == "" {
		return fmt.Sprintf("Error occurred on position %d, %q <<<<----, %s", e.Position, before, what)
	}
	return fmt.Sprintf("Error occurred on position %d, %q ---->>>> %q, %s", e.Position, before, after, what)
}

// shown is the number of bytes that an error shows of each side of a long path.
const shown = 48

func firstOf(text string) string {
	if len(text) > shown {
		return text[:shown] + "..."
	}
	return text
}

func lastOf(text string) string {
	if len(text) > shown {
		return "..." + text[len(text)-shown:]
	}
	return text
}

// Parse compiles a path. It keeps no reference to text. The error is a [*SyntaxError].
func Parse(text string) (*Path, error) {
	if len(text) > MaxPath {
		return nil, &SyntaxError{Path: text[:32], Position: 32, Reason: fmt.Sprintf("a path has at most %d bytes, this one has %d", MaxPath, len(text))}
	}
	text = strings.Clone(text)
	if !utf8.ValidString(text) {
		return nil, &SyntaxError{Path: strings.ToValidUTF8(text, "?"), Reason: "Couldn't parse as UTF-8 string"}
	}
	p := &Path{legacy: !isJSONPath(text)}
	r := parser{text: text, farthest: -1}
	switch {
	case !p.legacy:
		r.pos = 1
	case text == ".":
		return p, nil
	}
	p.steps = r.steps(p.legacy)
	if p.legacy && len(p.steps) == 0 {
		r.failed = true
	}
	r.space()
	if r.err == nil && r.pos < len(text) {
		r.expect("the end")
	}
	if r.err == nil && r.failed {
		r.err = r.syntaxError()
	}
	if r.err != nil {
		return nil, r.err
	}
	p.large = r.patternSteps > maxCachedSteps
	return p, nil
}

// parser reads a path by recursive descent. After the first failure nothing is read any more.
type parser struct {
	text   string
	pos    int
	failed bool
	err    error

	farthest int      // the position of the expectations
	expected []string // at farthest

	count  int // of steps
	depth  int // of filters
	rooted int // of terms from the root

	patternSteps int // of all patterns
}

// expect notes what may stand at the position, and fails.
func (r *parser) expect(what ...string) {
	r.note(what...)
	r.failed = true
}

// note notes what may stand at the position.
func (r *parser) note(what ...string) {
	if r.failed || r.pos < r.farthest {
		return
	}
	if r.pos > r.farthest {
		r.farthest, r.expected = r.pos, nil
	}
	for _, w := range what {
		if !slices.Contains(r.expected, w) {
			r.expected = append(r.expected, w)
		}
	}
}

func (r *parser) syntaxError() error {
	return &SyntaxError{Path: r.text, Position: r.farthest, Expected: r.expected}
}

// fail ends the reading with a reason.
func (r *parser) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &SyntaxError{Path: r.text, Position: at, Reason: fmt.Sprintf(format, args...)}
	}
	r.failed = true
}

func (r *parser) space() {
	for r.pos < len(r.text) && r.text[r.pos] == ' ' {
		r.pos++
	}
}

// accept reads a token, after white space.
func (r *parser) accept(token string) bool {
	if r.failed {
		return false
	}
	r.space()
	if !strings.HasPrefix(r.text[r.pos:], token) {
		return false
	}
	r.pos += len(token)
	return true
}

// require reads a token that must follow.
func (r *parser) require(token string) {
	if !r.accept(token) {
		r.expect("'" + token + "'")
	}
}

const (
	nameExpected  = "<string>"
	allExpected   = "'*'"
	deepExpected  = "'..'"
	indexExpected = "'<number>[,<number>,...]'"
	namesExpected = "'<string>[,<string>,...]'"
	sliceExpected = "['start:end:steps']"
	filtExpected  = "'[?(filter_expression)]'"
)

// steps reads steps. The first one may be a name or * without a point if bare.
func (r *parser) steps(bare bool) []step {
	var steps []step
	for !r.failed {
		s, ok := r.step(bare && len(steps) == 0)
		if !ok {
			break
		}
		if r.count++; r.count > MaxSteps {
			r.fail(r.pos, "a path has at most %d steps", MaxSteps)
		}
		steps = append(steps, s)
	}
	return steps
}

// step reads a step; ok is false if there is none.
func (r *parser) step(bare bool) (s step, ok bool) {
	from := r.pos
	switch {
	case r.accept(".."):
		s.deep = true
		if r.bracket(&s) || r.nameOrAll(&s) {
			return s, !r.failed
		}
		r.expect(nameExpected, allExpected, "'['")
		return s, false
	case r.accept("."):
		if r.bracket(&s) || r.nameOrAll(&s) {
			return s, !r.failed
		}
		r.expect(nameExpected, allExpected, "'['")
		return s, false
	case r.bracket(&s):
		return s, !r.failed
	case bare && r.nameOrAll(&s):
		return s, !r.failed
	}
	r.pos = from
	r.space()
	r.note(nameExpected, allExpected, deepExpected)
	r.pos = from
	return s, false
}

// nameOrAll reads an unquoted name or *.
func (r *parser) nameOrAll(s *step) bool {
	if r.accept("*") {
		s.kind = all
		return true
	}
	if r.failed {
		return false
	}
	r.space()
	end := r.pos
	for end < len(r.text) && inName(r.text[end]) {
		end++
	}
	if end == r.pos {
		return false
	}
	s.kind, s.names = byName, []string{r.text[r.pos:end]}
	r.pos = end
	return true
}

// inName reports whether an unquoted name may hold a byte. Letters beyond ASCII are legal, which RedisJSON
// refuses.
func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf || strings.IndexByte("-_`~+#%$^/:", c) >= 0
}

// bracket reads what is in brackets.
func (r *parser) bracket(s *step) bool {
	if !r.accept("[") {
		return false
	}
	switch {
	case r.accept("*"):
		s.kind = all
	case r.accept("?"):
		s.kind = byFilter
		s.filter = r.filter()
	case r.names(s), r.numbers(s):
	default:
		r.expect(sliceExpected, indexExpected, namesExpected, allExpected, filtExpected)
	}
	r.require("]")
	return true
}

// names reads a list of quoted names.
func (r *parser) names(s *step) bool {
	name, ok := r.quoted()
	if !ok {
		return false
	}
	s.kind, s.names = byName, []string{name}
	for r.accept(",") {
		if name, ok = r.quoted(); !ok {
			r.expect(nameExpected)
			break
		}
		s.names = append(s.names, name)
	}
	return true
}

// quoted reads a string in quotes. In them \ escapes itself and the quote.
func (r *parser) quoted() (string, bool) {
	if r.failed {
		return "", false
	}
	r.space()
	if r.pos >= len(r.text) || r.text[r.pos] != '"' && r.text[r.pos] != '\'' {
		return "", false
	}
	from, quote := r.pos, r.text[r.pos]
	var out strings.Builder
	for i := from + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == quote:
			r.pos = i + 1
			return out.String(), true
		case c == '\\':
			if i++; i == len(r.text) || r.text[i] != quote && r.text[i] != '\\' {
				r.pos = min(i, len(r.text))
				r.expect(`'\'`, `'`+string(quote)+`'`)
				return "", false
			}
			out.WriteByte(r.text[i])
		default:
			out.WriteByte(c)
		}
	}
	r.pos = len(r.text)
	r.expect("'" + string(quote) + "'")
	return "", false
}

// numbers reads a list of indices or a slice.
func (r *parser) numbers(s *step) bool {
	first, ok := r.number()
	if ok && !r.peek(':') {
		s.kind, s.indices = byIndex, []int{first}
		for r.accept(",") {
			if first, ok = r.number(); !ok {
				r.expect("<number>")
				break
			}
			s.indices = append(s.indices, first)
		}
		return true
	}
	if !r.accept(":") {
		return false
	}
	s.kind, s.slice = bySlice, slice{from: first, by: 1}
	if s.slice.to, ok = r.number(); !ok {
		s.slice.open = true
	}
	if r.accept(":") {
		from := r.pos
		if by, ok := r.number(); ok {
			if s.slice.by = by; by < 1 {
				r.pos = from
				r.expect("<positive number>")
			}
		}
	}
	return true
}

func (r *parser) peek(c byte) bool {
	r.space()
	return r.pos < len(r.text) && r.text[r.pos] == c
}

// number reads an integer without leading zeros.
func (r *parser) number() (int, bool) {
	if r.failed {
		return 0, false
	}
	r.space()
	end := r.numberEnd()
	if end == r.pos {
		return 0, false
	}
	n, err := strconv.Atoi(r.text[r.pos:end])
	if err != nil {
		r.fail(r.pos, "the number %s is beyond 64 bits", r.text[r.pos:end])
		return 0, false
	}
	r.pos = end
	return n, true
}

// numberEnd returns the end of the integer at the position, or the position.
func (r *parser) numberEnd() int {
	end := r.pos
	if end < len(r.text) && r.text[end] == '-' {
		end++
	}
	digits := end
	for end < len(r.text) && isDigit(r.text[end]) && (end == digits || r.text[digits] != '0') {
		end++
	}
	if end == digits {
		return r.pos
	}
	return end
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// filter reads conditions joined by && and ||.
func (r *parser) filter() filter {
	if r.depth++; r.depth > maxNesting {
		r.fail(r.pos, "filters nest at most %d deep", maxNesting)
	}
	defer func() { r.depth-- }()
	f := filter{any: []conjunction{{r.condition()}}}
	for !r.failed {
		last := &f.any[len(f.any)-1]
		switch {
		case r.accept("&&"):
			*last = append(*last, r.condition())
		case r.accept("||"):
			f.any = append(f.any, conjunction{r.condition()})
		default:
			r.note("'&&'", "'||'")
			return f
		}
	}
	return f
}

// operators in the order in which they are tried: longer ones first.
var operators = []struct {
	text string
	op   operator
}{
	{">=", greaterOrEqual}, {"<=", lessOrEqual}, {"==", equal}, {"!=", notEqual}, {"=~", matches}, {">", greater}, {"<", less},
}

func (r *parser) condition() condition {
	if r.accept("(") {
		f := r.filter()
		r.require(")")
		return condition{nested: &f}
	}
	c := condition{left: r.term()}
	for _, o := range operators {
		if r.accept(o.text) {
			c.op = o.op
			c.right = r.term()
			break
		}
	}
	if c.op == matches && c.right.kind == literal && c.right.value.kind == stringValue {
		if len(c.right.value.text) > maxPattern {
			r.fail(r.pos, "a pattern of =~ has at most %d bytes", maxPattern)
			return c
		}
		if c.right.regex = compilePattern(c.right.value.text); c.right.regex.large {
			r.fail(r.pos, "a pattern of =~ has at most %d steps, its repetitions written out", maxPatternSteps)
		}
		r.patternSteps += c.right.regex.steps
	}
	return c
}

func (r *parser) term() term {
	if s, ok := r.quoted(); ok {
		return term{value: value{kind: stringValue, text: s}}
	}
	for _, word := range []string{"true", "false", "null"} {
		if r.accept(word) {
			return term{value: jsonValue(word)}
		}
	}
	switch {
	case r.accept("@"):
		return term{kind: fromCurrent, steps: r.steps(true)}
	case r.accept("$"):
		r.rooted++
		return term{kind: fromRoot, steps: r.steps(true), slot: r.rooted}
	}
	if number, ok := r.decimal(); ok {
		return term{value: jsonValue(number)}
	}
	r.expect("'@'", "'$'", "<number>", nameExpected, "'true'", "'false'", "'null'", "'('")
	return term{}
}

// decimal reads a number with an optional fraction.
func (r *parser) decimal() (string, bool) {
	if r.failed {
		return "", false
	}
	r.space()
	from, end := r.pos, r.numberEnd()
	if end == from {
		return "", false
	}
	if end+1 < len(r.text) && r.text[end] == '.' && isDigit(r.text[end+1]) {
		for end++; end < len(r.text) && isDigit(r.text[end]); end++ {
		}
	}
	r.pos = end
	return r.text[from:end], true
}
