package aof

import "strings"

// Cut cuts the first command off a text of set and del commands. It shares memory with the text. ok is false
// for anything but the form that this package writes.
func Cut(text string) (o Op, rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, setHead)
	if !ok {
		if rest, ok = strings.CutPrefix(text, delHead); ok {
			o.Del = true
			o.Key, rest, ok = cutText(rest)
		}
		return o, rest, ok
	}
	if o.Key, rest, ok = cutText(rest); ok {
		o.Rec, rest, ok = cutText(rest)
	}
	return o, rest, ok
}

// cutText is cutBulk for a string.
func cutText(s string) (bulk, rest string, ok bool) {
	if len(s) < 2 || s[0] != '$' || s[1] == '0' && len(s) > 2 && s[2] != '\r' {
		return "", "", false
	}
	n, i := 0, 1
	for ; i < len(s) && i <= maxDigits && s[i] >= '0' && s[i] <= '9'; i++ {
		n = n*10 + int(s[i]-'0')
	}
	if i == 1 || len(s)-i < n+len("\r\n\r\n") || s[i] != '\r' || s[i+1] != '\n' {
		return "", "", false
	}
	s = s[i+2:]
	return s[:n], s[n+2:], s[n] == '\r' && s[n+1] == '\n'
}
