package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Argument is one argument of a command as COMMAND DOCS describes it.
type Argument struct {
	Name  string
	Kind  string // string, integer, key, …, pure-token; oneof and block have args
	Token string // the word before it, or the word itself

	Optional, Multiple bool
	RepeatsToken       bool // a repetition repeats the token, too

	Args []Argument

	Spec int // of a key: the index of its key specification in the row
}

// Parse reads the notation:
//
//	name          a value; its type follows from its name, see argumentKinds
//	TOKEN         a word to be written as it stands; it belongs to the value after it
//	[a b]         optional
//	[a | b]       one of these, or none
//	<a | b>       one of these
//	a [a ...]     one or more
//	[a ...]       none or more
func Parse(text string) ([]Argument, error) {
	p := parser{words: Split(text)}
	alternatives, err := p.alternatives("")
	if err != nil {
		return nil, fmt.Errorf("syntax %q: %w", text, err)
	}
	if len(alternatives) > 1 {
		return []Argument{oneOf(alternatives)}, nil
	}
	return alternatives[0], nil
}

// Split splits a text into words and brackets.
func Split(text string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|", "..."} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	return strings.Fields(text)
}

// parser reads the words of a syntax from left to right.
type parser struct{ words []string }

func (p *parser) nextWord() string {
	if len(p.words) == 0 {
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// alternatives reads sequences separated by | up to the closing bracket; "" is the end of the text.
func (p *parser) alternatives(closing string) ([][]Argument, error) {
	all := [][]Argument{nil}
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
			return [][]Argument{*last, nil}, nil // see repeated
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
			arg.Optional = true
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
func repeated(group [][]Argument) bool { return len(group) == 2 && group[1] == nil }

// repeat appends a repeated sequence. If the list ends with the same sequence, one occurrence is
// mandatory. A token there that the sequence lacks is written once.
func repeat(list, sequence []Argument) []Argument {
	if before := len(list) - len(sequence); before >= 0 {
		tail := slices.Clone(list[before:])
		if sequence[0].Token == "" {
			tail[0].Token = ""
		}
		if slices.EqualFunc(tail, sequence, sameArgument) {
			arg := inOne(list[before:])
			arg.Multiple = true
			arg.RepeatsToken = sequence[0].Token != ""
			return append(list[:before], arg)
		}
	}
	arg := inOne(sequence)
	arg.Optional, arg.Multiple = true, true
	return append(list, arg)
}

// sameArgument reports whether two arguments have the same syntax.
func sameArgument(a, b Argument) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Token == b.Token && a.Optional == b.Optional &&
		slices.EqualFunc(a.Args, b.Args, sameArgument)
}

// follow appends an argument. A token before it becomes its token.
func follow(list []Argument, arg Argument) []Argument {
	if n := len(list); n > 0 && arg.Name == "cursor" && list[n-1].Name == "name" {
		arg.Kind = kindString // of CONTAINER.DUE: an end and an id
	}
	if n := len(list); n > 0 && arg.Token == "" && list[n-1].Kind == KindToken && !list[n-1].Optional {
		arg.Token = list[n-1].Token
		if arg.Token == "CURSOR" {
			arg.Kind = kindString // that of a page; only cursors of scans are numbers
		}
		list[n-1] = arg
		return list
	}
	return append(list, arg)
}

// oneOf merges a group into one argument.
func oneOf(alternatives [][]Argument) Argument {
	if len(alternatives) == 1 {
		return inOne(alternatives[0])
	}
	arg := Argument{Kind: KindOneOf}
	for _, sequence := range alternatives {
		arg.Args = append(arg.Args, inOne(sequence))
	}
	arg.Name = joinNames(arg.Args)
	return arg
}

// inOne merges a sequence into one argument. A token at its beginning becomes the token of the whole.
func inOne(sequence []Argument) Argument {
	if len(sequence) == 1 {
		return sequence[0]
	}
	arg := Argument{Kind: KindBlock, Args: slices.Clone(sequence)}
	if first := &arg.Args[0]; first.Kind != KindToken && !first.Optional {
		arg.Token, first.Token = first.Token, ""
	}
	arg.Name = joinNames(arg.Args)
	return arg
}

func joinNames(args []Argument) string {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i] = arg.Name
	}
	return strings.Join(names, "_")
}

