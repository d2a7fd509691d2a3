package query

import "strings"

// slips are operators of other languages, and what to write instead. Longer ones come first.
var slips = []struct{ text, instead string }{
	{"!==", "!="}, {"===", "="}, {"==", "="}, {"=>", ">="}, {"=<", "<="}, {"><", "!="}, {"&&", "AND"}, {"&", "AND"}, {"!", "NOT"}, {"|", "OR, or || to join strings"},
	{"??", "IIF(IS_DEFINED(a), a, b)"}, {"**", "a * a"},
}

// slip returns what to write instead of the operator at the start of text; size is 0 if there is none.
func slip(text string) (size int, instead string) {
	for _, mark := range marks {
		if strings.HasPrefix(text, mark) && !strings.HasPrefix(text, "!==") {
			return 0, ""
		}
	}
	for _, s := range slips {
		if strings.HasPrefix(text, s.text) {
			return len(s.text), s.instead
		}
	}
	return 0, ""
}

// bitwise are operators of Cosmos DB outside the subset. Longer ones come first.
var bitwise = []string{">>>", ">>", "<<", "^", "~"}

// bitwiseOperator returns the operator on bits at the start of text, "" without one.
func bitwiseOperator(text string) string {
	for _, mark := range bitwise {
		if strings.HasPrefix(text, mark) {
			return mark
		}
	}
	return ""
}

// beforeValues are keywords that a value follows.
var beforeValues = map[string]bool{
	"SELECT": true, "VALUE": true, "DISTINCT": true, "TOP": true, "FROM": true, "WHERE": true, "BY": true, "AND": true, "OR": true, "NOT": true,
	"IN": true, "BETWEEN": true, "LIKE": true, "ESCAPE": true, "LIMIT": true, "OFFSET": true,
}

// endsValue reports whether a token can be the last of a value.
func endsValue(t token) bool {
	switch t.kind {
	case wordToken, paramToken, numberToken, stringToken:
		return !beforeValues[t.upper]
	}
	return t.is(")") || t.is("]") || t.is("}")
}

// foreign returns what to write instead of a character that is not legal outside of strings, or "".
func foreign(r rune) string {
	switch r {
	case '`':
		return `: a name is written plain, or c["name"]`
	case '\u2018', '\u2019', '\u201C', '\u201D':
		return `: a string is written 'open' or "open"`
	case '?', '$':
		return ": a parameter is written @name, a path status or c.status"
	case '#':
		return ": a comment is written -- or /* */"
	}
	return ""
}
