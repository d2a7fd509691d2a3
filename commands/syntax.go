package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// argument is one argument of a command as COMMAND DOCS describes it.
type argument struct {
	name  string
	kind  string // string, integer, key, …, pure-token; oneof and block have args
	token string // the word before it, or the word itself

	optional, multiple bool
	repeatsToken       bool // a repetition repeats the token, too

	args []argument

	spec int // of a key: the index of its key specification in the row
}

// parseSyntax reads the notation of Redis' manual, as in a row's Syntax:
//
//	name          a value; its type follows from its name, see argumentKinds
//	TOKEN         a word to be written as it stands; it belongs to the value after it
//	[a b]         optional
//	[a | b]       one of these, or none
//	<a | b>       one of these
//	a [a ...]     one or more
//	[a ...]       none or more
func parseSyntax(text string) ([]argument, error) {
	p := syntaxParser{words: splitSyntax(text)}
	alternatives, err := p.alternatives("")
	if err != nil {
		return nil, fmt.Errorf("syntax %q: %w", text, err)
	}
	if len(alternatives) > 1 {
		return []argument{oneOf(alternatives)}, nil
	}
	return alternatives[0], nil
}

// splitSyntax splits a text into words and brackets.
func splitSyntax(text string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|", "..."} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	return strings.Fields(text)
}

// syntaxParser reads the words of a syntax from left to right.
type syntaxParser struct{ words []string }

func (p *syntaxParser) nextWord() string {
	if len(p.words) == 0 {
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// alternatives reads sequences separated by | up to the closing bracket; "" is the end of the text.
func (p *syntaxParser) alternatives(closing string) ([][]argument, error) {
	all := [][]argument{nil}
	for {
		last := &all[len(all)-1]
		word := p.nextWord()
		if word == closing || word == "|" {
			if len(*last) == 0 && (closing != "" || len(all) > 1) {
				return nil, errors.New("an alternative is empty")
			}
		}
		switch word {
		case closing:
			return all, nil
		case "|":
			all = append(all, nil)
		case "":
			return nil, errors.New("missing " + closing)
		case "]", ">":
			return nil, errors.New("unexpected " + word)
		case "...":
			if closing != "]" || len(all) > 1 || len(*last) == 0 || len(p.words) == 0 || p.words[0] != "]" {
				return nil, errors.New("... must end a sequence in brackets")
			}
			p.nextWord()
			return [][]argument{*last, nil}, nil // see repeated
		case "[":
			group, err := p.alternatives("]")
			if err != nil {
				return nil, err
			}
			if repeated(group) {
				*last = repeat(*last, group[0])
				continue
			}
			arg := oneOf(group)
			arg.optional = true
			*last = append(*last, arg)
		case "<":
			group, err := p.alternatives(">")
			if err != nil {
				return nil, err
			}
			*last = follow(*last, oneOf(group))
		default:
			*last = follow(*last, wordArgument(word))
		}
	}
}

// repeated reports whether a group ended with "...": its second alternative is nil.
func repeated(group [][]argument) bool { return len(group) == 2 && group[1] == nil }

// repeat appends a repeated sequence. If the list ends with the same sequence, one occurrence is
// mandatory. A token there that the sequence lacks is written once.
func repeat(list, sequence []argument) []argument {
	if before := len(list) - len(sequence); before >= 0 {
		tail := slices.Clone(list[before:])
		if sequence[0].token == "" {
			tail[0].token = ""
		}
		if slices.EqualFunc(tail, sequence, sameArgument) {
			arg := inOne(list[before:])
			arg.multiple = true
			arg.repeatsToken = sequence[0].token != ""
			return append(list[:before], arg)
		}
	}
	arg := inOne(sequence)
	arg.optional, arg.multiple = true, true
	return append(list, arg)
}

// sameArgument reports whether two arguments have the same syntax.
func sameArgument(a, b argument) bool {
	return a.name == b.name && a.kind == b.kind && a.token == b.token && a.optional == b.optional &&
		slices.EqualFunc(a.args, b.args, sameArgument)
}

// follow appends an argument. A token before it becomes its token.
func follow(list []argument, arg argument) []argument {
	if n := len(list); n > 0 && arg.name == "cursor" && list[n-1].name == "name" {
		arg.kind = kindString // of CONTAINER.DUE: an end and an id
	}
	if n := len(list); n > 0 && arg.token == "" && list[n-1].kind == kindToken && !list[n-1].optional {
		arg.token = list[n-1].token
		if arg.token == "CURSOR" {
			arg.kind = kindString // that of a page; only cursors of scans are numbers
		}
		list[n-1] = arg
		return list
	}
	return append(list, arg)
}

// oneOf merges a group into one argument.
func oneOf(alternatives [][]argument) argument {
	if len(alternatives) == 1 {
		return inOne(alternatives[0])
	}
	arg := argument{kind: kindOneOf}
	for _, sequence := range alternatives {
		arg.args = append(arg.args, inOne(sequence))
	}
	arg.name = joinNames(arg.args)
	return arg
}

// inOne merges a sequence into one argument. A token at its beginning becomes the token of the whole.
func inOne(sequence []argument) argument {
	if len(sequence) == 1 {
		return sequence[0]
	}
	arg := argument{kind: kindBlock, args: slices.Clone(sequence)}
	if first := &arg.args[0]; first.kind != kindToken && !first.optional {
		arg.token, first.token = first.token, ""
	}
	arg.name = joinNames(arg.args)
	return arg
}

func joinNames(args []argument) string {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i] = arg.name
	}
	return strings.Join(names, "_")
}

