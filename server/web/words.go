package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
)

var errWords = fmt.Errorf(`the body must be a JSON array of 1 to %d words: strings, or {"base64": "…"} for other bytes`, maxWords)

// binary is how JSON shows a string that is not UTF-8.
type binary struct {
	Base64 *string `json:"base64"`
}

// parseWords returns the words of a command. It refuses what decoding would change: a word names what is read
// or deleted.
func parseWords(body []byte) ([]string, error) {
	var list []json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &list) != nil || len(list) == 0 || len(list) > maxWords {
		return nil, errWords
	}
	words := make([]string, len(list))
	for i, text := range list {
		var err error
		if words[i], err = parseWord(text); err != nil {
			return nil, fmt.Errorf("word %d: %w", i+1, err)
		}
	}
	return words, nil
}

func parseWord(text json.RawMessage) (string, error) {
	switch text[0] {
	case '"':
		if hasLoneSurrogate(text) {
			return "", errors.New("half a surrogate pair is no character")
		}
		var word string
		err := json.Unmarshal(text, &word)
		return word, err
	case '{':
		var b binary
		if json.Unmarshal(text, &b) == nil && b.Base64 != nil {
			if raw, err := base64.StdEncoding.DecodeString(*b.Base64); err == nil {
				return string(raw), nil
			}
		}
	}
	return "", errWords
}

// hasLoneSurrogate reports whether a valid JSON string escapes half of a pair, which encoding/json replaces
// by U+FFFD.
func hasLoneSurrogate(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		unit := escapedUnit(text[i+1:])
		i += 4
		switch {
		case unit>>10 == 0xdc00>>10: // a second half without a first one
			return true
		case unit>>10 == 0xd800>>10:
			rest := text[i+1:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' || escapedUnit(rest[2:])>>10 != 0xdc00>>10 {
				return true
			}
			i += 6
		}
	}
	return false
}

func escapedUnit(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 16) // four digits, as the string is valid
	return n
}

// exact is the largest integer that JavaScript holds without a loss.
const exact = 1<<53 - 1

// asJSON returns a reply as a value for encoding/json. Integers that JavaScript would round are strings.
func asJSON(reply any) any {
	switch v := reply.(type) {
	case int64:
		if v < -exact || v > exact {
			return strconv.FormatInt(v, 10)
		}
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		text := base64.StdEncoding.EncodeToString(v)
		return binary{&text}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = asJSON(e)
		}
		return list
	case redis.Error:
		return map[string]string{"error": v.Error()}
	}
	return reply
}
