package jsonedit

import (
	"strings"
	"unicode/utf8"

	"mayfly/json/jsontext"
)

// Compact returns a value without white space, with the shortest escapes in strings, and with the last of
// repeated members at the place of the first. Numbers stay as they are spelled. A value that is so already is
// returned itself.
func Compact(value string) string {
	if value[0] <= ' ' || value[len(value)-1] <= ' ' {
		value = strings.Trim(value, jsontext.Space)
	}
	if isCompact(value) {
		return value
	}
	out, _ := appendCompact(make([]byte, 0, len(value)), value, 0)
	return string(out)
}

// Unrepeated returns a value in which no object has a name twice: itself if that is so already, else compact.
func Unrepeated(value string) string {
	if unrepeatedAt(value, jsontext.Skip(value, 0, ' ')) >= 0 {
		return value
	}
	return Compact(value)
}

// unrepeatedAt returns the end of the value at a position, or -1 if an object in it has a name twice.
func unrepeatedAt(text string, i int) (end int) {
	if c := text[i]; c != '{' && c != '[' {
		return jsontext.ValueEnd(text, i)
	}
	var names jsontext.NameSet
	members, may := 0, false
	w := jsontext.WalkAt(text, i)
	for ; w.Step(); members++ {
		may = names.Meet(&w) || may
		if w.Pos = unrepeatedAt(text, w.ValueFrom); w.Pos < 0 {
			return -1
		}
	}
	if end = w.Start + 1; may && Length(text[i:end]) < members {
		return -1
	}
	return end
}

// isCompact reports whether Compact would change nothing.
func isCompact(value string) bool {
	if strings.IndexByte(value, '\\') >= 0 {
		return false
	}
	if c := value[0]; c != '{' && c != '[' {
		return true
	}
	return surelyCompact(value) || isCompactAt(value, 0) >= 0
}

// surelyCompact is isCompactAt for most objects and arrays without backslashes, six times as fast. It
// compares hashes of names. false means that isCompactAt must tell.
func surelyCompact(text string) bool {
	var hashes [64]uint32 // of the names of all open objects
	var begin [16]uint8   // where those of each level begin
	names, depth := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			end := jsontext.StringEnd(text, i)
			if end == len(text) || text[end] != ':' {
				i = end - 1
				continue
			}
			h := jsontext.NameHash(text[i+1 : end-1])
			for _, other := range hashes[begin[depth]:names] {
				if other == h {
					return false
				}
			}
			if names == len(hashes) {
				return false
			}
			hashes[names] = h
			names++
			i = end
		case c <= ' ':
			return false
		case c == '{' || c == '[':
			if depth++; depth == len(begin) {
				return false
			}
			begin[depth] = uint8(names)
		case c == '}' || c == ']':
			names = int(begin[depth])
			depth--
		}
	}
	return true
}

// isCompactAt returns the end of the object or array at a position, or -1 if it is not compact.
func isCompactAt(text string, i int) (end int) {
	w := jsontext.WalkAt(text, i)
	seen := repetitions{}
	next := w.Pos
	for w.Step() {
		if w.Start != next || !w.Array && (w.ValueFrom != w.NameEnd+1 || seen.add(text[w.Start+1:w.NameEnd-1]) >= 0) {
			return -1
		}
		if c := text[w.ValueFrom]; c == '{' || c == '[' {
			if w.Pos = isCompactAt(text, w.ValueFrom); w.Pos < 0 {
				return -1
			}
		} else {
			w.Pos = jsontext.ValueEnd(text, w.ValueFrom)
		}
		if next = w.Pos; text[next] == ',' {
			next++
		}
	}
	if w.Start != next {
		return -1
	}
	return w.Start + 1
}

// appendCompact appends the value at a position and returns its end.
func appendCompact(out []byte, text string, i int) (_ []byte, end int) {
	switch text[i] {
	case '"':
		end = jsontext.StringEnd(text, i)
		return appendShortest(out, text[i:end]), end
	case '{':
		return appendObject(out, text, i)
	case '[':
		out = append(out, '[')
		w := jsontext.WalkAt(text, i)
		for first := true; w.Step(); first = false {
			if !first {
				out = append(out, ',')
			}
			out, w.Pos = appendCompact(out, text, w.ValueFrom)
		}
		return append(out, ']'), w.Start + 1
	}
	end = jsontext.ValueEnd(text, i)
	return append(out, text[i:end]...), end
}

// appendObject is appendCompact for an object.
func appendObject(out []byte, text string, i int) (_ []byte, end int) {
	var seen repetitions
	var values [][2]int // where out has the value of each member
	repeated := false
	from := len(out)
	out = append(out, '{')
	w := jsontext.WalkAt(text, i)
	for w.Step() {
		name := w.Name()
		at := len(out)
		if k := seen.add(name); k >= 0 {
			out, w.Pos = appendCompact(out, text, w.ValueFrom)
			values[k], repeated = [2]int{at, len(out)}, true
			continue
		}
		if len(values) > 0 {
			out = append(out, ',')
		}
		out = append(appendShortest(out, text[w.Start:w.NameEnd]), ':')
		at = len(out)
		out, w.Pos = appendCompact(out, text, w.ValueFrom)
		values = append(values, [2]int{at, len(out)})
	}
	if repeated {
		object := []byte{'{'}
		for k, v := range values {
			if k > 0 {
				object = append(object, ',')
			}
			object = append(jsontext.AppendString(object, seen.names[k]), ':')
			object = append(object, out[v[0]:v[1]]...)
		}
		out = append(out[:from], object...)
	}
	return append(out, '}'), w.Start + 1
}

// appendShortest appends a string with the shortest escapes. One with half of a surrogate pair stays as it
// is.
func appendShortest(out []byte, quoted string) []byte {
	if strings.IndexByte(quoted, '\\') < 0 {
		return append(out, quoted...)
	}
	content := jsontext.Unquote(quoted)
	if strings.ContainsRune(content, utf8.RuneError) {
		return append(out, quoted...)
	}
	return jsontext.AppendString(out, content)
}
