package query

import "mayfly/query/token"

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
	var before token.Token
	if p.next > 0 {
		before = p.tokens[p.next-1]
	}
	switch {
	case t.Kind == token.String && before.Kind == token.String && before.At+len(before.Text) == t.At:
		return `: a quote in a string is written \'`
	case t.Kind == token.Word && infix[t.Upper] != "":
		return ": " + infix[t.Upper]
	case t.Kind == token.Word && options[t.Upper]:
		return ": " + t.Upper + " is an option of the command, outside of the query"
	case t.Kind == token.Word && functions[t.Upper] != nil:
		return ": a function is written " + t.Upper + "(...)"
	case before.Kind == token.Word && functions[before.Upper] != nil && !before.Is(t.Text):
		return ": a function is written " + before.Upper + "(...)"
	case t.Is("*") && before.Is("."), t.Is("*") && before.Is(","), t.Is(",") && before.Is("*"):
		return ": SELECT * takes whole documents, and no other item"
	case t.Is("*") && before.Is("(") && p.next > 1 && p.tokens[p.next-2].Is("COUNT"):
		return ": all are counted by COUNT(1)"
	case t.Is("%") && before.Is("LIKE"):
		return ": a pattern is a string, like 'a%'"
	case t.Kind == token.Word && reserved[t.Upper] && (operators[p.after().Text] != 0 || p.after().Is("=") || p.after().Is(".") || p.after().Is("[")):
		return ": it is a keyword, so with FROM c the member is c." + token.Clip(t.Text)
	case t.Is(":") && p.after().Kind == token.Word:
		return ": a parameter is written @" + token.Clip(p.after().Text)
	}
	return ""
}
