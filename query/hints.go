package query

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
	case t.kind == stringToken && before.kind == stringToken && before.at+len(before.text) == t.at:
		return `: a quote in a string is written \'`
	case t.kind == wordToken && infix[t.upper] != "":
		return ": " + infix[t.upper]
	case t.kind == wordToken && options[t.upper]:
		return ": " + t.upper + " is an option of the command, outside of the query"
	case t.kind == wordToken && functions[t.upper] != nil:
		return ": a function is written " + t.upper + "(...)"
	case before.kind == wordToken && functions[before.upper] != nil && !before.is(t.text):
		return ": a function is written " + before.upper + "(...)"
	case t.is("*") && before.is("."), t.is("*") && before.is(","), t.is(",") && before.is("*"):
		return ": SELECT * takes whole documents, and no other item"
	case t.is("*") && before.is("(") && p.next > 1 && p.tokens[p.next-2].is("COUNT"):
		return ": all are counted by COUNT(1)"
	case t.is("%") && before.is("LIKE"):
		return ": a pattern is a string, like 'a%'"
	case t.kind == wordToken && reserved[t.upper] && (operators[p.after().text] != 0 || p.after().is("=") || p.after().is(".") || p.after().is("[")):
		return ": it is a keyword, so with FROM c the member is c." + clip(t.text)
	case t.is(":") && p.after().kind == wordToken:
		return ": a parameter is written @" + clip(p.after().text)
	}
	return ""
}