// The kinds of arguments that the notation distinguishes by itself.
const (
	KindToken  = "pure-token"
	KindOneOf  = "oneof"
	KindBlock  = "block"
	KindKey    = "key"
	kindString = "string"
)

// argumentKinds are the types of values that are not strings, with their names in the manual of Redis.
var argumentKinds = map[string][]string{
	"integer": strings.Fields("bits numkeys client-id cluster_bus_port config-epoch count cursor db decrement destination-db end integer end-slot entries_added entries_read " +
		"increment index index1 index2 len limit milliseconds min-idle-time ms num-matches numreplicas offset port protover rank seconds slot start start-slot stop timeout weight"),
	"unix-time": {"unix-time-milliseconds", "unix-time-seconds"},
	"pattern":   {"pattern"},
}

// wordArgument returns the argument of a word: a token if it has no lower-case letter.
func wordArgument(word string) Argument {
	if lower := strings.ToLower(word); word == strings.ToUpper(word) {
		return Argument{Name: lower, Kind: KindToken, Token: word}
	}
	for kind, names := range argumentKinds {
		if slices.Contains(names, word) {
			return Argument{Name: word, Kind: kind}
		}
	}
	return Argument{Name: word, Kind: kindString}
}

// Words returns the smallest and the largest number of words of arguments.
func Words(args []Argument) (least, most int) {
	const unbounded = 1 << 20
	for _, a := range args {
		from, to := 1, 1
		switch a.Kind {
		case KindBlock:
			from, to = Words(a.Args)
		case KindOneOf:
			from, to = unbounded, 0
			for i := range a.Args {
				f, t := Words(a.Args[i : i+1])
				from, to = min(from, f), max(to, t)
			}
		}
		if a.Token != "" && a.Kind != KindToken {
			from, to = from+1, to+1
		}
		if a.Multiple {
			to = unbounded
		}
		if a.Optional {
			from = 0
		}
		least, most = least+from, most+to
	}
	return least, most
}

// Positions are those of ids among the arguments of a command: from First to Last, every Step.
type Positions struct{ First, Last, Step int }

// MarkKeys marks the arguments at the positions of ids as keys; position is that of the first argument.
// It returns the position after the last.
func MarkKeys(args []Argument, keys Positions, position int) int {
	for i := range args {
		arg := &args[i]
		if arg.Token != "" {
			position++
		}
		switch arg.Kind {
		case KindBlock:
			position = MarkKeys(arg.Args, keys, position)
		case KindToken:
		default:
			if position == keys.First || position > keys.First && position <= keys.Last && (position-keys.First)%keys.Step == 0 {
				arg.Kind = KindKey
			}
			position++
		}
	}
	return position
}

// MarkNamed marks the arguments of a name as keys.
func MarkNamed(args []Argument, name string) {
	for i := range args {
		if args[i].Name == name && args[i].Kind == kindString {
			args[i].Kind = KindKey
		}
		MarkNamed(args[i].Args, name)
	}
}

// AreDoubles makes arguments with some names doubles.
func AreDoubles(args []Argument, names ...string) {
	for i := range args {
		if slices.Contains(names, args[i].Name) {
			args[i].Kind = "double"
		}
		AreDoubles(args[i].Args, names...)
	}
}

// BoundsAreIDs makes start and end strings, which are integers elsewhere: those of streams are ids. So is a
// time without a token, in the manual of Redis.
func BoundsAreIDs(args []Argument) {
	for i := range args {
		if name := args[i].Name; name == "start" || name == "end" || name == "stop" || name == "min-idle-time" && args[i].Token == "" {
			args[i].Kind = kindString
		}
		BoundsAreIDs(args[i].Args)
	}
}
