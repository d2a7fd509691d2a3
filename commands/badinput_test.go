package commands

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mayfly/commands/engine"
	"mayfly/commands/syntax"
	"mayfly/test/drill"
)

// TestBadInput gives every command random arguments, also in wrong numbers. Each reply must be legal, no
// panic may cause it, and an error must change nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = "5000"
	seed := [][]string{
		{"CONTAINER.SET", "c", "TTL", "100"},
		{"CONTAINER.SET", "off", "TTL", "off", "TTLMODE", "lenient"},
		{"SET", "k", "text"},
		{"SET", "n", "9223372036854775807"},
		{"DOC.PUT", "c", "d", `{"ttl":5}`},
		{"DOC.PUT", "0", "d", `{"a":1}`},
	}
	random := drill.Rand(t)
	tries := drill.Pick(9, 12, 180) // of each command, with more and more arguments
	options := map[string]string{}
	for name, value := range w.host.options {
		options[name] = value
	}
	for _, r := range engine.AllRows {
		if r.Parse == nil {
			continue
		}
		for _, args := range seed {
			w.do(0, args...)
		}
		name := strings.Split(r.FullName, "|")
		words := nastyArguments(r.Syntax)
		before := w.dump()
		for try := range tries {
			args := slices.Clone(name)
			for range min(try*9/tries, 8) {
				args = append(args, words[random.IntN(len(words))])
			}
			reply := w.do(1, args...)
			if reply.Kind == engine.KindNone && (w.last.Close || w.session(1).Replies != engine.ReplyMode{}) {
				reply = engine.OK // SHUTDOWN answers by ending the connection, CLIENT REPLY OFF by nothing
			}
			if text := illegal(reply); text != "" {
				t.Errorf("%.200q: %s: %.200s", args, text, notation(reply))
			}
			after := w.dump()
			if reply.Kind == engine.KindError && !slices.Equal(before, after) {
				t.Errorf("%.200q failed with %s, but changed\n%q to\n%q", args, reply.Str, before, after)
			}
			before = after
			// Restore what the command changed in the session or the server.
			delete(w.sessions, 1)
			w.engine.Pause.Finish(nil)
			for name, value := range options {
				w.host.options[name] = value
			}
		}
	}
}

// nastyArguments returns words to try, those of the syntax included.
func nastyArguments(text string) []string {
	words := []string{
		"", " ", "k", "n", "d", "c", "off", "none", "0", "1", "-1", "-0", "+1", "1.5", "1e3", "inf", "nan", "abc",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "2147483648", "18446744073709551615",
		"\x00", "\xff\xfe", "line\r\nbreak", "{}", `{"ttl":0}`, `{"a":`, "[[[[", `"`, "*", "[", `\`, "[a-", "null",
		"EX", "PX", "NX", "XX", "GET", "TTL", "MATCH", "COUNT",
		strings.Repeat("x", 5001), strings.Repeat("9", 400), strings.Repeat("[", 4000), strings.Repeat("*a", 2000),
	}
	for _, word := range syntax.Split(text) {
		if word == strings.ToUpper(word) {
			words = append(words, word)
		}
	}
	return words
}

// illegal returns what is wrong with a reply, "" if nothing.
func illegal(r engine.Reply) string {
	switch r.Kind {
	case engine.KindNone:
		return "no reply"
	case engine.KindStatus:
		if strings.ContainsAny(r.Str, "\r\n") {
			return "status of more than one line"
		}
	case engine.KindError:
		code, text, _ := strings.Cut(r.Str, " ")
		switch {
		case r.Str == string(engine.ErrInternal):
			return "panic"
		case strings.ContainsAny(r.Str, "\r\n"):
			return "error of more than one line"
		case code == "" || code != strings.ToUpper(code) || text == "":
			return "error without a code or without a text"
		case len(r.Str) > 600:
			return "error of more than 600 bytes"
		case !utf8.ValidString(r.Str) && !strings.HasPrefix(text, "unknown ") && !strings.HasPrefix(text, "Un") && !strings.HasPrefix(text, "Error compiling script") && code != "NOGROUP": // as in Redis
			return "error with bytes that are no text"
		}
	case engine.KindMap:
		if len(r.Elems)%2 != 0 {
			return "map with half a pair"
		}
		fallthrough
	case engine.KindArray, engine.KindSet, engine.KindPush:
		for _, e := range r.Elems {
			if e.Kind == engine.KindNone || e.Kind == engine.KindError {
				return "element of kind " + notation(e)
			}
			if text := illegal(e); text != "" {
				return text
			}
		}
	}
	return ""
}