// The kinds of arguments that the notation distinguishes by itself.
const (
	kindToken  = "pure-token"
	kindOneOf  = "oneof"
	kindBlock  = "block"
	kindKey    = "key"
	kindString = "string"
)

// argumentKinds are the types of values that are not strings, with their names in the manual of Redis.
var argumentKinds = map[string][]string{
	"integer": strings.Fields("numkeys client-id cluster_bus_port config-epoch count cursor db decrement destination-db end end-slot entries_added entries_read " +
		"increment index index1 index2 len milliseconds min-idle-time ms numreplicas offset port protover seconds slot start start-slot timeout"),
	"unix-time": {"unix-time-milliseconds", "unix-time-seconds"},
	"pattern":   {"pattern"},
}

// wordArgument returns the argument of a word: a token if it has no lower-case letter.
func wordArgument(word string) argument {
	if lower := strings.ToLower(word); word == strings.ToUpper(word) {
		return argument{name: lower, kind: kindToken, token: word}
	}
	for kind, names := range argumentKinds {
		if slices.Contains(names, word) {
			return argument{name: word, kind: kind}
		}
	}
	return argument{name: word, kind: kindString}
}

// arity returns the number of arguments that the row's syntax asks for, as Command.Arity has it; 0 if it
// does not parse.
func (r *row) arity() int {
	args, err := parseSyntax(r.Syntax)
	if err != nil {
		return 0
	}
	least, most := countWords(args)
	names := 1 + strings.Count(r.full, "|")
	switch {
	case len(r.Sub) > 0:
		return -2
	case least < most:
		return -(names + least)
	}
	return names + least
}

// countWords returns the smallest and the largest number of words of arguments.
func countWords(args []argument) (least, most int) {
	const unbounded = 1 << 20
	for _, a := range args {
		from, to := 1, 1
		switch a.kind {
		case kindBlock:
			from, to = countWords(a.args)
		case kindOneOf:
			from, to = unbounded, 0
			for i := range a.args {
				f, t := countWords(a.args[i : i+1])
				from, to = min(from, f), max(to, t)
			}
		}
		if a.token != "" && a.kind != kindToken {
			from, to = from+1, to+1
		}
		if a.multiple {
			to = unbounded
		}
		if a.optional {
			from = 0
		}
		least, most = least+from, most+to
	}
	return least, most
}

// markKeys marks the arguments at the positions of ids as keys; position is that of the first argument.
// It returns the position after the last.
func markKeys(args []argument, keys Keys, position int) int {
	for i := range args {
		arg := &args[i]
		if arg.token != "" {
			position++
		}
		switch arg.kind {
		case kindBlock:
			position = markKeys(arg.args, keys, position)
		case kindToken:
		default:
			if position == keys.First || position > keys.First && position <= keys.Last && (position-keys.First)%keys.Step == 0 {
				arg.kind = kindKey
			}
			position++
		}
	}
	return position
}

// markNamed marks the arguments of a name as keys.
func markNamed(args []argument, name string) {
	for i := range args {
		if args[i].name == name && args[i].kind == kindString {
			args[i].kind = kindKey
		}
		markNamed(args[i].args, name)
	}
}

// boundsAreIDs makes start and end strings, which are integers elsewhere: those of streams are ids. So is a time without a
// token, in the manual of Redis.
func boundsAreIDs(args []argument) {
	for i := range args {
		if name := args[i].name; name == "start" || name == "end" || name == "min-idle-time" && args[i].token == "" {
			args[i].kind = kindString
		}
		boundsAreIDs(args[i].args)
	}
}
