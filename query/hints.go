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

// options are the words that follow the query in a command.
var options = map[string]bool{"COUNT": true, "CURSOR": true, "WITHIDS": true, "WITHMETA": true, "EXPLAIN": true, "PARAMS": true}

// infix are words that other languages write between two values, and what to write here.
var infix = map[string]string{
	"IS": "write IS_NULL(a), a = null or IS_DEFINED(a)", "ILIKE": "write LOWER(a) LIKE 'x%'", "REGEXP": "write LIKE", "RLIKE": "write LIKE", "SIMILAR": "write LIKE",
	"GLOB": "write LIKE", "MOD": "write %", "DIV": "write FLOOR(a / b)", "XOR": "write a != b", "EQ": "write =", "NE": "write !=", "LT": "write <", "LE": "write <=",
	"GT": "write >", "GE": "write >=",
}

// hint returns what may help at a token that is not legal where it stands, or "". before is the token before.
func (p *parser) hint() string {
	t := p.peek()
	var before token
	if p.next > 0 {
		before = p.tokens[p.next-1]
	}
	switch {
	case t.kind == tokenString && before.kind == tokenString && before.at+len(before.text) == t.at:
		return `: a quote in a string is written \'`
	case t.kind == tokenWord && infix[t.upper] != "":
		return ": " + infix[t.upper]
	case t.kind == tokenWord && options[t.upper]:
		return ": " + t.upper + " is an option of the command, outside of the query"
	case t.kind == tokenWord && functions[t.upper] != nil:
		return ": a function is written " + t.upper + "(...)"
	case before.kind == tokenWord && functions[before.upper] != nil && !before.is(t.text):
		return ": a function is written " + before.upper + "(...)"
	case t.is("*") && before.is("."), t.is("*") && before.is(","), t.is(",") && before.is("*"):
		return ": SELECT * takes whole documents, and no other item"
	case t.is("*") && before.is("(") && p.next > 1 && p.tokens[p.next-2].is("COUNT"):
		return ": all are counted by COUNT(1)"
	case t.is("%") && before.is("LIKE"):
		return ": a pattern is a string, like 'a%'"
	case t.kind == tokenWord && reserved[t.upper] && (operators[p.after().text] != 0 || p.after().is("=") || p.after().is(".") || p.after().is("[")):
		return ": it is a keyword, so with FROM c the member is c." + clip(t.text)
	case t.is(":") && p.after().kind == tokenWord:
		return ": a parameter is written @" + clip(p.after().text)
	}
	return ""
}
